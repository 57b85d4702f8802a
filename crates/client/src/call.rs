//! One call: its request, its repeats, its answer. A call that is repeated keeps its request id and its idempotency key, so that it takes
//! effect at most once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use uuid::Uuid;

use crate::client::Client;
use crate::error::ClientError;
use crate::execution::Page;
use crate::query::Target;
use crate::retry::Retry;
use crate::trace::{Detail, shown_body, without_tokens};

/// How long one attempt may take.
pub(crate) const ATTEMPT_LIMIT: Duration = Duration::from_secs(30);
/// The header in which a server says its version.
const VERSION: &str = "x-runvoy-version";
const MAX_ANSWER_BYTES: usize = 256 << 20;
const MAX_ERROR_BYTES: usize = 1 << 20;

/// What to ask.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) target: Target,
    body: Bytes,
    idempotency_key: Option<String>,
    bearer: Option<HeaderValue>,
    limit: Duration,
    retry: Option<Retry>,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) request_id: String,
}

impl Call {
    pub(crate) fn new(method: Method, target: Target) -> Self {
        Self { method, target, body: Bytes::new(), idempotency_key: None, bearer: None, limit: ATTEMPT_LIMIT, retry: None }
    }

    pub(crate) fn get(target: Target) -> Self {
        Self::new(Method::GET, target)
    }

    /// With a JSON body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        self.body = serde_json::to_vec(body).expect("wire types are plain data").into();
        self
    }

    /// With a key that makes its repeats the same call.
    pub(crate) fn keyed(mut self, key: String) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    /// With its own credential, a whole `Authorization` header, instead of the client's key.
    pub(crate) fn bearer(mut self, header: HeaderValue) -> Self {
        self.bearer = Some(header);
        self
    }

    /// With another limit for one attempt.
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Without repeats.
    pub(crate) fn once(mut self) -> Self {
        self.retry = Some(Retry::NONE);
        self
    }
}

/// A new id for a request or an idempotency key: 32 hex digits that sort by time.
pub(crate) fn fresh_id() -> String {
    Uuid::now_v7().simple().to_string()
}

impl Client {
    /// Sends the call and reads its whole answer.
    pub(crate) async fn answer(&self, call: &Call) -> Result<Answer, ClientError> {
        self.repeat(call, |request_id| async move {
            let read = async {
                let response = self.attempt(call, &request_id).await?;
                let (parts, body) = response.into_parts();
                let body = self.collect(body, MAX_ANSWER_BYTES).await?;
                self.trace(Detail::Full, || format!("< {}", shown_body(&body)));
                Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body, request_id })
            };
            timeout(call.limit, read).await.unwrap_or_else(|_| Err(self.timed_out(call.limit)))
        })
        .await
    }

    /// Sends the call and hands over its answer as it comes.
    pub(crate) async fn open(&self, call: &Call) -> Result<Response<Incoming>, ClientError> {
        self.repeat(call, |request_id| async move {
            timeout(call.limit, self.attempt(call, &request_id)).await.unwrap_or_else(|_| Err(self.timed_out(call.limit)))
        })
        .await
    }

    /// The JSON of the answer.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ClientError> {
        let answer = self.answer(call).await?;
        self.decode(&answer)
    }

    /// A bare list with, in a header, where it goes on.
    pub(crate) async fn page<T: DeserializeOwned>(&self, call: &Call) -> Result<Page<T>, ClientError> {
        let answer = self.answer(call).await?;
        let next_cursor = answer.headers.get("x-next-cursor").and_then(|cursor| cursor.to_str().ok()).map(str::to_owned);
        let items: Option<Vec<T>> = self.decode(&answer)?;
        Ok(Page { items: items.unwrap_or_default(), next_cursor: next_cursor.filter(|cursor| !cursor.is_empty()) })
    }

    pub(crate) fn decode<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, ClientError> {
        serde_json::from_slice(&answer.body).map_err(|error| self.protocol(error.to_string(), &answer.request_id))
    }

    async fn repeat<T, F>(&self, call: &Call, attempt: impl Fn(String) -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let (retry, request_id, started) = (call.retry.unwrap_or(self.inner.retry), fresh_id(), Instant::now());
        let mut told = String::new();
        for tried in 0.. {
            let error = match attempt(request_id.clone()).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let Some(delay) = retry.delay(tried, started.elapsed(), &error) else {
                return Err(error);
            };
            self.trace(Detail::Brief, || format!("* {error}; again in {} ms", delay.as_millis()));
            if let Some(on_retry) = &self.inner.on_retry
                && told != error.to_string()
            {
                told = error.to_string();
                on_retry(&error);
            }
            tokio::time::sleep(delay).await;
        }
        unreachable!("the retry budget ends before the numbers do")
    }

    async fn attempt(&self, call: &Call, request_id: &str) -> Result<Response<Incoming>, ClientError> {
        let started = Instant::now();
        let request = self.request(call, request_id);
        let shown = || format!("{} {}{}", call.method, self.endpoint(), without_tokens(call.target.as_str()));
        self.trace(Detail::Full, || format!("> {} body {}", shown(), shown_body(&call.body)));
        let sent = self.inner.pool.send(request).await;
        let outcome = match &sent {
            Ok(response) => response.status().as_u16().to_string(),
            Err(error) => format!("{error}: {}", error.causes().join(": ")),
        };
        let ms = started.elapsed().as_millis();
        self.trace(Detail::Brief, || format!("* {} -> {outcome} in {ms} ms, request id {request_id}", shown()));
        let response = sent?;
        if let Some(version) = response.headers().get(VERSION).and_then(|version| version.to_str().ok()) {
            *self.inner.server_version.lock().expect("no panic holds it") = Some(version.to_owned());
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        let body = self.collect(response.into_body(), MAX_ERROR_BYTES).await?;
        self.trace(Detail::Full, || format!("< {}", shown_body(&body)));
        Err(ClientError::from_answer(status, &body, request_id.to_owned(), retry_after))
    }

    fn request(&self, call: &Call, request_id: &str) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}", self.endpoint().base(), call.target.as_str()))
            .header(HOST, self.endpoint().authority())
            .header(USER_AGENT, concat!("runvoy/", env!("CARGO_PKG_VERSION")))
            .header("x-request-id", request_id);
        match (&call.bearer, &self.inner.api_key) {
            (Some(bearer), _) => request = request.header(AUTHORIZATION, bearer),
            (None, Some(key)) => request = request.header("x-api-key", key),
            (None, None) => {}
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(call.body.clone())).expect("an encoded target and checked header values")
    }

    async fn collect(&self, body: Incoming, limit: usize) -> Result<Bytes, ClientError> {
        match Limited::new(body, limit).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => Err(self.inner.pool.connector().unreachable(true, error)),
        }
    }

    pub(crate) fn timed_out(&self, limit: Duration) -> ClientError {
        self.inner.pool.connector().unreachable(true, format!("no answer within {} s", limit.as_secs()))
    }
}
