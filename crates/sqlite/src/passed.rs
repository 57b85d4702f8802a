//! How far workers of the same labels have passed by those in a line that ask for others. What a spec asks for never changes, so nobody who was passed by
//! for that is looked at twice: the next look begins behind them, also where this one gave up.
//!
//! Only the writer remembers this, and only until a rollback, which may put somebody back in line whom a look found gone. Never says who fits.

use std::collections::HashMap;

use runvoy_model::execution::Execution;
use runvoy_model::id::ExecutionId;
use runvoy_model::name::Name;
use runvoy_model::spec::Labels;

use crate::ready;

/// So much is remembered; beyond it everything is looked at anew.
const MOST: usize = 1_000;

/// Where an execution stands among those of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) ready_at: i64,
    pub(crate) id: ExecutionId,
}

impl Spot {
    /// Before everybody.
    pub(crate) const START: Self = Self { ready_at: i64::MIN, id: ExecutionId::from_bytes([0; 16]) };

    /// Nobody can stand between this spot and the one it is before.
    fn before(self) -> Self {
        let Self { ready_at, id } = self;
        if let Some(id) = u128::from_be_bytes(*id.as_bytes()).checked_sub(1) {
            return Self { ready_at, id: ExecutionId::from_bytes(id.to_be_bytes()) };
        }
        let last = ExecutionId::from_bytes([u8::MAX; 16]);
        ready_at.checked_sub(1).map_or(Self::START, |ready_at| Self { ready_at, id: last })
    }
}

/// Whose look it is, and at whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Passer {
    pub(crate) queue: Name,
    /// What the `priority` column holds.
    pub(crate) number: i64,
    /// What the worker has.
    pub(crate) labels: Labels,
}

/// For each passer the last spot up to which nobody fits.
#[derive(Debug, Default)]
pub(crate) struct Passed(HashMap<Passer, Spot>);

impl Passed {
    /// Up to here, and here, nobody fits.
    pub(crate) fn until(&self, passer: &Passer) -> Spot {
        self.0.get(passer).copied().unwrap_or(Spot::START)
    }

    /// Nobody fits up to this spot either.
    pub(crate) fn advance(&mut self, passer: Passer, to: Spot) {
        if self.0.len() >= MOST && !self.0.contains_key(&passer) {
            self.0.clear();
        }
        self.0.insert(passer, to);
    }

    /// Somebody comes to stand where they did not stand before: new, back from an attempt, or by a clock that was set back. Workers that fit begin
    /// no later than there.
    pub(crate) fn comes(&mut self, execution: &Execution) {
        let spec = &execution.spec;
        if spec.worker_labels.is_empty() || self.0.is_empty() {
            return;
        }
        let Some(key) = execution.ready_key() else { return };
        let number = ready::class(spec);
        let before = Spot { ready_at: key.ready_at.0, id: key.id }.before();
        for (passer, until) in &mut self.0 {
            if passer.number == number && passer.queue == spec.queue && spec.fits(&passer.labels) {
                *until = before.min(*until);
            }
        }
    }

    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(ready_at: i64, last: u8) -> Spot {
        let mut id = [0; 16];
        id[15] = last;
        Spot { ready_at, id: ExecutionId::from_bytes(id) }
    }

    fn passer(number: i64) -> Passer {
        Passer { queue: Name::new("default").expect("a name"), number, labels: Labels::new() }
    }

    #[test]
    fn nobody_stands_between_a_spot_and_the_one_before_it() {
        assert_eq!(spot(7, 3).before(), spot(7, 2));
        let before = spot(7, 0).before();
        assert_eq!((before.ready_at, *before.id.as_bytes()), (6, [255; 16]));
        assert_eq!(Spot::START.before(), Spot::START);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let mut passed = Passed::default();
        let most = i64::try_from(MOST).expect("a small number");
        for number in (0..most).chain(0..most) {
            passed.advance(passer(number), spot(7, 3));
        }
        assert_eq!((passed.0.len(), passed.until(&passer(0))), (MOST, spot(7, 3)));
        passed.advance(passer(most), spot(7, 3));
        assert_eq!((passed.0.len(), passed.until(&passer(0))), (1, Spot::START));
    }
}
