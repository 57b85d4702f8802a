//! The end of an attempt as a worker tells it: JSON with the names of [`EndAttempt`]'s own fields. The lease is proved by its token, and what the
//! server itself knows better, it fills in.

use bytes::Bytes;
use runvoy_model::command::{EndAttempt, ErrorMark, Outcome};
use runvoy_model::job::Payload;
use serde::Serialize;

#[derive(Serialize)]
struct Told<'a> {
    outcome: &'a Outcome,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'a ErrorMark>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<u32>,
}

/// The end as it is sent and written down.
pub(crate) fn encode(ended: &EndAttempt) -> Vec<u8> {
    let told = Told {
        outcome: &ended.outcome,
        duration_ms: ended.duration_ms,
        output: ended.output.as_ref(),
        said: ended.said.as_ref(),
        usage: ended.usage.as_ref(),
        remark: ended.remark.as_deref(),
        process_id: ended.process_id,
    };
    serde_json::to_vec(&told).expect("plain data")
}

/// An end of which only the outcome is known.
pub(crate) fn encode_outcome(outcome: &Outcome) -> Bytes {
    let told = Told { outcome, duration_ms: 0, output: None, said: None, usage: None, remark: None, process_id: None };
    serde_json::to_vec(&told).expect("plain data").into()
}
