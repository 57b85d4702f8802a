// Cuts a piece of terminal output into text and the few escape sequences that mean something to a log: colours and styles, links,
// and moves within the line. Everything else that a terminal would obey is recognised, so that it can be left out whole, and never obeyed.
// A sequence that its record cuts off is handed back, to be tried again with what continues it.

/** What a piece of output says, in order. */
export type Token =
  | { kind: 'text'; text: string }
  | { kind: 'sgr'; params: number[] }
  | { kind: 'link'; uri: string }
  | { kind: 'return' }
  | { kind: 'back' }
  | { kind: 'column'; move: 'to' | 'by'; count: number }
  | { kind: 'erase'; mode: number };

/** The longest sequence that is waited for; beyond it, what looked like one is dropped up to here and the rest is text. */
const LONGEST_SEQUENCE = 8_192;
const MAX_PARAMS = 64;

const ESC = 0x1b;
const BEL = 0x07;
const STRING_STARTS: Record<number, true> = { 0x50: true, 0x58: true, 0x5d: true, 0x5e: true, 0x5f: true };
/** The one-character forms of `ESC [`, `ESC ]` and so on. */
const C1_FORM: Record<number, number> = { 0x90: 0x50, 0x98: 0x58, 0x9b: 0x5b, 0x9d: 0x5d, 0x9e: 0x5e, 0x9f: 0x5f };

/** Whether a character ends a run of plain text. Tab is plain text; DEL and all other control characters are not. */
function isSpecial(code: number): boolean {
  return (code < 0x20 && code !== 0x09) || (code >= 0x7f && code <= 0x9f);
}

/**
 * Reads `input` and gives each token to `take`, which stops the reading by answering `false`. Returns what is left of a sequence
 * that is not complete yet.
 */
export function tokenize(input: string, take: (token: Token) => boolean): string {
  let at = 0;
  let textFrom = 0;
  const end = input.length;
  while (at < end) {
    const code = input.charCodeAt(at);
    if (!isSpecial(code)) {
      at += 1;
      continue;
    }
    if (at > textFrom && !take({ kind: 'text', text: input.slice(textFrom, at) })) return '';
    const introducer = code === ESC ? input.charCodeAt(at + 1) : C1_FORM[code];
    const bodyAt = code === ESC ? at + 2 : at + 1;
    if (introducer === undefined) {
      const shown = control(code);
      at += 1;
      textFrom = at;
      if (shown && !take(shown)) return '';
      continue;
    }
    const read = sequence(input, introducer, bodyAt);
    if (read === undefined) {
      if (end - at <= LONGEST_SEQUENCE) return input.slice(at);
      at += LONGEST_SEQUENCE;
    } else {
      at = read.end;
      if (read.token && !take(read.token)) return '';
    }
    textFrom = at;
  }
  if (at > textFrom) take({ kind: 'text', text: input.slice(textFrom, at) });
  return '';
}

/** What a lone control character stands for. Those that would only ring or switch character sets are left out. */
function control(code: number): Token | undefined {
  if (code === 0x0d) return { kind: 'return' };
  if (code === 0x08) return { kind: 'back' };
  if (code === BEL || code === 0x0e || code === 0x0f || (code >= 0x80 && code <= 0x9f)) return undefined;
  // The pictures of control characters: a NUL in a log is worth seeing.
  return { kind: 'text', text: code === 0x7f ? '\u2421' : String.fromCharCode(0x2400 + code) };
}

type Read = { end: number; token?: Token };

/** Reads one sequence; `undefined` where it is not complete. */
function sequence(input: string, introducer: number, bodyAt: number): Read | undefined {
  if (Number.isNaN(introducer)) return undefined;
  if (introducer === 0x5b) return controlSequence(input, bodyAt);
  if (STRING_STARTS[introducer]) return stringSequence(input, introducer, bodyAt);
  if (introducer >= 0x20 && introducer <= 0x2f) return intermediate(input, bodyAt);
  // Two characters, such as `ESC c`; another ESC or a control character is no part of it.
  return { end: introducer >= 0x30 && introducer <= 0x7e ? bodyAt : bodyAt - 1 };
}

function intermediate(input: string, from: number): Read | undefined {
  for (let at = from; at < input.length && at - from < LONGEST_SEQUENCE; at += 1) {
    const code = input.charCodeAt(at);
    if (code >= 0x30 && code <= 0x7e) return { end: at + 1 };
    if (code < 0x20 || code > 0x2f) return { end: at };
  }
  return undefined;
}

function controlSequence(input: string, from: number): Read | undefined {
  const most = Math.min(input.length, from + LONGEST_SEQUENCE);
  for (let at = from; at < most; at += 1) {
    const code = input.charCodeAt(at);
    if (code >= 0x40 && code <= 0x7e) {
      const token = controlToken(input.slice(from, at), input.charAt(at));
      return token ? { end: at + 1, token } : { end: at + 1 };
    }
    // A broken sequence ends where something begins that cannot be part of it.
    if (code < 0x20 || code > 0x3f) return { end: at };
  }
  return undefined;
}

function controlToken(body: string, final: string): Token | undefined {
  // Private and intermediate characters make it another sequence than the one its last character names.
  if (/[^0-9;:]/.test(body)) return undefined;
  const first = Math.min(Number.parseInt(body, 10) || 0, 100_000);
  switch (final) {
    case 'm':
      return { kind: 'sgr', params: params(body) };
    case 'K':
      return { kind: 'erase', mode: first };
    case 'G':
      return { kind: 'column', move: 'to', count: Math.max(first, 1) - 1 };
    case 'C':
      return { kind: 'column', move: 'by', count: Math.max(first, 1) };
    case 'D':
      return { kind: 'column', move: 'by', count: -Math.max(first, 1) };
    default:
      return undefined;
  }
}

/** The numbers of a colour sequence. `38:2::r:g:b` has an empty colour space that `38;2;r;g;b` has not. */
function params(body: string): number[] {
  const out: number[] = [];
  for (const group of body.split(';')) {
    const parts = group.split(':');
    if (parts.length > 1 && parts[1] === '2' && parts.length >= 6) parts.splice(2, 1);
    // `4:3` is a curly underline: its second number is no parameter of its own. `4:0` is none at all.
    if (parts[0] === '4' && parts.length > 1) out.push(parts[1] === '0' ? 24 : 4);
    else for (const part of parts) out.push(part === '' ? 0 : Math.min(Number.parseInt(part, 10), 100_000));
    if (out.length > MAX_PARAMS) return out.slice(0, MAX_PARAMS);
  }
  return out;
}

/** Reads up to BEL or the string terminator. Only a link means anything. */
function stringSequence(input: string, introducer: number, from: number): Read | undefined {
  const most = Math.min(input.length, from + LONGEST_SEQUENCE);
  for (let at = from; at < most; at += 1) {
    const code = input.charCodeAt(at);
    if (code === BEL || code === 0x9c) return ended(input.slice(from, at), introducer, at + 1);
    if (code === ESC) {
      if (at + 1 >= input.length) return undefined;
      // `ESC \` ends it; any other escape begins the next sequence.
      return input[at + 1] === '\\' ? ended(input.slice(from, at), introducer, at + 2) : { end: at };
    }
  }
  return undefined;
}

function ended(body: string, introducer: number, end: number): Read {
  if (introducer !== 0x5d || !body.startsWith('8;')) return { end };
  const uriAt = body.indexOf(';', 2);
  return uriAt < 0 ? { end } : { end, token: { kind: 'link', uri: body.slice(uriAt + 1) } };
}
