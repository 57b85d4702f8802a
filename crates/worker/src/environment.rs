//! The environment of a command, built from nothing: what every program expects, what the platform tells, what the user set.

use std::collections::BTreeMap;

use runvoy_model::execution::{Execution, LockClaim};

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The whole environment of an execution's command.
pub(crate) fn environment(execution: &Execution, home: &str) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(env.insert(name.to_owned(), value));
    set("PATH", PATH.to_owned());
    set("HOME", home.to_owned());
    set("LANG", "C.UTF-8".to_owned());
    set("TERM", "dumb".to_owned());
    for (name, value) in &execution.spec.env {
        set(name, value.clone());
    }
    for name in ["RUNVOY_EXECUTION_ID", "EXECUTION_ID"] {
        set(name, execution.id.to_string());
    }
    for name in ["RUNVOY_USER", "USER_EMAIL"] {
        set(name, execution.created_by.clone());
    }
    set("RUNVOY_ATTEMPT", execution.attempt.to_string());
    if let (Some(lock), LockClaim::Held { fence }) = (&execution.spec.lock, execution.lock) {
        set("RUNVOY_LOCK", lock.to_string());
        set("LOCK_NAME", lock.to_string());
        set("RUNVOY_LOCK_FENCE", fence.to_string());
    }
    env
}
