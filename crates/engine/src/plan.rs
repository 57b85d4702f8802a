//! What a request would do, before it does anything: the image, the secrets, what the rules say. A run and a dry run ask the same.

use runvoy_model::command::LockHeld;
use runvoy_model::env_guard::is_guarded;
use runvoy_model::git;
use runvoy_model::image::{Image, Reference};
use runvoy_model::name::Name;
use runvoy_model::playbook::Playbook;
use runvoy_model::record::{Body, Kind, Record};
use runvoy_model::role::Action;
use runvoy_model::rule::{Asked, Rule, Verdict, judge};
use runvoy_model::secret::SecretUse;
use runvoy_model::spec::{LOCAL_IMAGE, Spec};
use runvoy_model::status::WaitingFor;

use crate::Engine;
use crate::access::Caller;
use crate::config::RunLimits;
use crate::error::EngineError;
use crate::request::{RunRequest, check_env, not_empty};

const MS_PER_HOUR: u64 = 3_600_000;
/// No id of an image is longer: its reference, and a digest.
const MOST_ID_BYTES: usize = 1024;

/// What a request would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What would be recorded.
    pub spec: Spec,
    /// The registered image; absent for the worker's own environment.
    pub image: Option<Image>,
    /// The variables that secrets become, in the order of the spec's secrets.
    pub secret_keys: Vec<String>,
    /// What the rules say.
    pub verdict: Verdict,
}

/// What a plan would come to now, beside what it says itself.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
    /// Who holds the lock that it would want.
    pub lock_held: Option<LockHeld>,
    /// What it would wait for, where nobody who is there could run it.
    pub waiting_for: Option<WaitingFor>,
    /// What it would be held to.
    pub limits: RunLimits,
    /// What an hour of it would cost, in millionths of a dollar; absent where nothing here could run it.
    pub cost_micro_usd_per_hour: Option<u64>,
}

impl DryRun {
    /// Whether it would be taken: the rules let it, and its lock is free or waited for.
    pub fn takes(&self, plan: &Plan) -> bool {
        plan.verdict.allowed && (self.lock_held.is_none() || plan.spec.lock_wait_ms.is_some())
    }
}

impl Engine {
    /// What a plan would come to, without a trace of it in the store: what rules forbid is told, and not kept as an attempt.
    pub async fn dry_run(&self, plan: &Plan) -> Result<DryRun, EngineError> {
        self.refuse_shared_uid().await?;
        let lock_held = match &plan.spec.lock {
            Some(name) => self.holder_of(name).await?,
            None => None,
        };
        let own = self.config.limits;
        let limits = match &plan.image {
            None => own,
            Some(image) => RunLimits { cpu_units: image.settings.cpu, memory_mib: image.settings.memory, processes: None, ..own },
        };
        let served = self.worker.serves.contains(&plan.spec.needs());
        let cost_micro_usd_per_hour = served.then(|| {
            let size = self.config.size(plan.spec.container.as_deref());
            self.config.rates.cost_micro_usd(size, MS_PER_HOUR)
        });
        self.look_at_workers_once().await?;
        Ok(DryRun { lock_held, waiting_for: self.unserved(&plan.spec), limits, cost_micro_usd_per_hour })
    }

    async fn holder_of(&self, name: &Name) -> Result<Option<LockHeld>, EngineError> {
        let lines = self.ports.store.locks().await?;
        let holder = lines.into_iter().find(|line| line.lock.name == *name).and_then(|line| line.lock.holder);
        Ok(holder.map(|holder| LockHeld { name: name.clone(), holder }))
    }

    /// What a request would do for this caller. An error where it cannot be done at all; what rules forbid is in the plan.
    pub async fn plan(&self, caller: &Caller, request: &RunRequest) -> Result<Plan, EngineError> {
        caller.may(Action::Run)?;
        let image = self.image_for(caller, request.image.as_deref()).await?;
        let image_id = image.as_ref().map_or(LOCAL_IMAGE, |image| image.image_id.as_str());
        let spec = request.check(image_id, self.git_reach())?;
        self.plan_spec(caller, spec, image, None).await
    }

    /// Where repositories may be cloned from.
    pub(crate) fn git_reach(&self) -> git::Reach {
        if self.config.git_private { git::Reach::Private } else { git::Reach::Public }
    }

    /// The same for what was recorded before. It is nobody's task: a job makes the executions of its tasks itself.
    pub(crate) async fn plan_again(&self, caller: &Caller, spec: Spec) -> Result<Plan, EngineError> {
        let spec = Spec { task: None, ..spec };
        let playbook = match &spec.playbook {
            // A playbook that was removed is not to be run any more.
            Some(playbook) => Some(self.playbook(caller, playbook.name.as_str(), Some(playbook.version)).await?),
            None => {
                check_env(&spec.env)?;
                None
            }
        };
        // Where repositories may be cloned from may have been narrowed since.
        if let Some(git) = &spec.git {
            git.check(self.git_reach()).map_err(|error| EngineError::invalid(error.field(), error.to_string()))?;
        }
        let image = self.image_for(caller, Some(&spec.image)).await?;
        self.plan_spec(caller, spec, image, playbook.as_ref()).await
    }

    /// What a spec would do for this caller, as a run of a playbook where there is one.
    pub(crate) async fn plan_spec(
        &self,
        caller: &Caller,
        spec: Spec,
        image: Option<Image>,
        playbook: Option<&Playbook>,
    ) -> Result<Plan, EngineError> {
        let spec = Spec { container: image.as_ref().map(|image| Box::new(image.into())), ..spec };
        if !caller.may_serve(&spec.queue) {
            return Err(EngineError::Forbidden { role: caller.role.as_str() });
        }
        let rules = self.rules_seen_by(caller).await?;
        // A playbook's environment is its author's.
        let is_limited = playbook.is_none() && limits_commands(&rules, caller);
        if is_limited && let Some(key) = spec.env.keys().find(|key| is_guarded(key)) {
            return Err(EngineError::invalid(format!("env.{}", key.escape_default()), GUARDED));
        }
        let secret_keys = self.secret_keys(caller, &spec, playbook, is_limited).await?;
        // A token is given away as well, to whoever serves the repository.
        let token = spec.git.as_ref().and_then(|git| git.token.as_ref());
        let secrets: Vec<Name> = spec.secrets.iter().chain(token).cloned().collect();
        let reference = image.as_ref().map(|image| image.reference.to_string());
        let asked = Asked {
            command: &spec.command,
            args: spec.args.as_deref(),
            image: &spec.image,
            reference: reference.as_deref(),
            lock: spec.lock.as_ref().map(Name::as_str),
            queue: spec.queue.as_str(),
            secrets: &secrets,
            playbook: spec.playbook.as_ref().map(|playbook| playbook.name.as_str()),
        };
        let verdict = judge(&rules, &caller.subject(), &asked);
        Ok(Plan { spec, image, secret_keys, verdict })
    }

    /// The variables of the secrets that an execution asks for. What a playbook asks for was granted by whoever pushed it.
    /// Whoever is limited sets no guarded variable with a secret of their own either.
    async fn secret_keys(
        &self,
        caller: &Caller,
        spec: &Spec,
        playbook: Option<&Playbook>,
        is_limited: bool,
    ) -> Result<Vec<String>, EngineError> {
        let token = spec.git.as_ref().and_then(|git| git.token.as_ref());
        let mut keys: Vec<String> = Vec::with_capacity(spec.secrets.len());
        for (place, name) in spec.secrets.iter().chain(token).enumerate() {
            let missing = || {
                EngineError::invalid(if place < spec.secrets.len() { "secrets" } else { "git_token" }, format!("there is no secret {name}"))
            };
            let record = self.record_for(caller, Kind::Secret, name.as_str()).await?;
            let secret = record.as_ref().and_then(Record::secret).ok_or_else(missing)?;
            match playbook {
                Some(playbook) if !playbook.grants(secret) => {
                    let Playbook { name: playbook, .. } = playbook;
                    let message =
                        format!("secret {name} was changed after playbook {playbook} was pushed: ask an admin to push the playbook again");
                    return Err(EngineError::conflict(message, "nothing was started"));
                }
                None if !secret.allows(caller.secret_user(), SecretUse::Inject) => return Err(missing()),
                Some(_) | None => {}
            }
            if place >= spec.secrets.len() {
                continue;
            }
            if keys.contains(&secret.key_name) || spec.env.contains_key(&secret.key_name) {
                let message = format!("secret {name} sets {}, which is set twice", secret.key_name);
                return Err(EngineError::invalid("secrets", message));
            }
            if is_limited && is_guarded(&secret.key_name) && secret.allows(caller.secret_user(), SecretUse::Change) {
                return Err(EngineError::invalid("secrets", format!("secret {name} sets {}, which {GUARDED}", secret.key_name)));
            }
            keys.push(secret.key_name.clone());
        }
        Ok(keys)
    }

    /// The image that a text names: an id, a reference, or nothing for the default. `None` is the worker's own environment.
    pub(crate) async fn image_for(&self, caller: &Caller, text: Option<&str>) -> Result<Option<Image>, EngineError> {
        not_empty("image", text)?;
        let text = match text {
            Some(text) => text.to_owned(),
            None => match self.default_image_for(caller).await? {
                Some(id) => id,
                None => return Ok(None),
            },
        };
        if text == LOCAL_IMAGE {
            return Ok(None);
        }
        match self.find_image(caller, &text).await? {
            Some(image) => Ok(Some(image)),
            None => {
                let text = text.escape_default();
                let message = format!("{text} is not registered: an operator registers it with `runvoy images register {text}`");
                Err(EngineError::invalid("image", message))
            }
        }
    }

    /// What a registered image is pulled by; `None` for one that is registered no more.
    pub async fn image_reference(&self, image_id: &str) -> Result<Option<String>, EngineError> {
        let record = self.ports.records.record(Kind::Image, image_id).await?;
        Ok(record.as_ref().and_then(Record::image).map(|image| image.reference.to_string()))
    }

    /// The id of the default image, where one was set.
    pub(crate) async fn default_image(&self) -> Result<Option<String>, EngineError> {
        Ok(default_image(&self.all(Kind::DefaultImage).await?))
    }

    /// The same, as this request sees it.
    async fn default_image_for(&self, caller: &Caller) -> Result<Option<String>, EngineError> {
        Ok(default_image(&self.all_for(caller, Kind::DefaultImage).await?))
    }

    /// A registered image by its id, or by its reference; of several with the same reference the default goes first, then the newest.
    pub(crate) async fn find_image(&self, caller: &Caller, text: &str) -> Result<Option<Image>, EngineError> {
        // Where nothing is remembered, most requests name an image by its id, and need not read all of them.
        if self.ports.records.authority().is_none()
            && text.len() <= MOST_ID_BYTES
            && let Some(record) = self.record_for(caller, Kind::Image, text).await?
        {
            return Ok(record.image().cloned());
        }
        let images = self.all_for(caller, Kind::Image).await?;
        if let Some(image) = images.iter().filter_map(Record::image).find(|image| image.image_id == text) {
            return Ok(Some(image.clone()));
        }
        let Ok(reference) = Reference::parse(text) else { return Ok(None) };
        let default = self.default_image_for(caller).await?;
        let fits = images.iter().filter_map(Record::image).filter(|image| image.reference == reference);
        Ok(fits.max_by_key(|image| (default.as_ref() == Some(&image.image_id), image.created_at)).cloned())
    }
}

/// Why a variable is refused.
pub(crate) const GUARDED: &str =
    "changes what programs load or run, and rules limit your commands: leave it out, or ask an admin for a playbook that sets it";

/// Whether rules limit which commands this caller runs.
pub(crate) fn limits_commands(rules: &[Rule], caller: &Caller) -> bool {
    rules.iter().any(|rule| rule.limits_commands() && rule.applies_to(&caller.subject()))
}

fn default_image(pointer: &[Record]) -> Option<String> {
    pointer.iter().find_map(|record| match &record.body {
        Some(Body::DefaultImage(id)) => Some(id.clone()),
        _ => None,
    })
}
