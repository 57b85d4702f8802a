//! What a command and the platform pass to each other in files of the work directory: the input of a task, its output, what the
//! command says about its failure, what it says it does. Pure: where the files are and what their bytes mean. The files may hold
//! anything, and what is taken from them is masked like output.

use std::path::Path;
use std::sync::Arc;

use runvoy_model::command::ErrorMark;
use runvoy_model::job::TaskRef;
use runvoy_model::json;
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
/// What a small file may take once it is read.
const MAX_OPENED_BYTES: usize = 1 << 20;
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

/// The value of a small file, masked; or why it is not used.
pub(crate) fn value(bytes: &[u8], mask: Option<&Arc<Mask>>) -> Result<Value, String> {
    let checked = json::check(bytes, mask)?;
    if checked.opened_bytes > MAX_OPENED_BYTES {
        return Err(format!("it holds too many values: they would take more than {MAX_OPENED_BYTES} bytes of memory"));
    }
    serde_json::from_slice(&checked.text).map_err(|error| format!("it is not JSON: {error}"))
}

/// What a command says about its failure; or what is wrong with what it says.
pub(crate) fn error_mark(said: &Value) -> Result<ErrorMark, String> {
    let word = said.get("category").and_then(Value::as_str).ok_or("`category` is missing or not text")?;
    let category: Category = serde_json::from_value(word.into()).map_err(|_| {
        let known: Vec<&str> = Category::ALL.iter().map(|known| known.as_str()).collect();
        runvoy_model::phrase::unknown("category", word, &known)
    })?;
    let message = said.get("message").and_then(Value::as_str).filter(|message| !message.trim().is_empty());
    let retry_after_ms = match said.get("retryAfter") {
        None | Some(Value::Null) => None,
        Some(seconds) => Some(milliseconds(seconds).ok_or_else(|| format!("`retryAfter` is not a number of seconds: {seconds}"))?),
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
    fn a_small_file_of_many_values_is_refused() {
        let many = |count: usize| format!("[{}0]", "{\"\":0},".repeat(count));
        assert!(value(many(100).as_bytes(), None).is_ok());
        let told = value(many(ERROR_LIMIT / 8).as_bytes(), None).expect_err("too many");
        assert!(told.contains("too many values"), "{told}");
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
            (json!({"category": "weather"}), "unknown category weather; expected timeout, network"),
            (json!({"message": "x"}), "`category` is missing"),
            (json!([1]), "`category` is missing"),
            (json!({"category": "auth", "retryAfter": -1}), "not a number of seconds"),
            (json!({"category": "auth", "retryAfter": "soon"}), "not a number of seconds"),
        ] {
            let told = mark(value).expect_err(says);
            assert!(told.contains(says), "{told}");
        }
    }
}
