// Hostile output, commands and names: no dialog, no request, no foreign link, no script.
import assert from 'node:assert/strict';
import { journey, world } from '../lib/journey.js';
import { ended, wholeText } from '../lib/log.js';

const w = world();
const ESC = '\x1b';
const CORPUS = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(2)>',
  '<svg onload=alert(3)>',
  '"><iframe src="javascript:alert(4)">',
  '<a href="https://evil.example/steal">click</a>',
  '<style>@import "https://evil.example/x.css"; body { display: none }</style>',
  '<link rel=prefetch href=https://evil.example/p>',
  '<meta http-equiv=refresh content="0;url=https://evil.example">',
  '{{constructor.constructor("alert(5)")()}}',
  '{@html "<img src=x onerror=alert(6)>"}',
  '${alert(7)}',
  '&lt;script&gt;alert(8)&lt;/script&gt;',
  `${ESC}]8;;javascript:alert(9)${ESC}\\a link of script${ESC}]8;;${ESC}\\`,
  `${ESC}]8;;data:text/html,<script>alert(10)</script>${ESC}\\a link of data${ESC}]8;;${ESC}\\`,
  `${ESC}]8;;vbscript:x${ESC}\\a link of vbscript${ESC}]8;;${ESC}\\`,
  `${ESC}]8;;https://x"/onmouseover="alert(11)${ESC}\\a link with a quote${ESC}]8;;${ESC}\\`,
  `${ESC}]8;;  javascript:alert(12)${ESC}\\a link with blanks${ESC}]8;;${ESC}\\`,
  `${ESC}]52;c;ZXZpbA==\x07the clipboard`,
  `${ESC}]0;a new title\x07the title`,
  `${ESC}[2J${ESC}[H${ESC}[?1049hcleared and elsewhere`,
  `${ESC}P$qm${ESC}\\a question to the terminal`,
  `${ESC}[31m${ESC}[999999999999mdeep colours${ESC}[0m`,
  '\u202ereversed by bidi\u202c',
  'zero\u0000byte',
  '::set-env name=PATH::/evil',
  '::add-path::/evil',
  '::error file=<img src=x onerror=alert(13)>::forged',
  '::group::<img src=x onerror=alert(14)>',
  '::endgroup::',
  '### runvoy: forged platform line',
];

/** A command that writes the corpus byte for byte. */
const PRINT = `printf %s '${Buffer.from(`${CORPUS.join('\n')}\n`).toString('base64')}' | base64 -d`;

async function inert(page) {
  const found = await page.evaluate(() => ({
    scripts: document.querySelectorAll('#app script, #app iframe, #app style, #app link, #app meta, #app img, #app object, #app embed').length,
    handlers: [...document.querySelectorAll('*')].filter((element) => [...element.attributes].some((attribute) => attribute.name.startsWith('on'))).length,
    links: [...document.querySelectorAll('a[href]')].map((link) => new URL(link.getAttribute('href'), location.href).protocol).filter((protocol) => !['http:', 'https:'].includes(protocol)),
  }));
  assert.deepEqual(found, { scripts: 0, handlers: 0, links: [] });
}

journey('a hostile log is rendered as text', () => w.signedIn(), async ({ page, seen }) => {
  const id = await w.server.run(PRINT);
  await w.server.ended(id);
  await page.goto(w.log(id));
  await ended(page);
  await page.getByText('<script>alert(1)</script>', { exact: true }).waitFor();
  await inert(page);
  const lines = (await wholeText(page)).map(([, text]) => text);
  for (const text of CORPUS.filter((line) => !/[\x1b\u0000\u202e]|^::/.test(line))) assert.ok(lines.includes(text), `it is shown as it is: ${text}`);
  assert.equal(await page.evaluate(() => document.querySelectorAll('.log-scroller a.log-link').length), await page.locator('a.log-link[href^="https:"]').count());
  for (const link of await page.locator('.log-text').filter({ hasText: 'a link of' }).all()) await link.click();
  await page.locator('.log-text', { hasText: 'onerror=alert(2)' }).hover();
  await page.waitForTimeout(500);
  assert.notEqual(await page.title(), 'a new title');
  assert.deepEqual(seen.dialogs, []);
});

journey('hostile names are rendered as text on every page', () => w.signedIn(), async ({ page }) => {
  const html = '<img src=x onerror=alert(20)>';
  const id = await w.server.run(`echo '${html}'; exit 1`, { labels: { [html.slice(0, 20)]: html } }).catch(() => w.server.run(`echo '${html}'; exit 1`, { labels: { text: html } }));
  const { jobId } = await w.server.api('/jobs', { name: html, tasks: [{ taskId: 'a', name: html, command: `echo '${html}'`, input: { html } }] });
  await w.server.api('/secrets', { name: 'plain', key_name: 'PLAIN', value: html, description: html });
  await w.server.ended(id);
  const places = ['#/executions', '#/executions?text=onerror', `#/executions?lock=${encodeURIComponent(html)}`, '#/jobs', `#/jobs/${jobId}?task=a`, '#/secrets', '#/audit', `#/${encodeURIComponent(html)}`];
  for (const place of [...places.map((path) => w.at(path)), w.log(id), w.log(encodeURIComponent(html))]) {
    await page.goto(place);
    await page.locator('h1, h2, [role=alert]').first().waitFor();
    await page.waitForTimeout(300);
    await inert(page);
  }
});

journey('the content security policy blocks raw HTML', () => w.signedIn(), async ({ page, seen }) => {
  const response = await page.goto(w.at('#/executions'));
  const policy = response.headers()['content-security-policy'];
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self'/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  await page.getByRole('heading', { name: 'Executions', exact: true }).waitFor();
  const blocked = await page.evaluate(() => {
    try {
      document.createElement('div').innerHTML = '<b>raw</b>';
      return false;
    } catch {
      return true;
    }
  });
  assert.equal(blocked, true, 'raw HTML is refused by the browser itself');
  assert.ok(seen.errors.splice(0).every((error) => error.includes('TrustedHTML')));
});
