//! What one request did: what was noted of it, and what it is about, as that is now.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::Trace;
use runvoy_model::event::{EntityType, Event, EventType};
use runvoy_model::role::Action;
use runvoy_wire::{Group, RelatedResources, TraceLog, TraceResponse};

use super::{image, playbook, rule, secret, user};
use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, text};
use crate::route::{Routes, Rule};
use crate::view;

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("traceRequest", "Trace a request")
        .about(
            "Returns the events of one request and the resources that it created or changed last. \
             An unknown request id returns empty lists.",
        )
        .path("request_id", text(), "The request id, from the response's X-Request-ID")
        .gives::<TraceResponse>(200, "The events and resources of the request");
    routes.get("/api/v1/trace/{request_id}", Rule::Key(Action::Trace), operation, trace);
}

async fn trace(call: Call) -> Result<Response<Body>, Fault> {
    let trace = call.engine().trace(call.caller()?, call.params.get("request_id")).await?;
    let mut logs: Vec<TraceLog> = trace.events.iter().map(|stored| noted(&stored.event)).collect();
    if trace.cut {
        let message = "only the newest events were searched: an older request may not be found".to_owned();
        logs.push(TraceLog { event_id: String::new(), timestamp: call.engine().now().0, message });
    }
    let response = TraceResponse { logs, related_resources: related(&call, &trace).await? };
    Ok(answer::json(StatusCode::OK, &response))
}

fn noted(event: &Event) -> TraceLog {
    let said = |key: &str| event.properties[key].as_str().unwrap_or_default();
    let (entity, id) = (event.entity.kind.as_str().to_ascii_lowercase(), &event.entity.id);
    let message = match event.kind {
        EventType::Audit => format!("{} {} {entity} {id} from {}: {}", said("user"), said("action"), said("from"), said("result")),
        kind => format!("{} {entity} {id}", kind.as_str()),
    };
    TraceLog { event_id: event.id.to_string(), timestamp: event.at.0, message }
}

async fn related(call: &Call, trace: &Trace) -> Result<RelatedResources, Fault> {
    let (engine, caller) = (call.engine(), call.caller()?);
    let ids = |kind: EntityType| trace.entities.iter().filter(move |entity| entity.kind == kind).map(|entity| entity.id.as_str());
    let about = |kind: EntityType, id: &str| ids(kind).any(|known| known == id);
    let touches = |kind: EntityType| ids(kind).next().is_some();
    let mut related = RelatedResources::default();
    for id in ids(EntityType::Task) {
        let execution = engine.execution(caller, id).await?;
        let bars = engine.bars(std::slice::from_ref(&execution)).await;
        let shown = serde_json::to_value(view::execution(engine, &bars, &execution, &super::list::cloud(&call.state)));
        let shown = shown.and_then(serde_json::from_value).expect("what is shown of an execution is one");
        related.executions.push(shown);
    }
    if touches(EntityType::User) {
        let users = engine.users(caller).await?;
        related.users = users.iter().filter(|account| about(EntityType::User, &account.user.email)).map(user::shown).collect();
    }
    if touches(EntityType::Image) {
        let images = engine.images(caller).await?.into_iter().map(image::view);
        related.images = images.filter(|image| about(EntityType::Image, &image.image_id)).collect();
    }
    if touches(EntityType::Secret) {
        let secrets = engine.secrets(caller).await?.into_iter().map(|known| secret::view(known, None));
        related.secrets = secrets.filter(|secret| about(EntityType::Secret, &secret.name)).collect();
    }
    if touches(EntityType::Group) {
        let groups = engine.groups(caller).await?.into_iter().filter(|group| about(EntityType::Group, group.name.as_str()));
        related.groups = groups.map(shown_group).collect();
    }
    if touches(EntityType::Rule) {
        let rules = engine.list_rules(caller).await?.into_iter().map(rule::shown);
        related.rules = rules.filter(|rule| about(EntityType::Rule, &rule.name)).collect();
    }
    if touches(EntityType::Playbook) {
        let playbooks = engine.playbooks(caller).await?;
        let playbooks = playbooks.iter().filter(|playbook| about(EntityType::Playbook, playbook.name.as_str()));
        related.playbooks = playbooks.map(playbook::shown).collect();
    }
    Ok(related)
}

fn shown_group(group: runvoy_model::group::Group) -> Group {
    Group { name: group.name.to_string(), members: group.members, created_at: group.created_at.into(), created_by: group.created_by }
}
