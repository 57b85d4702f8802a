//! Checkpoints outside the tables: one signed object each in the bucket, put where there is none and never changed. A bucket that keeps versions, or
//! copies elsewhere, proves what this one cannot: that nobody removed them together with the store.

use async_trait::async_trait;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use runvoy_model::chain::AuditKey;
use runvoy_model::witness::Witness;
use runvoy_ports::trail::{WitnessError, Witnesses};

use crate::clients::Clients;
use crate::config::Config;
use crate::fault::Fault;

const PREFIX: &str = "checkpoints/";

/// The objects of checkpoints.
#[derive(Debug, Clone)]
pub struct BucketWitnesses {
    s3: aws_sdk_s3::Client,
    bucket: String,
    key: AuditKey,
}

/// An object of a checkpoint.
#[derive(Debug)]
pub(super) struct Told {
    pub number: u64,
    /// What it says; `None` where it is not as it was signed.
    pub witness: Option<Witness>,
}

impl BucketWitnesses {
    /// Those of an installation, signed with this key.
    pub fn new(clients: &Clients, config: &Config, key: AuditKey) -> Self {
        Self { s3: clients.s3.clone(), bucket: config.bucket.clone(), key }
    }

    /// The numbers of checkpoints after this one, in order, some at a time.
    pub(super) async fn numbers(&self, after: u64, max: i32) -> Result<Vec<u64>, Fault> {
        let request = self.s3.list_objects_v2().bucket(&self.bucket).prefix(PREFIX).start_after(object(after)).max_keys(max);
        let page = request.send().await.map_err(|error| Fault::of("S3", error))?;
        Ok(page.contents().iter().filter_map(|found| number(found.key()?)).collect())
    }

    /// What was told under a number.
    pub(super) async fn told(&self, number: u64) -> Result<Told, Fault> {
        let found = self.s3.get_object().bucket(&self.bucket).key(object(number)).send().await.map_err(|error| Fault::of("S3", error))?;
        let lost = |error| Fault::Unavailable { service: "S3", code: "no answer".to_owned(), source: Box::new(error) };
        let line = found.body.collect().await.map_err(lost)?.into_bytes();
        Ok(Told { number, witness: Witness::from_line(&line, &self.key).filter(|witness| witness.number == number) })
    }

    /// The last number. Objects are listed from the first on, so that it is searched for.
    pub(super) async fn last_number(&self) -> Result<u64, Fault> {
        let Some(mut low) = self.numbers(0, 1).await?.pop() else { return Ok(0) };
        let mut step = 1;
        // There is one at `low`. First ever further, then between.
        let mut high = loop {
            let probe = low.saturating_add(step);
            match self.numbers(probe, 1).await?.pop() {
                Some(found) => (low, step) = (found, step.saturating_mul(2)),
                None => break probe,
            }
        };
        while low < high {
            let middle = low + (high - low) / 2;
            match self.numbers(middle, 1).await?.pop() {
                Some(found) => low = found,
                None => high = middle,
            }
        }
        Ok(low)
    }

    async fn put(&self, witness: &Witness) -> Result<(), Fault> {
        let body = ByteStream::from(witness.to_line(&self.key).into_bytes());
        let request = self.s3.put_object().bucket(&self.bucket).key(object(witness.number));
        match request.content_type("application/json").if_none_match("*").body(body).send().await {
            Ok(_) => Ok(()),
            // Two at once, or told before by whoever did not know that it had been heard.
            Err(error) if matches!(error.code(), Some("PreconditionFailed" | "ConditionalRequestConflict")) => {
                let told = self.told(witness.number).await?;
                if told.witness.as_ref() != Some(witness) {
                    // The proof of that stays: whoever verifies the trail is told.
                    tracing::error!(number = witness.number, "a checkpoint was exported before with other words");
                }
                Ok(())
            }
            Err(error) => Err(Fault::of("S3", error)),
        }
    }
}

#[async_trait]
impl Witnesses for BucketWitnesses {
    async fn last(&self) -> Result<Option<Witness>, WitnessError> {
        let number = self.last_number().await.map_err(|fault| failed("read", fault))?;
        if number == 0 {
            return Ok(None);
        }
        let told = self.told(number).await.map_err(|fault| failed("read", fault))?;
        let changed = || failed("read", Fault::Damaged(format!("{} does not match its signature", object(number))));
        told.witness.map(Some).ok_or_else(changed)
    }

    async fn tell(&self, witnesses: Vec<Witness>) -> Result<(), WitnessError> {
        for witness in &witnesses {
            self.put(witness).await.map_err(|fault| failed("write", fault))?;
        }
        Ok(())
    }
}

fn failed(what: &str, fault: Fault) -> WitnessError {
    WitnessError { message: format!("cannot {what} the exported checkpoints in the bucket"), source: Some(Box::new(fault)) }
}

fn object(number: u64) -> String {
    format!("{PREFIX}{number:020}.json")
}

fn number(object: &str) -> Option<u64> {
    object.strip_prefix(PREFIX)?.strip_suffix(".json")?.parse().ok()
}
