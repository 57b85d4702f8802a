//! One queue of SQS and the one for what cannot be read in it: made where they are missing, and the few calls that are made of them.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, QueueAttributeName, SendMessageBatchRequestEntry};
use runvoy_model::name::Name;
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::fault::Fault;

const SERVICE: &str = "SQS";
/// So many entries a call at most.
pub(crate) const MOST_ENTRIES: usize = 10;
/// How long a message that was received is hidden from others.
pub(crate) const HIDDEN: Duration = Duration::from_secs(300);
/// A receive waits so long for a message.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// A message can be sent for so much later.
const LONGEST_DELAY: Duration = Duration::from_secs(900);
/// And be hidden for so long.
const LONGEST_HIDDEN: Duration = Duration::from_secs(12 * 3600);
/// Messages are kept for fourteen days, the longest there is.
const KEPT_SECONDS: &str = "1209600";
/// The longest name of a queue.
const LONGEST_NAME: usize = 80;
/// What the name of the queue for unreadable messages ends with.
const DEAD: &str = "-dlq";

/// Both, by their addresses.
#[derive(Debug)]
pub(crate) struct Line {
    sqs: aws_sdk_sqs::Client,
    url: String,
    dead_url: String,
}

impl Line {
    /// Finds both or makes them. What is there stays as it is.
    pub async fn open(sqs: &aws_sdk_sqs::Client, config: &Config, queue: &Name) -> Result<Self, Fault> {
        let name = queue_name(&config.queue_prefix, queue);
        let dead_name = format!("{name}{DEAD}");
        let mut attributes = HashMap::from([
            (QueueAttributeName::MessageRetentionPeriod, KEPT_SECONDS.to_owned()),
            (QueueAttributeName::SqsManagedSseEnabled, "true".to_owned()),
        ]);
        let dead_url = find_or_make(sqs, &dead_name, &attributes).await?;
        let dead_arn = attribute(sqs, &dead_url, &[QueueAttributeName::QueueArn]).await?.into_values().next().unwrap_or_default();
        let redrive = serde_json::json!({"deadLetterTargetArn": dead_arn, "maxReceiveCount": config.max_receives});
        attributes.extend([
            (QueueAttributeName::VisibilityTimeout, HIDDEN.as_secs().to_string()),
            (QueueAttributeName::ReceiveMessageWaitTimeSeconds, LONGEST_WAIT.as_secs().to_string()),
            (QueueAttributeName::RedrivePolicy, redrive.to_string()),
        ]);
        let url = find_or_make(sqs, &name, &attributes).await?;
        Ok(Self { sqs: sqs.clone(), url, dead_url })
    }

    /// Sends up to ten messages, each to be seen after its delay; comes back with the places of those that were not taken.
    pub async fn send(&self, messages: &[(String, Duration)]) -> Result<Vec<usize>, Fault> {
        let entries = messages.iter().enumerate().map(|(place, (body, delay))| {
            let entry = SendMessageBatchRequestEntry::builder().id(place.to_string()).message_body(body);
            entry.delay_seconds(seconds(*delay, LONGEST_DELAY)).build().expect("an entry has an id and a body")
        });
        let request = self.sqs.send_message_batch().queue_url(&self.url).set_entries(Some(entries.collect()));
        let answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
        Ok(answer.failed().iter().filter_map(|failed| failed.id().parse().ok()).collect())
    }

    /// What is there, or comes while it waits; ten at most. They are hidden from others for [`HIDDEN`].
    pub async fn receive(&self, wait: Duration) -> Result<Vec<Message>, Fault> {
        // The wait is AWS's; what comes on top is ours.
        let limit = wait + Duration::from_secs(10);
        let timeouts = TimeoutConfig::builder().operation_attempt_timeout(limit).operation_timeout(limit * 2).build();
        let answer = self
            .sqs
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(10)
            .visibility_timeout(seconds(HIDDEN, HIDDEN))
            .wait_time_seconds(seconds(wait, LONGEST_WAIT))
            .customize()
            .config_override(aws_sdk_sqs::config::Builder::new().timeout_config(timeouts))
            .send()
            .await;
        Ok(answer.map_err(|error| Fault::of(SERVICE, error))?.messages.unwrap_or_default())
    }

    /// Removes up to ten messages that were received; how many are gone. The others come again.
    pub async fn delete(&self, receipts: &[String]) -> Result<usize, Fault> {
        let entries = receipts.iter().enumerate().map(|(place, receipt)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(place.to_string()).receipt_handle(receipt);
            entry.build().expect("an entry has an id and a receipt")
        });
        let request = self.sqs.delete_message_batch().queue_url(&self.url).set_entries(Some(entries.collect()));
        let answer = request.send().await.map_err(|error| Fault::of(SERVICE, error))?;
        Ok(receipts.len() - answer.failed().len().min(receipts.len()))
    }

    /// Hides a message that was received for so long from now.
    pub async fn hide(&self, receipt: &str, time: Duration) -> Result<(), Fault> {
        let request = self.sqs.change_message_visibility().queue_url(&self.url).receipt_handle(receipt);
        let request = request.visibility_timeout(seconds(time, LONGEST_HIDDEN));
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// Moves a message to where a person looks: sent there before it is removed here, so that it may be there twice but is never lost.
    pub async fn bury(&self, body: &str, receipt: &str) -> Result<(), Fault> {
        self.send_dead(body).await?;
        let request = self.sqs.delete_message().queue_url(&self.url).receipt_handle(receipt);
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// Puts a message to where a person looks.
    pub async fn send_dead(&self, body: &str) -> Result<(), Fault> {
        let request = self.sqs.send_message().queue_url(&self.dead_url).message_body(body);
        request.send().await.map(drop).map_err(|error| Fault::of(SERVICE, error))
    }

    /// About how many messages there are to receive.
    pub async fn depth(&self) -> Result<usize, Fault> {
        let found = attribute(&self.sqs, &self.url, &[QueueAttributeName::ApproximateNumberOfMessages]).await?;
        Ok(found.values().filter_map(|count| count.parse::<usize>().ok()).sum())
    }
}

/// Somebody has removed a queue that was there.
pub(crate) fn is_gone(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused { code, .. } if is_missing(Some(code)))
}

fn is_missing(code: Option<&str>) -> bool {
    code.is_some_and(|code| code.ends_with("NonExistentQueue") || code.ends_with("QueueDoesNotExist"))
}

async fn find_or_make(sqs: &aws_sdk_sqs::Client, name: &str, attributes: &HashMap<QueueAttributeName, String>) -> Result<String, Fault> {
    match sqs.get_queue_url().queue_name(name).send().await {
        Ok(answer) => return Ok(answer.queue_url.unwrap_or_default()),
        Err(error) if is_missing(error.code()) => {}
        Err(error) => return Err(Fault::of(SERVICE, error)),
    }
    let request = sqs.create_queue().queue_name(name).set_attributes(Some(attributes.clone()));
    Ok(request.send().await.map_err(|error| Fault::of(SERVICE, error))?.queue_url.unwrap_or_default())
}

async fn attribute(
    sqs: &aws_sdk_sqs::Client,
    url: &str,
    names: &[QueueAttributeName],
) -> Result<HashMap<QueueAttributeName, String>, Fault> {
    let request = sqs.get_queue_attributes().queue_url(url).set_attribute_names(Some(names.to_vec()));
    let found = request.send().await.map_err(|error| Fault::of(SERVICE, error))?.attributes.unwrap_or_default();
    Ok(found.into_iter().filter(|(name, _)| names.contains(name)).collect())
}

/// Rounded up, so that nobody is woken too early.
fn seconds(time: Duration, most: Duration) -> i32 {
    let whole = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    i32::try_from(whole.min(most.as_secs())).unwrap_or(i32::MAX)
}

/// What a queue is called in SQS, which knows letters, digits, `-` and `_` and eighty of them. Two queues never share a name, nor does one
/// have that of another's unreadable messages: `_` is in no name of ours, so that whatever follows it is an escape.
fn queue_name(prefix: &str, queue: &Name) -> String {
    let mut name = queue.as_str().replace('.', "_d").replace('/', "_s");
    if let Some(start) = name.strip_suffix(DEAD) {
        name = format!("{start}_edlq");
    }
    let room = LONGEST_NAME.saturating_sub(prefix.len() + DEAD.len());
    if name.len() > room {
        let digest = Sha256::digest(queue.as_str().as_bytes());
        let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        name.truncate(room.saturating_sub(digest.len() + 2));
        name = format!("{name}_h{digest}");
    }
    format!("{prefix}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(queue: &str) -> String {
        queue_name("airunner-prod-", &Name::new(queue).expect("a name"))
    }

    #[test]
    fn an_ordinary_name_is_kept() {
        assert_eq!(named("default"), "airunner-prod-default");
    }

    #[test]
    fn every_name_fits_and_none_is_anothers() {
        let long = "x".repeat(100);
        let names = ["a", "a.b", "a/b", "a-dlq", "a.dlq", "a-b", "a.lq", "A", &long, &format!("{long}y"), &"y".repeat(62), &"y".repeat(63)];
        let mut all: Vec<String> = names.iter().map(|name| named(name)).collect();
        all.extend(names.iter().map(|name| format!("{}{DEAD}", named(name))));
        for name in &all {
            assert!(name.len() <= LONGEST_NAME, "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{name}");
        }
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "{all:?}");
    }

    #[test]
    fn a_part_of_a_second_is_a_second_and_no_time_is_too_long() {
        assert_eq!(seconds(Duration::ZERO, LONGEST_DELAY), 0);
        assert_eq!(seconds(Duration::from_millis(1), LONGEST_DELAY), 1);
        assert_eq!(seconds(Duration::from_secs(3600), LONGEST_DELAY), 900);
    }
}
