//! What an attempt is given, its secrets above all: fetched when it begins, kept for as long as it runs, told to nobody but its own process.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::Fence;
use runvoy_ports::lease::{LeaseError, Leases, Materials};
use tokio::time::{Instant, sleep};

use crate::mask::{Mask, Strength, TooMuch, strengths};

const PAUSE: Duration = Duration::from_millis(250);
/// What cannot be had for this long ends the attempt, where the worker is not told another time.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Why there are no materials.
#[derive(Debug)]
pub(crate) enum NotHad {
    /// The lease is lost.
    Lost,
    /// The attempt may not have them.
    Refused(String),
    /// Nobody answered for too long.
    Unavailable(String),
}

/// How long to wait for what cannot be had.
pub(crate) struct Patience {
    /// From a server that may be back.
    pub(crate) away: Duration,
    /// From one that does not take the worker's key.
    pub(crate) denied: Duration,
}

impl Patience {
    pub(crate) fn is_over(&self, leases: &dyn Leases, began: Instant) -> bool {
        began.elapsed() >= if leases.is_denied() { self.denied } else { self.away }
    }
}

/// Gets what an attempt needs, or gives up.
pub(crate) async fn fetch(leases: &dyn Leases, fence: Fence, patience: Patience) -> Result<Materials, NotHad> {
    let began = Instant::now();
    loop {
        let error = match leases.materials(fence).await {
            Ok(materials) => return Ok(materials),
            Err(LeaseError::Lost(_)) => return Err(NotHad::Lost),
            Err(LeaseError::Unavailable(error)) => error.to_string(),
            Err(error) => return Err(NotHad::Refused(error.to_string())),
        };
        if patience.is_over(leases, began) {
            return Err(NotHad::Unavailable(format!("its secrets and input could not be fetched: {error}")));
        }
        tracing::warn!(execution = %fence.execution, error, "an attempt waits for its secrets and input");
        sleep(PAUSE).await;
    }
}

/// Every value that must not be seen: those of the secrets, in their order, and the git token's.
fn values(materials: &Materials) -> Vec<&str> {
    let secrets = materials.secrets.iter().map(|secret| secret.value.as_str());
    // Of a token with a user the token alone is secret too.
    let token =
        materials.git_token.iter().flat_map(|token| [Some(token.value.as_str()), token.value.split_once(':').map(|(_, token)| token)]);
    secrets.chain(token.flatten()).collect()
}

/// The mask of everything in the materials and of the worker's own key, and what the log should say about secrets that cannot be masked well: names, never values.
/// The error says why they cannot be masked at all. Large ones take a while.
pub(crate) fn mask(materials: &Materials, own_key: Option<&str>) -> Result<(Option<Arc<Mask>>, Vec<String>), String> {
    let too_much = |TooMuch(bytes): TooMuch| {
        let count = materials.secrets.len() + usize::from(materials.git_token.is_some());
        format!("its {count} secrets are {bytes} bytes together, too much to mask in its log: use fewer or smaller secrets")
    };
    let mut values = values(materials);
    values.extend(own_key);
    let named = materials.secrets.iter().chain(&materials.git_token).zip(strengths(&values).map_err(too_much)?);
    let warning = |name, strength| match strength {
        Strength::Full => None,
        Strength::Usual => {
            Some(format!("secret {name} is long: it is masked as plain text, JSON, base64 and hexadecimal, but in no other encoding"))
        }
        Strength::PlainOnly => Some(format!("secret {name} is short: only its plain text is masked, no encoded forms")),
        Strength::None => Some(format!("secret {name} is too short to be masked: its value may appear in this log")),
    };
    let warnings = named.filter_map(|(secret, strength)| warning(&secret.name, strength)).collect();
    Ok((Mask::new(&values).map_err(too_much)?, warnings))
}

#[cfg(test)]
mod tests {
    use runvoy_model::name::Name;
    use runvoy_ports::lease::Material;

    use super::*;

    fn material(name: &str, value: &str) -> Material {
        Material { name: Name::new(name).expect("a name"), key_name: "KEY".to_owned(), value: value.to_owned() }
    }

    #[test]
    fn short_secrets_are_named_and_their_values_are_not() {
        let secrets = vec![material("good", "long enough"), material("pin", "1234"), material("bit", "x")];
        let (_, warnings) = mask(&Materials { secrets, ..Materials::default() }, None).expect("few bytes");
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].contains("pin") && warnings[1].contains("bit"), "{warnings:?}");
        assert!(!warnings.concat().contains("1234"));
    }

    #[test]
    fn the_token_behind_a_user_is_masked_by_itself() {
        let materials = Materials { git_token: Some(material("tok", "deploy:s3cr3t-token")), ..Materials::default() };
        let mask = mask(&materials, None).expect("few bytes").0.expect("a mask");
        assert_eq!(mask.text("deploy:s3cr3t-token or s3cr3t-token"), "*** or ***");
        assert!(super::mask(&Materials::default(), None).expect("nothing").0.is_none());
    }

    #[test]
    fn long_secrets_are_named_and_too_many_of_them_are_refused() {
        let long = |name: String| material(&name, &"long value \n".repeat(5_000));
        let (mask, warnings) =
            mask(&Materials { secrets: vec![long("cert".to_owned())], ..Materials::default() }, None).expect("one of them");
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("cert is long"), "{warnings:?}");
        assert_eq!(mask.expect("a mask").text("a long value"), "a ***");
        let secrets = (0..5).map(|n| long(format!("cert-{n}"))).collect();
        let refused = super::mask(&Materials { secrets, ..Materials::default() }, None).err().expect("five of them");
        assert!(refused.contains("its 5 secrets are 300000 bytes together"), "{refused}");
    }
}
