// Which addresses in a log's output may become links: http and https only, and only what the browser itself reads as such.

const LONGEST = 2_048;
/** What no address holds as it is: spaces, control and invisible characters, some of which browsers quietly drop, and quotes of all kinds. */
const FOREIGN = /[\u0000-\u0020"<>\\^`{|}\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

/** The address to link to, as the browser writes it; `undefined` where there must be no link. */
export function safeHref(uri: string): string | undefined {
  if (uri.length > LONGEST || !/^https?:\/\//i.test(uri) || FOREIGN.test(uri)) return undefined;
  try {
    const url = new URL(uri);
    const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
    // `https://bank.example@evil.example/` is made to be misread.
    return isWeb && url.username === '' && url.password === '' ? url.href : undefined;
  } catch {
    return undefined;
  }
}
