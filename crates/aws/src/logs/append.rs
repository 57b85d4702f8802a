//! Appending: what is new of a block becomes pieces, written together with the head in one transaction that is conditioned on the head's
//! version. Two servers may append to one log: whoever comes second reads the head again and judges the repeat and the gap anew.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use runvoy_model::id::ExecutionId;
use runvoy_model::time::UnixMs;
use runvoy_ports::log::{Append, Appended, LogError, in_order, most_bytes};

use super::core::{Core, of_head};
use super::head::Head;
use super::piece::{Piece, cut};
use crate::dynamo::pause;
use crate::fault::Fault;
use crate::item::n;
use crate::table::Table;

/// How often an append meets other writers before it says that the store is busy.
const ROUNDS: u32 = 50;
/// So many encoded bytes are one transaction, or one piece: it may have 4 MB.
const MOST_BYTES: usize = 3 << 20;

/// One transaction of an append.
struct Plan {
    after: Head,
    pieces: Vec<Piece>,
    /// Nothing of the block is left for another one.
    is_all: bool,
}

impl Core {
    /// Appends what is new in a block.
    pub async fn append(&self, id: ExecutionId, mut append: Append) -> Result<Appended, LogError> {
        let slot = self.slot(id);
        let mut known = slot.lock().await;
        let mut round = 0;
        loop {
            let (head, is_fresh) = match known.take() {
                Some(head) => (head, false),
                None => (self.head(id).await.map_err(|fault| of_head(id, fault))?, true),
            };
            let plan = match self.plan(id, &head, &append) {
                // Another server may have appended since.
                Err(LogError::Gap { .. } | LogError::Full { .. }) if !is_fresh => continue,
                Ok(Some(plan)) => plan,
                other => {
                    let appended = head.appended(append.attempt);
                    *known = Some(head);
                    return other.map(|_| appended);
                }
            };
            match self.write(id, &head, &plan).await {
                Ok(()) => {}
                Err(Fault::Conflict | Fault::Busy(_)) if round < ROUNDS => {
                    round += 1;
                    pause(round).await;
                    continue;
                }
                Err(fault) => return Err(fault.into()),
            }
            self.mirror(id, &plan.pieces);
            if append.first_seq.is_none() {
                append.block = append.block.skip(plan.pieces.iter().map(|piece| piece.chunk.block.count).sum());
            }
            let appended = plan.after.appended(append.attempt);
            // The head of a sealed log may be large, and hardly anything follows.
            *known = plan.after.seal.is_none().then_some(plan.after);
            if plan.is_all {
                return Ok(appended);
            }
            round = 0;
        }
    }

    /// What to write first of an append to a log that stands like this; `None` if it is all known.
    fn plan(&self, id: ExecutionId, head: &Head, append: &Append) -> Result<Option<Plan>, LogError> {
        let Some((first_seq, block)) = head.admit(append)? else { return Ok(None) };
        let block = in_order(id, block, head.max_at.unwrap_or(UnixMs(i64::MIN)));
        let limit_bytes = self.config.max_log_bytes;
        if head.stored_bytes + block.data.len() as u64 > most_bytes(limit_bytes, append.attempt, &block) {
            return Err(LogError::Full { limit_bytes });
        }
        let cuts = cut(&block).map_err(|malformed| LogError::Storage(Box::new(malformed)))?;
        let mut bytes = 0;
        let fitting = cuts.iter().take_while(|cut| {
            let fits = bytes == 0 || bytes + cut.block.data.len() <= MOST_BYTES;
            bytes += cut.block.data.len();
            fits
        });
        let count = fitting.count();
        let (after, pieces) = head.place(append, first_seq, &cuts[..count]);
        Ok(Some(Plan { after, pieces, is_all: count == cuts.len() }))
    }

    /// Writes a head and its new pieces over the head that was seen.
    async fn write(&self, id: ExecutionId, seen: &Head, plan: &Plan) -> Result<(), Fault> {
        let (name, table) = (self.name_write(), self.dynamo.name(Table::Logs));
        let put = |item| Put::builder().table_name(&table).set_item(Some(item));
        let head = put(plan.after.to_item(id, self.shards, &name)).expression_attribute_names("#v", "version");
        let head = match seen.version {
            0 => head.condition_expression("attribute_not_exists(#v)"),
            version => head.condition_expression("#v = :seen").expression_attribute_values(":seen", n(version)),
        };
        let pieces = plan.pieces.iter().map(|piece| {
            let put = put(piece.to_item(id, &name)).condition_expression("attribute_not_exists(#k)");
            put.expression_attribute_names("#k", "execution_id")
        });
        let writes = std::iter::once(head).chain(pieces).map(|put| {
            let put = put.build().expect("a put has a table and an item");
            TransactWriteItem::builder().put(put).build()
        });
        let first_line = plan.pieces.first().map_or(0, |piece| piece.chunk.first_line);
        let done = self.dynamo.transact(writes.collect()).await;
        self.confirm(id, first_line, &name, done).await
    }

    fn mirror(&self, id: ExecutionId, pieces: &[Piece]) {
        // Job events are for programs; what people read of them are their lines, which are mirrored.
        if let Some(mirror) = self.mirror.as_ref().filter(|_| !id.is_event_log()) {
            for piece in pieces {
                mirror.offer(id, piece.chunk.attempt, &piece.chunk.block);
            }
        }
    }
}
