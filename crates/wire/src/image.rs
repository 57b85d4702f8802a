//! Images: the registered environments that commands may run in.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// Body of `POST /images/register`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterImageRequest {
    /// `[registry/]name[:tag]`.
    pub image: String,
    /// Whether it becomes the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
    /// The IAM role of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_role_name: Option<String>,
    /// The IAM role that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_execution_role_name: Option<String>,
    /// CPU units; 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// `OS/ARCHITECTURE`, such as `Linux/ARM64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_platform: Option<String>,
}

/// Answer to an image that was registered or unregistered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImageResponse {
    /// The image as it was named.
    pub image: String,
    /// What happened, for a person.
    pub message: String,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
}

/// A registered image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Image {
    /// Its id, which tells registries apart.
    #[serde(default)]
    pub image_id: String,
    /// `[registry/]name[:tag]` as it was registered.
    pub image: String,
    /// It is the one that runs what names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
    /// CPU units; 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// `OS/ARCHITECTURE`, such as `Linux/ARM64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_platform: Option<String>,
    /// The ECS task definition it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_definition_name: Option<String>,
    /// The IAM role of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_role_name: Option<String>,
    /// The IAM role that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_execution_role_name: Option<String>,
    /// Where it is pulled from; absent for the common registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_registry: Option<String>,
    /// Its name without registry and tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// Its tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
    /// Who registered it; absent for a built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Whom it belongs to.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub owned_by: Vec<String>,
    /// When it was registered.
    pub created_at: Rfc3339,
    /// The request that registered it.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The request that changed it last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// The runners that can serve it: `process`, `container`, `fargate`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<String>,
}

/// Answer to `GET /images`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImagesResponse {
    /// The images, by id.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub images: Vec<Image>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_other_servers_send_are_enough() {
        let text = r#"{"images":[{"image_id":"alpine:latest-a1","image":"alpine:latest","cpu":256,"owned_by":null,"created_at":"2026-01-03T14:22:19Z",
            "created_by_request_id":"","modified_by_request_id":""}]}"#;
        let response: ImagesResponse = serde_json::from_str(text).expect("the contract's own fields");
        assert_eq!((response.images[0].cpu, response.images[0].is_default, response.images[0].owned_by.len()), (Some(256), None, 0));
    }
}
