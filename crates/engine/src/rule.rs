//! Rules as admins manage them. What they come to is judged in `runvoy_model::rule`.

use runvoy_model::change::Change;
use runvoy_model::name::Name;
use runvoy_model::role::Action;
use runvoy_model::rule::Rule;
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;

impl Engine {
    /// Every rule, by name. Their order is of no account: deny wins.
    pub async fn list_rules(&self, caller: &Caller) -> Result<Vec<Rule>, EngineError> {
        caller.may(Action::ManageUsers)?;
        self.rules().await
    }

    /// Makes a rule what it is to be.
    pub async fn put_rule(&self, caller: &Caller, mut rule: Rule, key: Option<&str>) -> Result<(), EngineError> {
        caller.may(Action::ManageUsers)?;
        rule.check().map_err(|error| EngineError::invalid(error.field, error.why))?;
        // People are kept by their e-mail in one form; so are those whom a rule names.
        for user in &mut rule.users {
            *user = user.trim().to_ascii_lowercase();
        }
        let submit = submit_key(caller, key, "rules.put", &json!(rule))?;
        self.ports.store.change(self.user_step(caller, "rules.put"), Change::PutRule(Box::new(rule)), submit).await?;
        Ok(())
    }

    /// Removes a rule.
    pub async fn remove_rule(&self, caller: &Caller, name: &str) -> Result<(), EngineError> {
        caller.may(Action::ManageUsers)?;
        let missing = || EngineError::NotFound { what: format!("rule {}", name.escape_default()) };
        let change = Change::RemoveRule(Name::new(name).map_err(|_| missing())?);
        self.ports.store.change(self.user_step(caller, "rules.remove"), change, None).await?;
        Ok(())
    }
}
