//! Groups as admins manage them.

use runvoy_model::change::Change;
use runvoy_model::group::{Group, MOST_MEMBERS};
use runvoy_model::name::Name;
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Action;
use runvoy_model::user::email as checked_email;
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;

impl Engine {
    /// Every group, by name.
    pub async fn groups(&self, caller: &Caller) -> Result<Vec<Group>, EngineError> {
        caller.may(Action::ManageUsers)?;
        Ok(self.all(Kind::Group).await?.iter().filter_map(Record::group).cloned().collect())
    }

    /// Makes a group what it is to be. Members need not be users yet; who becomes one is in it then.
    pub async fn put_group(&self, caller: &Caller, name: &str, members: &[String], key: Option<&str>) -> Result<(), EngineError> {
        caller.may(Action::ManageUsers)?;
        let name = Name::new(name).map_err(|error| EngineError::invalid("name", error.to_string()))?;
        if members.len() > MOST_MEMBERS {
            return Err(EngineError::invalid("members", format!("must list at most {MOST_MEMBERS} users")));
        }
        let member = |text: &String| {
            checked_email(text).map_err(|error| EngineError::invalid("members", format!("{}: {error}", text.escape_default())))
        };
        let members = members.iter().map(member).collect::<Result<Vec<_>, _>>()?;
        let submit = submit_key(caller, key, "groups.put", &json!({"name": name, "members": members}))?;
        let group = Group { name, members, created_at: self.now(), created_by: caller.email.clone() };
        self.ports.store.change(self.user_step(caller, "groups.put"), Change::PutGroup(group), submit).await?;
        Ok(())
    }

    /// Removes a group. Rules and secrets that name it speak of nobody then.
    pub async fn remove_group(&self, caller: &Caller, name: &str) -> Result<(), EngineError> {
        caller.may(Action::ManageUsers)?;
        let missing = || EngineError::NotFound { what: format!("group {}", name.escape_default()) };
        let change = Change::RemoveGroup(Name::new(name).map_err(|_| missing())?);
        self.ports.store.change(self.user_step(caller, "groups.remove"), change, None).await?;
        Ok(())
    }
}
