// The terminal parser: supported sequences, ignored ones, and hostile input.
import { describe, expect, it } from 'vitest';
import { AnsiLine, parseLine, plainText, WHOLE } from '../../src/lib/log/ansi/parser';
import { safeHref } from '../../src/lib/log/ansi/link';

const ESC = '\u001b';
const looks = (text: string): string[] =>
  parseLine([text]).spans.map((span) => (span.classes ? `${span.classes}|${span.text}` : span.text));

describe('colours and styles', () => {
  it.each([
    ['plain', ['plain']],
    [`${ESC}[31mred${ESC}[0m off`, ['ansi-fg-1|red', ' off']],
    [`${ESC}[1;31mboth${ESC}[m off`, ['ansi-bold ansi-fg-1|both', ' off']],
    [`${ESC}[92mbright${ESC}[39m off`, ['ansi-fg-10|bright', ' off']],
    [`${ESC}[2;3;4;9mall${ESC}[22;23;24;29m off`, ['ansi-dim ansi-italic ansi-underline ansi-strike|all', ' off']],
    [`${ESC}[38;5;9mnine`, ['ansi-fg-9|nine']],
    [`${ESC}[4:3mcurly${ESC}[4:0m off`, ['ansi-underline|curly', ' off']],
    [`${ESC}[31m${ESC}[31mone${ESC}[31m span`, ['ansi-fg-1|one span']],
    ['\u009b31mC1\u009b0m off', ['ansi-fg-1|C1', ' off']],
  ])('%j', (text, expected) => expect(looks(text)).toEqual(expected));

  it('true colour, of either spelling, keeps its value where it can be read and is moved where it cannot', () => {
    for (const text of [`${ESC}[38;2;179;38;30mx`, `${ESC}[38:2::179:38:30mx`, `${ESC}[38:2:179:38:30mx`]) {
      expect(parseLine([text]).spans[0]?.color).toMatch(/^light-dark\(#b3261e, #[0-9a-f]{6}\)$/);
    }
    expect(parseLine([`${ESC}[38;5;16mblack`]).spans[0]?.color).not.toContain(', #000000');
  });

  it('inverse swaps, and a coloured ground has readable text', () => {
    const [inverse, ground] = [parseLine([`${ESC}[7mx`]).spans[0], parseLine([`${ESC}[33;47mx`]).spans[0]];
    expect(inverse?.background).toBe('light-dark(#1f2328, #dde3ea)');
    expect(inverse?.color).toBe('light-dark(#fbfbfa, #12161c)');
    expect(ground?.background).toBe('light-dark(#57606a, #cfd6de)');
  });

  it('unknown codes change nothing', () => {
    expect(looks(`${ESC}[38;5;999m${ESC}[38;2;1;2;300m${ESC}[38m${ESC}[123m${ESC}[99999999999999mx`)).toEqual(['x']);
  });
});

describe('progress lines', () => {
  it.each([
    ['10%\r20%\r100%', '100%'],
    ['downloading 9%\rdone', 'doneloading 9%'],
    [`downloading 9%\r${ESC}[Kdone`, 'done'],
    [`downloading 9%\r${ESC}[2Kdone`, 'done'],
    ['with a Windows end\r', 'with a Windows end'],
    ['abc\b\bX', 'aXc'],
    [`abc${ESC}[2DX`, 'aXc'],
    [`abc${ESC}[1GX`, 'Xbc'],
    ['😀😀\rab', 'ab'],
    ['\r\r\r', ''],
  ])('%j ends as %j', (text, expected) => expect(plainText([text])).toBe(expected));

  it('continue in the next record of the line', () => {
    expect(plainText(['10%\r', '20%\r', 'done'])).toBe('done');
    expect(plainText(['name? ', 'ana'])).toBe('name? ana');
  });
});

describe('across records', () => {
  it('a sequence split anywhere gives the same line', () => {
    const text = `a${ESC}[1;38;2;9;200;7mb${ESC}]8;;https://example.com/${ESC}\\link${ESC}]8;;\u0007 \u009b0mc\rX${ESC}P1$r0m${ESC}\\Y${ESC}(Bz`;
    const whole = parseLine([text]);
    for (let at = 0; at <= text.length; at += 1) expect(parseLine([text.slice(0, at), text.slice(at)])).toEqual(whole);
    expect(parseLine(Array.from(text))).toEqual(whole);
  });

  it('a new line starts without style', () => {
    expect(looks(`${ESC}[31mred`)).toEqual(['ansi-fg-1|red']);
    expect(looks('next')).toEqual(['next']);
  });
});

describe('what is left out', () => {
  const corpus: [string, string][] = [
    ['title', `a${ESC}]0;owned\u0007b`],
    ['clipboard', `a${ESC}]52;c;ZXZpbA==${ESC}\\b`],
    ['device status', `a${ESC}[6n${ESC}[c${ESC}[>0cb`],
    ['DECRQSS', `a${ESC}P$qm${ESC}\\b`],
    ['alternate screen', `a${ESC}[?1049h${ESC}[2J${ESC}[Hb`],
    ['cursor up', `a${ESC}[5Ab`],
    ['reset', `a${ESC}cb`],
    ['character set', `a${ESC}(0${ESC})Bb`],
    ['APC, PM, SOS', `a${ESC}_x${ESC}\\${ESC}^x${ESC}\\${ESC}Xx${ESC}\\b`],
    ['8-bit OSC', 'a\u009d0;t\u009cb'],
    ['bell and shifts', 'a\u0007\u000e\u000fb'],
    ['private modes', `a${ESC}[?25l${ESC}[<1mb`],
    ['a sequence cut by another', `a${ESC}[3${ESC}[0mb`],
    ['a lone escape at the end', `ab${ESC}`],
  ];
  it.each(corpus)('%s', (_name, text) => expect(parseLine([text]).spans).toEqual([{ text: 'ab', classes: '' }]));

  it('control characters are shown', () => expect(plainText(['a\u0000\u0001\u007fb\n'])).toBe('a␀␁␡b␊'));
});

describe('links', () => {
  const link = (uri: string): string | undefined => parseLine([`${ESC}]8;id=1;${uri}${ESC}\\text${ESC}]8;;${ESC}\\`]).spans[0]?.href;
  it.each(['https://example.com/a?b=c;d', 'http://127.0.0.1:8080/'])('%s is one', (uri) => expect(link(uri)).toBe(uri));
  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'file:///etc/passwd',
    'vbscript:x',
    ' https://example.com',
    'https:/\u0009/example.com',
    'https://user:pass@example.com/',
    '//example.com',
    'https://',
    `https://example.com/${'x'.repeat(5_000)}`,
    'https://example.com/\u202egnp.exe',
  ])('%j is none', (uri) => expect(link(uri)).toBeUndefined());

  it('a quote cannot break out of the address', () => {
    expect(safeHref('https://x"/onmouseover="alert(1)')).toBeUndefined();
    expect(safeHref('https://x.example/"onmouseover="alert(1)')).toBeUndefined();
  });

  it('a colour reset does not end a link', () => {
    const spans = parseLine([`${ESC}]8;;https://example.com/${ESC}\\a${ESC}[0mb${ESC}]8;;${ESC}\\c`]).spans;
    expect(spans.map((span) => span.href)).toEqual(['https://example.com/', undefined]);
    expect(spans[0]?.text).toBe('ab');
  });
});

describe('hostile input', () => {
  it('markup is text', () => {
    const text = '<script>alert(1)</script><img src=x onerror=alert(1)>&amp;';
    expect(parseLine([text]).spans).toEqual([{ text, classes: '' }]);
  });

  it('bidirectional controls are shown by name', () => {
    const spans = parseLine(['user\u202e\u2066// admin\u2069\u200f']).spans;
    expect(spans).toContainEqual({ text: '⟨U+202E⟩⟨U+2066⟩', classes: 'ansi-mark' });
    expect(spans.map((span) => span.text).join('')).toBe('user⟨U+202E⟩⟨U+2066⟩// admin⟨U+2069⟩⟨U+200F⟩');
  });

  it('random bytes give only known classes', () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    const alphabet = [
      ESC,
      '[',
      ']',
      '8',
      ';',
      ':',
      '3',
      '1',
      'm',
      'K',
      'G',
      'D',
      '\r',
      '\b',
      '\u0007',
      '\\',
      'P',
      'x',
      '\u009b',
      '\ud83d',
      '\u202e',
      'h',
      '?',
      '\u0000',
    ];
    for (let round = 0; round < 500; round += 1) {
      const text = Array.from({ length: random(80) }, () => alphabet[random(alphabet.length)]).join('');
      for (const span of parseLine([text]).spans) {
        expect(span.classes).toMatch(/^(ansi-[a-z]+(-\d+)? ?)*$/);
        expect(span.text).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
        expect(span.href).toBeUndefined();
      }
    }
  });

  it('far cursor moves do not make a long line', () => {
    expect(plainText([`a${ESC}[99999C${ESC}[99999Cb`]).length).toBeLessThan(3_000);
  });
});

describe('long lines', () => {
  const MB = 1_048_576;

  it('a line of 1 MB is parsed whole, plain and coloured', () => {
    expect(plainText(['x'.repeat(MB)])).toBe('x'.repeat(MB));
    const coloured = `${ESC}[31mx${ESC}[0my`.repeat(MB / 11);
    expect(parseLine([coloured]).spans).toHaveLength(2 * Math.floor(MB / 11));
  });

  it('a progress bar of 1 MB costs one pass however it was drawn', () => {
    expect(plainText([`${'y'.repeat(MB / 2)}${'\rx'.repeat(MB / 4)}`])).toBe(`x${'y'.repeat(MB / 2 - 1)}`);
  });

  it('is cut by characters and by spans', () => {
    const cut = parseLine(['x'.repeat(MB)], { chars: 2_000, spans: 100 });
    expect([cut.spans[0]?.text.length, cut.cut]).toEqual([2_000, true]);
    const many = parseLine([`${ESC}[31mx${ESC}[0my`.repeat(1_000)], { chars: 2_000, spans: 100 });
    expect([many.spans.length, many.cut]).toEqual([100, true]);
    expect(parseLine(['short'], { chars: 2_000, spans: 100 }).cut).toBe(false);
    expect(parseLine(['x'.repeat(2_000)], { chars: 2_000, spans: 100 }).cut).toBe(false);
  });

  it('an unterminated sequence is bounded', () => {
    expect(plainText([`${ESC}]0;${'x'.repeat(20_000)}`]).length).toBeGreaterThan(10_000);
  });

  it('the cut part still affects the visible part', () => {
    expect(parseLine([`${'x'.repeat(5_000)}\rdone`], { chars: 4, spans: 9 }).spans).toEqual([{ text: 'done', classes: '' }]);
  });

  it('continues across records without parsing again', () => {
    const line = new AnsiLine();
    line.push(`${ESC}[3`);
    line.push('1mred');
    expect(line.line(WHOLE).spans).toEqual([{ text: 'red', classes: 'ansi-fg-1' }]);
  });
});

describe('output of real tools', () => {
  it.each([
    [
      'cargo',
      `${ESC}[0m${ESC}[0m${ESC}[1m${ESC}[32m   Compiling${ESC}[0m serde v1.0.0`,
      ['ansi-bold ansi-fg-2|   Compiling', ' serde v1.0.0'],
    ],
    ['npm', `${ESC}[1G${ESC}[0K⠙${ESC}[1G${ESC}[0Kadded 3 packages`, ['added 3 packages']],
    ['docker', `${ESC}[1A${ESC}[2K\rabc: Pull complete ${ESC}[1B`, ['abc: Pull complete ']],
    ['pytest', `${ESC}[32m.${ESC}[0m${ESC}[31mF${ESC}[0m${ESC}[36m [100%]${ESC}[0m`, ['ansi-fg-2|.', 'ansi-fg-1|F', 'ansi-fg-6| [100%]']],
  ])('%s', (_tool, text, expected) => expect(looks(text)).toEqual(expected));
});
