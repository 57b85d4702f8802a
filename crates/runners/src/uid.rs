//! A range of user ids from which every execution gets one of its own. It knows which uids cannot be such; lending them is the runner's.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Below are the users of the system.
const LOWEST: u32 = 1000;
/// To the kernel this is no user: a change to it changes nothing.
const NOBODY_AT_ALL: u32 = u32::MAX;

/// User ids that belong to nobody else, each also as the id of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UidRange {
    first: u32,
    last: u32,
}

/// A range of uids that commands cannot run as.
#[derive(Debug, thiserror::Error)]
pub enum UnfitUids {
    /// It is not written as a range.
    #[error("expected FIRST-LAST, two uids such as 70000-70999, not `{0}`")]
    Malformed(String),
    /// It holds uids that no command may have.
    #[error("uid {0} belongs to root or the system: begin at 1000 or above")]
    System(u32),
    /// It holds the number that means no user.
    #[error("uid {NOBODY_AT_ALL} is reserved: the range must end below it")]
    NoUser,
    /// The server's own user is among them.
    #[error("uid {0} is the server's own: choose an unused range")]
    Own(u32),
    /// Somebody has one of them.
    #[error("{id} is in {file} ({name}): choose an unused range")]
    Taken {
        /// The uid or gid.
        id: u32,
        /// Whose it is.
        name: String,
        /// Where that is said.
        file: &'static str,
    },
    /// It is not known whose they are.
    #[error("{file} could not be read")]
    Unknown {
        /// What could not be read.
        file: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl UidRange {
    /// How many executions can have a uid at once.
    pub fn count(&self) -> usize {
        (self.last - self.first) as usize + 1
    }

    /// Whether a uid is one of them.
    pub fn contains(&self, uid: u32) -> bool {
        (self.first..=self.last).contains(&uid)
    }

    /// The uid that comes after another, around the range.
    pub fn after(&self, uid: u32) -> u32 {
        if (self.first..self.last).contains(&uid) { uid + 1 } else { self.first }
    }

    /// The uid at a place, counted around the range.
    pub fn at(&self, place: u64) -> u32 {
        let offset = place % self.count() as u64;
        self.first + u32::try_from(offset).expect("a remainder of a count of 32-bit numbers")
    }

    /// Refuses a range that somebody on this machine has a part of; `own` is the server's uid.
    pub fn check(&self, own: u32) -> Result<(), UnfitUids> {
        if self.contains(own) {
            return Err(UnfitUids::Own(own));
        }
        for file in ["/etc/passwd", "/etc/group"] {
            self.check_ids(file, &read(file)?)?;
        }
        for file in ["/etc/subuid", "/etc/subgid"] {
            self.check_delegated(file, &read(file)?)?;
        }
        Ok(())
    }

    /// Lines of `name:password:id:…`.
    fn check_ids(&self, file: &'static str, text: &str) -> Result<(), UnfitUids> {
        let entries = text.lines().filter_map(|line| {
            let mut fields = line.split(':');
            Some((fields.next()?, fields.nth(1)?.parse().ok()?))
        });
        for (name, id) in entries {
            if self.contains(id) {
                return Err(UnfitUids::Taken { id, name: name.to_owned(), file });
            }
        }
        Ok(())
    }

    /// Lines of `name:first:count`: ids that a user's containers may have.
    fn check_delegated(&self, file: &'static str, text: &str) -> Result<(), UnfitUids> {
        let entries = text.lines().filter_map(|line| {
            let mut fields = line.split(':');
            Some((fields.next()?, fields.next()?.parse::<u32>().ok()?, fields.next()?.parse::<u32>().ok()?))
        });
        for (name, first, count) in entries.filter(|(_, _, count)| *count > 0) {
            let id = first.max(self.first);
            if id <= self.last.min(first.saturating_add(count - 1)) {
                return Err(UnfitUids::Taken { id, name: name.to_owned(), file });
            }
        }
        Ok(())
    }
}

impl FromStr for UidRange {
    type Err = UnfitUids;

    fn from_str(text: &str) -> Result<Self, UnfitUids> {
        let malformed = || UnfitUids::Malformed(text.to_owned());
        let (first, last) = text.split_once('-').ok_or_else(malformed)?;
        let uid = |text: &str| text.trim().parse::<u32>().map_err(|_| malformed());
        let (first, last) = (uid(first)?, uid(last)?);
        match (first, last) {
            (first, last) if first > last => Err(malformed()),
            (first, _) if first < LOWEST => Err(UnfitUids::System(first)),
            (_, NOBODY_AT_ALL) => Err(UnfitUids::NoUser),
            (first, last) => Ok(Self { first, last }),
        }
    }
}

impl fmt::Display for UidRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// What is not there names nobody.
fn read(file: &'static str) -> Result<String, UnfitUids> {
    match fs::read(file) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(UnfitUids::Unknown { file, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> UidRange {
        text.parse().expect("a range")
    }

    #[test]
    fn a_range_is_read_as_it_is_written() {
        for (text, count) in [("1000-1000", 1), ("70000-70999", 1000), (" 1000 - 4294967294 ", 4_294_966_295)] {
            assert_eq!(range(text).count(), count, "{text}");
        }
        assert_eq!(range("70000-70999").to_string(), "70000-70999");
    }

    #[test]
    fn what_is_no_range_of_ordinary_uids_is_refused() {
        for text in ["", "-", "70000", "70000-", "-70000", "70001-70000", "a-b", "70000-4294967296", "1000-2000-3000"] {
            assert!(matches!(text.parse::<UidRange>(), Err(UnfitUids::Malformed(_))), "{text}");
        }
        for text in ["0-70000", "999-70000", "0-0"] {
            assert!(matches!(text.parse::<UidRange>(), Err(UnfitUids::System(_))), "{text}");
        }
        assert!(matches!("70000-4294967295".parse::<UidRange>(), Err(UnfitUids::NoUser)));
    }

    #[test]
    fn the_range_is_walked_around() {
        let range = range("70000-70002");
        assert_eq!([70_000, 70_001, 70_002, 5, 80_000].map(|uid| range.after(uid)), [70_001, 70_002, 70_000, 70_000, 70_000]);
        assert_eq!([0, 2, 3, u64::MAX].map(|place| range.at(place)), [70_000, 70_002, 70_000, 70_000]);
    }

    #[test]
    fn a_range_that_somebody_has_a_part_of_is_refused() {
        let users = "root:x:0:0:root:/root:/bin/sh\n+::::::\n\neve:x:70500:70500::/home/eve:/bin/sh\n";
        assert!(range("70501-70999").check_ids("/etc/passwd", users).is_ok());
        for text in ["70500-70500", "70000-70999", "70500-80000", "60000-70500"] {
            let error = range(text).check_ids("/etc/passwd", users).expect_err("eve has it").to_string();
            assert!(error.contains("70500") && error.contains("eve") && error.contains("/etc/passwd"), "{error}");
        }
        let delegated = "eve:100000:65536\nana:300000:0\nzoe:4294967000:65536\n";
        for text in ["90000-99999", "165536-299999", "300000-300010"] {
            assert!(range(text).check_delegated("/etc/subuid", delegated).is_ok(), "{text}");
        }
        for text in ["90000-100000", "165535-170000", "120000-120001", "90000-200000", "4294967100-4294967294"] {
            assert!(range(text).check_delegated("/etc/subuid", delegated).is_err(), "{text}");
        }
    }

    #[test]
    fn the_server_s_own_uid_is_refused() {
        assert!(matches!(range("70000-70999").check(70_010), Err(UnfitUids::Own(70_010))));
    }
}
