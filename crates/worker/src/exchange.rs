//! What a command and the platform pass to each other in files of the work directory: the input of a task, its output, what the
//! command says about its failure, what it says it does. Pure: where the files are and what their bytes mean. The files may hold
//! anything, and what is taken from them is masked like output.

use std::path::Path;
use std::sync::Arc;

use runvoy_model::bound::{MOST_DEPTH, TOO_DEEP, depth};
use runvoy_model::command::ErrorMark;
use runvoy_model::job::TaskRef;
use runvoy_model::retry::Category;
use runvoy_ports::lease::Materials;
use runvoy_ports::runner::WorkFile;
use serde_json::Value;

use crate::mask::Mask;

const INPUT: &str = ".runvoy-input.json";
/// What the task gives.
pub(crate) const OUTPUT: &str = ".runvoy-output.json";
/// What the command says about its failure.
pub(crate) const ERROR: &str = ".runvoy-error.json";
/// What the command says it does.
pub(crate) const ACTIVITY: &str = ".runvoy-activity.json";

/// The largest output of a task.
pub(crate) const OUTPUT_LIMIT: usize = 16 << 20;
/// The largest word about a failure.
pub(crate) const ERROR_LIMIT: usize = 64 << 10;
/// The largest word about what is done.
pub(crate) const ACTIVITY_LIMIT: usize = 4 << 10;
/// So much of a failure's message is kept.
const MESSAGE_CHARS: usize = 2_000;

/// The files that a command finds. The input may be large: it goes into its file and is not kept beside it.
pub(crate) fn files(materials: &mut Materials) -> Option<WorkFile> {
    materials.input.take().map(|contents| WorkFile { name: INPUT.to_owned(), contents })
}

/// The variables that name the files. Input and output are for tasks of jobs.
pub(crate) fn variables(task: Option<&TaskRef>, work_dir: &Path) -> Vec<(&'static str, String)> {
    let path = |name: &str| work_dir.join(name).display().to_string();
    let mut variables = vec![("RUNVOY_ERROR", path(ERROR)), ("RUNVOY_ACTIVITY", path(ACTIVITY))];
    if let Some(task) = task {
        let (job, name) = (("RUNVOY_JOB_ID", task.job.to_string()), ("RUNVOY_TASK_ID", task.task.to_string()));
        variables.extend([job, name, ("RUNVOY_INPUT", path(INPUT)), ("RUNVOY_OUTPUT", path(OUTPUT))]);
    }
    variables
}

/// JSON out of a file, masked; or why it is none.
pub(crate) fn json(bytes: &[u8], mask: Option<&Arc<Mask>>) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| match bytes.is_empty() {
        true => "it is empty".to_owned(),
        // What reads JSON says no more of it than this.
        false if error.to_string().starts_with("recursion limit exceeded") => format!("it is {TOO_DEEP}"),
        false => format!("it is not JSON: {error}"),
    })?;
    if depth(&value) > MOST_DEPTH {
        return Err(format!("it is {TOO_DEEP}"));
    }
    if has_large_integer(bytes) {
        return Err("it has a number that does not fit: whole numbers go from -9223372036854775808 to 18446744073709551615".to_owned());
    }
    Ok(match mask {
        Some(mask) => masked(value, mask),
        None => value,
    })
}

/// Whether JSON has a whole number that would become another one when it is read.
fn has_large_integer(json: &[u8]) -> bool {
    let (mut rest, mut quoted) = (json, false);
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'\\' if quoted => after.get(1..).unwrap_or_default(),
            b'"' => {
                quoted = !quoted;
                after
            }
            b'-' | b'0'..=b'9' if !quoted => {
                let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
                let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
                let number = str::from_utf8(number).unwrap_or_default();
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return true;
                }
                after
            }
            _ => after,
        };
    }
    false
}

/// Masks every text in a value, the names too. A number that holds a secret becomes a text.
fn masked(value: Value, mask: &Arc<Mask>) -> Value {
    match value {
        Value::String(text) => Value::String(mask.text(&text)),
        Value::Array(items) => items.into_iter().map(|item| masked(item, mask)).collect(),
        Value::Object(members) => members.into_iter().map(|(name, member)| (mask.text(&name), masked(member, mask))).collect(),
        Value::Number(number) => {
            let (plain, shown) = (number.to_string(), mask.text(&number.to_string()));
            if shown == plain { Value::Number(number) } else { Value::String(shown) }
        }
        Value::Null | Value::Bool(_) => value,
    }
}

/// What a command says about its failure; or what is wrong with what it says.
pub(crate) fn error_mark(said: &Value) -> Result<ErrorMark, String> {
    let word = said.get("category").and_then(Value::as_str).ok_or("it has no text `category`")?;
    let category: Category = serde_json::from_value(word.into()).map_err(|_| {
        let known: Vec<&str> = Category::ALL.iter().map(|known| known.as_str()).collect();
        format!("category {word:?} is none of {}", known.join(", "))
    })?;
    let message = said.get("message").and_then(Value::as_str).filter(|message| !message.trim().is_empty());
    let retry_after_ms = match said.get("retryAfter") {
        None | Some(Value::Null) => None,
        Some(seconds) => Some(milliseconds(seconds).ok_or_else(|| format!("`retryAfter` is no number of seconds: {seconds}"))?),
    };
    Ok(ErrorMark { category, message: shortened(message.unwrap_or(category.as_str())), retry_after_ms })
}

fn milliseconds(seconds: &Value) -> Option<u64> {
    let seconds = seconds.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    // Whoever names a year or more means never; the longest wait is the platform's to say.
    u64::try_from(std::time::Duration::from_secs_f64(seconds.min(31_536_000.0)).as_millis()).ok()
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_is_not_kept_beside_its_file() {
        let mut materials = Materials { input: Some(b"{}".to_vec()), ..Materials::default() };
        assert!(files(&mut materials).is_some_and(|file| file.name == INPUT && file.contents == b"{}"));
        assert!(materials.input.is_none() && files(&mut materials).is_none());
    }

    #[test]
    fn a_secret_is_masked_wherever_it_is_in_a_value() {
        let mask = Mask::new(&["s3cr3t-token", "12345678"]).expect("not too much").expect("a mask");
        let text = br#"{"a":"x s3cr3t-token y","s3cr3t-token":[1,{"b":"s3cr\u0033t-token"}],"n":12345678,"m":1.5,"t":true}"#;
        let value = json(text, Some(&mask)).expect("JSON");
        assert_eq!(value, json!({"a": "x *** y", "***": [1, {"b": "***"}], "n": "***", "m": 1.5, "t": true}));
        assert!(json(b"{\"a\":", Some(&mask)).is_err() && json(b"", None).is_err());
    }

    #[test]
    fn what_could_not_be_read_again_as_it_is_is_refused() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(json(nested(64).as_bytes(), None).is_ok());
        for levels in [65, 127, 100_000] {
            let told = json(nested(levels).as_bytes(), None).expect_err("too deep");
            assert!(told.contains("nested deeper than 64 levels"), "{told}");
        }
        for fits in [
            "18446744073709551615",
            "-9223372036854775808",
            "-0",
            "1e300",
            "36893488147419103232.0",
            r#"{"36893488147419103232":"\"36893488147419103232"}"#,
        ] {
            assert!(json(fits.as_bytes(), None).is_ok(), "{fits}");
        }
        for large in ["18446744073709551616", "[1, -9223372036854775809]", r#"{"a\\":123456789012345678901234567890}"#] {
            let told = json(large.as_bytes(), None).expect_err("it would be another number");
            assert!(told.contains("a number that does not fit"), "{told}");
        }
    }

    #[test]
    fn what_a_command_says_about_its_failure_is_read() {
        let mark = |value: Value| error_mark(&value);
        let good = mark(json!({"category": "rate-limit", "message": "slow down", "retryAfter": 1.5, "more": 1})).expect("a mark");
        assert_eq!((good.category, good.message.as_str(), good.retry_after_ms), (Category::RateLimit, "slow down", Some(1_500)));
        let bare = mark(json!({"category": "auth"})).expect("a mark");
        assert_eq!((bare.message.as_str(), bare.retry_after_ms), ("auth", None));
        let long = mark(json!({"category": "parse", "message": "é".repeat(5_000)})).expect("a mark");
        assert_eq!(long.message.chars().count(), MESSAGE_CHARS + 1);
        for (value, says) in [
            (json!({"category": "weather"}), "\"weather\" is none of timeout, network"),
            (json!({"message": "x"}), "no text `category`"),
            (json!([1]), "no text `category`"),
            (json!({"category": "auth", "retryAfter": -1}), "no number of seconds"),
            (json!({"category": "auth", "retryAfter": "soon"}), "no number of seconds"),
        ] {
            let told = mark(value).expect_err(says);
            assert!(told.contains(says), "{told}");
        }
    }
}
