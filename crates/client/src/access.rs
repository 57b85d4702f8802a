//! Calls about who may do what: groups, rules, and why.

use http::Method;
use runvoy_wire::{Explanation, Group, GroupResponse, GroupsResponse, PutGroupRequest, Rule, RuleResponse, RulesResponse};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

/// A case to explain. What is absent plays no part in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessQuery {
    /// Who; absent: the caller.
    pub user: Option<String>,
    /// What they would do: `run`, `read`, `kill`, …
    pub action: String,
    /// With this command.
    pub command: Option<String>,
    /// In this image.
    pub image: Option<String>,
    /// With this lock.
    pub lock: Option<String>,
    /// Through this queue.
    pub queue: Option<String>,
    /// With this secret.
    pub secret: Option<String>,
    /// From this playbook.
    pub playbook: Option<String>,
    /// To this execution.
    pub execution: Option<String>,
}

impl Client {
    /// Every group, by name.
    pub async fn groups(&self) -> Result<Vec<Group>, ClientError> {
        Ok(self.fetch::<GroupsResponse>(&Call::get(Target::new(&["groups"]))).await?.groups)
    }

    /// Makes a group, or puts it in the place of what it was.
    pub async fn put_group(&self, request: &PutGroupRequest) -> Result<GroupResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["groups"])).json(request).keyed(fresh_id())).await
    }

    /// Removes a group.
    pub async fn remove_group(&self, name: &str) -> Result<GroupResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, Target::new(&["groups", name]))).await
    }

    /// Every rule, in the order in which they are judged.
    pub async fn rules(&self) -> Result<Vec<Rule>, ClientError> {
        Ok(self.fetch::<RulesResponse>(&Call::get(Target::new(&["rules"]))).await?.rules)
    }

    /// Makes a rule, or puts it in the place of what it was.
    pub async fn put_rule(&self, rule: &Rule) -> Result<RuleResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["rules"])).json(rule).keyed(fresh_id())).await
    }

    /// Removes a rule.
    pub async fn remove_rule(&self, name: &str) -> Result<RuleResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, Target::new(&["rules", name]))).await
    }

    /// Whether somebody may do something, and what decides it.
    pub async fn explain(&self, query: &AccessQuery) -> Result<Explanation, ClientError> {
        let target = Target::new(&["access", "explain"])
            .with_some("user", query.user.as_ref())
            .with("action", &query.action)
            .with_some("command", query.command.as_ref())
            .with_some("image", query.image.as_ref())
            .with_some("lock", query.lock.as_ref())
            .with_some("queue", query.queue.as_ref())
            .with_some("secret", query.secret.as_ref())
            .with_some("playbook", query.playbook.as_ref())
            .with_some("execution", query.execution.as_ref());
        self.fetch(&Call::get(target)).await
    }
}
