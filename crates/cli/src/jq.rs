//! `--jq`: a filter over what would be written as JSON, in jq's own language. Texts come out as they are, everything else as JSON, one result a line.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Ctx, Filter, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

use crate::failure::Failure;
use crate::table::cut;

/// What a filter says of a document holds that document: so much of it is shown.
const MOST_WHY_CHARS: usize = 200;

/// A filter that is ready to run.
pub(crate) struct Jq(Filter<data::JustLut<Val>>);

impl Jq {
    /// Reads a filter.
    pub(crate) fn new(code: &str) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::usage("--jq is not a valid jq filter").why(why).next("see the language: man jq");
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let modules = Loader::new(defs).load(&arena, File { code, path: () });
        let modules = modules.map_err(|_| wrong(format!("it cannot be read: {code}")))?;
        let filter = jaq_core::Compiler::default().with_funs(funs).compile(modules);
        let filter = filter.map_err(|errors| {
            let names = errors.iter().flat_map(|(_, names)| names.iter().map(|(name, _)| (*name).to_owned()));
            wrong(format!("unknown name: {}", names.collect::<Vec<_>>().join(", ")))
        })?;
        Ok(Self(filter))
    }

    /// What the filter makes of one JSON text.
    pub(crate) fn apply(&self, json: &[u8]) -> Result<String, Failure> {
        let failed = |why: String| Failure::other("--jq does not fit the output").why(cut(&why, MOST_WHY_CHARS));
        let input = read::parse_single(json).map_err(|error| failed(error.to_string()))?;
        let context = Ctx::<data::JustLut<Val>>::new(&self.0.lut, Vars::new([]));
        let mut out = String::new();
        for result in self.0.id.run((context, input)).map(unwrap_valr) {
            match result.map_err(|error| failed(error.to_string()))? {
                Val::TStr(text) | Val::BStr(text) => out.push_str(&String::from_utf8_lossy(&text)),
                other => out.push_str(&other.to_string()),
            }
            out.push('\n');
        }
        Ok(out)
    }
}

impl std::fmt::Debug for Jq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Jq")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(code: &str, json: &str) -> String {
        Jq::new(code).and_then(|jq| jq.apply(json.as_bytes())).unwrap_or_else(|failure| failure.text(false))
    }

    #[test]
    fn texts_come_out_as_they_are_and_the_rest_as_json() {
        let json = r#"[{"id":"a","n":[1,2.5]},{"id":"b","n":null}]"#;
        assert_eq!(filtered(".[].id", json), "a\nb\n");
        assert_eq!(filtered("map(.n|length)", json), "[2,0]\n");
        assert_eq!(filtered(".[] | select(.n == null)", json), "{\"id\":\"b\",\"n\":null}\n");
        assert_eq!(filtered("empty", json), "");
    }

    #[test]
    fn what_is_wrong_with_a_filter_is_said() {
        assert!(filtered(".[", "1").contains("cannot be read"));
        assert!(filtered("nonsense", "1").contains("nonsense"));
        assert!(filtered(".a", "1").contains("does not fit"));
        let long = format!("[{}]", vec!["\"hunter2\""; 1_000].join(","));
        let told = filtered(".a", &long);
        assert!(told.contains("does not fit") && told.chars().count() < 300, "{told}");
    }
}
