//! The exceptions, each with its reason. One that excuses nothing any more is itself a finding, so the table cannot rot.

use super::finding::Finding;

/// Something a rule finds and the house accepts.
pub struct Exception {
    /// The rule, as findings name it in brackets.
    rule: &'static str,
    /// The file, or `file::item`.
    subject: &'static str,
    /// Why it may stay.
    reason: &'static str,
}

/// Every exception there is.
pub const EXCEPTIONS: &[Exception] = &[
    Exception { rule: "header", subject: "crates/sqlite/src/logs/format.rs", reason: "the file format, byte by byte" },
    Exception { rule: "header", subject: "crates/sqlite/src/logs/framed.rs", reason: "the file format, byte by byte" },
    Exception { rule: "header", subject: "crates/sqlite/src/logs/mod.rs", reason: "the crash semantics of the log files" },
    Exception {
        rule: "purity",
        subject: "crates/sqlite/src/logs/seam.rs",
        reason: "the seam itself: its default is where randomness comes in",
    },
    Exception { rule: "file-length", subject: "web/src/lib/api/schema.ts", reason: "made from the OpenAPI document, read by no one" },
];

/// Removes what the table excuses and adds what is wrong with the table.
pub fn apply(exceptions: &[Exception], findings: Vec<Finding>) -> Vec<Finding> {
    let excuses = |exception: &Exception, finding: &Finding| exception.rule == finding.rule && exception.subject == finding.subject();
    let stale = exceptions.iter().filter(|exception| !findings.iter().any(|finding| excuses(exception, finding)));
    let mut rest: Vec<Finding> = stale.map(|exception| complaint(exception, "excuses nothing any more: remove it")).collect();
    rest.extend(exceptions.iter().filter(|exception| exception.reason.is_empty()).map(|exception| complaint(exception, "has no reason")));
    rest.extend(findings.into_iter().filter(|finding| !exceptions.iter().any(|exception| excuses(exception, finding))));
    rest
}

fn complaint(exception: &Exception, what: &str) -> Finding {
    let message = format!("the exception of `{}` from `{}` {what}", exception.subject, exception.rule);
    Finding::new("exception", "xtask/src/tidy/exception.rs", 1, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(path: &str, item: Option<&str>) -> Finding {
        Finding { item: item.map(str::to_owned), ..Finding::new("length", path, 1, "too long") }
    }

    #[test]
    fn an_exception_excuses_its_subject_alone() {
        let table = [Exception { rule: "length", subject: "a.rs::f", reason: "a table" }];
        let left = apply(&table, vec![long("a.rs", Some("f")), long("a.rs", Some("g")), long("b.rs", None)]);
        assert_eq!(left, [long("a.rs", Some("g")), long("b.rs", None)]);
    }

    #[test]
    fn an_exception_that_excuses_nothing_is_found() {
        let table = [Exception { rule: "length", subject: "gone.rs", reason: "a table" }];
        let left = apply(&table, Vec::new());
        assert_eq!(left.len(), 1);
        assert!(left[0].message.contains("excuses nothing"), "{}", left[0]);
    }

    #[test]
    fn an_exception_without_a_reason_is_found() {
        let table = [Exception { rule: "length", subject: "a.rs", reason: "" }];
        assert_eq!(apply(&table, vec![long("a.rs", None)]).len(), 1);
    }
}
