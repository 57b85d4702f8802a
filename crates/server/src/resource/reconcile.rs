//! A look at everything, in the words of the public clients.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{Area, Finding, Reconciliation, Remedy};
use runvoy_model::role::Action;
use runvoy_wire::{
    AuthorizerStatus, ComputeStatus, IdentityStatus, ReconcileIssue, ReconcileReport, ReconcileResponse, Rfc3339, SecretsStatus,
};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::route::{Routes, Rule};

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("reconcileRecords", "Find and repair inconsistent records")
        .about(
            "Compares executions, locks, secrets, users and ownerships with each other, repairs what can be repaired and reports the rest.",
        )
        .gives::<ReconcileResponse>(200, "What was found and repaired");
    routes.post("/api/v1/health/reconcile", Rule::Key(Action::Reconcile), operation, reconcile);
}

async fn reconcile(call: Call) -> Result<Response<Body>, Fault> {
    let seen = call.engine().reconcile(call.caller()?).await?;
    let report = report(&seen, call.engine().now().into());
    Ok(answer::json(StatusCode::OK, &ReconcileResponse { status: "ok".to_owned(), report }))
}

fn report(seen: &Reconciliation, timestamp: Rfc3339) -> ReconcileReport {
    let of = |area| seen.findings.iter().filter(move |finding| finding.area == area);
    let ids = |area| of(area).map(|finding| finding.id.clone()).collect::<Vec<_>>();
    let count = |area| of(area).count() as u64;
    let remedied = |remedy| seen.findings.iter().filter(|finding| finding.remedy == remedy).count() as u64;
    ReconcileReport {
        timestamp,
        compute_status: ComputeStatus {
            total_resources: seen.compute,
            verified_count: seen.compute - count(Area::Compute),
            orphaned_count: count(Area::Compute),
            orphaned_resources: ids(Area::Compute),
            ..ComputeStatus::default()
        },
        secrets_status: SecretsStatus {
            total_secrets: seen.secrets,
            verified_count: seen.secrets - count(Area::Secrets),
            missing_count: count(Area::Secrets),
            ..SecretsStatus::default()
        },
        // Roles of a cloud: an embedded server has none that could be missing.
        identity_status: IdentityStatus { default_roles_verified: true, ..IdentityStatus::default() },
        authorizer_status: AuthorizerStatus {
            users_with_invalid_roles: ids(Area::People),
            resources_with_missing_owners: ids(Area::Owners),
            total_users_checked: seen.users,
            total_resources_checked: seen.owned,
            ..AuthorizerStatus::default()
        },
        issues: seen.findings.iter().map(issue).collect(),
        reconciled_count: remedied(Remedy::Repaired),
        error_count: remedied(Remedy::NeedsSomebody),
    }
}

fn issue(finding: &Finding) -> ReconcileIssue {
    let (severity, action) = match finding.remedy {
        Remedy::Repaired => ("warning", "repaired"),
        Remedy::Reported => ("warning", "reported"),
        Remedy::NeedsSomebody => ("error", "requires_manual_intervention"),
    };
    ReconcileIssue {
        resource_type: finding.what.to_owned(),
        resource_id: finding.id.clone(),
        severity: severity.to_owned(),
        message: finding.message.clone(),
        action: action.to_owned(),
    }
}
