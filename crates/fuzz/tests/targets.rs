//! The fuzz targets: what a command, a worker or a user may send, against a reference or an oracle.

use std::process::Command;

use bytes::Bytes;
use runvoy_fuzz::allocator::{Counting, peak_bytes};
use runvoy_fuzz::mutation::run;
use runvoy_model::log::{Block, BlockBuilder};
use runvoy_model::mask::{Mask, Masker};
use runvoy_model::time::UnixMs;
use runvoy_model::{json, words};
use runvoy_rpc::buffa::Message as _;
use runvoy_rpc::job::v1::{CompleteJobRequest, EnqueueJobRequest, UpdateJobRequest};
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SECRET: &str = "s3cr3t-value";

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

/// Messages of any bytes are read or refused, never more.
fn rpc(input: &[u8]) {
    EnqueueJobRequest::decode_from_slice(input).ok();
    CompleteJobRequest::decode_from_slice(input).ok();
    UpdateJobRequest::decode_from_slice(input).ok();
}

/// No chunking lets a secret through, and all of them mask alike.
fn mask(input: &[u8]) {
    let mask = Mask::new(&[SECRET]).expect("few bytes").expect("a mask");
    let masked = |size: usize| {
        let (mut masker, mut out) = (Masker::new(mask.clone()), Vec::new());
        input.chunks(size).for_each(|chunk| masker.push(chunk, &mut out));
        masker.finish(&mut out);
        out
    };
    let whole = masked(input.len().max(1));
    assert!(!whole.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    for size in [1, 2, 7] {
        assert_eq!(masked(size), whole, "in chunks of {size}");
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
fn rpc_message_of_any_bytes_is_read_or_refused() {
    run("rpc", 5_000, rpc);
}

#[test]
fn mask_lets_no_secret_through() {
    run("mask", 1_000, mask);
}

#[test]
fn words_are_those_of_a_real_shell() {
    run("words", 1_500, shell);
}
