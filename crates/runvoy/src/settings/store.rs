//! The mapping `store` of a settings file: another spelling of the settings of AWS, in the form that other servers of this kind have.
//! Whatever cannot be done as it says is refused by its name, never passed over.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// One setting in the program's own spelling.
pub struct Translated {
    /// Its key.
    pub key: &'static str,
    /// How the file spelled it.
    pub spelled: &'static str,
    /// Its value.
    pub value: String,
}

/// The visibility timeout that every queue is made with.
const VISIBILITY_SECONDS: u64 = 300;

/// Translates the mapping.
pub fn translate(store: &Value) -> Result<Vec<Translated>> {
    let store = mapping(store, "store")?;
    only(store, "store", &["type", "aws", "sqs", "dynamodb"])?;
    match store.get("type").and_then(Value::as_str) {
        Some("sqs") => {}
        Some(_) => bail!("store.type: only sqs is possible; for the embedded store leave `store` out"),
        None => bail!("store.type is missing: sqs"),
    }
    let mut found = vec![Translated { key: "backend", spelled: "store.type", value: "aws".to_owned() }];
    if let Some(aws) = part(store, "aws", &["region"])? {
        found.extend(text(aws, "region", "aws.region", "store.aws.region")?);
    }
    if let Some(sqs) = part(store, "sqs", &["queues", "default_visibility_timeout_seconds"])? {
        translate_sqs(sqs, &mut found)?;
    }
    if let Some(tables) = part(store, "dynamodb", &["jobs_table", "events_table", "events_ttl_days"])? {
        found.extend(text(tables, "jobs_table", "aws.executions_table", "store.dynamodb.jobs_table")?);
        found.extend(text(tables, "events_table", "aws.events_table", "store.dynamodb.events_table")?);
        if let Some(days) = tables.get("events_ttl_days") {
            let days = days.as_u64().context("store.dynamodb.events_ttl_days: expected a number of days")?;
            found.push(Translated { key: "aws.events_ttl_days", spelled: "store.dynamodb.events_ttl_days", value: days.to_string() });
        }
    }
    Ok(found)
}

fn translate_sqs(sqs: &Map<String, Value>, found: &mut Vec<Translated>) -> Result<()> {
    if let Some(seconds) = sqs.get("default_visibility_timeout_seconds")
        && seconds.as_u64() != Some(VISIBILITY_SECONDS)
    {
        bail!(
            "store.sqs.default_visibility_timeout_seconds: only {VISIBILITY_SECONDS}; a message only wakes a server here, and \
             leases decide how long a worker holds an execution"
        );
    }
    let Some(queues) = sqs.get("queues") else { return Ok(()) };
    let queues = mapping(queues, "store.sqs.queues")?;
    let (mut names, mut pairs, mut common) = (Vec::new(), Vec::new(), None);
    for (name, url) in queues {
        let url = url.as_str().with_context(|| format!("store.sqs.queues.{name}: expected the address of an SQS queue"))?;
        let called = url.rsplit('/').next().unwrap_or_default();
        let Some(prefix) = called.strip_suffix(name.as_str()) else {
            bail!(
                "store.sqs.queues.{name}: the name of its SQS queue must end with `{name}`: queues are named by a prefix and their own name"
            );
        };
        match common {
            Some(other) if other != prefix => {
                bail!("store.sqs.queues.{name}: all queues must have one prefix, and `{prefix}` differs from `{other}`")
            }
            _ => common = Some(prefix),
        }
        names.push(name.clone());
        pairs.push(format!("{name}={url}"));
    }
    let Some(prefix) = common else { bail!("store.sqs.queues: name at least one") };
    let mut add = |key, value: String| found.push(Translated { key, spelled: "store.sqs.queues", value });
    add("aws.queue_prefix", prefix.to_owned());
    add("aws.queue_urls", pairs.join(","));
    add("queues", names.join(","));
    Ok(())
}

fn mapping<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>> {
    value.as_object().with_context(|| format!("{name}: expected names with values"))
}

fn part<'a>(store: &'a Map<String, Value>, name: &str, known: &[&str]) -> Result<Option<&'a Map<String, Value>>> {
    let Some(value) = store.get(name) else { return Ok(None) };
    let name = format!("store.{name}");
    let value = mapping(value, &name)?;
    only(value, &name, known)?;
    Ok(Some(value))
}

fn only(map: &Map<String, Value>, name: &str, known: &[&str]) -> Result<()> {
    let Some(other) = map.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    // What is no name may be a value in the wrong place, and a secret.
    let is_name = other.len() <= 60 && other.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let shown = if is_name { format!("{name}.{other}") } else { format!("of that name in {name}") };
    bail!("there is no setting {shown}; expected {}", known.join(", "))
}

fn text(map: &Map<String, Value>, name: &str, key: &'static str, spelled: &'static str) -> Result<Option<Translated>> {
    let Some(value) = map.get(name) else { return Ok(None) };
    let value = value.as_str().with_context(|| format!("{spelled}: expected a text"))?.to_owned();
    Ok(Some(Translated { key, spelled, value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "
store:
  type: sqs
  aws:
    region: us-west-2
  sqs:
    queues:
      default: https://sqs.us-west-2.amazonaws.com/123456789/airunner-prod-default
      priority: https://sqs.us-west-2.amazonaws.com/123456789/airunner-prod-priority
    default_visibility_timeout_seconds: 300
  dynamodb:
    jobs_table: airunner_jobs
    events_table: airunner_job_events
    events_ttl_days: 30
";

    fn read(text: &str) -> Result<Vec<(String, String)>> {
        super::super::file::read(text)
    }

    #[test]
    fn every_part_of_it_is_a_setting_of_this_program() {
        let mut found = read(WHOLE).expect("settings");
        found.sort();
        let queues = "default=https://sqs.us-west-2.amazonaws.com/123456789/airunner-prod-default,\
                      priority=https://sqs.us-west-2.amazonaws.com/123456789/airunner-prod-priority";
        let expected = [
            ("aws.events_table", "airunner_job_events"),
            ("aws.events_ttl_days", "30"),
            ("aws.executions_table", "airunner_jobs"),
            ("aws.queue_prefix", "airunner-prod-"),
            ("aws.queue_urls", queues),
            ("aws.region", "us-west-2"),
            ("backend", "aws"),
            ("queues", "default,priority"),
        ];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_cannot_be_done_as_it_says_is_refused_by_name() {
        let wrong = |file: &str| format!("{:#}", read(file).expect_err("wrong"));
        let changed = |from: &str, to: &str| wrong(&WHOLE.replace(from, to));
        assert!(changed("type: sqs", "type: memory").contains("store.type"));
        assert!(wrong("store: {aws: {region: x}}").contains("store.type"));
        assert!(wrong("store: sqs").contains("store: expected"));
        assert!(changed("seconds: 300", "seconds: 30").contains("default_visibility_timeout_seconds"));
        assert!(changed("prod-priority", "prod-other").contains("store.sqs.queues.priority"));
        assert!(changed("airunner-prod-priority", "airunner-dev-priority").contains("store.sqs.queues.priority"));
        assert!(changed("region:", "endpoint:").contains("store.aws.endpoint"));
        assert!(changed("events_ttl_days: 30", "events_ttl_days: soon").contains("store.dynamodb.events_ttl_days"));
        assert!(changed("jobs_table: airunner_jobs", "jobs_table: [a]").contains("store.dynamodb.jobs_table"));
        assert!(changed("  dynamodb:", "  postgres:").contains("store.postgres"));
    }

    #[test]
    fn a_setting_in_both_spellings_is_refused() {
        let both = format!("aws: {{region: eu-central-1}}\n{WHOLE}");
        let said = format!("{:#}", read(&both).expect_err("wrong"));
        assert!(said.contains("aws.region") && said.contains("store.aws.region"), "{said}");
    }
}
