//! The fuzz targets: what a command, a worker or a user may send, against a reference or an oracle.

use std::io::Read as _;
use std::process::{Command, Stdio};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use runvoy_fuzz::allocator::{Counting, peak_bytes};
use runvoy_fuzz::mutation::run;
use runvoy_model::log::{Block, BlockBuilder};
use runvoy_model::mask::{Mask, Masker};
use runvoy_model::role::Role;
use runvoy_model::rule::{Asked, Effect, Rule, Subject, judge};
use runvoy_model::time::UnixMs;
use runvoy_model::{json, words};
use runvoy_rpc::buffa::Message as _;
use runvoy_rpc::job::v1::{CompleteJobRequest, EnqueueJobRequest, UpdateJobRequest};
use runvoy_server::unpack_call;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SECRET: &str = "s3cr3t-value";
/// The secret as tools write it, and the part of that which tells it.
#[rustfmt::skip]
const FORMS: [(&str, &str); 23] = [
    (SECRET, SECRET),
    ("7333637233742d76616c7565", "7333637233742d76616c7565"),
    ("7333637233742D76616C7565", "7333637233742D76616C7565"),
    ("czNjcjN0LXZhbHVl", "czNjcjN0LXZhbHVl"),
    ("eHMzY3IzdC12YWx1ZQ==", "MzY3IzdC12YWx1ZQ"),
    ("OMZWG4RTOQWXMYLMOVSQ====", "OMZWG4RTOQWXMYLMOVSQ"),
    ("omzwg4rtoqwxmylmovsq", "omzwg4rtoqwxmylmovsq"),
    ("Y3pOamNqTjBMWFpoYkhWbA==", "Y3pOamNqTjBMWFpoYkhWbA"),
    ("cwAzAGMAcgAzAHQALQB2AGEAbAB1AGUA", "cwAzAGMAcgAzAHQALQB2AGEAbAB1AGUA"),
    ("%73%33%63%72%33%74%2D%76%61%6C%75%65", "%73%33%63%72%33%74%2D%76%61%6C%75%65"),
    ("\\u0073\\u0033\\u0063\\u0072\\u0033\\u0074\\u002d\\u0076\\u0061\\u006c\\u0075\\u0065", "\\u0073\\u0033\\u0063\\u0072"),
    ("s\x003\0c\0r\x003\0t\0-\0v\0a\0l\0u\0e\0", "s\x003\0c\0r\x003\0t\0-\0v\0a\0l\0u\0e"),
    ("\0s\x003\0c\0r\x003\0t\0-\0v\0a\0l\0u\0e", "\0s\x003\0c\0r\x003\0t\0-\0v\0a\0l\0u\0e"),
    ("s3cr\x1b[01;31m\x1b[K3t-\x1b(B\x1b[mvalue", "3t-\x1b(B\x1b[mvalue"),
    ("czNj\x1b[0mcjN0LXZhbHVl", "\x1b[0mcjN0LXZhbHVl"),
    ("\n00000000: 7333 6372 3374 2d76 616c 7565            s3cr3t-value\n", "7333 6372 3374 2d76 616c 7565"),
    ("\n00000000  78 73 33 63 72 33 74 2d  76 61 6c 75 65  |xs3cr3t-value|\n", "73 33 63 72 33 74 2d  76 61 6c 75 65"),
    ("\n0000000 3373 7263 7433 762d 6c61 6575\n000000c\n", "3373 7263 7433 762d 6c61 6575"),
    ("\n0000000 031563 071143 072063 073055 066141 062565\n0000014\n", "031563 071143 072063 073055 066141 062565"),
    ("\n0000000 163 063 143 162 063 164 055 166 141 154 165 145\n", "163 063 143 162 063 164 055 166 141 154 165 145"),
    ("\n0000000   s   3   c   r   3   t   -   v   a   l   u   e\n", "s   3   c   r   3   t   -   v   a   l   u   e"),
    ("\n 115  51  99 114  51 116  45 118  97 108 117 101\n", "115  51  99 114  51 116  45 118  97 108 117 101"),
    ("\n  0x73, 0x33, 0x63, 0x72, 0x33, 0x74, 0x2d, 0x76, 0x61, 0x6c, 0x75, 0x65\n", "0x73, 0x33, 0x63, 0x72, 0x33, 0x74, 0x2d"),
];
/// At most so many bytes of a message once it is unpacked, and of memory for a whole call.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
const BUDGET_BYTES: usize = 1 << 20;
/// What a decoder itself takes, and the piece that it decodes into.
const DECODER_BYTES: usize = 256 << 10;

/// Checking holds a few times the text, never a tree, and agrees with the tree on what is JSON.
fn output(input: &[u8]) {
    let (checked, peak) = peak_bytes(|| json::check(input, None));
    assert!(peak <= input.len() * 8 + 16_384, "{peak} bytes for {} of input", input.len());
    if let Ok(checked) = checked {
        let given: Value = serde_json::from_slice(input).expect("what was taken is JSON");
        let kept: Value = serde_json::from_slice(&checked.text).expect("what is kept is JSON");
        assert_eq!(given, kept);
    }
}

/// Whatever decodes can be read to its end and encoded again.
fn block(input: &[u8]) {
    let Ok(block) = Block::decode(UnixMs(5), Bytes::copy_from_slice(input)) else { return };
    assert_eq!(block.records().filter(Result::is_ok).count(), block.count as usize);
    let mut builder = BlockBuilder::default();
    block.records().flatten().for_each(|record| builder.push(record));
    assert_eq!(builder.count(), block.count);
}

/// Calls of any bytes are unpacked within their memory, or refused; messages of any bytes are read or refused.
fn rpc(input: &[u8]) {
    let Some((protocol, sent)) = input.split_first() else { return };
    let header = ["content-encoding", "grpc-encoding", "connect-content-encoding"][usize::from(*protocol) % 3];
    let (plain, peak) = peak_bytes(|| unpack_call(header, Bytes::copy_from_slice(sent), MAX_MESSAGE_BYTES, BUDGET_BYTES));
    assert!(peak <= BUDGET_BYTES + DECODER_BYTES, "{peak} bytes for {} of input", sent.len());
    let messages = match &plain {
        None => vec![sent],
        Some(plain) if header == "content-encoding" => {
            let mut expected = Vec::new();
            MultiGzDecoder::new(sent).read_to_end(&mut expected).expect("what was taken is gzip");
            assert_eq!(plain, &expected);
            vec![plain.as_ref()]
        }
        Some(plain) => {
            let (unpacked, packed) = (messages(plain), messages(sent));
            assert_eq!(unpacked.is_some(), packed.is_some(), "a cut envelope stays as it came");
            let (unpacked, packed) = (unpacked.unwrap_or_default(), packed.unwrap_or_default());
            assert_eq!(unpacked.len(), packed.len());
            assert!(unpacked.iter().all(|(flags, message)| flags & 1 == 0 && message.len() <= MAX_MESSAGE_BYTES.max(sent.len())));
            unpacked.into_iter().map(|(_, message)| message).collect()
        }
    };
    for message in messages {
        EnqueueJobRequest::decode_from_slice(message).ok();
        CompleteJobRequest::decode_from_slice(message).ok();
        UpdateJobRequest::decode_from_slice(message).ok();
    }
}

/// The messages of a stream with their flags; `None` where it is cut off.
fn messages(mut rest: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut messages = Vec::new();
    while let Some((flags, after)) = rest.split_first() {
        let (length, after) = after.split_first_chunk()?;
        let (message, after) = after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        messages.push((*flags, message));
        rest = after;
    }
    Some(messages)
}

/// No form of a secret comes through, whatever is around it and however it is cut into chunks; and all chunkings mask alike. The first byte picks the form, the
/// second its place.
fn mask(input: &[u8]) {
    let [form, place, around @ ..] = input else { return };
    let mask = Mask::new(&[SECRET]).expect("few bytes").expect("a mask");
    let masked = |input: &[u8], size: usize| {
        let (mut masker, mut out) = (Masker::new(mask.clone()), Vec::new());
        input.chunks(size).for_each(|chunk| masker.push(chunk, &mut out));
        masker.finish(&mut out);
        out
    };
    let (form, telling) = FORMS[usize::from(*form) % FORMS.len()];
    let (before, after) = around.split_at(usize::from(*place).min(around.len()));
    for input in [around.to_vec(), [before, form.as_bytes(), after].concat()] {
        let whole = masked(&input, input.len().max(1));
        for size in [1, 2, 7] {
            assert_eq!(masked(&input, size), whole, "in chunks of {size}");
        }
        for telling in [telling, SECRET] {
            assert!(memchr::memmem::find(&whole, telling.as_bytes()).is_none(), "{telling:?} of {:?}", input.escape_ascii().to_string());
        }
    }
}

/// What a rule lets pass calls in a real shell nothing that the rule is against.
fn rule(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    if text.contains('\0') {
        return;
    }
    let rule = |effect, patterns: [&str; 2]| Rule { commands: patterns.map(str::to_owned).into(), ..Rule::new("rule", effect) };
    let subject = Subject { email: "dev@example.com", role: Role::Developer, groups: &[] };
    let asked =
        Asked { command: text, args: None, image: "local", reference: None, lock: None, queue: "default", secrets: &[], playbook: None };
    for (rule, only) in [(rule(Effect::Allow, ["a", "a *"]), true), (rule(Effect::Deny, ["b", "b *"]), false)] {
        if !judge([&rule], &subject, &asked).allowed {
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let script = format!("ulimit -t 2\na() {{ echo a >&3; }}\nb() {{ echo b >&3; }}\nexec 3>&1 1>/dev/null\n{text}\nwait");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script]).env_clear().env("PATH", "/nonexistent").current_dir(directory.path()).stdin(Stdio::null());
        let output = shell.output().expect("a shell");
        let called = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!called.contains('b'), "{rule:?} lets {text:?} call b");
        assert_eq!(directory.path().read_dir().expect("a directory").count(), 0, "{rule:?} lets {text:?} write a file");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!(only && complaint.contains("not found")), "{rule:?} lets {text:?} run something else: {complaint}");
    }
}

/// One simple command has the words that a real shell gives it.
fn shell(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let Ok(split) = words::split(text) else { return };
    let [words] = split.commands.as_slice() else { return };
    let printed = Command::new("sh").args(["-c", &format!("printf '%s\\0' {text}")]).output().expect("a shell");
    let expected: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
    assert_eq!(printed.stdout, expected, "{text:?}");
}

#[test]
fn output_is_checked_within_its_memory() {
    run("output", 3_000, output);
}

#[test]
fn block_of_any_bytes_is_read_or_refused() {
    run("block", 5_000, block);
}

#[test]
fn rpc_call_of_any_bytes_is_unpacked_or_refused() {
    run("rpc", 3_000, rpc);
}

#[test]
fn mask_lets_no_secret_through() {
    run("mask", 1_000, mask);
}

#[test]
fn rule_verdict_holds_in_a_real_shell() {
    run("rule", 1_000, rule);
}

#[test]
fn words_are_those_of_a_real_shell() {
    run("words", 1_500, shell);
}
