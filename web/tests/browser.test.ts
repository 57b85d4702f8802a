// Browser features: clipboard, downloads, local storage.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { copyText } from '../src/lib/clipboard';
import { save } from '../src/lib/file';
import { readItem, writeItem } from '../src/lib/storage';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A page without a clipboard, as over plain HTTP, with these windows open; tells where a text was put to be copied. */
function plainPage(windows: string[], copies: boolean): string[] {
  const put: string[] = [];
  const place = (name: string) => ({ append: (area: { value: string }) => put.push(`${name}: ${area.value}`) });
  vi.stubGlobal('navigator', {});
  vi.stubGlobal('document', {
    body: place('body'),
    querySelectorAll: () => windows.map(place),
    createElement: () => ({ value: '', className: '', select: () => undefined, remove: () => undefined }),
    execCommand: () => copies,
  });
  return put;
}

test('a text is copied to the clipboard', async () => {
  const writeText = vi.fn();
  vi.stubGlobal('navigator', { clipboard: { writeText } });
  await copyText('a');
  expect(writeText).toHaveBeenCalledWith('a');
});

test('without TLS a text is copied inside the open dialog', async () => {
  const put = plainPage([], true);
  await copyText('a');
  expect(put).toEqual(['body: a']);
  const inside = plainPage(['keys', 'question'], true);
  await copyText('b');
  expect(inside).toEqual(['question: b']);
});

test('a failed copy is an error', async () => {
  plainPage([], false);
  await expect(copyText('a')).rejects.toThrow('browser blocked copying');
});

test('a blob URL is revoked only after the download', () => {
  const link = { href: '', download: '', click: vi.fn() };
  vi.stubGlobal('document', { createElement: () => link });
  vi.spyOn(URL, 'createObjectURL').mockReturnValue('blob:1');
  const revoked = vi.spyOn(URL, 'revokeObjectURL').mockReturnValue();
  save(new Blob(['x']), 'audit.ndjson');
  expect(link).toMatchObject({ href: 'blob:1', download: 'audit.ndjson' });
  expect([link.click.mock.calls.length, revoked.mock.calls.length]).toEqual([1, 0]);
  vi.advanceTimersByTime(60_000);
  expect(revoked).toHaveBeenCalledWith('blob:1');
});

test('a stored text is read back until it is removed', () => {
  const texts = new Map<string, string>();
  vi.stubGlobal('localStorage', { getItem: (name: string) => texts.get(name) ?? null, setItem: (name: string, text: string) => texts.set(name, text), removeItem: (name: string) => texts.delete(name) });
  writeItem('a', 'b');
  expect(readItem('a')).toBe('b');
  writeItem('a', null);
  expect([readItem('a'), texts.size]).toEqual([null, 0]);
});

test('blocked local storage does not break the page', async () => {
  const refuses = { get: () => { throw new DOMException('denied', 'SecurityError'); }, configurable: true };
  Object.defineProperty(globalThis, 'localStorage', refuses);
  try {
    writeItem('a', 'b');
    expect(readItem('a')).toBeNull();
    const { appearance } = await import('../src/lib/theme.svelte');
    expect(appearance.theme).toBe('system');
  } finally {
    Reflect.deleteProperty(globalThis, 'localStorage');
  }
});
