//! Several executions or jobs match the digits that were typed: shows which, so that one can be chosen.

use runvoy_client::{Client, ClientError};
use runvoy_wire::Code;

use crate::command::status::command_line;
use crate::failure::Failure;
use crate::sanitize::one_line;
use crate::table::cut;

/// What to do next.
const NEXT: &str = "use more digits, or the whole id";
/// How many are shown.
const MAX_CANDIDATES: usize = 10;
/// How much of each command is shown.
const COMMAND_WIDTH: usize = 60;

/// The failure of looking up digits; where several executions fit, with each of them.
pub(crate) async fn explain(client: &Client, error: ClientError) -> Failure {
    let ids = match &error {
        ClientError::Refused(refusal) if refusal.code == Code::Conflict.as_str() => candidates(&refusal.details),
        _ => Vec::new(),
    };
    if ids.is_empty() {
        return error.into();
    }
    let mut choices = Vec::new();
    for id in ids {
        choices.push(match client.execution(&id).await {
            Ok(execution) => {
                let command = cut(&one_line(&command_line(&execution)), COMMAND_WIDTH);
                format!("{id}  {:<11}  {command}", execution.status)
            }
            // The id alone is still better than nothing.
            Err(_) => id,
        });
    }
    Failure::from(error).choices(choices).next(NEXT)
}

/// The same for the digits of a job.
pub(crate) async fn explain_job(client: &Client, error: ClientError) -> Failure {
    let ids = match &error {
        ClientError::Refused(refusal) if refusal.code == Code::Conflict.as_str() => candidates(&refusal.details),
        _ => Vec::new(),
    };
    if ids.is_empty() {
        return error.into();
    }
    let mut choices = Vec::new();
    for id in ids {
        choices.push(match client.job_counts(&id).await {
            Ok(job) => format!("{id}  {:<11}  {}", job.status, one_line(job.name.as_deref().unwrap_or("-"))),
            // The id alone is still better than nothing.
            Err(_) => id,
        });
    }
    Failure::from(error).choices(choices).next(NEXT)
}

fn candidates(details: &str) -> Vec<String> {
    let is_id = |word: &&str| word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    details.split([',', ' ']).filter(is_id).take(MAX_CANDIDATES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_what_the_server_says_and_bounded() {
        let id = |n: usize| format!("{n:032x}");
        assert_eq!(candidates(&format!("{}, {}", id(1), id(2))), [id(1), id(2)]);
        assert_eq!(candidates("the record has changed"), Vec::<String>::new());
        let many = (0..20).map(id).collect::<Vec<_>>().join(", ");
        assert_eq!(candidates(&many).len(), MAX_CANDIDATES);
    }
}
