//! The sections of `docs/errors.md`, one for each error code and exit code: `runvoy help error` lists them, `runvoy help error CODE` prints one.

use crate::failure::Failure;

const PAGE: &str = include_str!("../../../docs/errors.md");
/// What the section of an exit code is called before its number.
const EXIT_CODE: &str = "Exit code ";
/// The section of every status that a proxy answers with, as `HTTP_502`.
const PROXY: &str = "HTTP_STATUS";

/// A code and what the page says about it.
#[derive(Debug, Clone, Copy)]
struct Section {
    title: &'static str,
    text: &'static str,
}

impl Section {
    /// The first paragraph on one line.
    fn summary(&self) -> String {
        let lines: Vec<&str> = self.text.lines().take_while(|line| !line.is_empty()).collect();
        lines.join(" ").replace('`', "")
    }
}

fn sections() -> impl Iterator<Item = Section> {
    PAGE.split("\n## ").skip(1).filter_map(|part| {
        let (title, text) = part.split_once('\n')?;
        Some(Section { title, text: text.trim() })
    })
}

fn find(code: &str) -> Option<Section> {
    let code = code.trim().to_ascii_uppercase().replace('-', "_");
    let is_of_proxy = code.strip_prefix("HTTP_").is_some_and(|status| status.parse::<u16>().is_ok());
    let code = if is_of_proxy { PROXY } else { code.as_str() };
    sections().find(|section| section.title == code || section.title.strip_prefix(EXIT_CODE) == Some(code))
}

/// The command that prints the section of an error code; none for a code of a newer server.
pub(crate) fn hint(code: &str) -> Option<String> {
    find(code).map(|_| format!("runvoy help error {}", code.to_ascii_lowercase()))
}

/// What `help error` prints: one section, or the list of codes.
pub(crate) fn page(code: Option<&str>) -> Result<String, Failure> {
    let Some(code) = code else { return Ok(list()) };
    match find(code) {
        Some(section) => Ok(format!("{}\n\n{}\n", section.title, section.text)),
        None => {
            let known: Vec<&str> = sections().map(|section| section.title).collect();
            let what = runvoy_wire::unknown("error code", &code.to_ascii_uppercase(), &known);
            Err(Failure::usage(what).next("list the codes: runvoy help error"))
        }
    }
}

fn list() -> String {
    let mut text = "Error codes and exit codes; for one of them: runvoy help error CODE\n\n".to_owned();
    for section in sections() {
        let summary = section.summary();
        let (first, _) = summary.split_once(". ").unwrap_or((summary.trim_end_matches('.'), ""));
        text.push_str(&format!("  {:<22} {first}\n", section.title));
    }
    text
}

#[cfg(test)]
mod tests {
    use runvoy_wire::Code;

    use super::*;
    use crate::failure;

    #[test]
    fn every_code_has_one_section_and_every_section_a_code() {
        let exits = failure::EXIT_CODES.iter().map(|code| format!("{EXIT_CODE}{code}"));
        let codes = Code::ALL.iter().map(|code| code.as_str()).chain(failure::CLIENT_CODES).chain([PROXY]);
        let mut known: Vec<String> = codes.map(str::to_owned).chain(exits).collect();
        let mut titles: Vec<String> = sections().map(|section| section.title.to_owned()).collect();
        known.sort_unstable();
        titles.sort_unstable();
        assert_eq!(titles, known);
        for section in sections() {
            assert!(section.text.lines().all(|line| line.chars().count() <= 80), "a terminal has 80 columns: {section:?}");
            assert!(section.text.contains("Next: ") || section.title.ends_with(" 0") || section.text.contains("and next:"), "{section:?}");
        }
    }

    #[test]
    fn a_code_is_found_as_people_write_it() {
        for code in ["LOCK_HELD", "lock_held", "lock-held", "125", "HTTP_502", "tls"] {
            assert!(page(Some(code)).is_ok(), "{code}");
        }
        let told = page(Some("lock_hold")).expect_err("no such code").text(false);
        assert!(told.contains("did you mean LOCK_HELD?") && told.contains("runvoy help error"), "{told}");
    }

    #[test]
    fn the_list_names_every_code_on_one_line() {
        let list = list();
        assert_eq!(list.lines().count(), sections().count() + 2);
        assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    }

    #[test]
    fn every_known_code_points_to_its_section() {
        assert_eq!(hint("LOCK_HELD").as_deref(), Some("runvoy help error lock_held"));
        assert_eq!(hint("INVALID_REQUEST").as_deref(), Some("runvoy help error invalid_request"));
        assert_eq!(hint("OF_A_NEWER_SERVER"), None);
    }
}
