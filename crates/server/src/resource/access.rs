//! Why somebody may or may not do something.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{ACTIONS, ExplainQuery, action_word};
use runvoy_model::role::Action;
use runvoy_wire::{Code, Explanation, Verdict};

use super::rule::effect;
use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, id, name, text, words};
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("explainAccess", "Explain an access decision")
        .about(
            "Says whether an action would be allowed, which rule or role decides, and why. \
             Nothing is changed or recorded. Asking about another user needs the role admin; a \
             resource that you may not see is explained as if it did not exist.",
        )
        .required_query("action", words(&ACTIONS.map(action_word)), "The action to explain")
        .query("user", text(), "The user to explain it for; default: you")
        .query("command", text(), "The command of a run")
        .query("image", text(), "The image of a run")
        .query("lock", name(), "The lock of a run")
        .query("queue", name(), "The queue of a run")
        .query("secret", name(), "The secret of a run, or the secret to read or write")
        .query("playbook", text(), "The playbook to run")
        .query("execution", id(), "The full id of the execution to read, share or kill")
        .gives::<Explanation>(200, "The decision")
        .refuses(&[Code::NotFound]);
    routes.get("/api/v1/access/explain", Rule::Key(Action::ExplainAccess), operation, explain);
}

async fn explain(call: Call) -> Result<Response<Body>, Fault> {
    let query = call.query()?;
    let given = |name| Ok::<_, Fault>(query.text(name)?.map(str::to_owned));
    let action = given("action")?.ok_or_else(|| Fault::invalid("action", "is missing"))?;
    let asked = ExplainQuery {
        user: given("user")?,
        action,
        command: given("command")?,
        image: given("image")?,
        lock: given("lock")?,
        queue: given("queue")?,
        secret: given("secret")?,
        playbook: given("playbook")?,
        execution: given("execution")?,
    };
    let explained = call.engine().explain(call.caller()?, &asked).await?;
    let decisive = explained.decisive();
    let explanation = Explanation {
        allowed: explained.allowed(),
        rule: decisive.rule.clone(),
        why: decisive.why.clone(),
        user: explained.user.clone(),
        role: explained.role.to_owned(),
        action: explained.action.to_owned(),
        rules: explained
            .says
            .iter()
            .map(|say| Verdict { rule: say.rule.clone(), effect: effect(say.effect), why: say.why.clone() })
            .collect(),
    };
    Ok(answer::json(StatusCode::OK, &explanation))
}
