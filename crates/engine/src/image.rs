//! Images as people manage them: register, list, show, unregister. The worker's own environment is the built-in image `local`: always there, first in
//! every list, and the default until another one is. Which image a run gets is in [`crate::plan`].

use runvoy_model::change::{Change, NewImage};
use runvoy_model::command::Refusal;
use runvoy_model::image::{Image, ImageSettings, Reference, image_id};
use runvoy_model::record::{Kind, Record};
use runvoy_model::role::Action;
use runvoy_model::spec::{LOCAL_IMAGE, Needs};
use runvoy_model::time::UnixMs;
use runvoy_ports::store::StoreError;
use serde_json::json;

use crate::Engine;
use crate::access::Caller;
use crate::error::EngineError;
use crate::repeat::submit_key;

/// What each runner of this program can serve. A new runner is one more row.
const RUNNERS: [(&str, &[Needs]); 2] = [("process", &[Needs::Process]), ("container", &[Needs::Image])];

const CPU_UNITS: std::ops::RangeInclusive<u32> = 64..=262_144;
const MEMORY_MIB: std::ops::RangeInclusive<u32> = 16..=4_194_304;
const PLATFORMS: [&str; 2] = ["Linux/X86_64", "Linux/ARM64"];
const MAX_ROLE_CHARS: usize = 64;

/// An image to register, as it came in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRequest {
    /// `[registry/]name[:tag]`.
    pub image: String,
    /// Make it the default.
    pub is_default: bool,
    /// What it is run with.
    pub settings: ImageSettings,
    /// The client's own key for this request.
    pub idempotency_key: Option<String>,
}

/// An image that commands may run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownImage {
    /// As it was registered; absent for the built-in `local`.
    pub registered: Option<Image>,
    /// It is what a run gets that names none.
    pub is_default: bool,
    /// The runners of this program that can serve it.
    pub runners: Vec<&'static str>,
    /// Since when it is there.
    pub since: UnixMs,
}

/// An image that was just registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredImage {
    /// Its id.
    pub image_id: String,
    /// Whether a worker of this server can run it.
    pub served: bool,
}

impl Engine {
    /// Registers an image, or takes one again that is registered; with `is_default` it takes the place of the default in the same step.
    pub async fn register_image(&self, caller: &Caller, request: &ImageRequest) -> Result<RegisteredImage, EngineError> {
        caller.may(Action::ManageImages)?;
        let new = checked(request)?;
        let id = image_id(&new.reference, &new.settings);
        let about = json!({"image": new.image, "settings": new.settings, "default": new.is_default});
        let key = submit_key(caller, request.idempotency_key.as_deref(), "images.register", &about)?;
        self.ports.store.change(self.user_step(caller, "images.register"), Change::RegisterImage(new), key).await?;
        Ok(RegisteredImage { image_id: id, served: self.worker.serves.contains(&Needs::Image) })
    }

    /// Every image: `local`, then the registered ones by id.
    pub async fn images(&self, caller: &Caller) -> Result<Vec<KnownImage>, EngineError> {
        caller.may(Action::ReadImages)?;
        let default = self.default_image().await?;
        let mut images = vec![self.local_image(default.as_deref()).await?];
        images.extend(self.all(Kind::Image).await?.iter().filter_map(Record::image).map(|image| registered(image, default.as_deref())));
        Ok(images)
    }

    /// One image by its id or reference.
    pub async fn image(&self, caller: &Caller, text: &str) -> Result<KnownImage, EngineError> {
        caller.may(Action::ReadImages)?;
        let default = self.default_image().await?;
        if text == LOCAL_IMAGE {
            return self.local_image(default.as_deref()).await;
        }
        let image = self.find_image(caller, text).await?.ok_or_else(|| not_found(text))?;
        Ok(registered(&image, default.as_deref()))
    }

    /// Unregisters an image, or all that have one reference, each in a step of its own; what has been submitted with one keeps it. Where one was
    /// the default, `local` is.
    pub async fn unregister_images(&self, caller: &Caller, text: &str) -> Result<Vec<Image>, EngineError> {
        caller.may(Action::ManageImages)?;
        if text == LOCAL_IMAGE {
            return Err(EngineError::conflict(
                "image local is built in and cannot be unregistered",
                "nothing was changed; to use another image by default, register it with --set-default",
            ));
        }
        let mut gone = Vec::new();
        for image in self.images_named(text).await? {
            let change = Change::UnregisterImage(image.image_id.clone());
            match self.ports.store.change(self.user_step(caller, "images.unregister"), change, None).await {
                Ok(_) => gone.push(image),
                // Somebody else took it away since it was looked up.
                Err(StoreError::Refused(Refusal::Missing(..))) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if gone.is_empty() { Err(not_found(text)) } else { Ok(gone) }
    }

    /// The image with this id, or every image with this reference: the same one may be registered with several settings.
    async fn images_named(&self, text: &str) -> Result<Vec<Image>, EngineError> {
        let images = self.all(Kind::Image).await?;
        let images = || images.iter().filter_map(Record::image);
        if let Some(image) = images().find(|image| image.image_id == text) {
            return Ok(vec![image.clone()]);
        }
        let reference = Reference::parse(text).map_err(|_| not_found(text))?;
        Ok(images().filter(|image| image.reference == reference).cloned().collect())
    }

    /// The worker's own environment. It is as old as the store's first user.
    async fn local_image(&self, default: Option<&str>) -> Result<KnownImage, EngineError> {
        let users = self.all(Kind::User).await?;
        let since = users.iter().filter_map(Record::user).map(|user| user.created_at).min().unwrap_or_else(|| self.now());
        Ok(KnownImage { registered: None, is_default: default.is_none(), runners: runners(Needs::Process), since })
    }
}

fn registered(image: &Image, default: Option<&str>) -> KnownImage {
    KnownImage {
        registered: Some(image.clone()),
        is_default: default == Some(image.image_id.as_str()),
        runners: runners(Needs::Image),
        since: image.created_at,
    }
}

fn runners(needs: Needs) -> Vec<&'static str> {
    RUNNERS.iter().filter(|(_, serves)| serves.contains(&needs)).map(|(runner, _)| *runner).collect()
}

fn not_found(text: &str) -> EngineError {
    EngineError::NotFound { what: format!("image {}", text.escape_default()) }
}

fn checked(request: &ImageRequest) -> Result<NewImage, EngineError> {
    if request.image == LOCAL_IMAGE {
        let message = "local is built in; it becomes the default when the present default image is unregistered";
        return Err(EngineError::invalid("image", message));
    }
    let reference = Reference::parse(&request.image).map_err(|error| EngineError::invalid("image", error.to_string()))?;
    let given = &request.settings;
    let settings = ImageSettings {
        cpu: in_range("cpu", given.cpu, CPU_UNITS)?,
        memory: in_range("memory", given.memory, MEMORY_MIB)?,
        runtime_platform: platform(given.runtime_platform.as_deref())?,
        task_role_name: role_name("task_role_name", given.task_role_name.as_deref())?,
        task_execution_role_name: role_name("task_execution_role_name", given.task_execution_role_name.as_deref())?,
    };
    Ok(NewImage { image: request.image.clone(), reference, settings, is_default: request.is_default })
}

fn in_range(field: &str, value: Option<u32>, range: std::ops::RangeInclusive<u32>) -> Result<Option<u32>, EngineError> {
    match value {
        Some(value) if !range.contains(&value) => {
            Err(EngineError::invalid(field, format!("must be from {} to {}", range.start(), range.end())))
        }
        value => Ok(value),
    }
}

fn platform(text: Option<&str>) -> Result<Option<String>, EngineError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    match PLATFORMS.iter().find(|word| word.eq_ignore_ascii_case(text)) {
        Some(word) => Ok(Some((*word).to_owned())),
        None => Err(EngineError::invalid("runtime_platform", format!("must be {}", PLATFORMS.join(" or ")))),
    }
}

fn role_name(field: &str, text: Option<&str>) -> Result<Option<String>, EngineError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    if text.len() > MAX_ROLE_CHARS || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+=,.@-".contains(&b)) {
        return Err(EngineError::invalid(
            field,
            format!("must be the name of a role: at most {MAX_ROLE_CHARS} letters, digits and _+=,.@-"),
        ));
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_that_is_wrong_is_named() {
        let refused = |change: fn(&mut ImageRequest)| {
            let mut request = ImageRequest { image: "alpine:3.20".into(), ..ImageRequest::default() };
            change(&mut request);
            match checked(&request) {
                Err(EngineError::Invalid { field, .. }) => field,
                other => panic!("expected a refusal, got {other:?}"),
            }
        };
        assert_eq!(refused(|r| r.image = "$(id)".into()), "image");
        assert_eq!(refused(|r| r.image = "local".into()), "image");
        assert_eq!(refused(|r| r.settings.cpu = Some(0)), "cpu");
        assert_eq!(refused(|r| r.settings.memory = Some(u32::MAX)), "memory");
        assert_eq!(refused(|r| r.settings.runtime_platform = Some("Plan9/MIPS".into())), "runtime_platform");
        assert_eq!(refused(|r| r.settings.task_role_name = Some("a b".into())), "task_role_name");
        assert_eq!(refused(|r| r.settings.task_execution_role_name = Some("x".repeat(65))), "task_execution_role_name");
    }

    #[test]
    fn what_is_written_differently_and_means_the_same_is_one_image() {
        let id = |platform: Option<&str>, role: Option<&str>| {
            let settings = ImageSettings {
                runtime_platform: platform.map(str::to_owned),
                task_role_name: role.map(str::to_owned),
                ..ImageSettings::default()
            };
            let new = checked(&ImageRequest { image: "alpine".into(), settings, ..ImageRequest::default() }).expect("an image");
            image_id(&new.reference, &new.settings)
        };
        assert_eq!(id(Some("linux/arm64"), None), id(Some("Linux/ARM64"), Some("")));
        assert_ne!(id(Some("Linux/ARM64"), None), id(None, None));
    }
}
