//! Connections to the parts of AWS: credentials by the SDK's default chain, one HTTP client for all.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_smithy_http_client::tls;

use crate::fault::Fault;

/// A client of every part that is used. A clone shares the connections.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Tables.
    pub dynamo: aws_sdk_dynamodb::Client,
    /// Queues.
    pub sqs: aws_sdk_sqs::Client,
    /// Objects.
    pub s3: aws_sdk_s3::Client,
    /// The bus.
    pub events: aws_sdk_eventbridge::Client,
    /// The mirror of logs.
    pub logs: aws_sdk_cloudwatchlogs::Client,
    /// Keys.
    pub ssm: aws_sdk_ssm::Client,
    /// Who we are.
    pub sts: aws_sdk_sts::Client,
}

impl Clients {
    /// Connects as the environment says; a region or an endpoint that is given here goes first.
    pub async fn connect(region: Option<&str>, endpoint: Option<&str>) -> Self {
        let mut loader = Self::settings();
        if let Some(region) = region {
            loader = loader.region(Region::new(region.to_owned()));
        }
        if let Some(endpoint) = endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        Self::new(&loader.load().await)
    }

    /// How every call is made: over which HTTP client, how often it is tried and how long it may take. What is set later goes first.
    pub fn settings() -> ConfigLoader {
        let tls = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
        let http = aws_smithy_http_client::Builder::new().tls_provider(tls).build_https();
        aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .retry_config(RetryConfig::standard().with_max_attempts(6).with_max_backoff(Duration::from_secs(2)))
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(Duration::from_secs(3))
                    .operation_attempt_timeout(Duration::from_secs(10))
                    .operation_timeout(Duration::from_secs(30))
                    .build(),
            )
    }

    /// The number of the account that the credentials are of.
    pub async fn account(&self) -> Result<String, Fault> {
        let answer = self.sts.get_caller_identity().send().await.map_err(|error| Fault::of("STS", error))?;
        answer.account.ok_or_else(|| Fault::Damaged("STS does not say which account this is".to_owned()))
    }

    /// The region they speak to.
    pub fn region(&self) -> Option<String> {
        self.dynamo.config().region().map(ToString::to_string)
    }

    /// Clients of a configuration that was loaded before.
    pub fn new(config: &SdkConfig) -> Self {
        // An endpoint that is named answers for every bucket by its path: emulators and gateways have no names for each.
        let s3 = aws_sdk_s3::config::Builder::from(config).force_path_style(config.endpoint_url().is_some()).build();
        Self {
            dynamo: aws_sdk_dynamodb::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            s3: aws_sdk_s3::Client::from_conf(s3),
            events: aws_sdk_eventbridge::Client::new(config),
            logs: aws_sdk_cloudwatchlogs::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            sts: aws_sdk_sts::Client::new(config),
        }
    }
}
