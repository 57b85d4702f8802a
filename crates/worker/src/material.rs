//! What an attempt is given, its secrets above all: fetched when it begins, kept for as long as it runs, told to nobody but its own process.

use std::sync::Arc;
use std::time::Duration;

use runvoy_model::command::Fence;
use runvoy_model::spec::Spec;
use runvoy_ports::lease::{LeaseError, Leases, Materials};
use tokio::time::{Instant, sleep};

use crate::mask::{Mask, Strength, strength};

const PAUSE: Duration = Duration::from_millis(250);
/// What cannot be had for this long ends the attempt.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Why there are no materials.
#[derive(Debug)]
pub(crate) enum NotHad {
    /// The lease is lost.
    Lost,
    /// The attempt cannot have them.
    Refused(String),
}

/// Gets what an attempt needs, if it needs anything.
pub(crate) async fn fetch(leases: &dyn Leases, fence: Fence, spec: &Spec) -> Result<Materials, NotHad> {
    if spec.task.is_none() && spec.secrets.is_empty() && spec.git.as_ref().is_none_or(|git| git.token.is_none()) {
        return Ok(Materials::default());
    }
    let began = Instant::now();
    loop {
        match leases.materials(fence).await {
            Ok(materials) => return Ok(materials),
            Err(LeaseError::Lost(_)) => return Err(NotHad::Lost),
            Err(LeaseError::Unavailable(error)) if began.elapsed() < GIVE_UP_AFTER => {
                tracing::warn!(execution = %fence.execution, %error, "an attempt waits for what it needs");
            }
            Err(LeaseError::Unavailable(error)) => {
                return Err(NotHad::Refused(format!("its secrets and its input could not be had: {error}")));
            }
            Err(error) => return Err(NotHad::Refused(error.to_string())),
        }
        sleep(PAUSE).await;
    }
}

/// The mask of everything in the materials.
pub(crate) fn mask(materials: &Materials) -> Option<Arc<Mask>> {
    let values = materials.secrets.iter().map(|secret| secret.value.as_str());
    // Of a token with a user the token alone is secret too.
    let token =
        materials.git_token.iter().flat_map(|token| [Some(token.value.as_str()), token.value.split_once(':').map(|(_, token)| token)]);
    Mask::new(values.chain(token.flatten()))
}

/// What the log should say about secrets that cannot be masked well. Names, never values.
pub(crate) fn warnings(materials: &Materials) -> Vec<String> {
    let all = materials.secrets.iter().chain(&materials.git_token);
    let warning = |strength: Strength, name: &dyn std::fmt::Display| match strength {
        Strength::Full => None,
        Strength::PlainOnly => Some(format!("secret {name} is short: it is masked only as it is, not in encoded forms")),
        Strength::None => Some(format!("secret {name} is too short to be masked: its value may appear in this log")),
    };
    all.filter_map(|secret| warning(strength(&secret.value), &secret.name)).collect()
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
        let warnings = warnings(&Materials { secrets, ..Materials::default() });
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].contains("pin") && warnings[1].contains("bit"), "{warnings:?}");
        assert!(!warnings.concat().contains("1234"));
    }

    #[test]
    fn the_token_behind_a_user_is_masked_by_itself() {
        let materials = Materials { secrets: Vec::new(), git_token: Some(material("tok", "deploy:s3cr3t-token")), input: None };
        let mask = mask(&materials).expect("a mask");
        assert_eq!(mask.text("deploy:s3cr3t-token or s3cr3t-token"), "*** or ***");
        assert!(super::mask(&Materials::default()).is_none());
    }
}
