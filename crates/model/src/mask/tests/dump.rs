//! Dumps as `xxd`, `hexdump` and `od` write them.

use super::encoder::{Chance, Written};

/// How a tool writes one line.
struct Layout {
    how: &'static str,
    offset: fn(usize) -> String,
    /// How many bytes a line has, and how many a group.
    bytes: usize,
    group: usize,
    write: fn(&[u8]) -> String,
    /// What is between two groups.
    between: &'static str,
    /// What is around the same as characters, where they are there.
    beside: Option<(&'static str, &'static str)>,
}

const LAYOUTS: [Layout; 9] = [
    Layout { how: "xxd", offset: |at| format!("{at:08x}: "), bytes: 16, group: 2, write: hex, between: " ", beside: Some(("  ", "")) },
    Layout { how: "xxd -e", offset: |at| format!("{at:08x}: "), bytes: 16, group: 4, write: word, between: " ", beside: Some(("  ", "")) },
    Layout {
        how: "hexdump -C",
        offset: |at| format!("{at:08x}  "),
        bytes: 16,
        group: 1,
        write: hex,
        between: " ",
        beside: Some(("  |", "|")),
    },
    Layout { how: "hexdump", offset: |at| format!("{at:07x} "), bytes: 16, group: 2, write: word, between: " ", beside: None },
    Layout { how: "od", offset: |at| format!("{at:07o} "), bytes: 16, group: 2, write: octal, between: " ", beside: None },
    Layout { how: "od -b", offset: |at| format!("{at:07o} "), bytes: 16, group: 1, write: octal, between: " ", beside: None },
    Layout { how: "od -c", offset: |at| format!("{at:07o}"), bytes: 16, group: 1, write: cell, between: "", beside: None },
    Layout { how: "od -An -tu1", offset: |_| " ".into(), bytes: 16, group: 1, write: decimal, between: " ", beside: None },
    Layout { how: "xxd -i", offset: |_| "  ".into(), bytes: 12, group: 1, write: c, between: ", ", beside: None },
];

/// A dump of something that has the secret in its middle.
pub(super) fn random(chance: &mut Chance, secret: &[u8]) -> Written {
    let layout = &LAYOUTS[chance.below(LAYOUTS.len())];
    let (before, after) = (chance.below(40), chance.below(40));
    let all: Vec<u8> = [&vec![1; before], secret, &vec![1; after]].concat();
    let is_secret = |at: usize| (before..before + secret.len()).contains(&at);
    let (mut text, mut tells) = ("\n".to_owned(), Vec::new());
    for (line, bytes) in all.chunks(layout.bytes).enumerate() {
        let base = line * layout.bytes;
        text.push_str(&(layout.offset)(base));
        let mut told: Option<std::ops::Range<usize>> = None;
        for (number, group) in bytes.chunks(layout.group).enumerate() {
            let at = base + number * layout.group;
            if number > 0 {
                text.push_str(layout.between);
            }
            let start = text.len();
            text.push_str(&(layout.write)(group));
            if (at..at + group.len()).all(is_secret) {
                told = Some(told.map_or(start, |told| told.start)..text.len());
            }
        }
        tells.extend(told);
        if let Some((open, close)) = layout.beside {
            text.push_str(open);
            let column = text.len();
            text.extend(bytes.iter().map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' }));
            let of_secret = (0..bytes.len()).filter(|at| is_secret(base + at));
            tells.extend(of_secret.clone().min().zip(of_secret.max()).map(|(first, last)| column + first..column + last + 1));
            text.push_str(close);
        }
        text.push('\n');
    }
    tells.retain(|part| part.len() >= 10);
    Written { how: layout.how, secret: 0..text.len(), bytes: text.into_bytes(), tells, exact: false, telling: 10 }
}

fn hex(group: &[u8]) -> String {
    group.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(group: &[u8]) -> u32 {
    group.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn word(group: &[u8]) -> String {
    format!("{:0width$x}", number(group), width = if group.len() > 2 { 8 } else { 4 })
}

fn octal(group: &[u8]) -> String {
    format!("{:0width$o}", number(group), width = if group.len() > 1 { 6 } else { 3 })
}

fn decimal(group: &[u8]) -> String {
    format!("{:3}", group[0])
}

fn c(group: &[u8]) -> String {
    format!("0x{:02x}", group[0])
}

fn cell(group: &[u8]) -> String {
    match group[0] {
        b'\n' => "  \\n".into(),
        b'\t' => "  \\t".into(),
        byte @ b' '..=b'~' => format!("   {}", char::from(byte)),
        byte => format!(" {byte:03o}"),
    }
}
