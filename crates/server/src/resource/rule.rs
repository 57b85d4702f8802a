//! Rules that narrow roles.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::{Action, Role};
use runvoy_model::rule::{Effect, Rule as KeptRule};
use runvoy_wire::{Code, Rule as ShownRule, RuleResponse, RulesResponse};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, name};
use crate::pager::Pager;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let rule = Rule::Key(Action::ManageUsers);
    let operation = Operation::new("listRules", "List all rules")
        .about(
            "Lists the rules in the order in which they are evaluated: deny rules first, then \
             allow rules, each by name.",
        )
        .paged()
        .gives::<RulesResponse>(200, "The rules");
    routes.get("/api/v1/rules", rule, operation, list);
    let operation = Operation::new("putRule", "Create or replace a rule")
        .about(
            "The rule applies from the next submit on; running executions go on. An `allow` rule \
             must list what it allows. A `deny` rule must list what it denies or to whom it \
             applies; one with `playbooks` lists nothing else. Unknown fields are refused.",
        )
        .idempotent()
        .takes_strictly::<ShownRule>("PutRuleRequest")
        .gives::<RuleResponse>(200, "The rule was saved");
    routes.post("/api/v1/rules", rule, operation, put);
    let operation = Operation::new("deleteRule", "Delete a rule")
        .path("name", name(), "The rule's name; it may contain slashes")
        .gives::<RuleResponse>(200, "The rule was deleted")
        .refuses(&[Code::NotFound]);
    routes.delete("/api/v1/rules/{*name}", rule, operation, remove);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let mut rules: Vec<ShownRule> = call.engine().list_rules(call.caller()?).await?.into_iter().map(shown).collect();
    let next = pager.cut(&mut rules, place);
    Ok(next.on(answer::json(StatusCode::OK, &RulesResponse { rules })))
}

async fn put(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    // Read as the model has it, which refuses fields that it does not know: a slip in a rule must not make it a wider one.
    let rule: KeptRule = call.body_of("a name and an effect").await?;
    let name = rule.name.clone();
    call.engine().put_rule(call.caller()?, rule, key.as_deref()).await?;
    let message = "saved; it applies from the next submit on, and running executions go on".to_owned();
    Ok(answer::json(StatusCode::OK, &RuleResponse { name, message }))
}

async fn remove(call: Call) -> Result<Response<Body>, Fault> {
    let name = call.params.get("name");
    call.engine().remove_rule(call.caller()?, name).await?;
    Ok(answer::json(StatusCode::OK, &RuleResponse { name: name.to_owned(), message: "deleted".to_owned() }))
}

/// Where a rule stands among all of them: what denies is judged first.
fn place(rule: &ShownRule) -> String {
    let first = match rule.effect {
        runvoy_wire::Effect::Deny => 0,
        runvoy_wire::Effect::Allow => 1,
    };
    format!("{first}{}", rule.name)
}

pub(super) fn shown(rule: KeptRule) -> ShownRule {
    ShownRule {
        name: rule.name,
        effect: effect(rule.effect),
        users: rule.users,
        groups: rule.groups,
        roles: rule.roles.into_iter().map(Role::as_str).map(str::to_owned).collect(),
        commands: rule.commands,
        images: rule.images,
        locks: rule.locks,
        queues: rule.queues,
        secrets: rule.secrets,
        playbooks: rule.playbooks,
        reason: rule.reason,
    }
}

/// The effect's word.
pub(super) const fn effect(effect: Effect) -> runvoy_wire::Effect {
    match effect {
        Effect::Allow => runvoy_wire::Effect::Allow,
        Effect::Deny => runvoy_wire::Effect::Deny,
    }
}
