//! What a run would be, for a person: shared by `run --dry-run` and `playbook run --dry-run`.

use runvoy_wire::{DryRunResponse, Effect};

use super::status::quoted;
use crate::duration::Human;
use crate::failure::Failure;
use crate::session::Session;
use crate::table::{Cell, facts, render};
use crate::terminal::{Tone, paint};

/// The exit code where the run would be refused.
const REFUSED: u8 = 1;

/// Shows it; the code says whether the run would be taken. The plan does not repeat which secret git would get: the caller knows.
pub(crate) fn show(session: &Session, plan: &DryRunResponse, git_token: Option<&str>) -> Result<u8, Failure> {
    session.show(plan, || vec![plan.image_id.clone()], || describe(plan, git_token, session.terminal.stdout_colour))?;
    Ok(if plan.allowed { 0 } else { REFUSED })
}

fn describe(plan: &DryRunResponse, git_token: Option<&str>, colour: bool) -> String {
    let seconds = |seconds: u64| Human::from_ms(seconds.saturating_mul(1_000)).to_string();
    let held = plan.lock_held.as_ref().map(|held| format!(", held by {} since {}", held.held_by, held.since)).unwrap_or_default();
    let secrets = plan.secrets.iter().map(|secret| format!("{} as {}", secret.name, secret.key_name)).collect::<Vec<_>>();
    let git = [&plan.git_repo, &plan.git_ref, &plan.git_path].into_iter().flatten().cloned().collect::<Vec<_>>();
    let limits = &plan.limits;
    let limits = [
        limits.cpu.map(|cpu| format!("{cpu} CPU units")),
        limits.memory.map(|memory| format!("{memory} MiB memory")),
        limits.processes.map(|processes| format!("{processes} processes")),
        limits.log_bytes.map(|bytes| format!("{} of log", human_bytes(bytes))),
    ];
    let heading = match (plan.allowed, &plan.waiting_for) {
        (false, _) => paint("This run would be refused.", Tone::Bad, colour),
        (true, Some(_)) => paint("This run would wait.", Tone::Warning, colour),
        (true, None) => paint("This run would start.", Tone::Good, colour),
    };
    let image = if plan.image.is_empty() || plan.image == plan.image_id {
        plan.image_id.clone()
    } else {
        format!("{} ({})", plan.image, plan.image_id)
    };
    let described = facts(
        [
            ("playbook", plan.playbook.clone()),
            ("command", Some(quoted(&plan.command, plan.args.as_deref()))),
            ("image", Some(image)),
            ("git", Some(git.join(" "))),
            ("git token", git_token.map(|secret| format!("from secret {secret}"))),
            ("runs in", plan.git_repo.is_none().then(|| "an empty work directory".to_owned())),
            ("env", Some(plan.env.join(" "))),
            ("secrets", Some(secrets.join(", "))),
            ("lock", plan.lock.as_ref().map(|lock| format!("{lock}{held}"))),
            ("lock wait", plan.lock_wait.map(seconds)),
            ("waiting for", plan.waiting_for.as_ref().map(|reason| reason.message.clone())),
            ("queue", Some(format!("{}, priority {}", plan.queue, plan.priority))),
            ("retries", Some(plan.retries.to_string())),
            ("timeout", plan.timeout.map(seconds)),
            ("limits", Some(limits.into_iter().flatten().collect::<Vec<_>>().join(", "))),
            ("cost", plan.cost_usd_per_hour.map(|cost| format!("${cost:.4} an hour"))),
        ],
        colour,
    );
    let verdict = |verdict: &runvoy_wire::Verdict| {
        let tone = if verdict.effect == Effect::Deny { Tone::Bad } else { Tone::Good };
        vec![Cell::new(verdict.effect.as_str(), tone), (&verdict.rule).into(), (&verdict.why).into()]
    };
    let rules = render(&[], &plan.rules.iter().map(verdict).collect::<Vec<_>>(), None, colour);
    format!("{heading}\n{described}{rules}")
}

/// `2 GiB`; where no unit fits evenly, with one digit of the rest.
fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut unit, mut scale) = (0, 1_u64);
    while unit + 1 < UNITS.len() && bytes / scale >= 1_024 {
        (unit, scale) = (unit + 1, scale * 1_024);
    }
    let tenths = bytes % scale * 10 / scale;
    let whole = bytes / scale;
    if tenths == 0 { format!("{whole} {}", UNITS[unit]) } else { format!("{whole}.{tenths} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_the_largest_unit() {
        for (bytes, text) in
            [(0, "0 bytes"), (1_023, "1023 bytes"), (1_024, "1 KiB"), (1_536, "1.5 KiB"), (2 << 30, "2 GiB"), (5 << 50, "5120 TiB")]
        {
            assert_eq!(human_bytes(bytes), text);
        }
    }

    #[test]
    fn a_person_sees_everything_that_would_play_a_part() {
        let text = r#"{"allowed":false,"image_id":"alpine:3-a1b2","image":"alpine:3","command":"set -eu\nmake deploy","env":["REGION"],
            "secrets":[{"name":"aws","key_name":"AWS_KEY"}],"git_repo":"https://example.com/x.git","git_ref":"main","lock":"prod",
            "lock_held":{"lock_name":"prod","held_by":"bo@example.com","since":"2026-01-03T14:22:19Z","execution_id":"0192","log_url":""},
            "queue":"default","priority":3,"retries":0,"timeout":300,"limits":{"cpu":256,"memory":512,"log_bytes":2147483648},
            "rules":[{"rule":"no-prod","effect":"deny","why":"lock prod matches prod*"}],"cost_usd_per_hour":0.0123}"#;
        let plan: DryRunResponse = serde_json::from_str(text).expect("the contract's fields");
        insta::assert_snapshot!(describe(&plan, Some("gh"), false), @r"
        This run would be refused.
        command    set -eu
                   make deploy
        image      alpine:3 (alpine:3-a1b2)
        git        https://example.com/x.git main
        git token  from secret gh
        env        REGION
        secrets    aws as AWS_KEY
        lock       prod, held by bo@example.com since 2026-01-03T14:22:19.000Z
        queue      default, priority 3
        retries    0
        timeout    5m 00s
        limits     256 CPU units, 512 MiB memory, 2 GiB of log
        cost       $0.0123 an hour
        deny  no-prod  lock prod matches prod*
        ");
    }

    #[test]
    fn what_nobody_would_take_does_not_run() {
        let text = r#"{"allowed":true,"image_id":"local","image":"local","command":"true","queue":"ghost","priority":3,"retries":0,
            "waiting_for":{"code":"worker","message":"a worker: no worker serves queue ghost"}}"#;
        let plan: DryRunResponse = serde_json::from_str(text).expect("the contract's fields");
        let described = describe(&plan, None, false);
        assert!(described.starts_with("This run would wait.\n") && described.contains("no worker serves queue ghost"), "{described}");
    }
}
