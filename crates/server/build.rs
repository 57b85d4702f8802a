//! Builds the web page and makes it part of this crate: `npm ci` where the lock file changed, `npm run build:served`, and a table of the
//! files in `OUT_DIR`. Without Node, or where a step fails, the crate is built without the page and a warning says so; where
//! `RUNVOY_REQUIRE_WEB` is `1` that is an error. It writes only to `OUT_DIR` and `web/node_modules`, beside which a
//! lock file stands.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const REQUIRED: &str = "RUNVOY_REQUIRE_WEB";
/// What the page is made of, below `web/`.
const SOURCES: [&str; 8] =
    ["src", "public", "scripts", "index.html", "package.json", "package-lock.json", "vite.config.ts", "svelte.config.js"];
/// The oldest Node that the page's tools run on.
const OLDEST_NODE: (u32, u32) = (20, 19);
/// So many lines of what a failed step said are repeated.
const REPEATED_LINES: usize = 12;

fn main() -> ExitCode {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names it"));
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    let table = build(&web, &out.join("web"));
    let code = match &table {
        Ok(table) => code_of(table, &out.join("web")),
        Err(_) => code_of("", &out),
    };
    fs::write(out.join("bundle.rs"), code).expect("OUT_DIR can be written");
    let Err(why) = table else { return ExitCode::SUCCESS };
    // Only here: where the page was built, whoever requires it need not build everything anew.
    println!("cargo::rerun-if-env-changed={REQUIRED}");
    let is_required = std::env::var_os(REQUIRED).is_some_and(|value| value == "1");
    let level = if is_required { "error" } else { "warning" };
    for line in format!("built without the web page: {why}").lines() {
        println!("cargo::{level}={line}");
    }
    if is_required { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Builds the page into `out` and gives its table of files.
fn build(web: &Path, out: &Path) -> Result<String, String> {
    let found = said(Command::new("node").arg("--version")).map_err(|error| format!("node: {error}"))?;
    if !is_new_enough(&found) {
        return Err(format!("node {} is too old, it takes {}.{}", found.trim(), OLDEST_NODE.0, OLDEST_NODE.1));
    }
    install(web)?;
    let mut npm = npm(web, ["run", "--silent", "build:served"]);
    said(npm.env("RUNVOY_WEB_OUT", out).env("VITE_RUNVOY_SERVED", "1")).map_err(|error| format!("npm run build:served: {error}"))?;
    fs::read_to_string(out.join("bundle.tsv")).map_err(|error| format!("bundle.tsv: {error}"))
}

/// Installs what the lock file names, unless that is what is there. Two builds at once take turns.
fn install(web: &Path) -> Result<(), String> {
    let told = |error: io::Error| format!("{}: {error}", web.display());
    let turn = File::create(web.join(".install-lock")).map_err(told)?;
    turn.lock().map_err(told)?;
    let (wanted, stamp) = (fs::read(web.join("package-lock.json")).map_err(told)?, web.join("node_modules/.installed-lock"));
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    said(&mut npm(web, ["ci", "--prefer-offline", "--fetch-retries=1", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]))
        .map_err(|error| format!("npm ci: {error}"))?;
    fs::write(stamp, wanted).map_err(told)
}

fn npm<const N: usize>(web: &Path, arguments: [&str; N]) -> Command {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    // npm started from a script of npm must not take that one's settings for its own.
    let inherited = std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("npm_"));
    for name in inherited {
        npm.env_remove(name);
    }
    npm.current_dir(web).args(arguments.map(OsStr::new));
    npm
}

/// What a program says when it does well; else the end of what it says.
fn said(program: &mut Command) -> Result<String, String> {
    let output = program.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let all = text(&output.stdout) + &text(&output.stderr);
    let lines: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).collect();
    Err(format!("{}\n{}", output.status, lines[lines.len().saturating_sub(REPEATED_LINES)..].join("\n")))
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.trim().trim_start_matches('v').split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST_NODE
}

/// The table as code; `src/bundle.rs` has its types.
fn code_of(table: &str, directory: &Path) -> String {
    let mut code = String::from("pub(crate) const FILES: &[File] = &[\n");
    for row in table.lines() {
        let [path, content_type, packing, hash] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a row of bundle.tsv has four fields: {row}");
        };
        let file = directory.join(path);
        let gzip = match packing {
            "gzip" => format!("Some(include_bytes!({:?}))", format!("{}.gz", file.display())),
            _ => "None".to_owned(),
        };
        writeln!(
            code,
            "    File {{ path: {path:?}, content_type: {content_type:?}, hash: {hash:?}, plain: include_bytes!({file:?}), gzip: {gzip} }},"
        )
        .expect("a String takes everything");
    }
    code + "];\n"
}
