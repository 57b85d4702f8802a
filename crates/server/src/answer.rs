//! Answers: whole JSON, nothing, or a body that is written as it is read. A streamed body that fails breaks the connection, so that a short
//! answer never passes for a whole one.

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::{HeaderValue, Response, StatusCode, header};
use runvoy_engine::EngineError;
use serde::Serialize;

use crate::fault::chain;
use crate::vigil::Vigil;

/// The type of JSON answers.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A whole JSON answer.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_vec(value).expect("wire types are plain data");
    whole(status, JSON, text)
}

/// A whole answer.
pub(crate) fn whole(status: StatusCode, content_type: HeaderValue, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// No content.
pub(crate) fn nothing() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Something that is read piece by piece.
pub(crate) trait Pieces: Send + 'static {
    /// The next piece; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, EngineError>> + Send;
}

/// A body of pieces. The first one is read now, so that what fails at once is still an error answer. Whoever loses the right to it gets no more.
pub(crate) async fn streamed<P: Pieces>(vigil: Vigil, mut pieces: P, content_type: HeaderValue) -> Result<Response<Body>, EngineError> {
    let Some(first) = pieces.next().await? else {
        return Ok(whole(StatusCode::OK, content_type, Body::empty()));
    };
    let rest = stream::try_unfold((vigil, pieces), |(mut vigil, mut pieces)| async move {
        let piece = match vigil.look().await {
            Ok(()) => pieces.next().await,
            Err(ended) => Err(ended),
        };
        match piece {
            Ok(piece) => Ok(piece.map(|piece| (piece, (vigil, pieces)))),
            Err(error @ (EngineError::InvalidKey | EngineError::RevokedKey | EngineError::RoleChanged { .. })) => {
                tracing::info!(%error, "an answer was broken off");
                Err(error)
            }
            Err(error) => {
                tracing::error!(error = %chain(&error), "an answer broke off");
                Err(error)
            }
        }
    });
    let body = stream::once(async move { Ok(first) }).chain(rest);
    Ok(whole(StatusCode::OK, content_type, Body::from_stream(body)))
}
