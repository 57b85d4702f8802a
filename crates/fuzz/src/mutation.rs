//! A deterministic mutation engine. The same seed and corpus give the same inputs; an input that fails a target is written to a file and its path printed.
//! `RUNVOY_FUZZ_SEED` chooses another seed, `RUNVOY_FUZZ_INPUT` replays one file, `RUNVOY_PROVE` asks for minutes instead of seconds.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

const DEFAULT_SEED: u64 = 0x5eed;
const MAX_INPUT_BYTES: usize = 4096;
const TOKENS: [&[u8]; 14] = [b"{", b"}", b"[", b"]", b"\"", b"\\u0033", b",", b":", b"'", b"&&", b"\n", b"\xff", b"\x00", b"s3cr3t-value"];

/// A small generator of random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }
}

/// Runs a target over its corpus and mutations of it, and prints a row for docs/prove.md.
/// `iterations` is for `check`; `prove` runs for a minute, and `RUNVOY_FUZZ_SECONDS` says another
/// time.
pub fn run(name: &str, iterations: usize, target: impl Fn(&[u8])) {
    if let Some(path) = env::var_os("RUNVOY_FUZZ_INPUT") {
        target(&fs::read(path).expect("the input to replay can be read"));
        return;
    }
    let seed = env::var("RUNVOY_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(DEFAULT_SEED);
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "corpus/{name} has files");
    corpus.iter().for_each(|input| attempt(name, seed, input, &target));
    let (mut random, began, mut seen) = (Random(seed), Instant::now(), corpus.len());
    let length = length();
    while length.map_or(seen < iterations, |length| began.elapsed() < length) {
        attempt(name, seed, &mutated(&corpus, &mut random), &target);
        seen += 1;
    }
    println!("PROMISE 18 | fuzzing: {name} | {seen} inputs from a corpus of {} | 0 failures", corpus.len());
}

/// How long to run, where that is not a number of iterations.
fn length() -> Option<Duration> {
    let asked = env::var("RUNVOY_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    asked.or_else(|| env::var_os("RUNVOY_PROVE").map(|_| 60)).map(Duration::from_secs)
}

fn attempt(name: &str, seed: u64, input: &[u8], target: &impl Fn(&[u8])) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) else { return };
    let path = env::temp_dir().join(format!("runvoy-fuzz-{name}-{}", std::process::id()));
    fs::write(&path, input).expect("the failing input can be written");
    eprintln!("fuzz target {name} failed with seed {seed}; replay: RUNVOY_FUZZ_INPUT={} cargo test -p runvoy-fuzz {name}", path.display());
    resume_unwind(panic);
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut paths: Vec<PathBuf> = fs::read_dir(directory).expect("a corpus").filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).expect("a file of the corpus")).collect()
}

fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        match random.below(6) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 => drop(input.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied())),
            2 => drop(input.drain(at..(at + random.below(8)).min(input.len()))),
            3 => {
                let part = input[at..(at + random.below(64)).min(input.len())].to_vec();
                input.splice(at..at, part.repeat(1 + random.below(16)));
            }
            4 => {
                let other = &corpus[random.below(corpus.len())];
                input.splice(at.., other[random.below(other.len() + 1)..].iter().copied());
            }
            _ => input.insert(at, u8::try_from(random.below(256)).unwrap_or(0)),
        }
        input.truncate(MAX_INPUT_BYTES);
    }
    input
}
