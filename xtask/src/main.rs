//! `cargo xtask COMMAND`: everything a contributor runs. It needs cargo and nothing else, has few dependencies, and
//! compiles in seconds. One file per command; this one only picks it.

mod bench;
mod check;
mod client;
mod coverage;
mod dev;
mod emulator;
mod fix;
mod lint;
mod need;
mod prove;
mod report;
mod step;
mod suite;
mod tally;
mod tee;
mod test;
mod tidy;
mod tool;
mod venv;
mod web;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND [ARGS]

  check              everything a change must pass: format, tidy, clippy, docs, tests, the web page (what .ci/run runs)
  test [ARGS]        the inner loop: all tests but the promises; ARGS go to the test runner (`-p runvoy-model`, a name)
  prove [FILTER]     the reliability promises at full counts and the fuzz targets (`prove fuzz`); writes docs/prove.md
  lint               format, tidy, clippy, docs, and cargo-deny where it is installed
  tidy               the rules of the house alone: layers, headers, names, sizes, bans, links
  fix                format, and let clippy repair what it can
  coverage           line coverage of all tests but the promises
  bench [ARGS]       the benchmark program, against a release build of the server
  dev [ARGS]         `runvoy serve` on a throw-away data directory; ARGS go to serve";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let outcome = match command.as_str() {
        "check" => check::run(),
        "test" => test::run(&rest),
        "prove" => prove::run(&rest),
        "lint" => lint::run(),
        "tidy" => tidy::run(),
        "fix" => fix::run(),
        "coverage" => coverage::run(),
        "bench" => bench::run(&rest),
        "dev" => dev::run(&rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
