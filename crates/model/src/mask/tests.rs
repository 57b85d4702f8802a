//! Random secrets in random forms, cut into random chunks: nothing of them comes out, and everything else does. The encoders here
//! are written apart from those that are tested. `RUNVOY_PROVE` asks for the full counts.

use std::time::Instant;

use super::*;

mod dump;
mod encoder;

use self::encoder::{Chance, Written, random_secret};

fn mask(values: &[&str]) -> Arc<Mask> {
    Mask::new(values).expect("not too much").expect("something to mask")
}

/// Sends pieces through one masker, each a chunk of its own.
fn through(mask: &Arc<Mask>, chunks: &[&[u8]]) -> String {
    let (mut masker, mut out) = (Masker::new(Arc::clone(mask)), Vec::new());
    chunks.iter().for_each(|chunk| masker.push(chunk, &mut out));
    masker.finish(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Text between secrets: never six bytes of anything in a row, often the beginning of a secret.
fn filler(chance: &mut Chance, secrets: &[String]) -> Vec<u8> {
    let mut text = vec![1];
    for _ in 0..chance.below(6) {
        let piece: Vec<u8> = match chance.below(3) {
            0 => secrets[chance.below(secrets.len())].bytes().take(chance.below(3)).collect(),
            1 => vec![b'\n'; chance.below(3)],
            _ => (0..chance.below(5)).map(|_| b"abXY09 %\\\"'+/="[chance.below(14)]).collect(),
        };
        text.extend(piece);
        text.push(1);
    }
    text.push(1);
    text
}

fn random_chunks<'a>(chance: &mut Chance, mut stream: &'a [u8]) -> Vec<&'a [u8]> {
    let longest = [1, 2, 7, 64, 4096][chance.below(5)];
    let mut chunks = Vec::new();
    while !stream.is_empty() {
        let (chunk, rest) = stream.split_at((1 + chance.below(longest)).min(stream.len()));
        chunks.push(chunk);
        stream = rest;
    }
    chunks
}

#[test]
fn security_12_no_secret_leaks_in_any_form_or_chunking() {
    let cases = if std::env::var_os("RUNVOY_PROVE").is_some() { 100_000 } else { 2_000 };
    for seed in 0..cases {
        let chance = &mut Chance::new(seed);
        let secrets: Vec<String> = (0..=chance.below(2)).map(|_| random_secret(chance)).collect();
        let mask = mask(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
        let (mut stream, mut expected) = (filler(chance, &secrets), Vec::new());
        expected.extend_from_slice(&stream);
        let mut written = Vec::new();
        for _ in 0..=chance.below(3) {
            let one = Written::random(chance, &secrets);
            stream.extend_from_slice(&one.bytes);
            expected.extend_from_slice(&one.bytes[..one.secret.start]);
            expected.extend_from_slice(STARS);
            expected.extend_from_slice(&one.bytes[one.secret.end..]);
            let after = filler(chance, &secrets);
            stream.extend_from_slice(&after);
            expected.extend_from_slice(&after);
            written.push(one);
        }
        let out = through(&mask, &random_chunks(chance, &stream));
        let how: Vec<_> = written.iter().map(|one| one.how).collect();
        for one in &written {
            let parts = one.tells.iter().flat_map(|part| one.bytes[part.clone()].windows(one.telling.min(part.len())));
            for part in parts.filter(|part| part.iter().any(|byte| !b" .".contains(byte))) {
                let leak = memchr::memmem::find(out.as_bytes(), part);
                assert!(leak.is_none(), "seed {seed}: {how:?} of {secrets:?} leaked {out:?}");
            }
        }
        // Around base64 in the middle of something else a neighbouring character may happen to belong to the secret.
        if written.iter().all(|one| one.exact) {
            assert_eq!(out, String::from_utf8_lossy(&expected), "seed {seed}: {how:?} of {secrets:?}");
        }
    }
    println!("masking: {cases} random secrets, forms and chunkings: 0 leaks");
}

#[test]
fn text_without_secrets_comes_through_byte_for_byte_and_its_pace_is_printed() {
    let mask = mask(&["s3cr3t-T0ken/with+chars", "correct horse battery", "AKIAIOSFODNN7EXAMPLE", "line one of key\nline two of key"]);
    let mut chance = Chance::new(1);
    let mut text = Vec::new();
    while text.len() < 8 << 20 {
        let number = chance.number();
        text.extend(format!("2026-11-16T01:45:08Z INFO request {number:x} GET /api/v1/things/{} 200 in 12 ms\n", number % 1000).bytes());
    }
    let (mut masker, mut out) = (Masker::new(mask), Vec::with_capacity(text.len()));
    let began = Instant::now();
    text.chunks(64 * 1024).for_each(|chunk| masker.push(chunk, &mut out));
    masker.finish(&mut out);
    let pace = text.len() as f64 / 1e6 / began.elapsed().as_secs_f64();
    assert!(out == text, "something was changed");
    println!("masking: {pace:.0} MB/s of log lines with four secrets");
}

#[test]
fn random_bytes_come_through_byte_for_byte() {
    let mask = mask(&["hunter2-hunter2"]);
    for seed in 0..200 {
        let chance = &mut Chance::new(seed);
        let text: Vec<u8> = (0..chance.below(2000)).map(|_| u8::try_from(chance.below(256)).expect("a byte")).collect();
        let (mut masker, mut out) = (Masker::new(Arc::clone(&mask)), Vec::new());
        random_chunks(chance, &text).iter().for_each(|chunk| masker.push(chunk, &mut out));
        masker.finish(&mut out);
        assert!(out == text, "seed {seed}");
    }
}

#[test]
fn half_a_secret_waits_for_the_other_half() {
    let mask = mask(&["hunter2-hunter2"]);
    let (mut masker, mut out) = (Masker::new(mask), Vec::new());
    masker.push(b"password: hunter2-", &mut out);
    assert_eq!(out, b"password: ");
    masker.push(b"hunter2\nnext", &mut out);
    assert_eq!(out, b"password: ***\nnext");
}

#[test]
fn what_can_be_no_secret_any_more_is_given_out_at_once() {
    let mask = mask(&["hunter2-hunter2"]);
    let (mut masker, mut out) = (Masker::new(mask), Vec::new());
    masker.push(b"hunter2-h", &mut out);
    assert_eq!(out, b"");
    masker.push(b"!", &mut out);
    assert_eq!(out, b"hunter2-h!");
}

#[test]
fn a_stream_that_ends_within_a_secret_shows_none_of_it() {
    let mask = mask(&["hunter2-hunter2"]);
    assert_eq!(through(&mask, &[b"it is hunter2-hun"]), "it is ***");
    assert_eq!(through(&mask, &[b"it is hunt"]), "it is hunt");
    // The base64 of it, cut off.
    assert_eq!(through(&mask, &[b"it is aHVudGVyM"]), "it is ***");
}

#[test]
fn overlapping_secrets_are_masked_together() {
    let mask = mask(&["abcdef", "defghijk", "ghi"]);
    assert_eq!(through(&mask, &[b"<abcde", b"fghijk>"]), "<***>");
    assert_eq!(through(&mask, &[b"<abcdefabcdef>ghi>"]), "<***>***>");
}

#[test]
fn a_key_of_several_lines_is_masked_whole_and_line_by_line() {
    let key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n  wJalrXUtnFEMI\nab\n-----END KEY-----\n";
    let mask = mask(&[key]);
    assert_eq!(through(&mask, &[b"a ", key.as_bytes(), b"b"]), "a ***b");
    assert_eq!(through(&mask, &[b"one MIIEpAIBAAKCAQEA two wJalrXUtnFEMI\nab"]), "one *** two ***\nab");
    assert_eq!(through(&mask, &[key.replace('\n', "\r\n").as_bytes()]), "***");
}

#[test]
fn short_values_are_masked_as_they_are_or_not_at_all() {
    assert_eq!(
        strengths(&["abcdef", "abc", "ab\n", "abcde"]).expect("few bytes"),
        [Strength::Full, Strength::PlainOnly, Strength::None, Strength::PlainOnly]
    );
    assert!(Mask::new(&["ab", ""]).expect("few bytes").is_none());
    let mask = mask(&["pin42"]);
    assert_eq!(through(&mask, &[b"pin42 PIN42 cGluNDI="]), "*** PIN42 cGluNDI=");
}

#[test]
fn an_ordinary_line_is_not_held_back_because_of_its_last_letter() {
    // `a` begins the base64 of the secret.
    let mask = mask(&["hunter2-hunter2"]);
    let (mut masker, mut out) = (Masker::new(mask), Vec::new());
    masker.push(b"schema\n", &mut out);
    assert_eq!(out, b"schema\n");
}

#[test]
fn a_long_secret_is_masked_whole_and_holds_back_little() {
    let secret: String = (0..20_000usize).map(|i| char::from(b'a' + u8::try_from(i * i % 23 + i / 7 % 3).expect("a letter"))).collect();
    let mask = mask(&[&secret]);
    let (mut masker, mut out) = (Masker::new(mask), Vec::new());
    for chunk in secret.as_bytes().chunks(777) {
        masker.push(chunk, &mut out);
        assert!(masker.held.len() < 16 * 1024);
    }
    masker.finish(&mut out);
    assert_eq!(out, STARS);
}

/// A value of many lines, as keys and certificates are.
fn many_lines(bytes: usize) -> String {
    let mut chance = Chance::new(7);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..bytes).map(|at| if at % 65 == 64 { '\n' } else { char::from(alphabet[chance.below(64)]) }).collect()
}

#[test]
fn the_cost_of_a_mask_is_bounded_however_large_its_secrets_are() {
    for (what, value, most_states) in [
        ("the largest value", many_lines(64 << 10), 16 * (64 << 10)),
        ("the largest with all its forms", many_lines(LONGEST_WITH_ALL), 220 * LONGEST_WITH_ALL),
    ] {
        let began = Instant::now();
        let mask = mask(&[&value]);
        let states = mask.plain.states() + mask.wrapped.states();
        println!("masking: {what} takes {states} states in {:?}", began.elapsed());
        assert!(states < most_states, "{what}: {states} states");
    }
    let too_much = format!("{}!", many_lines(MOST_BYTES));
    assert_eq!(Mask::new(&[&too_much]).err(), Some(TooMuch(MOST_BYTES + 1)));
}

#[test]
fn small_secrets_keep_all_their_forms_beside_large_ones() {
    let (large, small) = (many_lines(64 << 10), "s3cr3t value".to_owned());
    let keys: Vec<String> = (0..5).map(|n| format!("{n}{}", many_lines(LONGEST_WITH_ALL - 1))).collect();
    let values: Vec<&str> = [&large, &small].into_iter().chain(&keys).map(String::as_str).collect();
    let strengths = strengths(&values).expect("not too much");
    assert_eq!(strengths[..2], [Strength::Usual, Strength::Full]);
    assert_eq!(strengths.iter().filter(|strength| **strength == Strength::Full).count(), 3, "{strengths:?}");
    assert_eq!(through(&mask(&values), &[b"s3cr3t+value s3cr3t%20value"]), "*** ***");
}

#[test]
fn a_whole_text_is_masked_in_one_go() {
    assert_eq!(mask(&["hunter2-hunter2"]).text("fatal: hunter2-hunter2 is wrong"), "fatal: *** is wrong");
}

#[test]
fn what_goes_out_whole_is_masked_by_its_better_part_and_so_is_the_rest() {
    let (secret, mut masker) = ("hunter2-hunter2", Masker::new(mask(&["hunter2-hunter2"])));
    let mut cut = |bytes: &str| {
        let mut out = Vec::new();
        masker.push(bytes.as_bytes(), &mut out);
        masker.cut(&mut out);
        String::from_utf8(out).expect("text")
    };
    for at in 0..=secret.len() {
        let (before, after) = secret.split_at(at);
        let (first, second) = (cut(&format!("a {before}")), cut(&format!("{after} b")));
        let seen = format!("{first}|{second}");
        let expected = match at {
            0 => "a |*** b".to_owned(),
            1..6 => format!("a {before}|*** b"),
            _ => "a ***| b".to_owned(),
        };
        assert_eq!(seen, expected, "cut at {at}");
    }
    assert_eq!(cut("hunter2"), "***");
    assert_eq!(cut("3 and more"), "3 and more", "it was none");
}

#[test]
fn a_stream_goes_on_where_it_was_cut_with_another_masker() {
    let (secret, mask) = ("hunter2-hunter2", mask(&["hunter2-hunter2"]));
    // The second is its base64, wrapped.
    for text in [format!("a {secret} b"), "aHVudGVyMi1o\ndW50ZXIy".to_owned()] {
        for at in 0..=text.len() {
            let part = |masker: &mut Masker, bytes: &str| {
                let mut out = Vec::new();
                masker.push(bytes.as_bytes(), &mut out);
                masker.cut(&mut out);
                String::from_utf8(out).expect("text")
            };
            let (before, after) = text.split_at(at);
            let mut one = Masker::new(Arc::clone(&mask));
            let mut first = Masker::new(Arc::clone(&mask));
            assert_eq!(part(&mut first, before), part(&mut one, before));
            let kept = MaskStand::of_numbers(first.stand().to_numbers());
            assert_eq!(kept, first.stand());
            let mut second = Masker::at(Arc::clone(&mask), kept);
            assert_eq!(part(&mut second, after), part(&mut one, after), "{text:?} cut at {at}");
        }
    }
}

#[test]
fn a_place_that_a_mask_does_not_have_is_the_beginning() {
    let far = MaskStand::of_numbers([1 << 30, 0, 0]);
    assert_ne!(far, MaskStand::default());
    assert_eq!(Masker::at(mask(&["hunter2"]), far).stand(), MaskStand::default());
    assert_eq!(MaskStand::of_numbers([u64::MAX, 0, 0]), MaskStand::default());
}

#[test]
fn colours_inside_a_secret_do_not_hide_it() {
    let mask = mask(&["hunter2-hunter2"]);
    let text = "a hunter\u{1b}[01;31m\u{1b}[K2-\u{1b}(B\u{1b}[mhunter2 b";
    assert_eq!(through(&mask, &[text.as_bytes()]), "a *** b");
    for at in 0..text.len() {
        let (first, second) = text.as_bytes().split_at(at);
        assert_eq!(through(&mask, &[first, second]), "a *** b", "cut at {at}");
    }
    assert_eq!(through(&mask, &[b"aHVudGVy\x1b[31mMi1odW50ZXIy"]), "***");
    for other in ["hunter\u{1b}[31m3", "hunter\u{1b}]0;x\u{7}2-hunter2 x", "\u{1b}[32mgreen\u{1b}[0m hunter2 x"] {
        assert_eq!(through(&mask, &[other.as_bytes()]), other);
    }
    assert_eq!(through(&mask, &[b"it is hunter2\x1b[0m-hu"]), "it is ***");
}

#[test]
fn a_dump_is_masked_from_the_secret_to_the_end_of_its_line() {
    let mask = mask(&["hunter2-hunter2"]);
    let dump = "00000000: 7061 7373 3a20 6875 6e74 6572 322d 6875  pass: hunter2-hu\n00000010: 6e74 6572 320a                           nter2.\nnext";
    assert_eq!(through(&mask, &[dump.as_bytes()]), "00000000: 7061 7373 3a20 ***\nnext");
    let bytes: Vec<&[u8]> = dump.as_bytes().chunks(1).collect();
    assert_eq!(through(&mask, &bytes), "00000000: 7061 7373 3a20 ***\nnext");
    assert_eq!(through(&mask, &[&dump.as_bytes()[..40]]), "00000000: 7061 7373 3a20 ***");
    for other in ["00000000: 7061 7373 3a20 6875 6e74\nnext", "9f86d08 hunt the bug", "    at 68", "0001 68 75"] {
        assert_eq!(through(&mask, &[other.as_bytes()]), other);
    }
}

#[test]
fn an_end_that_looks_like_a_dump_is_held_only_while_it_may_be_one() {
    let (mut masker, mut out) = (Masker::new(mask(&["hunter2-hunter2"])), Vec::new());
    masker.push(b"  68\n", &mut out);
    masker.push(b"> ", &mut out);
    assert_eq!(out, b"  68\n> ");
}
