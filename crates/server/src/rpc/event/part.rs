//! Events whose output is too large for one message to a reader become several, of the same sequence, each with its part of the output and its number. Nothing is left out.

use runvoy_engine::PublishedEvent;
use runvoy_model::job_event::Piece;
use runvoy_rpc::job::v1::__buffa::oneof::job_event::EventData;
use runvoy_rpc::job::v1::OutputItem;

use super::envelope::Opened;

/// So many bytes of output are one part: many clients take no message of more than 4 MiB.
const MOST_BYTES: usize = 1 << 20;

/// An event as it is, or in parts.
pub(super) fn parts(event: Opened) -> Vec<PublishedEvent> {
    if event.output.iter().map(|piece| piece.bytes.len()).sum::<usize>() <= MOST_BYTES {
        return vec![event.published()];
    }
    let Opened { place, kind, at, effect, message, output, texts } = event;
    let groups = grouped(output);
    let count = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let part = |(number, group): (u32, Vec<(usize, Piece)>)| {
        let mut message = message.clone();
        (message.part, message.parts) = (number + 1, count);
        if let Some(EventData::OutputBatch(batch)) = &mut message.event_data {
            let item = |of: &usize| batch.outputs.get(*of).cloned().unwrap_or_else(OutputItem::default);
            batch.outputs = group.iter().map(|(of, _)| item(of)).collect();
        }
        let output = group.into_iter().map(|(_, piece)| piece).collect();
        let place = runvoy_model::job_event::Place { part: number, ..place };
        Opened { place, kind, at, effect, message, output, texts: texts.clone() }.published()
    };
    (0..).zip(groups).map(part).collect()
}

/// Pieces in groups that fit, each with the number of the one it was, cut where it has to be.
fn grouped(output: Vec<Piece>) -> Vec<Vec<(usize, Piece)>> {
    let (mut groups, mut bytes) = (vec![Vec::new()], 0);
    for (of, piece) in output.into_iter().enumerate() {
        let Piece { stream, at, bytes: mut rest } = piece;
        loop {
            let fitting = rest.len().min(MOST_BYTES - bytes);
            let later = rest.split_off(fitting);
            bytes += fitting;
            groups.last_mut().expect("there is always one").push((of, Piece { stream, at, bytes: rest }));
            if later.is_empty() {
                break;
            }
            rest = later;
            groups.push(Vec::new());
            bytes = 0;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use runvoy_model::log::Stream;
    use runvoy_model::time::UnixMs;
    use runvoy_rpc::buffa::Message as _;
    use runvoy_rpc::job::v1::{JobEvent, OutputBatchEvent, OutputEvent};

    use super::super::envelope::opened;
    use super::*;

    #[test]
    fn a_large_output_is_cut_and_nothing_is_lost() {
        let bytes: Vec<u8> = (0..3 * MOST_BYTES + 5).map(|n| (n % 251) as u8).collect();
        let output = OutputEvent { output: bytes.clone().into(), ..OutputEvent::default() };
        let message = JobEvent { sequence: 9, event_data: Some(EventData::Output(Box::new(output))), ..JobEvent::default() };
        let parts = parts(opened(message, UnixMs(1)).expect("an event"));
        assert_eq!(
            parts.iter().map(|part| (part.event.place.sequence, part.event.place.part)).collect::<Vec<_>>(),
            [(9, 0), (9, 1), (9, 2), (9, 3)]
        );
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.event.output[0].bytes.clone()).collect();
        assert!(whole == bytes);
        let third = JobEvent::decode_from_slice(&parts[2].event.envelope).expect("own encoding");
        assert_eq!((third.part, third.parts, third.sequence), (3, 4, 9));
    }

    #[test]
    fn the_items_of_a_batch_go_with_their_bytes() {
        let item = |size: usize, delta| OutputItem { output: vec![b'x'; size].into(), timestamp_delta_ms: delta, ..OutputItem::default() };
        let batch =
            OutputBatchEvent { outputs: vec![item(10, 1), item(MOST_BYTES, 2), item(0, 3), item(7, 4)], ..OutputBatchEvent::default() };
        let message = JobEvent { event_data: Some(EventData::OutputBatch(Box::new(batch))), ..JobEvent::default() };
        let seen = parts(opened(message, UnixMs(1)).expect("an event")).into_iter().map(|part| {
            let message = JobEvent::decode_from_slice(&part.event.envelope).expect("own encoding");
            let Some(EventData::OutputBatch(batch)) = message.event_data else { panic!("a batch") };
            let deltas = batch.outputs.iter().map(|item| item.timestamp_delta_ms);
            let sizes = part.event.output.iter().inspect(|piece| assert_eq!(piece.stream, Stream::Stdout)).map(|piece| piece.bytes.len());
            deltas.zip(sizes).collect::<Vec<_>>()
        });
        assert_eq!(seen.collect::<Vec<_>>(), [vec![(1, 10), (2, MOST_BYTES - 10)], vec![(2, 10), (3, 0), (4, 7)]]);
    }
}
