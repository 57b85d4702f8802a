//! All forms of all secrets as one automaton (Aho and Corasick's) that is moved by single bytes: it knows which form ends at each
//! byte, and how many of the last bytes could still become one.
//!
//! A library's would have to be asked for that second number, and would be either slow to move or large and slow to make. Here the
//! states near the start, where ordinary text stays, have whole rows of a table; the rest, one behind the other in most
//! forms, have only their children.

/// Where an automaton stands. Zero has seen nothing of any form; the more a state has seen, the larger is its number.
pub(super) type State = u32;

/// The state that has seen nothing of any form.
pub(super) const REST: State = 0;

/// How many states have a row.
const ROWS: usize = 512;
/// So much of the beginning of a form is masked at the end of a stream, though the form is not whole.
const CUT_OFF: usize = 6;

#[derive(Default)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    /// The length of the longest form that ends at each state, or zero.
    found: Vec<u32>,
    /// The next state of each of the first states for each class of bytes.
    rows: Vec<State>,
    with_row: usize,
    width: usize,
    /// Bytes that no form has are all alike.
    classes: Vec<u8>,
}

/// A beginning of forms. There is one for every byte of a form, so its size is what a mask costs.
#[derive(Clone, Copy, Default)]
struct Node {
    /// The last byte of it.
    byte: u8,
    /// At most one for each byte.
    children: u16,
    depth: u32,
    /// The longest proper end of it that is a beginning too.
    fallback: State,
    /// Those that are one byte longer have numbers in a row.
    first_child: State,
}

impl Node {
    fn children(self) -> std::ops::Range<State> {
        self.first_child..self.first_child + State::from(self.children)
    }
}

impl Automaton {
    pub(super) fn new(mut forms: Vec<Vec<u8>>) -> Self {
        forms.retain(|form| !form.is_empty());
        forms.sort_unstable();
        forms.dedup();
        let mut automaton = Self::default();
        automaton.sort_bytes(&forms);
        automaton.grow(&forms);
        automaton.nodes.shrink_to_fit();
        automaton.found.shrink_to_fit();
        automaton
    }

    /// What it costs.
    #[cfg(test)]
    pub(super) fn states(&self) -> usize {
        self.nodes.len()
    }

    /// There is nothing to find.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Whether there is such a state.
    pub(super) fn has(&self, state: State) -> bool {
        (state as usize) < self.nodes.len()
    }

    pub(super) fn begins_with(&self, byte: u8) -> bool {
        self.step(REST, byte) != REST
    }

    /// The state after one more byte.
    #[inline]
    pub(super) fn step(&self, state: State, byte: u8) -> State {
        let mut at = state as usize;
        while at >= self.with_row {
            let node = self.nodes[at];
            let children = node.first_child as usize..node.first_child as usize + usize::from(node.children);
            if let Some(child) = self.nodes[children].iter().position(|child| child.byte == byte) {
                return node.first_child + child as State;
            }
            at = node.fallback as usize;
        }
        self.rows[at * self.width + usize::from(self.classes[usize::from(byte)])]
    }

    /// The length of the longest form that ends here, or zero.
    #[inline]
    pub(super) fn found(&self, state: State) -> usize {
        self.found[state as usize] as usize
    }

    /// How many of the last bytes could be the beginning of a form.
    pub(super) fn depth(&self, state: State) -> usize {
        self.nodes[state as usize].depth as usize
    }

    /// How many of the last bytes of a stream that ends here are a telling part of a form.
    pub(super) fn cut_off(&self, state: State) -> usize {
        let mut at = state;
        while at != REST {
            let depth = self.depth(at);
            if depth >= CUT_OFF || self.ends_within(at, depth) {
                return depth;
            }
            at = self.nodes[at as usize].fallback;
        }
        0
    }

    /// Whether a form is whole after at most so many more bytes.
    fn ends_within(&self, state: State, more: usize) -> bool {
        self.found(state) == self.depth(state)
            || more > 0 && self.nodes[state as usize].children().any(|child| self.ends_within(child, more - 1))
    }

    fn sort_bytes(&mut self, forms: &[Vec<u8>]) {
        let mut used = [false; 256];
        forms.iter().for_each(|form| form.iter().for_each(|byte| used[usize::from(*byte)] = true));
        let mut count: u8 = 0;
        // A value uses at most the 243 bytes that UTF-8 has, so the classes fit.
        self.classes = used
            .map(|used| {
                if used {
                    count += 1;
                    count
                } else {
                    0
                }
            })
            .to_vec();
        self.width = usize::from(count) + 1;
    }

    /// Makes the states, shortest beginnings first: whatever a state falls back to, or is a row's entry, is there before it.
    fn grow(&mut self, forms: &[Vec<u8>]) {
        // The forms that share each beginning are neighbours.
        let mut sharing = vec![(0, state(forms.len()))];
        self.nodes.push(Node::default());
        self.found.push(0);
        let mut at = 0;
        while at < self.nodes.len() {
            let (mut from, end) = (sharing[at].0 as usize, sharing[at].1 as usize);
            let depth = self.nodes[at].depth as usize;
            while from < end && forms[from].len() == depth {
                from += 1;
            }
            self.nodes[at].first_child = state(self.nodes.len());
            while from < end {
                let byte = forms[from][depth];
                let next = from + forms[from..end].iter().take_while(|form| form[depth] == byte).count();
                let fallback = if at == 0 { REST } else { self.step(self.nodes[at].fallback, byte) };
                let whole = forms[from].len() == depth + 1;
                self.found.push(if whole { state(depth + 1) } else { self.found[fallback as usize] });
                self.nodes.push(Node { byte, depth: state(depth + 1), fallback, ..Node::default() });
                sharing.push((state(from), state(next)));
                self.nodes[at].children += 1;
                from = next;
            }
            if at < ROWS {
                self.add_row(at);
            }
            at += 1;
        }
    }

    fn add_row(&mut self, at: usize) {
        let node = self.nodes[at];
        let fallback = node.fallback as usize * self.width;
        let mut row = if at == 0 { vec![REST; self.width] } else { self.rows[fallback..fallback + self.width].to_vec() };
        for child in node.children() {
            row[usize::from(self.classes[usize::from(self.nodes[child as usize].byte)])] = child;
        }
        self.rows.extend(row);
        self.with_row = at + 1;
    }
}

fn state(number: usize) -> State {
    State::try_from(number).expect("the forms of all secrets have fewer than 2^32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a plain search says: the longest form that ends at the end, and the longest beginning of one.
    fn expected(forms: &[&[u8]], text: &[u8]) -> (usize, usize) {
        let found = forms.iter().filter(|form| text.ends_with(form)).map(|form| form.len()).max().unwrap_or(0);
        let depth = (0..=text.len()).rev().find(|length| forms.iter().any(|form| form.starts_with(&text[text.len() - length..])));
        (found, depth.unwrap_or(0))
    }

    #[test]
    fn every_state_is_what_a_plain_search_finds() {
        let forms: [&[u8]; 7] = [b"abab", b"ababc", b"bab", b"cc", b"abcab", b"a\xffb", b"bbbbbb"];
        let automaton = Automaton::new(forms.map(<[u8]>::to_vec).to_vec());
        let (mut number, mut text, mut at) = (7u64, Vec::new(), REST);
        for _ in 0..5_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let byte = b"abcx\xffab"[usize::try_from(number >> 33).expect("it fits") % 7];
            text.push(byte);
            at = automaton.step(at, byte);
            let tail = &text[text.len().saturating_sub(10)..];
            assert_eq!((automaton.found(at), automaton.depth(at)), expected(&forms, tail), "{tail:?}");
        }
    }

    #[test]
    fn states_without_a_row_find_the_same() {
        let letter = |i: usize, j: usize| b'a' + u8::try_from((i * 7 + j * j / 3) % 26).expect("a letter");
        let long: Vec<Vec<u8>> = (0..40).map(|i| (0..60).map(|j| letter(i, j)).collect()).collect();
        let automaton = Automaton::new(long.clone());
        assert!(automaton.nodes.len() > ROWS * 2);
        let text: Vec<u8> = long.iter().rev().flatten().copied().collect();
        let mut at = REST;
        for (seen, byte) in text.iter().enumerate() {
            at = automaton.step(at, *byte);
            let ends = long.iter().any(|form| text[..=seen].ends_with(form));
            assert_eq!(automaton.found(at) == 60, ends, "{seen}");
        }
    }

    #[test]
    fn nothing_is_found_where_there_is_nothing_to_find() {
        let automaton = Automaton::new(Vec::new());
        assert!(automaton.is_empty());
        assert_eq!(automaton.step(REST, b'x'), REST);
    }
}
