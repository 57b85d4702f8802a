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
use crate::operation::{Operation, text, words};
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("explainAccess", "Why somebody may or may not do something, and which rule decides")
        .required_query("action", words(&ACTIONS.map(action_word)), "What they would do: run, read, kill, manage_users, …")
        .query("user", text(), "Who: the caller, or for an admin anybody")
        .query("command", text(), "The command of a run")
        .query("image", text(), "The image of a run")
        .query("lock", text(), "The lock of a run")
        .query("queue", text(), "The queue of a run")
        .query("secret", text(), "A secret of a run, or the one to see or write")
        .query("playbook", text(), "The playbook to run")
        .query("execution", text(), "The execution to read, share or end")
        .gives::<Explanation>(200, "What decides")
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
