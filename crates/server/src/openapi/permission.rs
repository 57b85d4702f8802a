//! Who may call an operation, as its description says it.

use runvoy_engine::action_word;
use runvoy_model::role::{Action, Reach, Role, reach};

use crate::route::Rule;

/// The sentence about a rule.
pub(super) fn of(rule: Rule) -> String {
    match rule {
        Rule::Anyone => "Needs no API key.".to_owned(),
        Rule::Key(action) => of_action(action),
        Rule::KeyOrTicket(action) => {
            format!("{} A ticket of this execution's `websocket_url` works instead of an API key.", of_action(action))
        }
        Rule::KeyOrLink(action) => {
            format!("{} A signed link to this execution's log works instead of an API key.", of_action(action))
        }
        Rule::Owner(action) => {
            format!("{} Works only over the server's local socket, as the user that runs the server.", of_action(action))
        }
        Rule::KeyUnlessPublic(action) => {
            format!("{} Needs no API key where the setting `metrics_public` is on.", of_action(action))
        }
    }
}

fn of_action(action: Action) -> String {
    let roles = |wanted: Reach| -> Vec<&str> {
        Role::OF_PEOPLE.into_iter().filter(|role| reach(*role, action) == wanted).map(Role::as_str).collect()
    };
    let (all, own) = (roles(Reach::All), roles(Reach::Own));
    let word = action_word(action);
    let permission = format!("Permission: `{word}`");
    match (all.len() == Role::OF_PEOPLE.len(), own.is_empty()) {
        (true, _) => format!("{permission} (every role)."),
        (false, true) => format!("{permission} ({}).", all.join(", ")),
        (false, false) => format!("{permission} ({}; {}: their own only).", all.join(", "), own.join(", ")),
    }
}
