//! The tree speaks of itself alone: no paths of the machine it was written on, no hosts it was downloaded from.

use super::file::SourceFile;
use super::finding::Finding;

// In two parts, so that this file does not find itself.
const TRACES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("arti", "factory")];

/// Every trace, in any text file.
pub fn check(file: &SourceFile) -> Vec<Finding> {
    let found = TRACES.iter().flat_map(|trace| {
        let lower = file.text.to_ascii_lowercase();
        let places: Vec<usize> = lower.match_indices(trace).map(|(at, _)| at).filter(|at| !continues_a_path(&lower[..*at])).collect();
        places.into_iter().map(move |at| (at, trace))
    });
    found
        .map(|(at, trace)| {
            Finding::new("trace", &file.path, file.line_at(at), format!("`{trace}` belongs to a machine, not to the project"))
        })
        .collect()
}

/// `data/x/` or `{dir}/x/` is a relative path; `/x/` at the start of a word is the machine's.
fn continues_a_path(before: &str) -> bool {
    before.ends_with(|c: char| c.is_alphanumeric() || "_-.~})>*".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&SourceFile::new("a.md", text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn traces_are_found_in_any_case() {
        for trace in TRACES {
            assert_eq!(lines(&format!("first\nsee {}x", trace.to_uppercase())), [2]);
        }
    }

    #[test]
    fn a_directory_of_that_name_inside_another_passes() {
        for trace in &TRACES[..2] {
            assert!(lines(&format!("<data-dir>{trace}x and {{dir}}{trace}y and data{trace}z")).is_empty());
        }
    }
}
