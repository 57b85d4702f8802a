//! Whether each part of AWS answers, and its last error, for whoever asks. Anybody may ask: a look is remembered for a while, and takes
//! seconds at most.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use tokio::sync::Mutex;

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;
use crate::item::{item, s};
use crate::parameter::Parameters;
use crate::setup;
use crate::table::Table;

/// What was seen is answered so long.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// What does not answer within this is away.
const WITHIN: Duration = Duration::from_secs(3);

/// The parts of AWS that an installation stands on.
pub struct Dependencies {
    clients: Clients,
    config: Arc<Config>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    looked: Option<Instant>,
    parts: Vec<Part>,
}

#[derive(Clone)]
struct Part {
    name: &'static str,
    is_needed: bool,
    failed: Option<Words>,
    last_error: Option<(Instant, Words)>,
}

/// An error, for anybody and for admins.
#[derive(Clone)]
struct Words {
    brief: String,
    whole: String,
}

/// How one part stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Its name: `DynamoDB`, `S3`, …
    pub name: &'static str,
    /// Nothing works without it. What is not needed only makes things slower or less visible while it is away.
    pub is_needed: bool,
    /// It answered the last time.
    pub is_there: bool,
    /// The last error and how long ago it was: what happened and the code, nothing more.
    pub last_error: Option<(String, Duration)>,
    /// The same with everything that AWS said, which may name accounts and roles.
    pub whole_error: Option<String>,
}

impl Dependencies {
    /// The parts that this installation uses.
    pub fn new(clients: Clients, config: Arc<Config>) -> Self {
        Self { clients, config, seen: Mutex::default() }
    }

    /// How each stands: as it was seen a few seconds ago, or as it is.
    pub async fn look(&self) -> Vec<Dependency> {
        let mut seen = self.seen.lock().await;
        if seen.looked.is_none_or(|at| at.elapsed() > FRESH_FOR) {
            let found = self.ask().await;
            let now = Instant::now();
            let before = std::mem::take(&mut seen.parts);
            let part = |(name, is_needed, failed): (&'static str, bool, Option<Words>)| {
                let earlier = before.iter().find(|part| part.name == name).and_then(|part| part.last_error.clone());
                let last_error = failed.clone().map(|words| (now, words)).or(earlier);
                Part { name, is_needed, failed, last_error }
            };
            (seen.parts, seen.looked) = (found.into_iter().map(part).collect(), Some(now));
        }
        seen.parts.iter().map(Part::shown).collect()
    }

    async fn ask(&self) -> Vec<(&'static str, bool, Option<Words>)> {
        let (dynamo, s3, ssm, sqs, events, logs) = tokio::join!(
            within(self.dynamo()),
            within(self.s3()),
            within(self.ssm()),
            within(self.sqs()),
            within(self.events()),
            within(self.logs())
        );
        let mut found =
            vec![("DynamoDB", true, dynamo), ("S3", true, s3), ("SSM", false, ssm), ("SQS", false, sqs), ("EventBridge", false, events)];
        if self.config.log_group.is_some() {
            found.push(("CloudWatch Logs", false, logs));
        }
        found
    }

    async fn dynamo(&self) -> Result<(), Fault> {
        // A mark that nobody makes: the smallest read there is.
        let request = self.clients.dynamo.get_item().table_name(setup::name(&self.config, Table::Marks));
        let request = request.set_key(Some(item([("mark", s("readyz"))]))).consistent_read(true);
        request.send().await.map(drop).map_err(|error| Fault::of("DynamoDB", error))
    }

    async fn s3(&self) -> Result<(), Fault> {
        let request = self.clients.s3.list_objects_v2().bucket(&self.config.bucket).max_keys(1);
        request.send().await.map(drop).map_err(|error| Fault::of("S3", error))
    }

    async fn ssm(&self) -> Result<(), Fault> {
        Parameters::new(&self.clients, &self.config).get("seal/current").await.map(drop)
    }

    async fn sqs(&self) -> Result<(), Fault> {
        match self.clients.sqs.get_queue_url().queue_name(format!("{}default", self.config.queue_prefix)).send().await {
            Err(error) if !is_no_queue(error.code()) => Err(Fault::of("SQS", error)),
            // That it has not been made yet is an answer too.
            _ => Ok(()),
        }
    }

    async fn events(&self) -> Result<(), Fault> {
        let request = self.clients.events.describe_event_bus().name(&self.config.event_bus);
        request.send().await.map(drop).map_err(|error| Fault::of("EventBridge", error))
    }

    async fn logs(&self) -> Result<(), Fault> {
        let request = self.clients.logs.describe_log_groups().set_log_group_name_prefix(self.config.log_group.clone()).limit(1);
        request.send().await.map(drop).map_err(|error| Fault::of("CloudWatch Logs", error))
    }
}

impl Part {
    fn shown(&self) -> Dependency {
        Dependency {
            name: self.name,
            is_needed: self.is_needed,
            is_there: self.failed.is_none(),
            last_error: self.last_error.as_ref().map(|(at, words)| (words.brief.clone(), at.elapsed())),
            whole_error: self.last_error.as_ref().map(|(_, words)| words.whole.clone()),
        }
    }
}

/// Whether SQS says that there is no such queue.
pub(crate) fn is_no_queue(code: Option<&str>) -> bool {
    matches!(code, Some("AWS.SimpleQueueService.NonExistentQueue" | "QueueDoesNotExist"))
}

async fn within(asked: impl Future<Output = Result<(), Fault>>) -> Option<Words> {
    match tokio::time::timeout(WITHIN, asked).await {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => Some(words(&fault)),
        Err(_) => {
            let brief = format!("does not answer within {} s", WITHIN.as_secs());
            Some(Words { whole: brief.clone(), brief })
        }
    }
}

fn words(fault: &Fault) -> Words {
    let brief = match fault {
        Fault::Unavailable { code, .. } => format!("does not answer ({code})"),
        Fault::Refused { code, .. } => format!("refuses ({code})"),
        other => other.to_string(),
    };
    let mut whole = fault.to_string();
    let mut cause = std::error::Error::source(fault);
    while let Some(error) = cause {
        whole = format!("{whole}: {error}");
        cause = error.source();
    }
    Words { brief, whole }
}

/// Refuses a queue that is not where it was said to be. One that is not there yet will be made where its name leads.
pub async fn check_queue(clients: &Clients, config: &Config, queue: &str, url: &str) -> Result<(), Fault> {
    let name = format!("{}{queue}", config.queue_prefix);
    let found = match clients.sqs.get_queue_url().queue_name(&name).send().await {
        Ok(found) => found.queue_url.unwrap_or_default(),
        Err(error) if is_no_queue(error.code()) => return Ok(()),
        Err(error) => return Err(Fault::of("SQS", error)),
    };
    if whose(&found) == whose(url) {
        return Ok(());
    }
    let message = format!("queue {queue} is at {found}, and was said to be at {url}");
    Err(Fault::Refused { service: "SQS", code: "AnotherQueue".to_owned(), message })
}

/// The account and the name in the address of a queue; the host differs between ways to the same one.
fn whose(url: &str) -> Vec<&str> {
    url.rsplit('/').take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybody_is_told_the_code_and_admins_the_words() {
        let message = "User: arn:aws:iam::123456789:user/x is not authorized".to_owned();
        let refused = words(&Fault::Refused { service: "S3", code: "AccessDenied".to_owned(), message });
        assert_eq!(refused.brief, "refuses (AccessDenied)");
        assert!(refused.whole.contains("arn:aws:iam::123456789"));
    }
}
