//! Keeping other people's bytes from taking over a terminal. Of a log only text and SGR sequences (colours, bold, …) pass: no cursor
//! moves, no titles, no clipboard (OSC 52), no answers-back, no marks that turn text around. Of metadata only text passes.
//! Never used for what is piped.

/// How long a sequence may be before it is given up.
const LONGEST_SEQUENCE: usize = 64;

/// Passes text and SGR sequences. It keeps its state between pieces, for a sequence may be cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    state: State,
    sequence: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// `0xC2`: with a byte from `0x80` to `0x9f` it is a C1 control in UTF-8.
    C2,
    /// What may become a mark that turns text around; the bytes so far are in the sequence.
    Turn,
    Escape,
    /// `ESC` and intermediate bytes, such as a choice of character set.
    EscapeMore,
    Csi,
    /// OSC, DCS, APC, PM, SOS: everything up to its terminator.
    Text2Terminal,
    /// `ESC` within such a text.
    Text2TerminalEscape,
}

impl Filter {
    /// Adds what may be shown of `bytes` to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            self.step(byte, out);
        }
    }

    fn step(&mut self, byte: u8, out: &mut Vec<u8>) {
        // A line end closes whatever was open: a forged or cut sequence must not swallow the rest of a log.
        if byte == b'\n' {
            self.state = State::Text;
            out.push(byte);
            return;
        }
        match self.state {
            State::Text => self.text(byte, out),
            State::C2 => self.after_c2(byte, out),
            State::Turn => self.turn(byte, out),
            State::Escape => self.after_escape(byte, out),
            State::EscapeMore => {
                if !(0x20..=0x2f).contains(&byte) {
                    self.state = State::Text;
                }
            }
            State::Csi => self.csi(byte, out),
            State::Text2Terminal => match byte {
                0x07 => self.state = State::Text,
                0x1b => self.state = State::Text2TerminalEscape,
                _ => {}
            },
            State::Text2TerminalEscape => {
                self.state = if byte == b'\\' { State::Text } else { State::Text2Terminal };
            }
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            0x1b => self.state = State::Escape,
            0xc2 => self.state = State::C2,
            0xd8 | 0xe2 => {
                self.state = State::Turn;
                self.sequence.clear();
                self.sequence.push(byte);
            }
            b'\t' | b'\r' => out.push(byte),
            0x00..0x20 | 0x7f => {}
            _ => out.push(byte),
        }
    }

    fn after_c2(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.state = State::Text;
        match byte {
            0x9b => self.open_csi(),
            0x90 | 0x98 | 0x9d..=0x9f => self.state = State::Text2Terminal,
            0x80..=0x9f => {}
            _ if is_continuation(byte) => out.extend_from_slice(&[0xc2, byte]),
            _ => self.cut(byte, out),
        }
    }

    fn turn(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.sequence.push(byte);
        match self.sequence[..] {
            [0xe2, 0x80 | 0x81] => {}
            // U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
            [0xd8, 0x9c] | [0xe2, 0x80, 0x8e | 0x8f | 0xaa..=0xae] | [0xe2, 0x81, 0xa6..=0xa9] => self.state = State::Text,
            _ if is_continuation(byte) => {
                self.state = State::Text;
                out.extend_from_slice(&self.sequence);
            }
            _ => self.cut(byte, out),
        }
    }

    /// A character that was cut is not shown as it is: what is left out after it could complete it to something else.
    fn cut(&mut self, next: u8, out: &mut Vec<u8>) {
        self.state = State::Text;
        out.extend_from_slice("\u{fffd}".as_bytes());
        self.text(next, out);
    }

    fn after_escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.state = State::Text;
        match byte {
            b'[' => self.open_csi(),
            b']' | b'P' | b'X' | b'^' | b'_' => self.state = State::Text2Terminal,
            0x20..=0x2f => self.state = State::EscapeMore,
            0x30..=0x7e => {}
            _ => self.text(byte, out),
        }
    }

    fn open_csi(&mut self) {
        self.state = State::Csi;
        self.sequence.clear();
    }

    fn csi(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            0x20..=0x3f => {
                if self.sequence.len() < LONGEST_SEQUENCE {
                    self.sequence.push(byte);
                }
            }
            0x40..=0x7e => {
                self.state = State::Text;
                let plain = self.sequence.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'));
                if byte == b'm' && plain && self.sequence.len() < LONGEST_SEQUENCE {
                    out.extend_from_slice(b"\x1b[");
                    out.extend_from_slice(&self.sequence);
                    out.push(b'm');
                }
            }
            _ => {
                self.state = State::Text;
                self.text(byte, out);
            }
        }
    }
}

/// Whether it goes on with a character of several bytes.
fn is_continuation(byte: u8) -> bool {
    (0x80..=0xbf).contains(&byte)
}

/// A piece of metadata on one line: no controls, no escapes, no invisible marks that turn text around.
pub(crate) fn one_line(text: &str) -> String {
    let (mut filter, mut plain) = (Filter::default(), Vec::with_capacity(text.len()));
    let spaced = text.replace(['\n', '\r', '\t'], " ");
    filter.push(spaced.as_bytes(), &mut plain);
    let mut line = String::with_capacity(plain.len());
    let mut in_sgr = false;
    for c in String::from_utf8_lossy(&plain).chars() {
        match c {
            '\x1b' => in_sgr = true,
            'm' if in_sgr => in_sgr = false,
            _ if in_sgr => {}
            _ => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Filter::default().push(bytes, &mut out);
        out
    }

    #[test]
    fn security_19_only_text_and_colours_reach_a_terminal() {
        for (name, bytes, expected) in [
            ("plain", &b"hello\tworld\r\n"[..], &b"hello\tworld\r\n"[..]),
            ("colour", b"\x1b[1;31mred\x1b[0m", b"\x1b[1;31mred\x1b[0m"),
            ("true colour", b"\x1b[38:2::1:2:3mx\x1b[m", b"\x1b[38:2::1:2:3mx\x1b[m"),
            ("utf-8", "grün · 日本".as_bytes(), "grün · 日本".as_bytes()),
            ("clipboard", b"a\x1b]52;c;ZXZpbA==\x07b", b"ab"),
            ("title, ST", b"a\x1b]0;owned\x1b\\b", b"ab"),
            ("cursor", b"a\x1b[2J\x1b[H\x1b[10Ab", b"ab"),
            ("alternate screen", b"a\x1b[?1049hb", b"ab"),
            ("keyboard mode that looks like SGR", b"a\x1b[>4;2mb", b"ab"),
            ("device control", b"a\x1bP$q\"p\x1b\\b", b"ab"),
            ("reset", b"a\x1bcb", b"ab"),
            ("character set", b"a\x1b(0b", b"ab"),
            ("C1 CSI in UTF-8", b"a\xc2\x9b2Jb", b"ab"),
            ("C1 OSC in UTF-8", b"a\xc2\x9d52;c;eA==\x07b", b"ab"),
            ("marks that turn text around", "a\u{202e}b\u{2066}c\u{2069}d\u{200f}e\u{61c}f".as_bytes(), b"abcdef"),
            ("their neighbours", "…\u{2028}\u{206a}√ظ؝".as_bytes(), "…\u{2028}\u{206a}√ظ؝".as_bytes()),
            ("a mark that was cut", b"\xe2\x80x\xd8\x1b[2Jy", "\u{fffd}x\u{fffd}y".as_bytes()),
            ("a mark around a mark", b"\xe2\x80\xe2\x80\xae\xaex", b"\xef\xbf\xbd\xaex"),
            ("C1 around a sequence", b"a\xc2\x1b[2J\x9b2Jb", b"a\xef\xbf\xbd\x9b2Jb"),
            ("bell and backspace", b"a\x07\x08\x00b\x7f", b"ab"),
            ("an open title ends with its line", b"\x1b]0;x\nnext", b"\nnext"),
            ("an endless sequence", &[b"\x1b[".as_slice(), &[b'1'; 100], b"mx"].concat(), b"x"),
        ] {
            assert_eq!(shown(bytes), expected, "{name}: {:?}", String::from_utf8_lossy(&shown(bytes)));
        }
    }

    #[test]
    fn security_19_metadata_is_one_line_of_text() {
        assert_eq!(one_line("rm -rf /\n\x1b[2K\x1b[31mecho\x1b[0m ok\u{202e}\u{61c}"), "rm -rf / echo ok");
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_changes_nothing(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x1b), Just(b'['), Just(b']'), Just(0xe2), Just(0x80), Just(0xae)], 0..60), cut in 0usize..60) {
            let cut = cut.min(bytes.len());
            let (mut filter, mut out) = (Filter::default(), Vec::new());
            filter.push(&bytes[..cut], &mut out);
            filter.push(&bytes[cut..], &mut out);
            prop_assert_eq!(&out, &shown(&bytes));
        }

        #[test]
        fn an_escape_that_passes_is_always_a_whole_sgr(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x1b), Just(b'['), Just(b'm')], 0..60)) {
            let out = shown(&bytes);
            for (at, _) in out.iter().enumerate().filter(|(_, byte)| **byte == 0x1b) {
                let end = out[at..].iter().position(|byte| *byte == b'm').expect("SGR ends with m");
                prop_assert_eq!(out[at + 1], b'[');
                prop_assert!(out[at + 2..at + end].iter().all(|byte| byte.is_ascii_digit() || b";:".contains(byte)));
            }
        }
    }
}
