//! What the writer knows of lines from earlier looks, so that nobody is walked past twice: those who ask for labels that workers lack, and those whose users
//! have their share. What a spec asks for and whose it is never changes; who comes, comes through the writer.
//!
//! Only the writer remembers this, and only until a rollback, which may put somebody back in line whom a look found gone. Never says who fits.

use std::collections::HashMap;

use runvoy_model::execution::Execution;
use runvoy_model::name::Name;
use runvoy_model::spec::Labels;

use crate::ready;
use crate::stretch::{Spot, Stretches};

/// So many lines are remembered, and so many stretches and names in all of them; beyond it everything is looked at anew.
const MOST_LINES: usize = 1_000;
const MOST: usize = if cfg!(test) { 2_000 } else { 100_000 };

/// Whose look it is, and at whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Passer {
    pub(crate) queue: Name,
    /// What the `priority` column holds.
    pub(crate) number: i64,
    /// What the worker has; nothing where nobody in the line asks for it.
    pub(crate) labels: Labels,
}

/// For each passer those who stand in line and fit its labels.
#[derive(Debug, Default)]
pub(crate) struct Passed(HashMap<Passer, Stretches>);

impl Passed {
    /// What is known of a line; it is unknown until it is kept again.
    pub(crate) fn take(&mut self, passer: &Passer) -> Stretches {
        self.0.remove(passer).unwrap_or_default()
    }

    pub(crate) fn keep(&mut self, passer: Passer, known: Stretches) {
        if known.size() == 0 {
            return;
        }
        if self.0.len() >= MOST_LINES {
            self.0.clear();
        }
        self.0.insert(passer, known);
        self.forget_too_much();
    }

    /// Somebody comes to stand where they did not stand before: new, back from an attempt, or by a clock that was set back.
    pub(crate) fn comes(&mut self, execution: &Execution) {
        if self.0.is_empty() {
            return;
        }
        let Some(key) = execution.ready_key() else { return };
        let (spec, spot) = (&execution.spec, Spot { ready_at: key.ready_at.0, id: key.id });
        let number = ready::class(spec);
        for (passer, known) in &mut self.0 {
            if passer.number == number && passer.queue == spec.queue && spec.fits(&passer.labels) {
                known.comes(spot, &execution.created_by);
            }
        }
        self.forget_too_much();
    }

    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    fn forget_too_much(&mut self) {
        if self.0.values().map(Stretches::size).sum::<usize>() > MOST {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use runvoy_model::id::ExecutionId;

    use super::*;
    use crate::stretch::Walk;

    fn passer(number: i64) -> Passer {
        Passer { queue: Name::new("default").expect("a name"), number, labels: Labels::new() }
    }

    /// Of so many stretches, with a name each.
    fn known(count: i64) -> Stretches {
        let mut walk = Walk::new(Stretches::default());
        for ready_at in 0..10 * count {
            let user = if (ready_at / 10) % 2 == 0 { "a" } else { "b" };
            walk.meet(Spot { ready_at, id: ExecutionId::from_bytes([0; 16]) }, Some(user));
        }
        walk.end()
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let mut passed = Passed::default();
        let most = i64::try_from(MOST_LINES).expect("a small number");
        for number in (0..most).chain(0..most) {
            let _ = passed.take(&passer(number));
            passed.keep(passer(number), known(1));
        }
        assert_eq!((passed.0.len(), passed.0.contains_key(&passer(0))), (MOST_LINES, true));
        passed.keep(passer(most), known(1));
        assert_eq!((passed.0.len(), passed.0.contains_key(&passer(0))), (1, false));
        passed.keep(passer(0), Stretches::default());
        assert_eq!(passed.0.len(), 1, "nothing is not worth remembering");
        for number in 0..most {
            let _ = passed.take(&passer(number));
            passed.keep(passer(number), known(8));
        }
        assert!(passed.0.values().map(Stretches::size).sum::<usize>() <= MOST && passed.0.len() < 200);
    }
}
