// Copying to the clipboard.

/** Copies a text, also where the page is not served over TLS. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  // While a dialog is open, nothing outside it can be selected.
  const window = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
  window.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('the browser blocked copying');
}
