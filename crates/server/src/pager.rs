//! Pages of lists that are held whole: by key, after `cursor`, at most `limit`. Where neither is given the list is whole. A cursor is the key of the
//! last item before it, so that what comes and goes in between moves nothing.

use axum::body::Body;
use http::{HeaderValue, Response};
use runvoy_model::hex::hex;

use crate::fault::Fault;
use crate::query::{NEXT_CURSOR, Query};

/// The most that one page holds.
pub(crate) const MOST_LISTED: u64 = 1_000;
/// A cursor is a key in hex digits.
pub(crate) const CURSOR_PATTERN: &str = "^([0-9a-f]{2})+$";

/// Which part of a list is asked for.
#[derive(Debug)]
pub(crate) struct Pager {
    limit: Option<usize>,
    after: Option<Vec<u8>>,
}

/// Where the next page begins, if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Next(Option<String>);

impl Pager {
    /// What a query asks for.
    pub(crate) fn of(query: &Query) -> Result<Self, Fault> {
        let limit = query.number("limit", 1..=MOST_LISTED)?.map(|limit| usize::try_from(limit).expect("at most a thousand"));
        let unreadable =
            || Fault::invalid("cursor", "is not a cursor of this list: use the X-Next-Cursor of its last page, or start without one");
        let after = query.text("cursor")?.map(|cursor| key_in(cursor).ok_or_else(unreadable)).transpose()?;
        Ok(Self { limit, after })
    }

    /// Leaves what is asked for, in the order of the keys. Keys are not empty, and no two items have the same one.
    pub(crate) fn cut<T>(self, items: &mut Vec<T>, key: impl Fn(&T) -> String) -> Next {
        items.sort_by_cached_key(&key);
        if let Some(after) = self.after {
            items.retain(|item| key(item).into_bytes() > after);
        }
        let Some(limit) = self.limit.filter(|limit| *limit < items.len()) else { return Next(None) };
        items.truncate(limit);
        Next(items.last().map(|last| hex(key(last).as_bytes())))
    }
}

impl Next {
    /// The answer with the cursor, if there is one.
    pub(crate) fn on(self, mut response: Response<Body>) -> Response<Body> {
        if let Some(cursor) = self.0 {
            response.headers_mut().insert(NEXT_CURSOR, HeaderValue::from_str(&cursor).expect("hex digits are ASCII"));
        }
        response
    }
}

fn key_in(cursor: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = cursor.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect::<Option<_>>();
    bytes.filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str, items: &[&str]) -> (Vec<String>, Next) {
        let query = Query::of(&format!("/x?{query}").parse().expect("an address")).expect("a query");
        let mut items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
        let next = Pager::of(&query).expect("a page").cut(&mut items, Clone::clone);
        (items, next)
    }

    fn cursor(key: &str) -> String {
        hex(key.as_bytes())
    }

    #[test]
    fn a_list_is_whole_unless_a_part_is_asked_for() {
        assert_eq!(page("", &["a", "b", "c"]), (vec!["a".into(), "b".into(), "c".into()], Next(None)));
        assert_eq!(page("limit=3", &["a", "b", "c"]).1, Next(None), "exactly full is no reason to ask again");
        assert_eq!(page("limit=2", &["c", "b", "a"]), (vec!["a".into(), "b".into()], Next(Some(cursor("b")))));
        assert_eq!(page("limit=5", &[]), (Vec::new(), Next(None)));
    }

    #[test]
    fn a_page_begins_behind_its_cursor_also_if_that_one_is_gone() {
        let after = format!("limit=1&cursor={}", cursor("b"));
        assert_eq!(page(&after, &["a", "c", "d"]), (vec!["c".into()], Next(Some(cursor("c")))));
        assert_eq!(page(&format!("cursor={}", cursor("d")), &["a", "c", "d"]), (Vec::new(), Next(None)));
    }

    #[test]
    fn what_is_no_limit_and_no_cursor_is_refused_by_name() {
        for (query, field) in [("limit=0", "limit"), ("limit=1001", "limit"), ("cursor=x", "cursor"), ("cursor=__8", "cursor")] {
            let query = Query::of(&format!("/x?{query}").parse().expect("an address")).expect("a query");
            let fault = Pager::of(&query).expect_err(field);
            assert!(format!("{fault:?}").contains(field), "{fault:?}");
        }
    }
}
