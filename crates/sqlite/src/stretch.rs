//! The beginning of a line as far as it was walked, stretch by stretch, each with the users whose executions stand in it. Whoever looks for others jumps over it.
//!
//! Who stands where does not depend on who may have more, so it stays true while users get their share and lose it. A stretch may name somebody who has left,
//! but leaves out nobody who stands in it: who comes later is entered, and a walk through it enters anew whom it meets.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::mem::take;
use std::vec::IntoIter;

use runvoy_model::id::ExecutionId;

/// A stretch of several users ends after so many, so that a look for one of them walks no further than that.
const SMALL: usize = if cfg!(test) { 4 } else { 256 };
/// So many users are named by a stretch.
const MOST_USERS: usize = if cfg!(test) { 3 } else { 64 };
/// So many stretches are known of a line. Beyond it each is joined with the next: a walk then goes further, and nothing is forgotten.
const MOST_STRETCHES: usize = if cfg!(test) { 16 } else { 1_000 };

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

/// From the end of the one before it, or the start of the line, to here.
#[derive(Debug, Clone)]
struct Stretch {
    until: Spot,
    /// How many were met in it.
    count: usize,
    users: BTreeSet<String>,
}

impl Stretch {
    fn new(until: Spot, user: Option<&str>) -> Self {
        Self { until, count: 1, users: user.map(str::to_owned).into_iter().collect() }
    }

    /// Whether one more can be met in it. However many of one user stand together are one stretch.
    fn takes(&self, user: Option<&str>) -> bool {
        let names = user.is_none_or(|user| self.users.contains(user));
        let is_only = names && self.users.len() == usize::from(user.is_some());
        is_only || self.count < SMALL && (names || self.users.len() < MOST_USERS)
    }

    fn is_joined_by(&self, next: &Self) -> bool {
        let is_same = self.users.len() <= 1 && self.users == next.users;
        is_same || self.count + next.count <= SMALL && self.users.len() + next.users.len() <= MOST_USERS
    }

    fn join(&mut self, next: Self) {
        self.until = next.until;
        self.count = self.count.saturating_add(next.count);
        self.users.extend(next.users);
    }

    /// Whether everybody in it is passed over.
    fn is_passed(&self, passes: impl Fn(&str) -> bool) -> bool {
        self.users.iter().all(|user| passes(user))
    }
}

/// What is known of a line.
#[derive(Debug, Default)]
pub(crate) struct Stretches {
    each: Vec<Stretch>,
    /// How much that is: stretches and names in them.
    size: usize,
}

impl Stretches {
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    fn until(&self) -> Spot {
        self.each.last().map_or(Spot::START, |last| last.until)
    }

    /// Somebody comes to stand where they did not stand before.
    pub(crate) fn comes(&mut self, spot: Spot, user: &str) {
        let place = self.each.partition_point(|stretch| stretch.until < spot);
        let Some(stretch) = self.each.get_mut(place).filter(|stretch| !stretch.users.contains(user)) else { return };
        if stretch.users.len() > 1 || stretch.takes(Some(user)) {
            stretch.users.insert(user.to_owned());
            stretch.count += 1;
            self.size += 1;
            return;
        }
        // Whoever looks for them need not walk through however many are of one user.
        let before = Stretch { until: spot.before(), ..stretch.clone() };
        self.size += before.users.len() + 3;
        self.each.splice(place..place, [before, Stretch::new(spot, Some(user))]);
        self.keep_few();
    }

    /// Somebody is met behind what is known, or nobody who is looked for.
    fn meet(&mut self, spot: Spot, user: Option<&str>) {
        match self.each.last_mut().filter(|last| last.takes(user)) {
            Some(last) => last.join(Stretch::new(spot, user.filter(|user| !last.users.contains(*user)))),
            None => self.each.push(Stretch::new(spot, user)),
        }
    }

    fn add(&mut self, next: Stretch) {
        match self.each.last_mut().filter(|last| last.is_joined_by(&next)) {
            Some(last) => last.join(next),
            None => self.each.push(next),
        }
    }

    /// Nobody stands between who was met last and this spot.
    fn reach(&mut self, spot: Spot) {
        match self.each.last_mut() {
            Some(last) => last.until = spot,
            None => self.each.push(Stretch { until: spot, count: 0, users: BTreeSet::new() }),
        }
    }

    fn keep_few(&mut self) {
        while self.each.len() > MOST_STRETCHES {
            let mut each = take(&mut self.each).into_iter();
            while let Some(mut stretch) = each.next() {
                if let Some(next) = each.next() {
                    stretch.join(next);
                }
                self.each.push(stretch);
            }
        }
    }
}

/// A walk along a line, which knows it better afterwards.
#[derive(Debug)]
pub(crate) struct Walk {
    /// What is known of where it has not come to.
    ahead: Peekable<IntoIter<Stretch>>,
    behind: Stretches,
}

impl Walk {
    pub(crate) fn new(known: Stretches) -> Self {
        Self { ahead: known.each.into_iter().peekable(), behind: Stretches::default() }
    }

    /// Jumps over stretches where everybody is passed over. Returns the spot behind which it goes on.
    pub(crate) fn jump(&mut self, passes: impl Fn(&str) -> bool) -> Spot {
        while let Some(stretch) = self.ahead.next_if(|stretch| stretch.is_passed(&passes)) {
            self.behind.add(stretch);
        }
        self.behind.until()
    }

    /// Comes to the next who stands in line; whether that is in a stretch that can be jumped over.
    pub(crate) fn comes_to(&mut self, spot: Spot, passes: impl Fn(&str) -> bool) -> bool {
        let mut end = None;
        while let Some(stretch) = self.ahead.next_if(|stretch| stretch.until < spot) {
            end = Some(stretch.until);
        }
        let Some(end) = end.filter(|_| self.ahead.peek().is_some_and(|stretch| stretch.is_passed(passes))) else { return false };
        self.behind.reach(end);
        true
    }

    /// Whether somebody would be named also if they were not met here.
    pub(crate) fn names(&self, user: &str) -> bool {
        self.behind.each.last().is_some_and(|last| last.users.contains(user))
    }

    /// Meets the one it has come to, or nobody who is looked for.
    pub(crate) fn meet(&mut self, spot: Spot, user: Option<&str>) {
        self.behind.meet(spot, user);
    }

    pub(crate) fn end(self) -> Stretches {
        let Self { ahead, behind: mut known } = self;
        let until = known.until();
        for stretch in ahead.filter(|stretch| stretch.until > until) {
            known.add(stretch);
        }
        known.keep_few();
        known.size = known.each.iter().map(|stretch| 1 + stretch.users.len()).sum();
        known
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

    fn walked(users: &[&str]) -> Stretches {
        let mut walk = Walk::new(Stretches::default());
        for (user, at) in users.iter().zip(1..) {
            walk.meet(spot(at, 0), Some(user));
        }
        walk.end()
    }

    fn shown(known: &Stretches) -> Vec<(i64, String)> {
        known.each.iter().map(|stretch| (stretch.until.ready_at, stretch.users.iter().map(String::as_str).collect())).collect()
    }

    #[test]
    fn nobody_stands_between_a_spot_and_the_one_before_it() {
        assert_eq!(spot(7, 3).before(), spot(7, 2));
        let before = spot(7, 0).before();
        assert_eq!((before.ready_at, *before.id.as_bytes()), (6, [255; 16]));
        assert_eq!(Spot::START.before(), Spot::START);
    }

    #[test]
    fn many_of_one_user_are_one_stretch_and_whoever_stands_among_them_is_near_its_end() {
        let mut users = ["a"; 20];
        users[9] = "b";
        assert_eq!(shown(&walked(&users)), [(9, "a".into()), (13, "ab".into()), (20, "a".into())]);
    }

    #[test]
    fn whoever_comes_among_many_is_found_without_a_walk() {
        let mut known = walked(&["a"; 20]);
        known.comes(spot(7, 5), "b");
        known.comes(spot(8, 5), "a");
        known.comes(spot(21, 0), "b");
        assert_eq!(shown(&known), [(7, "a".into()), (7, "b".into()), (20, "a".into())]);
        let mut walk = Walk::new(known);
        assert_eq!(walk.jump(|user| user == "a"), spot(7, 4));
        assert!(walk.comes_to(spot(8, 0), |user| user == "a"));
        assert_eq!(walk.jump(|user| user == "a"), spot(20, 0));
        assert_eq!(shown(&walk.end()), [(20, "a".into())], "they are gone");
    }

    #[test]
    fn a_walk_that_gives_up_is_remembered_up_to_where_it_came() {
        let mut known = walked(&["a"; 20]);
        known.each[0].users.insert("b".into());
        let mut walk = Walk::new(known);
        assert_eq!(walk.jump(|user| user == "a"), Spot::START);
        for at in 1..=12 {
            assert!(!walk.comes_to(spot(at, 0), |user| user == "a"));
            walk.meet(spot(at, 0), Some("a"));
        }
        let known = walk.end();
        assert_eq!(shown(&known), [(12, "a".into()), (20, "ab".into())]);
        assert_eq!(Walk::new(known).jump(|user| user == "a"), spot(12, 0));
    }

    #[test]
    fn too_many_stretches_are_joined() {
        let users: Vec<&str> = (0..17).flat_map(|_| ["a", "a", "a", "a", "a", "b", "b", "b", "b", "b"]).collect();
        let known = walked(&users);
        assert!(known.each.len() <= MOST_STRETCHES && known.until() == spot(170, 0), "{known:?}");
        assert_eq!(known.size, known.each.len() + known.each.iter().map(|stretch| stretch.users.len()).sum::<usize>());
    }
}
