//! Tasks join the graph, and learn that their parents are done. Each parent is looked at once, and each edge told once.

use super::Board;
use crate::job::{Node, Phase};
use crate::name::Name;
use crate::view::{Standing, View};

/// A task that is looked at: itself.
const LOOK_COST: usize = 1;
/// So many tasks that were opened are read first.
const FIRST_LOOK: usize = 8;
/// A parent that is not done: its edge.
const EDGE_COST: usize = 1;
/// A child that is told: itself and the edge.
const TELL_COST: usize = 2;

impl<V: View> Board<'_, V> {
    /// Tasks of the batch that was opened join the graph, each with a look at where its parents stand.
    pub(super) fn look_at_staged(&mut self) -> Result<(), V::Error> {
        let Some(batch) = self.job.opening else { return Ok(()) };
        // Few at first: each is read as a whole, and one with many parents takes the budget of many.
        let mut at_once = FIRST_LOOK;
        loop {
            let most = self.affordable(LOOK_COST).min(at_once);
            let staged = self.standing(Standing::Staged(batch), most)?;
            if staged.is_empty() {
                break;
            }
            for node in staged {
                if !self.pay(LOOK_COST) || !self.look_at(node)? {
                    return Ok(());
                }
            }
            at_once *= 2;
        }
        if self.budget < LOOK_COST || self.job.counts.staged > 0 && self.unlooked(batch)? {
            self.unfinished = true;
            return Ok(());
        }
        self.job.opening = None;
        Ok(())
    }

    fn unlooked(&mut self, batch: u64) -> Result<bool, V::Error> {
        Ok(!self.standing(Standing::Staged(batch), 1)?.is_empty())
    }

    /// Looks at a task's parents; `false` if the budget did not go that far. Whoever is done meanwhile tells it, though it is staged.
    fn look_at(&mut self, mut node: Node) -> Result<bool, V::Error> {
        let from = usize::try_from(node.looked).unwrap_or(usize::MAX).min(node.depends_on.len());
        for parent in &node.depends_on[from..] {
            if self.phase(parent)? != Some(Phase::Completed) {
                if !self.pay(EDGE_COST) {
                    self.put(node);
                    return Ok(false);
                }
                node.open_parents += 1;
                self.writes.edges.push((self.job.id, parent.clone(), node.task.clone()));
            }
            node.looked += 1;
        }
        self.job.counts.staged = self.job.counts.staged.saturating_sub(1);
        if node.open_parents == 0 {
            node.phase = Phase::Ready;
            self.job.counts.ready += 1;
        } else {
            node.phase = Phase::Waiting;
            self.job.counts.waiting += 1;
        }
        self.put(node);
        Ok(true)
    }

    /// Children of tasks that are done wait for one parent less.
    pub(super) fn tell_children(&mut self) -> Result<(), V::Error> {
        let most = self.affordable(LOOK_COST);
        let marked = self.standing(Standing::Marked, most.max(1))?;
        self.unfinished |= most > 0 && marked.len() == most;
        for mut parent in marked {
            if !self.pay(LOOK_COST) {
                return Ok(());
            }
            let most = self.affordable(TELL_COST);
            let children = self.view.children(self.job.id, parent.task.as_str(), most + 1)?;
            parent.marked = children.len() > most;
            self.unfinished |= parent.marked;
            for child in children.into_iter().take(most) {
                self.budget -= TELL_COST;
                self.tell_child(&parent.task, &child)?;
            }
            self.put(parent);
        }
        Ok(())
    }

    fn tell_child(&mut self, parent: &Name, child: &Name) -> Result<(), V::Error> {
        self.writes.told_edges.push((self.job.id, parent.clone(), child.clone()));
        if !self.touched.contains_key(child) {
            let open = match self.lowered.get(child) {
                Some(open) => Some(*open),
                None => self.view.open_parents(self.job.id, child.as_str())?,
            };
            // Whoever still waits for others is not read as a whole.
            if let Some(open) = open.filter(|open| *open > 1) {
                self.lowered.insert(child.clone(), open - 1);
                return Ok(());
            }
        }
        let Some(mut node) = self.node(child)? else { return Ok(()) };
        node.open_parents = node.open_parents.saturating_sub(1);
        if node.open_parents == 0 && node.phase == Phase::Waiting {
            node.phase = Phase::Ready;
            self.job.counts.waiting -= 1;
            self.job.counts.ready += 1;
        }
        self.put(node);
        Ok(())
    }
}
