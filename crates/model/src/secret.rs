//! Secrets: named values that commands get as environment. A store holds them sealed; this file knows who may do what with one.

use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::role::Role;
use crate::time::UnixMs;

/// A secret, sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// Its name.
    pub name: Name,
    /// The environment variable that it becomes.
    pub key_name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value, sealed.
    pub sealed: Sealed,
    /// Who made it.
    pub created_by: String,
    /// Who may read and change it beside its maker.
    pub owned_by: Vec<String>,
    /// Who may give it to their commands: `ana@example.com`, `group:ops`, `role:developer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub use_by: Vec<String>,
    /// When it was made.
    pub created_at: UnixMs,
    /// When its value changed last.
    pub updated_at: UnixMs,
    /// Who changed it last.
    pub updated_by: String,
    /// The request that made it.
    pub created_by_request_id: String,
    /// The request that changed it last.
    pub modified_by_request_id: String,
}

/// A value that only its sealing key opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Which key.
    pub key_id: String,
    /// Nonce and ciphertext, as base64.
    pub data: String,
}

/// What somebody wants with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretUse {
    /// Know that it is there.
    See,
    /// Give it to a command.
    Inject,
    /// Read its value.
    Reveal,
    /// Change or delete it.
    Change,
}

/// Somebody who wants something with a secret.
#[derive(Debug, Clone, Copy)]
pub struct SecretUser<'a> {
    /// Who.
    pub email: &'a str,
    /// What they are.
    pub role: Role,
    /// The groups they are in.
    pub groups: &'a [String],
}

impl Secret {
    /// Whether somebody may do this with it. What is not theirs to see is not there for them.
    pub fn allows(&self, user: SecretUser<'_>, wanted: SecretUse) -> bool {
        let owns = self.created_by == user.email || self.owned_by.iter().any(|owner| owner == user.email);
        match (user.role, wanted) {
            (Role::Admin, _) | (Role::Operator, SecretUse::See | SecretUse::Inject | SecretUse::Change) => true,
            (Role::Viewer, SecretUse::See) => true,
            (Role::Viewer | Role::Worker, _) => false,
            (Role::Operator, SecretUse::Reveal) | (Role::Developer, SecretUse::Reveal | SecretUse::Change) => owns,
            (Role::Developer, SecretUse::See | SecretUse::Inject) => owns || self.use_by.iter().any(|who| names(who, user)),
        }
    }
}

fn names(who: &str, user: SecretUser<'_>) -> bool {
    match who.split_once(':') {
        Some(("group", group)) => user.groups.iter().any(|own| own == group),
        Some(("role", role)) => user.role.as_str() == role,
        _ => who == user.email,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret {
            name: Name::new("db").expect("a name"),
            key_name: "DB".into(),
            description: None,
            sealed: Sealed { key_id: "k".into(), data: String::new() },
            created_by: "ana@x".into(),
            owned_by: vec!["ana@x".into()],
            use_by: vec!["bob@x".into(), "group:ops".into()],
            created_at: UnixMs(0),
            updated_at: UnixMs(0),
            updated_by: "ana@x".into(),
            created_by_request_id: String::new(),
            modified_by_request_id: String::new(),
        }
    }

    #[test]
    fn who_may_do_what_with_a_secret() {
        use SecretUse::{Change, Inject, Reveal, See};
        let ops = ["ops".to_owned()];
        let may = |email, role, groups: &[String]| {
            [See, Inject, Reveal, Change].map(|wanted| secret().allows(SecretUser { email, role, groups }, wanted))
        };
        assert_eq!(may("ana@x", Role::Developer, &[]), [true, true, true, true]);
        assert_eq!(may("bob@x", Role::Developer, &[]), [true, true, false, false]);
        assert_eq!(may("eve@x", Role::Developer, &[]), [false; 4]);
        assert_eq!(may("eve@x", Role::Developer, &ops), [true, true, false, false]);
        assert_eq!(may("eve@x", Role::Operator, &[]), [true, true, false, true]);
        assert_eq!(may("eve@x", Role::Viewer, &ops), [true, false, false, false]);
        assert_eq!(may("eve@x", Role::Admin, &[]), [true; 4]);
    }
}
