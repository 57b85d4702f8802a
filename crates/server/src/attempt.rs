//! What a refused request wanted, for the audit trail: the one name of its action, the command that it brought, and what it was asked of. Only of
//! requests that run or end something; others are named by method and path.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use runvoy_engine::{Subject, command_line};
use runvoy_model::name::Name;
use serde::Deserialize;

use crate::call::Params;
use crate::route::Route;

/// How many commands of a job's tasks are kept.
const MAX_TASKS: usize = 20;

/// The body of a request as it was read, shared between the handler that reads it and whoever notes a refusal.
pub(crate) type SeenBody = Arc<OnceLock<Bytes>>;

/// The fields of a body that say what is to be run; whatever else is wrong with it.
#[derive(Debug, Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    git_token: Option<String>,
    #[serde(default)]
    tasks: Vec<Wanted>,
}

/// The action of a route that runs or ends something, by the same name that the engine gives it when it is allowed.
pub(crate) fn action_of(operation: &str) -> Option<&'static str> {
    Some(match operation {
        "runCommand" | "createExecution" | "dryRunCommand" => "executions.run",
        "rerunExecution" => "executions.rerun",
        "killExecution" | "killUnfinishedExecution" => "executions.kill",
        "runPlaybook" | "dryRunPlaybook" => "playbooks.run",
        "createJob" => "jobs.create",
        "addTasks" => "jobs.add-tasks",
        "resumeJob" => "jobs.resume",
        "cancelJob" => "jobs.cancel",
        _ => return None,
    })
}

/// The action of a refused request.
pub(crate) fn action(route: &Route) -> String {
    action_of(route.operation.id).map_or_else(|| format!("{} {}", route.method, route.path.replace("{*", "{")), str::to_owned)
}

/// What a refused request is about.
pub(crate) fn subject(params: &Params, body: &SeenBody) -> Subject {
    let target = ["id", "name"].into_iter().map(|name| params.get(name)).find(|value| !value.is_empty()).map(str::to_owned);
    let wanted: Wanted = body.get().and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default();
    let mut subject = Subject { target, ..Subject::default() };
    let all: Vec<&Wanted> = std::iter::once(&wanted).chain(wanted.tasks.iter().take(MAX_TASKS)).collect();
    let lines: Vec<String> = all.iter().filter_map(|one| Some(command_line(one.command.as_deref()?, one.args.as_deref()))).collect();
    subject.command = (!lines.is_empty()).then(|| lines.join("\n"));
    let names = all.iter().flat_map(|one| one.secrets.iter().chain(&one.git_token));
    subject.secrets = names.filter_map(|name| Name::new(name.as_str()).ok()).collect();
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_what_was_wanted_though_other_fields_are_wrong() {
        let body = SeenBody::default();
        let text = r#"{"command":"tar","args":["-x"],"secrets":["db","not a name!"],"timeout":"soon"}"#;
        body.set(Bytes::from_static(text.as_bytes())).expect("the first");
        let found = subject(&Params::default(), &body);
        assert_eq!((found.command.as_deref(), found.secrets.len(), found.target), (Some("tar -x"), 1, None));
        let tasks = SeenBody::default();
        tasks.set(Bytes::from_static(br#"{"tasks":[{"command":"make"},{"command":"ship"}]}"#)).expect("the first");
        assert_eq!(subject(&Params::default(), &tasks).command.as_deref(), Some("make\nship"));
        assert_eq!(subject(&Params::default(), &SeenBody::default()), Subject::default());
    }
}
