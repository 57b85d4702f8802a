//! Which value of each setting wins: flag, then environment, then project file, then user file, then default. Pure, but for key files.
//! An endpoint and a data directory both say which server is meant, so that of these two, too, the stronger source wins.
//!
//! A key belongs to one endpoint. A key of the user file is only used for the endpoint that stands beside it there, so that a flag or a
//! variable that points elsewhere never sends it to a stranger.

use std::fmt;
use std::path::{Path, PathBuf};

use runvoy_client::Endpoint;

use crate::config_file::{ProjectFile, UserFile};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::global::GlobalArgs;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    Project(PathBuf),
    User { path: PathBuf, profile: Option<String> },
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Project(path) => write!(f, "project file {}", path.display()),
            Self::User { path, profile: None } => write!(f, "user file {}", path.display()),
            Self::User { path, profile: Some(name) } => write!(f, "user file {}, profile {name}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

impl Origin {
    /// The stronger one wins.
    const fn strength(&self) -> u8 {
        match self {
            Self::Flag(_) => 4,
            Self::Variable(_) => 3,
            Self::Project(_) => 2,
            Self::User { .. } => 1,
            Self::Default => 0,
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Every setting of a client.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) profile: Setting<Option<String>>,
    pub(crate) endpoint: Setting<Option<String>>,
    pub(crate) api_key: Setting<Option<String>>,
    pub(crate) web_url: Setting<Option<String>>,
    pub(crate) ca_file: Setting<Option<PathBuf>>,
    /// Absent where nothing names one and there is no home: only commands of a local server need it.
    pub(crate) data_dir: Setting<Option<PathBuf>>,
    /// Why a key that is configured is not used.
    pub(crate) withheld: Option<String>,
    /// The name that is to be typed before anything that changes.
    pub(crate) confirm: Option<String>,
    /// The profile that was named is not in the user file.
    pub(crate) profile_missing: bool,
}

/// What settings are made of.
pub(crate) struct Sources<'a> {
    pub(crate) flags: &'a GlobalArgs,
    pub(crate) environment: &'a Environment,
    pub(crate) project: &'a ProjectFile,
    pub(crate) user: &'a UserFile,
}

impl Sources<'_> {
    pub(crate) fn resolve(&self) -> Result<Settings, Failure> {
        let profile = self.profile();
        let name = profile.value.as_deref();
        let data_dir = self.path(("--data-dir", self.flags.data_dir.as_deref()), "RUNVOY_DATA_DIR", None, name);
        let endpoint = self.endpoint(&profile, &data_dir);
        let web_url = self.text(Source { flag: ("", None), variable: "RUNVOY_WEB_URL", key: Some("web_url") }, name);
        let (api_key, withheld) = self.api_key(name, endpoint.value.as_deref())?;
        let ca_file = self.path(("--ca-file", self.flags.ca_file.as_deref()), "RUNVOY_CA_FILE", Some("ca_file"), name);
        let data_dir = match data_dir.value {
            Some(_) => data_dir,
            None => Setting { value: self.environment.runvoy_directory().map(|home| home.join("data")), origin: Origin::Default },
        };
        // Where the data directory says which server is meant, no profile does.
        let by_data_dir = endpoint.value.is_none() && endpoint.origin != Origin::Default;
        let profile_missing = !by_data_dir && name.is_some_and(|name| !self.user.has_profile(name));
        let asking = name.filter(|name| self.user.asks(name)).or_else(|| self.asking_profile(&endpoint));
        let confirm = asking.filter(|_| !by_data_dir).map(str::to_owned);
        Ok(Settings { profile, endpoint, api_key, web_url, ca_file, data_dir, withheld, confirm, profile_missing })
    }

    /// The profile that asks for its name and leads to this endpoint, where a flag or a variable names the endpoint: the way there changes nothing
    /// of what is there.
    fn asking_profile(&self, endpoint: &Setting<Option<String>>) -> Option<&str> {
        let named = matches!(endpoint.origin, Origin::Flag(_) | Origin::Variable(_));
        let wanted = canonical(endpoint.value.as_deref().filter(|_| named)?);
        let leads = |profile: &&str| {
            let own = self.user_text("api_endpoint", Some(profile)).and_then(|own| own.value);
            self.user.asks(profile) && own.is_some_and(|own| canonical(&own) == wanted)
        };
        self.user.profiles().into_iter().find(leads)
    }

    /// The endpoint; none where a stronger source names a data directory, and so its local server.
    fn endpoint(&self, profile: &Setting<Option<String>>, data_dir: &Setting<Option<PathBuf>>) -> Setting<Option<String>> {
        let source =
            Source { flag: ("--endpoint", self.flags.endpoint.as_deref()), variable: "RUNVOY_API_ENDPOINT", key: Some("api_endpoint") };
        let endpoint = self.text(source, profile.value.as_deref());
        // What the user file says is as strong as whatever chose the profile, also where that profile is not there.
        let strength = match &endpoint.origin {
            Origin::User { .. } | Origin::Default => endpoint.origin.strength().max(profile.origin.strength()),
            origin => origin.strength(),
        };
        match data_dir.origin.strength() > strength {
            true => Setting { value: None, origin: data_dir.origin.clone() },
            false => endpoint,
        }
    }

    fn profile(&self) -> Setting<Option<String>> {
        let (value, origin) = if let Some(name) = &self.flags.profile {
            (Some(name.clone()), Origin::Flag("--profile"))
        } else if let Some(name) = self.environment.get("RUNVOY_PROFILE") {
            (Some(name.to_owned()), Origin::Variable("RUNVOY_PROFILE"))
        } else if let Some(name) = &self.project.profile {
            (Some(name.clone()), Origin::Project(self.project.path.clone()))
        } else if let Some(name) = self.user.text(None, "profile") {
            (Some(name.to_owned()), Origin::User { path: self.user.path.clone(), profile: None })
        } else {
            (None, Origin::Default)
        };
        Setting { value, origin }
    }

    fn text(&self, source: Source<'_>, profile: Option<&str>) -> Setting<Option<String>> {
        if let (name, Some(value)) = source.flag {
            return Setting { value: Some(value.to_owned()), origin: Origin::Flag(name) };
        }
        if let Some(value) = self.environment.get(source.variable) {
            return Setting { value: Some(value.to_owned()), origin: Origin::Variable(source.variable) };
        }
        let found = source.key.and_then(|key| self.user_text(key, profile));
        found.unwrap_or(Setting { value: None, origin: Origin::Default })
    }

    /// A value of the user file: of the profile, else of the top.
    fn user_text(&self, key: &str, profile: Option<&str>) -> Option<Setting<Option<String>>> {
        [profile.map(Some), Some(None)].into_iter().flatten().find_map(|scope| {
            let value = Some(self.user.text(scope, key)?.to_owned());
            Some(Setting { value, origin: Origin::User { path: self.user.path.clone(), profile: scope.map(str::to_owned) } })
        })
    }

    fn path(
        &self,
        flag: (&'static str, Option<&Path>),
        variable: &'static str,
        key: Option<&str>,
        profile: Option<&str>,
    ) -> Setting<Option<PathBuf>> {
        if let (name, Some(path)) = flag {
            return Setting { value: Some(path.to_owned()), origin: Origin::Flag(name) };
        }
        let text = self.text(Source { flag: ("", None), variable, key }, profile);
        Setting { value: text.value.map(PathBuf::from), origin: text.origin }
    }

    fn api_key(&self, profile: Option<&str>, endpoint: Option<&str>) -> Result<(Setting<Option<String>>, Option<String>), Failure> {
        if let Some(path) = &self.flags.api_key_file {
            return Ok((Setting { value: Some(read_key(path)?), origin: Origin::Flag("--api-key-file") }, None));
        }
        if let Some(key) = self.environment.get("RUNVOY_API_KEY") {
            return Ok((Setting { value: Some(key.to_owned()), origin: Origin::Variable("RUNVOY_API_KEY") }, None));
        }
        if let Some(path) = self.environment.get("RUNVOY_API_KEY_FILE") {
            return Ok((Setting { value: Some(read_key(Path::new(path))?), origin: Origin::Variable("RUNVOY_API_KEY_FILE") }, None));
        }
        let none = Setting { value: None, origin: Origin::Default };
        let Some(found) = self.user_text("api_key", profile) else {
            return Ok((none, None));
        };
        // The endpoint that the key was stored with: that of its own scope, else that of the top.
        let scope = match &found.origin {
            Origin::User { profile, .. } => profile.as_deref(),
            _ => None,
        };
        let own = self.user.text(scope, "api_endpoint").or_else(|| self.user.text(None, "api_endpoint"));
        if endpoint.is_some() && own.map(canonical) == endpoint.map(canonical) {
            return Ok((found, None));
        }
        let belongs = own.map_or_else(|| "no endpoint".to_owned(), canonical);
        Ok((none, Some(format!("the key in {} belongs to {belongs}", self.user.path.display()))))
    }
}

/// Where one setting may come from.
struct Source<'a> {
    flag: (&'static str, Option<&'a str>),
    variable: &'static str,
    key: Option<&'a str>,
}

/// An address without the user and password that somebody may have put into it.
pub(crate) fn without_user(address: &str) -> String {
    address.rsplit_once('@').map_or_else(|| address.to_owned(), |(_, host)| format!("…@{host}"))
}

fn canonical(endpoint: &str) -> String {
    endpoint.parse::<Endpoint>().map_or_else(|_| endpoint.to_owned(), |endpoint| endpoint.to_string())
}

fn read_key(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the key file {}", path.display())).why(error.to_string()))?;
    let key = text.trim();
    if key.is_empty() { Err(Failure::usage(format!("the key file {} is empty", path.display()))) } else { Ok(key.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        flags: GlobalArgs,
        variables: Vec<(&'static str, &'static str)>,
        project: Option<&'static str>,
        user: Vec<(Option<&'static str>, &'static str, &'static str)>,
    }

    fn resolve(case: &Case) -> Settings {
        let mut variables = case.variables.clone();
        variables.push(("HOME", "/home/ana"));
        let environment = Environment::new(variables, Path::new("/"));
        let project = ProjectFile { path: "/p/.runvoy/project.yaml".into(), profile: case.project.map(str::to_owned) };
        let mut user = UserFile::load(Path::new("/nonexistent/config.yaml")).expect("no file is an empty one");
        for (profile, key, value) in &case.user {
            user.set(*profile, key, Some(value)).expect("a mapping");
        }
        Sources { flags: &case.flags, environment: &environment, project: &project, user: &user }.resolve().expect("resolvable")
    }

    /// Each source with the one value that it gives for the endpoint, strongest first.
    #[test]
    fn the_stronger_source_wins_in_every_pair() {
        let sources = ["flag", "variable", "profile", "user"];
        for strong in 0..sources.len() {
            for weak in strong..sources.len() {
                let has = |name: &str| sources[strong] == name || sources[weak] == name;
                let case = Case {
                    flags: GlobalArgs { endpoint: has("flag").then(|| "http://flag".to_owned()), ..GlobalArgs::default() },
                    variables: if has("variable") { vec![("RUNVOY_API_ENDPOINT", "http://variable")] } else { vec![] },
                    project: has("profile").then_some("p"),
                    user: [(has("profile"), Some("p"), "http://profile"), (has("user"), None, "http://user")]
                        .into_iter()
                        .filter(|(given, ..)| *given)
                        .map(|(_, profile, value)| (profile, "api_endpoint", value))
                        .collect(),
                };
                let settings = resolve(&case);
                assert_eq!(
                    settings.endpoint.value,
                    Some(format!("http://{}", sources[strong])),
                    "{} over {}",
                    sources[strong],
                    sources[weak]
                );
            }
        }
    }

    #[test]
    fn a_profile_is_named_by_flag_then_variable_then_project_then_user_file() {
        let all = Case {
            flags: GlobalArgs { profile: Some("flag".into()), ..GlobalArgs::default() },
            variables: vec![("RUNVOY_PROFILE", "variable")],
            project: Some("project"),
            user: vec![(None, "profile", "user")],
        };
        assert_eq!(resolve(&all).profile.value.as_deref(), Some("flag"));
        let all = Case { flags: GlobalArgs::default(), ..all };
        assert_eq!(resolve(&all).profile.value.as_deref(), Some("variable"));
        let all = Case { variables: vec![("RUNVOY_PROFILE", "")], ..all };
        assert_eq!(resolve(&all).profile.value.as_deref(), Some("project"));
        let all = Case { project: None, ..all };
        let settings = resolve(&all);
        assert_eq!(settings.profile.value.as_deref(), Some("user"));
        assert!(settings.profile_missing);
    }

    #[test]
    fn an_endpoint_of_a_profile_that_asks_asks_too() {
        let asks = |flags: GlobalArgs, variables: Vec<(&'static str, &'static str)>| {
            let environment = Environment::new([variables, vec![("HOME", "/home/ana")]].concat(), Path::new("/"));
            let mut user = UserFile::load(Path::new("/nonexistent/config.yaml")).expect("no file is an empty one");
            for (profile, endpoint) in [("dev", "https://dev.example.com"), ("prod", "https://prod.example.com")] {
                user.set(Some(profile), "api_endpoint", Some(endpoint)).expect("a mapping");
            }
            user.set_asks("prod").expect("a mapping");
            let project = ProjectFile::default();
            let sources = Sources { flags: &flags, environment: &environment, project: &project, user: &user };
            sources.resolve().expect("resolvable").confirm
        };
        let at = |endpoint: &str| GlobalArgs { endpoint: Some(endpoint.into()), ..GlobalArgs::default() };
        let prod = Some("prod".to_owned());
        assert_eq!(asks(at("https://prod.example.com/"), vec![]), prod, "however it is written");
        assert_eq!(asks(GlobalArgs::default(), vec![("RUNVOY_API_ENDPOINT", "https://prod.example.com")]), prod);
        let as_dev = GlobalArgs { profile: Some("dev".into()), ..at("https://prod.example.com") };
        assert_eq!(asks(as_dev, vec![]), prod, "the endpoint counts, not the profile beside it");
        assert_eq!(asks(at("https://dev.example.com"), vec![]), None);
        assert_eq!(asks(GlobalArgs { profile: Some("dev".into()), ..GlobalArgs::default() }, vec![]), None);
    }

    #[test]
    fn nothing_configured_means_the_local_server() {
        let settings = resolve(&Case { flags: GlobalArgs::default(), variables: vec![], project: None, user: vec![] });
        assert_eq!((settings.endpoint.value, settings.endpoint.origin), (None, Origin::Default));
        assert_eq!(settings.data_dir.value.as_deref(), Some(Path::new("/home/ana/.runvoy/data")));
    }

    #[test]
    fn a_data_directory_wins_over_an_endpoint_of_a_weaker_source() {
        let stored = vec![(None, "api_endpoint", "http://user"), (None, "api_key", "key"), (Some("p"), "api_endpoint", "http://profile")];
        let flag = GlobalArgs { data_dir: Some("/flag".into()), ..GlobalArgs::default() };
        let variable = ("RUNVOY_DATA_DIR", "/variable");
        for (flags, variables, project, endpoint) in [
            (flag.clone(), vec![], None, None),
            (flag.clone(), vec![("RUNVOY_API_ENDPOINT", "http://variable")], None, None),
            (flag.clone(), vec![("RUNVOY_PROFILE", "nowhere")], None, None),
            (GlobalArgs::default(), vec![variable], None, None),
            (GlobalArgs::default(), vec![variable], Some("p"), None),
            (GlobalArgs::default(), vec![variable, ("RUNVOY_API_ENDPOINT", "http://variable")], None, Some("http://variable")),
            (GlobalArgs { profile: Some("p".into()), ..GlobalArgs::default() }, vec![variable], None, Some("http://profile")),
            (GlobalArgs { endpoint: Some("http://flag".into()), ..GlobalArgs::default() }, vec![variable], None, Some("http://flag")),
            (GlobalArgs::default(), vec![], None, Some("http://user")),
        ] {
            let settings = resolve(&Case { flags, variables: variables.clone(), project, user: stored.clone() });
            assert_eq!(settings.endpoint.value.as_deref(), endpoint, "{variables:?} {project:?}");
            assert!(!settings.profile_missing, "{variables:?}");
            assert!(endpoint.is_some() || settings.api_key.value.is_none(), "a stored key is for its own server");
        }
    }

    #[test]
    fn a_stored_key_goes_only_to_the_endpoint_it_was_stored_with() {
        let stored = vec![
            (None, "api_endpoint", "https://one.example.com/"),
            (None, "api_key", "key-one"),
            (Some("two"), "api_endpoint", "https://two.example.com"),
            (Some("two"), "api_key", "key-two"),
            (Some("three"), "api_endpoint", "https://three.example.com"),
        ];
        for (endpoint, profile, expected) in [
            (None, None, Some("key-one")),
            (Some("https://one.example.com"), None, Some("key-one")),
            (Some("https://evil.example.com"), None, None),
            (None, Some("two"), Some("key-two")),
            (Some("https://one.example.com"), Some("two"), None),
            (None, Some("three"), None),
        ] {
            let flags = GlobalArgs { endpoint: endpoint.map(str::to_owned), profile: profile.map(str::to_owned), ..GlobalArgs::default() };
            let settings = resolve(&Case { flags, variables: vec![], project: None, user: stored.clone() });
            assert_eq!(settings.api_key.value.as_deref(), expected, "{endpoint:?} {profile:?}");
            assert_eq!(settings.withheld.is_some(), expected.is_none(), "{endpoint:?} {profile:?}");
        }
        let given = Case {
            flags: GlobalArgs { endpoint: Some("https://new.example.com".into()), ..GlobalArgs::default() },
            variables: vec![("RUNVOY_API_KEY", "given")],
            project: None,
            user: stored,
        };
        assert_eq!(resolve(&given).api_key.value.as_deref(), Some("given"));
    }
}
