//! Looking through a whole log on the server.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_ports::log::Search;
use runvoy_ports::search::Stop;
use runvoy_wire::{Hit, SearchResponse};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::log::stream_of;
use crate::operation::{Operation, flag, number, text, words};
use crate::resource::log::extent_of_kept;
use crate::route::{Routes, Rule};

const DEFAULT_HITS: u64 = 100;
const MOST_HITS: u64 = 1_000;
const MOST_PATTERN_BYTES: usize = 4_096;
/// More of one hit is not shown; its line number leads to the rest.
const MOST_HIT_BYTES: usize = 4_096;
const CUT: &str = "… (cut)";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("searchLogs", "Search the log of an execution")
        .about(
            "Returns the first matching lines and counts all matches. A search that takes longer \
             than 20 seconds returns what it has found, with `complete: false`; continue at \
             `next_line`.",
        )
        .execution_id()
        .required_query("q", text(), "The text to find, at most 4096 bytes")
        .query("regex", flag(), "Treat `q` as a regular expression")
        .query("from_line", number(1, None), "Start at this line")
        .query("limit", number(1, Some(MOST_HITS)), "The maximum number of hits to return; default: 100")
        .query("stream", words(&["stdout", "stderr", "platform"]), "Search only lines of this stream")
        .gives::<SearchResponse>(200, "The hits");
    routes.get("/api/v1/executions/{id}/logs/search", Rule::Key(Action::Read), operation, search);
}

async fn search(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let pattern = query.text("q")?.ok_or_else(|| Fault::invalid("q", "is missing: give the text to search for"))?;
    if pattern.len() > MOST_PATTERN_BYTES {
        return Err(Fault::invalid("q", format!("must not be longer than {MOST_PATTERN_BYTES} bytes")));
    }
    let limit = query.number("limit", 1..=MOST_HITS)?.unwrap_or(DEFAULT_HITS);
    let search = Search {
        pattern: pattern.to_owned(),
        regex: query.flag("regex")?,
        from_line: query.number("from_line", 1..=u64::MAX)?.unwrap_or(1),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        stream: stream_of(&query)?,
        stop: Stop::default(),
    };
    let execution = call.execution().await?;
    extent_of_kept(&call, &execution).await?;
    let found = call.engine().search_log(call.caller()?, &execution, search).await?;
    let hits = found.hits.iter().map(|(line, bytes)| Hit { line: *line, message: shown(bytes) });
    let response = SearchResponse { total: found.total, hits: hits.collect(), next_line: found.next_line, complete: !found.is_stopped };
    Ok(answer::json(StatusCode::OK, &response))
}

/// A hit's text, cut between two characters where it is long.
fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= MOST_HIT_BYTES {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let is_inside = |at: &usize| bytes[*at] & 0b1100_0000 == 0b1000_0000;
    // A character has four bytes at most; whatever goes on longer is none.
    let end = (MOST_HIT_BYTES - 3..=MOST_HIT_BYTES).rev().find(|at| !is_inside(at)).unwrap_or(MOST_HIT_BYTES);
    format!("{}{CUT}", String::from_utf8_lossy(&bytes[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_hit_is_cut_between_characters_and_says_so() {
        let whole = "x".repeat(MOST_HIT_BYTES);
        assert_eq!(shown(whole.as_bytes()), whole);
        assert_eq!(shown(format!("{whole}y").as_bytes()), format!("{whole}{CUT}"));
        for pad in 0..4 {
            let text = format!("{}{}", "x".repeat(pad), "😀".repeat(2_000));
            let cut = shown(text.as_bytes());
            let kept = cut.strip_suffix(CUT).expect("the mark");
            assert!(text.starts_with(kept) && kept.len() > MOST_HIT_BYTES - 4, "{pad}: {}", kept.len());
        }
        assert_eq!(shown(&[0x80; 5_000]).chars().filter(|char| *char == '\u{fffd}').count(), MOST_HIT_BYTES);
    }
}
