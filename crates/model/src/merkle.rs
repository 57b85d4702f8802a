//! One digest for the whole log of events: an append-only Merkle mountain range over the links of all chained events, in the order of
//! their places. It grows by one leaf in constant time and is kept as its peaks alone, so that a checkpoint costs what changed and not
//! what there is.

use sha2::{Digest as _, Sha256};

use crate::change::Checkpoint;
use crate::hex::{hex, unhex};
use crate::id::Id;

type Digest = [u8; 32];

/// What is hashed says what it is, so that a node can never be passed off as a leaf.
const LEAF: u8 = 0;
const NODE: u8 = 1;
const ROOT: u8 = 2;

/// The tree over a beginning of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    leaves: u64,
    /// The roots of whole binary trees, the largest first: one for every bit that is set in `leaves`.
    peaks: Vec<Digest>,
}

impl Tree {
    /// The tree that a checkpoint was made of; `None` where its parts do not fit each other.
    pub fn resume(checkpoint: &Checkpoint) -> Option<Self> {
        let peaks = checkpoint.peaks.iter().map(|peak| unhex(peak)).collect::<Option<Vec<Digest>>>()?;
        let tree = Self { leaves: checkpoint.leaves, peaks };
        (tree.peaks.len() == tree.leaves.count_ones() as usize && tree.root() == checkpoint.root).then_some(tree)
    }

    /// Adds the next event. Its id is covered too, because its link is not made of it.
    pub fn append(&mut self, event: Id, mac: &[u8; 32]) {
        let mut node = digest(LEAF, &[event.as_bytes(), mac]);
        let mut level = self.leaves;
        while level & 1 == 1 {
            let left = self.peaks.pop().expect("a peak for every bit that is set");
            node = digest(NODE, &[&left, &node]);
            level >>= 1;
        }
        self.peaks.push(node);
        self.leaves += 1;
    }

    /// How many events it covers.
    pub const fn leaves(&self) -> u64 {
        self.leaves
    }

    /// The one digest over all of them, and over their number.
    pub fn root(&self) -> Digest {
        let mut hash = Sha256::new();
        hash.update([ROOT]);
        hash.update(self.leaves.to_be_bytes());
        for peak in &self.peaks {
            hash.update(peak);
        }
        hash.finalize().into()
    }

    /// What is to be written down of it; its last event has this place.
    pub fn checkpoint(&self, up_to: u64) -> Checkpoint {
        Checkpoint { up_to, leaves: self.leaves, root: self.root(), peaks: self.peaks.iter().map(|peak| hex(peak)).collect() }
    }
}

fn digest(tag: u8, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    hash.update([tag]);
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(number: u8) -> (Id, [u8; 32]) {
        (Id::from_bytes([number; 16]), [number.wrapping_mul(3); 32])
    }

    fn tree(leaves: impl IntoIterator<Item = u8>) -> Tree {
        let mut tree = Tree::default();
        for (id, mac) in leaves.into_iter().map(leaf) {
            tree.append(id, &mac);
        }
        tree
    }

    #[test]
    fn it_goes_on_from_any_checkpoint_as_if_it_had_never_stopped() {
        for stop in 0..40 {
            let checkpoint = tree(0..stop).checkpoint(u64::from(stop));
            let text = serde_json::to_string(&checkpoint).expect("JSON");
            let mut resumed = Tree::resume(&serde_json::from_str(&text).expect("JSON")).expect("a checkpoint of ours");
            for (id, mac) in (stop..40).map(leaf) {
                resumed.append(id, &mac);
            }
            assert_eq!(resumed, tree(0..40), "stopped at {stop}");
        }
        assert_eq!(tree(0..40).leaves(), 40);
    }

    #[test]
    fn every_leaf_its_order_and_their_number_count() {
        let whole = tree(0..13).root();
        for gone in 0..13 {
            assert_ne!(tree((0..13).filter(|leaf| *leaf != gone)).root(), whole, "without {gone}");
            assert_ne!(tree((0..13).map(|leaf| if leaf == gone { 99 } else { leaf })).root(), whole, "with another {gone}");
        }
        assert_ne!(tree((0..13).rev()).root(), whole);
        assert_ne!(tree(0..14).root(), whole);
        let mut other_id = tree(0..12);
        other_id.append(Id::from_bytes([77; 16]), &leaf(12).1);
        assert_ne!(other_id.root(), whole, "the id of an event counts");
    }

    #[test]
    fn a_node_is_never_taken_for_a_leaf() {
        let pair = digest(NODE, &[&[1; 32], &[2; 32]]);
        assert_ne!(pair, digest(LEAF, &[&[1; 32], &[2; 32]]));
        assert_ne!(tree(0..2).root(), tree(0..2).peaks[0]);
    }

    #[test]
    fn a_checkpoint_that_was_changed_is_not_gone_on_with() {
        let good = tree(0..11).checkpoint(11);
        assert!(Tree::resume(&good).is_some());
        let changed: [fn(&mut Checkpoint); 4] = [
            |checkpoint| checkpoint.leaves += 1,
            |checkpoint| checkpoint.root[0] ^= 1,
            |checkpoint| checkpoint.peaks.swap(0, 1),
            |checkpoint| checkpoint.peaks[0] = "zz".into(),
        ];
        for change in changed {
            let mut bad = good.clone();
            change(&mut bad);
            assert_eq!(Tree::resume(&bad), None, "{bad:?}");
        }
    }
}
