//! The environment of a command, built from nothing: what every program expects, what the platform tells, what the user set.

use std::collections::BTreeMap;
use std::path::Path;

use runvoy_model::execution::{Execution, LockClaim};
use runvoy_model::spec::Needs;
use runvoy_ports::lease::Material;

use crate::exchange;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What a program expects besides where it has a terminal. There is nobody to turn pages.
const ON_A_TERMINAL: [(&str, &str); 2] = [("TERM", "xterm-256color"), ("PAGER", "cat")];

/// What every program expects.
pub(crate) fn bare_environment(home: &str) -> BTreeMap<String, String> {
    let bare = [("PATH", PATH), ("HOME", home), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
    bare.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// The whole environment of an execution's command. What the user set comes before a secret, and what the platform tells before both.
pub(crate) fn environment(execution: &Execution, home: &str, work_dir: &Path, secrets: &[Material]) -> BTreeMap<String, String> {
    let mut env = match execution.spec.needs() {
        Needs::Process => bare_environment(home),
        // The rest is the image's own.
        Needs::Image => BTreeMap::from([("HOME".to_owned(), home.to_owned())]),
    };
    if execution.spec.terminal {
        env.extend(ON_A_TERMINAL.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    env.extend(secrets.iter().map(|secret| (secret.key_name.clone(), secret.value.clone())));
    env.extend(execution.spec.env.clone());
    let mut set = |name: &str, value: String| drop(env.insert(name.to_owned(), value));
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
    for (name, value) in exchange::variables(execution.spec.task.as_ref(), work_dir) {
        set(name, value);
    }
    env
}
