//! A copy of the running server. It holds the keys of the store, so that only the server's own user may ask for one, over the local socket.

use std::path::PathBuf;

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_model::role::Action;
use runvoy_wire::{BackupRequest, BackupResponse, Code};

use crate::answer;
use crate::app::BackupFault;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("createBackup", "Create a backup")
        .about(
            "Copies the store, the logs and the keys of the running server to a new directory on \
             its machine.",
        )
        .takes::<BackupRequest>(true)
        .gives::<BackupResponse>(200, "The backup is complete and on disk")
        .refuses(&[Code::InvalidRequest, Code::Conflict]);
    routes.post("/api/v1/backup", Rule::Owner(Action::Backup), operation, backup);
}

async fn backup(call: Call) -> Result<Response<Body>, Fault> {
    let caller = call.caller()?;
    let request: BackupRequest = call.json().await?.ok_or_else(|| Fault::invalid("destination", "is missing"))?;
    // The copy holds the keys of everything: who asked for it is on record before it is begun.
    call.engine().note_call(caller, "backup.create").await?;
    tracing::info!(destination = request.destination, user = caller.email, "a backup begins");
    call.state.host.backup(PathBuf::from(&request.destination)).await.map_err(fault)?;
    Ok(answer::json(StatusCode::OK, &BackupResponse { destination: request.destination }))
}

fn fault(why: BackupFault) -> Fault {
    match why {
        BackupFault::Destination(why) => Fault::invalid("destination", why),
        BackupFault::Elsewhere(details) => {
            Fault::Refused { code: Code::Conflict, error: "this server has no files to copy".into(), details }
        }
        BackupFault::Failed(details) => {
            tracing::error!(error = details, "a backup failed");
            Fault::Refused { code: Code::ServiceUnavailable, error: "the backup failed".into(), details }
        }
    }
}
