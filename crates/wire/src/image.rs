//! Images: the registered environments that commands may run in.

use serde::{Deserialize, Serialize};

use crate::null_is_empty;
use crate::time::Rfc3339;

/// An image to register.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterImageRequest {
    /// The reference: `[registry/]name[:tag]`.
    pub image: String,
    /// Whether to make it the default image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
    /// The IAM role of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_role_name: Option<String>,
    /// The IAM role that starts the ECS task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_execution_role_name: Option<String>,
    /// CPU units; 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// The platform: `Linux/X86_64` or `Linux/ARM64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_platform: Option<String>,
}

/// The result of registering or unregistering an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImageResponse {
    /// The image as the request named it.
    pub image: String,
    /// The result as a sentence.
    pub message: String,
    /// The image's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
}

/// A registered image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Image {
    /// The image's id.
    #[serde(default)]
    pub image_id: String,
    /// The reference as it was registered: `[registry/]name[:tag]`.
    pub image: String,
    /// Whether it is the default image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
    /// CPU units; 1024 are one vCPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// The platform: `Linux/X86_64` or `Linux/ARM64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_platform: Option<String>,
    /// The name of the ECS task definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_definition_name: Option<String>,
    /// The IAM role of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_role_name: Option<String>,
    /// The IAM role that starts the ECS task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_execution_role_name: Option<String>,
    /// The registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_registry: Option<String>,
    /// The name without registry and tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// The tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
    /// The user who registered it; absent for the built-in image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The users that own it.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub owned_by: Vec<String>,
    /// When it was registered.
    pub created_at: Rfc3339,
    /// The id of the request that registered it.
    #[serde(default)]
    pub created_by_request_id: String,
    /// The id of the request that changed it last.
    #[serde(default)]
    pub modified_by_request_id: String,
    /// The runners that can run it: `process`, `container`, `fargate`.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub runners: Vec<String>,
}

/// A list of images.
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
