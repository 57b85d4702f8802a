//! Parameters of a query, read one by one, so that a wrong one is refused by its name. Parameters that are not known are
//! ignored, unless a route refuses those that look like one that is.

use std::ops::RangeInclusive;
use std::str::FromStr;

use http::{HeaderName, Uri};

use crate::fault::Fault;
use crate::slip;

/// Where the next page of a list begins.
pub(crate) const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// A parsed query.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// The query of an address.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Fault> {
        if uri.query().is_none_or(str::is_empty) {
            return Ok(Self::default());
        }
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        let pairs = pairs.map_err(|_| Fault::invalid("query", "is not a list of name=value pairs"))?.0;
        Ok(Self { pairs })
    }

    /// With those of these parameters left out that are empty: public clients send them so.
    pub(crate) fn without_empty(mut self, names: &[&str]) -> Self {
        self.pairs.retain(|(name, value)| !value.is_empty() || !names.contains(&name.as_str()));
        self
    }

    /// Refuses a parameter that is not known and looks like one of these.
    pub(crate) fn refuse_slips(&self, known: &[&str]) -> Result<(), Fault> {
        slip::refuse_parameters(self.pairs.iter().map(|(name, _)| name.as_str()), known)
    }

    /// A parameter as it is; `None` where it is absent. One that is empty is refused: a variable that is not set must not widen what is asked for.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut given = self.pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match (given.next(), given.next()) {
            (_, Some(_)) => Err(Fault::invalid(name, "is given twice")),
            (Some(""), None) => Err(Fault::invalid(name, "is empty: is a variable unset? Give it a value or leave it out")),
            (given, None) => Ok(given),
        }
    }

    /// Words with commas between them; an empty one is none.
    pub(crate) fn words(&self, name: &str) -> Result<Vec<&str>, Fault> {
        let words = self.text(name)?.into_iter().flat_map(|words| words.split(','));
        Ok(words.map(str::trim).filter(|word| !word.is_empty()).collect())
    }

    /// A whole number within a range.
    pub(crate) fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Fault> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(Fault::invalid(name, number_message(&range))),
        }
    }

    /// `true`, `1`, `false` or `0`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.text(name)? {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(Fault::invalid(name, "must be true or false")),
        }
    }

    /// Whatever can be read from text.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, Fault>
    where
        T::Err: std::fmt::Display,
    {
        let parse = |text: &str| text.parse().map_err(|error: T::Err| Fault::invalid(name, error.to_string()));
        self.text(name)?.map(parse).transpose()
    }
}

fn number_message(range: &RangeInclusive<u64>) -> String {
    match *range.end() {
        u64::MAX => format!("must be a whole number from {}", range.start()),
        end => format!("must be a whole number from {} to {end}", range.start()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/x?{text}").parse().expect("an address")).expect("a query")
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        assert_eq!(query("limit=5").number("limit", 0..=10).expect("good"), Some(5));
        assert_eq!(query("other=5").number("limit", 0..=10).expect("absent"), None);
        for bad in ["limit=", "limit=11", "limit=-1", "limit=x", "limit=1&limit=2", "limit=18446744073709551616"] {
            let fault = query(bad).number("limit", 0..=10).expect_err(bad);
            assert!(format!("{fault:?}").contains("limit"), "{fault:?}");
        }
        assert!(query("force=true").flag("force").expect("good"));
        assert!(query("force=maybe").flag("force").is_err());
    }

    #[test]
    fn an_empty_parameter_is_refused_unless_the_contract_takes_it_as_absent() {
        let text = "limit=&status=&user=&force=1";
        let lenient = query(text).without_empty(&["limit", "status"]);
        assert_eq!((lenient.number("limit", 0..=10).expect("absent"), lenient.words("status").expect("absent")), (None, vec![]));
        assert!(lenient.text("user").is_err() && query(text).text("limit").is_err());
        assert_eq!(query("limit=7&limit=").without_empty(&["limit"]).number("limit", 0..=10).expect("one is left"), Some(7));
    }

    #[test]
    fn words_stand_between_commas_and_an_empty_one_is_none() {
        for (text, words) in [("s=A,B", vec!["A", "B"]), ("s=A,%20,B,", vec!["A", "B"]), ("s=,", vec![]), ("", vec![])] {
            assert_eq!(query(text).words("s").expect("words"), words, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_do_not_break_it() {
        assert!(query("user=%ff%00").text("user").expect("lossy").is_some());
    }
}
