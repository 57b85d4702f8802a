//! Images: the registered environments that commands may run in.

use axum::body::Body;
use http::{Response, StatusCode};
use runvoy_engine::{ImageRequest, KnownImage, RegisteredImage};
use runvoy_model::image::{Image as KeptImage, ImageSettings};
use runvoy_model::role::Action;
use runvoy_model::spec::LOCAL_IMAGE;
use runvoy_wire::{Code, Image, ImageResponse, ImagesResponse, RegisterImageRequest};

use crate::answer;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Operation, text};
use crate::pager::Pager;
use crate::route::{Routes, Rule};

const NAMED: &str = "The image's id, or its name with or without a tag; it may contain slashes and colons";

pub(super) fn add(routes: &mut Routes) {
    let operation = Operation::new("registerImage", "Register an image")
        .about(
            "Makes an image available to commands. Registering the same reference with other \
             settings creates a second image with an id of its own.",
        )
        .idempotent()
        .takes::<RegisterImageRequest>(true)
        .gives::<ImageResponse>(201, "The image was registered");
    routes.post("/api/v1/images/register", Rule::Key(Action::ManageImages), operation, register);
    let operation = Operation::new("listImages", "List all images")
        .paged()
        .gives::<ImagesResponse>(200, "The images by id, the built-in `local` first");
    routes.get("/api/v1/images", Rule::Key(Action::ReadImages), operation, list);
    let operation = Operation::new("getImage", "Get an image")
        .path("image", text(), NAMED)
        .gives::<Image>(200, "The image")
        .refuses(&[Code::NotFound, Code::InvalidRequest]);
    routes.get("/api/v1/images/{*image}", Rule::Key(Action::ReadImages), operation, show);
    let operation = Operation::new("unregisterImage", "Unregister an image")
        .about(
            "Unregisters the image with this id, or all images with this reference. The built-in \
             image `local` cannot be unregistered.",
        )
        .path("image", text(), NAMED)
        .gives::<ImageResponse>(200, "The image is no longer registered")
        .refuses(&[Code::NotFound, Code::Conflict, Code::InvalidRequest]);
    routes.delete("/api/v1/images/{*image}", Rule::Key(Action::ManageImages), operation, unregister);
}

async fn register(call: Call) -> Result<Response<Body>, Fault> {
    let request: RegisterImageRequest = call.json().await?.ok_or_else(|| Fault::invalid("image", "is missing"))?;
    let asked = ImageRequest {
        image: request.image.clone(),
        is_default: request.is_default.unwrap_or(false),
        settings: ImageSettings {
            cpu: request.cpu,
            memory: request.memory,
            runtime_platform: request.runtime_platform,
            task_role_name: request.task_role_name,
            task_execution_role_name: request.task_execution_role_name,
        },
        idempotency_key: call.idempotency_key()?,
    };
    let registered = call.engine().register_image(call.caller()?, &asked).await?;
    let message = told(asked.is_default, &registered);
    let response = ImageResponse { image: request.image, message, image_id: Some(registered.image_id) };
    Ok(answer::json(StatusCode::CREATED, &response))
}

/// What it means to be registered, for a person.
fn told(is_default: bool, registered: &RegisteredImage) -> String {
    match (is_default, registered.served) {
        (false, true) => "registered".to_owned(),
        (true, true) => "registered as the default".to_owned(),
        (false, false) => "registered; no worker of this server can run it yet, so executions that ask for it wait".to_owned(),
        (true, false) => format!(
            "registered as the default; no worker of this server can run it yet, so executions that ask for it or for no image wait. \
             `runvoy run --image {LOCAL_IMAGE}` runs meanwhile; `runvoy images unregister {}` makes {LOCAL_IMAGE} the default again",
            registered.image_id
        ),
    }
}

async fn list(call: Call) -> Result<Response<Body>, Fault> {
    let pager = Pager::of(&call.query()?)?;
    let mut images: Vec<Image> = call.engine().images(call.caller()?).await?.into_iter().map(view).collect();
    let next = pager.cut(&mut images, |image| format!("{}{}", u8::from(image.image_id != LOCAL_IMAGE), image.image_id));
    Ok(next.on(answer::json(StatusCode::OK, &ImagesResponse { images })))
}

async fn show(call: Call) -> Result<Response<Body>, Fault> {
    let image = call.engine().image(call.caller()?, call.params.get("image")).await?;
    Ok(answer::json(StatusCode::OK, &view(image)))
}

async fn unregister(call: Call) -> Result<Response<Body>, Fault> {
    let named = call.params.get("image");
    let images = call.engine().unregister_images(call.caller()?, named).await?;
    Ok(answer::json(StatusCode::OK, &unregistered(named, images)))
}

fn unregistered(named: &str, mut images: Vec<KeptImage>) -> ImageResponse {
    if images.len() == 1
        && let Some(image) = images.pop()
    {
        return ImageResponse { image: image.image, message: "unregistered".into(), image_id: Some(image.image_id) };
    }
    let ids: Vec<&str> = images.iter().map(|image| image.image_id.as_str()).collect();
    let message = format!("unregistered {} images with this reference: {}", ids.len(), ids.join(", "));
    ImageResponse { image: named.to_owned(), message, image_id: None }
}

pub(super) fn view(known: KnownImage) -> Image {
    let created_at = known.since.into();
    let is_default = Some(known.is_default);
    let runners = known.runners.into_iter().map(str::to_owned).collect();
    match known.registered {
        Some(image) => Image {
            image_id: image.image_id,
            image: image.image,
            is_default,
            cpu: image.settings.cpu,
            memory: image.settings.memory,
            runtime_platform: image.settings.runtime_platform,
            task_definition_name: None,
            task_role_name: image.settings.task_role_name,
            task_execution_role_name: image.settings.task_execution_role_name,
            image_registry: Some(image.reference.registry),
            image_name: Some(image.reference.name),
            image_tag: Some(image.reference.tag),
            created_by: Some(image.created_by),
            owned_by: image.owned_by,
            created_at,
            created_by_request_id: image.created_by_request_id,
            modified_by_request_id: image.modified_by_request_id,
            runners,
        },
        None => Image {
            image_id: LOCAL_IMAGE.to_owned(),
            image: LOCAL_IMAGE.to_owned(),
            is_default,
            cpu: None,
            memory: None,
            runtime_platform: None,
            task_definition_name: None,
            task_role_name: None,
            task_execution_role_name: None,
            image_registry: None,
            image_name: None,
            image_tag: None,
            created_by: None,
            owned_by: Vec::new(),
            created_at,
            created_by_request_id: String::new(),
            modified_by_request_id: String::new(),
            runners,
        },
    }
}
