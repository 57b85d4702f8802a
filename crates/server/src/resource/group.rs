//! Groups: names for several users.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{Code, Group, GroupResponse, GroupsResponse, PutGroupRequest};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, name};
use crate::pager::Pager;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let rule = Rule::Key(Action::ManageUsers);
    let operation = Operation::new("listGroups", "List all groups").paged().gives::<GroupsResponse>(200, "The groups, by name");
    routes.get("/api/v1/groups", rule, operation, list);
    let operation = Operation::new("putGroup", "Create or replace a group")
        .about(
            "Sets all members of the group: an e-mail address that the body does not list is no \
             member afterwards. Members need not be users yet.",
        )
        .idempotent()
        .takes::<PutGroupRequest>(true)
        .gives::<GroupResponse>(200, "The group was saved");
    routes.post("/api/v1/groups", rule, operation, put);
    let operation = Operation::new("deleteGroup", "Delete a group")
        .about(
            "Rules and secrets that name the group apply to none of its former members \
             afterwards.",
        )
        .path("name", name(), "The group's name; it may contain slashes")
        .gives::<GroupResponse>(200, "The group was deleted")
        .refuses(&[Code::NotFound]);
    routes.delete("/api/v1/groups/{*name}", rule, operation, remove);
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let groups = call.engine().groups(call.caller()?).await?;
    let shown = |group: runvoy_model::group::Group| Group {
        name: group.name.to_string(),
        members: group.members,
        created_at: group.created_at.into(),
        created_by: group.created_by,
    };
    let mut groups: Vec<Group> = groups.into_iter().map(shown).collect();
    let next = pager.cut(&mut groups, |group| group.name.clone());
    Ok(next.on(answer::json(StatusCode::OK, &GroupsResponse { groups })))
}

async fn put(call: Call) -> Result<Response<Body>, Fault> {
    let key = call.idempotency_key()?;
    let request: PutGroupRequest = call.body_of("a name and members").await?;
    call.engine().put_group(call.caller()?, &request.name, &request.members, key.as_deref()).await?;
    let members = request.members.len();
    let message = format!("saved with {members} member{}", if members == 1 { "" } else { "s" });
    Ok(answer::json(StatusCode::OK, &GroupResponse { name: request.name, message }))
}

async fn remove(call: Call) -> Result<Response<Body>, Fault> {
    let name = call.params.get("name");
    call.engine().remove_group(call.caller()?, name).await?;
    let message = "deleted; rules and secrets that name it now apply to none of its former members".to_owned();
    Ok(answer::json(StatusCode::OK, &GroupResponse { name: name.to_owned(), message }))
}
