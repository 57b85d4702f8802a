//! Events of an execution as the event contract writes them. The server renders them; here they pass through unread.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One immutable fact, with its index keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = Object))]
pub struct Event(pub Value);
