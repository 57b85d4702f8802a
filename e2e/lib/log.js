// Reading the log viewer: its state, its rows, and the whole log by scrolling.

/** The viewer's word for how it stands: live, polling, reconnecting, finished. */
export function state(page) {
  return page.getByTestId('log-state');
}

/** The row of a line. */
export function row(page, line) {
  return page.locator(`.log-row[data-line="${line}"]`);
}

/** Waits until the viewer says that the execution has ended. */
export async function ended(page, timeout = 60_000) {
  await page.waitForFunction(() => document.querySelector('[data-testid="log-state"]')?.textContent === 'finished', undefined, { timeout });
}

/** Waits until a list has so many rows, and is the answer to what was asked last. */
export async function rows(page, count) {
  await page.waitForFunction((wanted) => !document.querySelector('[aria-busy="true"]') && document.querySelectorAll('tbody tr').length === wanted, count);
}

/** Every line of a log by its number, as text, gathered while scrolling from the top to the end. */
export async function wholeText(page) {
  return page.evaluate(async () => {
    const scroller = document.querySelector('[data-testid="log-scroller"]');
    const found = new Map();
    const settled = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 30))));
    const gather = () => {
      let waiting = false;
      for (const row of document.querySelectorAll('.log-row')) {
        const text = row.querySelector('.log-text');
        if (text) found.set(Number(row.dataset.line), text.textContent);
        else waiting = true;
      }
      return waiting;
    };
    scroller.scrollTop = 0;
    await settled();
    for (let tries = 0; tries < 10_000; tries += 1) {
      while (gather()) await settled();
      if (scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2) break;
      scroller.scrollTop += scroller.clientHeight * 0.7;
      await settled();
    }
    gather();
    return [...found].sort(([a], [b]) => a - b);
  });
}
