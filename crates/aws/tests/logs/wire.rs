//! A line between the SDK and an emulator that can be cut after so many calls, as the death of a process cuts it: before a call or after
//! it, whose answer then nobody hears. It remembers what was sent.

use std::sync::Arc;

use aws_config::Region;
use aws_config::retry::RetryConfig;
use aws_sdk_dynamodb::config::Credentials;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use parking_lot::Mutex;
use runvoy_aws::Clients;

use crate::emulator::Emulator;

/// Where a line is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Never,
    /// So many calls are answered, and no more is carried out.
    Before(usize),
    /// The same, and one more is carried out that is not answered.
    Within(usize),
    /// Calls of this operation alone are not carried out.
    Of(&'static str),
}

/// The line. A clone is the same one.
#[derive(Debug, Clone)]
pub struct Wire(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    cut: Cut,
    calls: usize,
    /// The target and the body of each call of CloudWatch Logs.
    log_calls: Vec<(String, serde_json::Value)>,
}

impl Wire {
    pub fn new(cut: Cut) -> Self {
        Self(Arc::new(Mutex::new(State { cut, calls: 0, log_calls: Vec::new() })))
    }

    /// Cuts it elsewhere, counted from now.
    pub fn cut(&self, cut: Cut) {
        let mut state = self.0.lock();
        (state.cut, state.calls) = (cut, 0);
    }

    /// Whether a call met the cut.
    pub fn was_cut(&self) -> bool {
        let state = self.0.lock();
        match state.cut {
            Cut::Never | Cut::Of(_) => false,
            Cut::Before(count) | Cut::Within(count) => state.calls > count,
        }
    }

    /// What was sent to CloudWatch Logs by this operation.
    pub fn sent(&self, operation: &str) -> Vec<serde_json::Value> {
        let state = self.0.lock();
        state.log_calls.iter().filter(|(target, _)| target.ends_with(operation)).map(|(_, body)| body.clone()).collect()
    }

    /// Clients that speak over this line, and try everything once.
    pub async fn clients(&self, emulator: &Emulator) -> Clients {
        let settings = Clients::settings()
            .http_client(SharedHttpClient::new(Through { wire: self.clone(), inner: aws_smithy_http_client::Builder::new().build_http() }))
            .retry_config(RetryConfig::disabled())
            .region(Region::new("us-east-1"))
            .endpoint_url(&emulator.url)
            .credentials_provider(Credentials::new("test", "test", None, None, "emulator"));
        Clients::new(&settings.load().await)
    }
}

#[derive(Debug)]
struct Through {
    wire: Wire,
    inner: SharedHttpClient,
}

impl HttpClient for Through {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(Line { wire: self.wire.clone(), inner })
    }
}

#[derive(Debug)]
struct Line {
    wire: Wire,
    inner: SharedHttpConnector,
}

impl HttpConnector for Line {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (is_carried, is_answered) = {
            let mut state = self.wire.0.lock();
            let number = state.calls;
            state.calls += 1;
            let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
            let is_of = |operation: &str| target.ends_with(operation);
            let (is_carried, is_answered) = match state.cut {
                Cut::Never => (true, true),
                Cut::Before(count) => (number < count, number < count),
                Cut::Within(count) => (number <= count, number < count),
                Cut::Of(operation) => (!is_of(operation), !is_of(operation)),
            };
            if target.starts_with("Logs_") {
                let body = request.body().bytes().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
                state.log_calls.push((target, body));
            }
            (is_carried, is_answered)
        };
        let lost = || ConnectorError::io("the line is cut".into());
        if !is_carried {
            return HttpConnectorFuture::ready(Err(lost()));
        }
        let answer = self.inner.call(request);
        HttpConnectorFuture::new(async move {
            let answer = answer.await?;
            if is_answered { Ok(answer) } else { Err(lost()) }
        })
    }
}
