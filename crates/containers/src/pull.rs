//! Images that are not there yet: one pull for each at a time, however many wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptions;
use futures_util::StreamExt;
use parking_lot::Mutex;
use runvoy_model::retry::Category;
use runvoy_model::spec::ContainerSpec;
use runvoy_ports::runner::ImageError;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::daemon::{Daemon, is_missing};
use crate::words::{daemon_error, image_error, said};

/// A pull of which nothing was heard for this long is given up.
const STALLED_AFTER: Duration = Duration::from_secs(300);

/// How far a pull is.
#[derive(Debug, Clone)]
enum Stage {
    /// In percent, once a size is known.
    Going(Option<u64>),
    Done(Result<(), ImageError>),
}

/// The pulls of a worker.
#[derive(Clone)]
pub(crate) struct Pulls {
    daemon: Daemon,
    going: Arc<Mutex<HashMap<String, watch::Receiver<Stage>>>>,
}

impl Pulls {
    pub(crate) fn new(daemon: Daemon) -> Self {
        Self { daemon, going: Arc::default() }
    }

    /// Sees that an image is there; whether it had to be pulled.
    pub(crate) async fn fetch(&self, spec: &ContainerSpec, progress: &watch::Sender<Option<String>>) -> Result<bool, ImageError> {
        let reference = &spec.reference;
        self.check_platform(spec)?;
        match self.daemon.docker.inspect_image(reference).await {
            Ok(_) => return Ok(false),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(daemon_error(reference, &said(&error))),
        }
        let mut stage = self.join(reference);
        loop {
            let now = stage.borrow_and_update().clone();
            let percent = match now {
                Stage::Done(done) => return done.map(|()| true),
                Stage::Going(percent) => percent,
            };
            let far = percent.map_or_else(|| "pulling".to_owned(), |percent| format!("pulling {percent} %"));
            progress.send_replace(Some(format!("image {reference} ({far})")));
            if stage.changed().await.is_err() {
                return Err(daemon_error(reference, "its pull was given up"));
            }
        }
    }

    fn check_platform(&self, spec: &ContainerSpec) -> Result<(), ImageError> {
        let wanted = match spec.platform.as_deref() {
            None => return Ok(()),
            Some("Linux/ARM64") => "arm64",
            Some(_) => "amd64",
        };
        if wanted == self.daemon.architecture {
            return Ok(());
        }
        let message = format!(
            "image {} is registered for {wanted}, and the worker's machine is {}: run it on a worker of that kind, or register it without a platform",
            spec.reference, self.daemon.architecture
        );
        Err(ImageError { message, category: Category::Validation })
    }

    /// The pull that is going on, or a new one. It goes on although nobody waits for it any more: the next execution finds the image.
    fn join(&self, reference: &str) -> watch::Receiver<Stage> {
        let mut going = self.going.lock();
        if let Some(stage) = going.get(reference) {
            return stage.clone();
        }
        let (sender, stage) = watch::channel(Stage::Going(None));
        going.insert(reference.to_owned(), stage.clone());
        drop(going);
        let (pulls, reference) = (self.clone(), reference.to_owned());
        tokio::spawn(async move {
            let done = pulls.pull(&reference, &sender).await;
            pulls.going.lock().remove(&reference);
            sender.send_replace(Stage::Done(done));
        });
        stage
    }

    async fn pull(&self, reference: &str, stage: &watch::Sender<Stage>) -> Result<(), ImageError> {
        let options = CreateImageOptions { from_image: Some(reference.to_owned()), ..CreateImageOptions::default() };
        let mut heard = Box::pin(self.daemon.docker.create_image(Some(options), None, None));
        let mut layers = Layers::default();
        loop {
            let news = match timeout(STALLED_AFTER, heard.next()).await {
                Err(_) => {
                    let why = format!("nothing was heard of it for {} s: timeout", STALLED_AFTER.as_secs());
                    return Err(image_error(reference, &why));
                }
                Ok(None) => break,
                Ok(Some(Ok(news))) => news,
                Ok(Some(Err(error))) => return Err(image_error(reference, &said(&error))),
            };
            if let Some(error) = news.error_detail {
                return Err(image_error(reference, error.message.as_deref().unwrap_or("the daemon does not say why").trim()));
            }
            layers.note(&news);
            stage.send_if_modified(|stage| {
                let percent = layers.percent();
                let is_news = matches!(stage, Stage::Going(known) if *known != percent);
                *stage = Stage::Going(percent);
                is_news
            });
        }
        // The last word of a pull is not always that it went well.
        match self.daemon.docker.inspect_image(reference).await {
            Ok(_) => Ok(()),
            Err(error) => Err(image_error(reference, &said(&error))),
        }
    }
}

/// The layers of an image as far as the daemon has told of them.
#[derive(Debug, Default)]
struct Layers {
    /// What is there of each, and all of it.
    known: HashMap<String, (u64, u64)>,
    shown: Option<u64>,
}

impl Layers {
    fn note(&mut self, news: &CreateImageInfo) {
        let (Some(id), Some(status)) = (&news.id, news.status.as_deref()) else { return };
        let size = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        match status {
            "Downloading" => {
                let detail = news.progress_detail.as_ref();
                let (current, total) = (detail.and_then(|detail| size(detail.current)), detail.and_then(|detail| size(detail.total)));
                if let (Some(current), Some(total)) = (current, total.filter(|total| *total > 0)) {
                    self.known.insert(id.clone(), (current.min(total), total));
                }
            }
            "Download complete" | "Pull complete" => {
                if let Some((current, total)) = self.known.get_mut(id) {
                    *current = *total;
                }
            }
            _ => {}
        }
    }

    /// How much of what is known is there. It never goes back, although layers become known one by one.
    fn percent(&mut self) -> Option<u64> {
        let (current, total) = self.known.values().fold((0, 0), |sum: (u64, u64), layer| (sum.0 + layer.0, sum.1 + layer.1));
        self.shown = self.shown.max((current * 100).checked_div(total));
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    fn news(id: &str, status: &str, detail: Option<(i64, i64)>) -> CreateImageInfo {
        let progress_detail = detail.map(|(current, total)| ProgressDetail { current: Some(current), total: Some(total) });
        CreateImageInfo { id: Some(id.into()), status: Some(status.into()), progress_detail, ..CreateImageInfo::default() }
    }

    #[test]
    fn progress_is_that_of_all_layers_and_never_goes_back() {
        let mut layers = Layers::default();
        assert_eq!(layers.percent(), None);
        layers.note(&news("a", "Downloading", Some((50, 100))));
        assert_eq!(layers.percent(), Some(50));
        layers.note(&news("b", "Downloading", Some((0, 900))));
        assert_eq!(layers.percent(), Some(50));
        layers.note(&news("b", "Download complete", None));
        layers.note(&news("c", "Already exists", None));
        assert_eq!(layers.percent(), Some(95));
        layers.note(&news("a", "Pull complete", None));
        assert_eq!(layers.percent(), Some(100));
    }
}
