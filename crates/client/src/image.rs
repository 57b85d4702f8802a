//! Calls about images. An image is named by its id or by `[registry/]name[:tag]`; either stays one segment of the path.

use http::Method;
use runvoy_wire::{Image, ImageResponse, ImagesResponse, RegisterImageRequest};

use crate::call::{Call, fresh_id};
use crate::client::Client;
use crate::error::ClientError;
use crate::query::Target;

impl Client {
    /// Every registered image.
    pub async fn images(&self) -> Result<Vec<Image>, ClientError> {
        Ok(self.fetch::<ImagesResponse>(&Call::get(Target::new(&["images"]))).await?.images)
    }

    /// One image.
    pub async fn image(&self, image: &str) -> Result<Image, ClientError> {
        self.fetch(&Call::get(Target::new(&["images", image]))).await
    }

    /// Registers an image.
    pub async fn register_image(&self, request: &RegisterImageRequest) -> Result<ImageResponse, ClientError> {
        self.fetch(&Call::new(Method::POST, Target::new(&["images", "register"])).json(request).keyed(fresh_id())).await
    }

    /// Unregisters an image.
    pub async fn unregister_image(&self, image: &str) -> Result<ImageResponse, ClientError> {
        self.fetch(&Call::new(Method::DELETE, Target::new(&["images", image]))).await
    }
}
