//! Lists that may stop early: pages are asked for until there are enough items, and a line on stderr
//! says so where the list goes on.

use runvoy_client::{ClientError, Page};

use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::Tone;

/// The largest page that a server gives at once.
const MAX_PAGE: u32 = 500;

/// How many items a list shows at most; `None` for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(Option<u32>);

impl Limit {
    /// From `--limit N` and `--all`. A limit of 0 means all, too.
    pub(crate) fn new(limit: u32, all: bool) -> Self {
        Self((!all && limit > 0).then_some(limit))
    }
}

/// What is behind the last item that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    More,
    /// The server has not looked yet: only a further request would tell.
    Unknown,
}

/// Goes through a list page by page, as far as was asked for.
#[derive(Debug)]
pub(crate) struct Pager {
    limit: Limit,
    shown: usize,
    cursor: Option<String>,
    ended: bool,
    rest: Rest,
}

impl Pager {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, shown: 0, cursor: None, ended: false, rest: Rest::Nothing }
    }

    /// How many items to ask for next, and behind which cursor; `None` when there is nothing to ask.
    pub(crate) fn next(&self) -> Option<(u32, Option<String>)> {
        let missing = match self.limit.0 {
            None => MAX_PAGE,
            // One more than is shown tells whether the list goes on.
            Some(limit) => (limit as usize + 1).saturating_sub(self.shown).try_into().unwrap_or(MAX_PAGE).min(MAX_PAGE),
        };
        (!self.ended).then(|| (missing, self.cursor.clone()))
    }

    /// Takes a page in; gives the items of it that are to be shown.
    pub(crate) fn take<T>(&mut self, page: Page<T>) -> Vec<T> {
        let mut items = page.items;
        // A page may be empty and not the last; but a server that repeats a cursor would be asked
        // for ever.
        let moves_on = page.next_cursor.is_some() && page.next_cursor != self.cursor;
        self.cursor = page.next_cursor;
        self.ended = !moves_on;
        if let Some(limit) = self.limit.0 {
            let room = (limit as usize).saturating_sub(self.shown);
            if items.len() >= room {
                self.ended = true;
                self.rest = match items.len() > room {
                    true => Rest::More,
                    false if moves_on => Rest::Unknown,
                    false => Rest::Nothing,
                };
                items.truncate(room);
            }
        }
        self.shown += items.len();
        items
    }

    /// How many items were given.
    pub(crate) fn shown(&self) -> usize {
        self.shown
    }

    /// Says on stderr that the list goes on, where it does.
    pub(crate) fn note_rest(&self, session: &Session) {
        if let Some(text) = told(self.shown, self.rest) {
            session.note(Tone::Dim, &text);
        }
    }
}

fn told(shown: usize, rest: Rest) -> Option<String> {
    match rest {
        Rest::Nothing => None,
        Rest::More => Some(format!("{shown} shown, there are more; next: --limit N or --all")),
        Rest::Unknown => Some(format!("{shown} shown, there may be more; next: --limit N or --all")),
    }
}

/// Collects a list, as far as was asked for.
pub(crate) async fn collect<T>(
    limit: Limit,
    mut ask: impl AsyncFnMut(u32, Option<String>) -> Result<Page<T>, ClientError>,
) -> Result<(Vec<T>, Pager), Failure> {
    let (mut pager, mut items) = (Pager::new(limit), Vec::new());
    while let Some((count, cursor)) = pager.next() {
        let page = ask(count, cursor).await?;
        items.extend(pager.take(page));
    }
    Ok((items, pager))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists `total` numbers through a server that gives at most `largest` at once.
    fn walk(total: usize, largest: usize, limit: Limit) -> (usize, Rest) {
        let mut pager = Pager::new(limit);
        let mut at = 0;
        while let Some((count, _)) = pager.next() {
            let end = total.min(at + largest.min(count as usize));
            let next_cursor = (end < total).then(|| end.to_string());
            pager.take(Page { items: (at..end).collect(), next_cursor });
            at = end;
        }
        (pager.shown(), pager.rest)
    }

    #[test]
    fn a_list_says_truly_whether_it_stopped_early() {
        for (total, largest, limit, expected) in [
            (0, 500, Limit::new(20, false), (0, Rest::Nothing)),
            (20, 500, Limit::new(20, false), (20, Rest::Nothing)),
            (21, 500, Limit::new(20, false), (20, Rest::More)),
            (1_100, 500, Limit::new(20, false), (20, Rest::More)),
            (1_100, 500, Limit::new(20, true), (1_100, Rest::Nothing)),
            (1_100, 500, Limit::new(0, false), (1_100, Rest::Nothing)),
            (1_100, 500, Limit::new(1_100, false), (1_100, Rest::Nothing)),
            (1_100, 500, Limit::new(1_000, false), (1_000, Rest::Unknown)),
            (1_100, 7, Limit::new(20, false), (20, Rest::More)),
        ] {
            assert_eq!(walk(total, largest, limit), expected, "{limit:?} of {total}");
        }
    }

    #[test]
    fn a_server_that_repeats_its_cursor_is_not_asked_for_ever() {
        let mut pager = Pager::new(Limit::new(0, true));
        for _ in 0..2 {
            pager.take(Page { items: vec![1], next_cursor: Some("c".to_owned()) });
        }
        assert_eq!((pager.next(), pager.shown()), (None, 2));
    }

    #[test]
    fn the_note_names_the_options_that_show_more() {
        assert_eq!(told(20, Rest::Nothing), None);
        assert_eq!(told(20, Rest::More).as_deref(), Some("20 shown, there are more; next: --limit N or --all"));
        assert!(told(20, Rest::Unknown).expect("told").contains("may be more"));
    }
}
