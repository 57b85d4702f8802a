//! Keys that end soon: told early enough to rotate them in peace.

use runvoy_wire::Rfc3339;

use crate::duration::Human;

/// From here on the end of a key is worth a word.
const SOON_MS: u64 = 14 * 24 * 3_600 * 1_000;

/// What to say about a key that ends soon, or has ended.
pub(crate) fn remark(expires_at: Option<Rfc3339>, now: Rfc3339) -> Option<String> {
    let at = expires_at?;
    if at <= now {
        return Some(format!("Your API key expired at {at}. Ask an admin for a new one."));
    }
    let left = at.ms_since(now);
    (left <= SOON_MS).then(|| format!("Your API key expires in {}, at {at}. Replace it: runvoy keys rotate", Human::from_ms(left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_spoken_of_in_its_last_two_weeks() {
        let now: Rfc3339 = "2026-01-03T00:00:00Z".parse().expect("a time");
        let said = |at: &str| remark(Some(at.parse().expect("a time")), now);
        assert_eq!(remark(None, now), None);
        assert_eq!(said("2026-01-18T00:00:00Z"), None);
        let soon = said("2026-01-06T12:00:00Z").expect("soon");
        assert!(soon.contains("in 3d 12h") && soon.contains("runvoy keys rotate"), "{soon}");
        assert!(said("2026-01-02T00:00:00Z").expect("past").contains("expired at"));
    }
}
