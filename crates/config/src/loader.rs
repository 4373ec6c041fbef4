//! The loader: files in order, then the environment over them, then the result or every problem at once.
//!
//! Owns what was found so far. Invariants: a later source wins; a value that a later source overrides is still
//! checked; nothing is returned if anything was refused. It does not parse.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use wow_dispatch::{DispatchConfig, Groups, Strategy};

use crate::error::{ConfigError, Problem, Refusal};
use crate::key::{Key, REMOVED};
use crate::value::{self, Raw};
use crate::{file, variables};

/// What was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// What the section `wow.dispatch` says of the executor.
    pub dispatch: keyed_executor::Config,
    /// What messages run on.
    pub strategy: Strategy,
    /// Serial groups of one receiver and aggregate type; only with [`Strategy::Grouped`].
    pub groups: Groups,
    /// Bytes of one receiver's messages that may be admitted and unfinished, by what the program says that they weigh.
    pub max_bytes: Option<usize>,
    /// Lines for the log, each once, about settings that have no effect. A service that is built with this configuration
    /// logs them; who builds an executor alone does so himself.
    pub notices: Vec<String>,
    origins: [Origin; Key::ALL.len()],
}

impl Config {
    /// Loads the file at `path`, TOML or YAML by its name, and the environment over it.
    ///
    /// # Errors
    /// Everything that is wrong in the file and in the environment.
    ///
    /// # Examples
    /// ```
    /// let error = wow_config::Config::load("no/such/folder.toml").expect_err("missing");
    /// assert!(error.to_string().starts_with("no/such/folder.toml: cannot be read: "));
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Loader::new().file(path).environment().load()
    }

    /// Loads the environment over the defaults.
    ///
    /// # Errors
    /// Everything that is wrong in the environment.
    pub fn from_environment() -> Result<Self, ConfigError> {
        Loader::new().environment().load()
    }

    /// Where the value of `key` came from.
    #[must_use]
    pub fn origin(&self, key: Key) -> &Origin {
        &self.origins[key as usize]
    }
}

/// The whole section `wow.dispatch`, with the notices, for the builder of a service.
impl From<Config> for DispatchConfig {
    fn from(config: Config) -> Self {
        let Config { dispatch: executor, strategy, groups, max_bytes, notices, .. } = config;
        Self { executor, strategy, groups, max_bytes, notices }
    }
}

/// The executor's part of the section, for builders that take no more.
impl From<Config> for keyed_executor::Config {
    fn from(config: Config) -> Self {
        config.dispatch
    }
}

/// Where a value or a problem came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A file, and the line if it can be told.
    File {
        /// The file as it was named.
        path: PathBuf,
        /// Counted from 1.
        line: Option<usize>,
    },
    /// A variable of the environment.
    Variable(String),
}

impl Origin {
    pub(crate) fn file(path: &Path, line: Option<usize>) -> Self {
        Self::File { path: path.to_owned(), line }
    }

    pub(crate) fn line(&self) -> Option<usize> {
        match self {
            Self::File { line, .. } => *line,
            Self::Default | Self::Variable(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// Says which sources are loaded; see the crate's example.
#[derive(Clone, Debug, Default)]
pub struct Loader {
    files: Vec<Content>,
    variables: Vec<(OsString, OsString)>,
}

#[derive(Clone, Debug)]
enum Content {
    At(PathBuf),
    Given { name: PathBuf, text: String },
}

impl Loader {
    /// A loader without sources: the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file; it has to exist, and overrides the files before it.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.files.push(Content::At(path.as_ref().to_owned()));
        self
    }

    /// Adds a text as the content of a file; the ending of `name` tells its format.
    #[must_use]
    pub fn text(mut self, name: impl AsRef<Path>, text: impl Into<String>) -> Self {
        self.files.push(Content::Given { name: name.as_ref().to_owned(), text: text.into() });
        self
    }

    /// Adds the variables of this process.
    #[must_use]
    pub fn environment(self) -> Self {
        self.variables(std::env::vars_os())
    }

    /// Adds variables given by the caller.
    #[must_use]
    pub fn variables<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        self.variables.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Loads every source.
    ///
    /// # Errors
    /// Everything that is wrong in any of them.
    pub fn load(self) -> Result<Config, ConfigError> {
        let mut loading = Loading::default();
        for content in &self.files {
            match content {
                Content::At(path) => file::read(path, &mut loading),
                Content::Given { name, text } => file::parse(name, text, &mut loading),
            }
        }
        variables::read(&self.variables, &mut loading);
        let notices = loading.notices();
        let Loading { dispatch, origins, problems, .. } = loading;
        let DispatchConfig { executor: dispatch, strategy, groups, max_bytes, .. } = dispatch;
        if problems.is_empty() {
            Ok(Config { dispatch, strategy, groups, max_bytes, notices, origins })
        } else {
            Err(ConfigError { problems })
        }
    }
}

/// What was found so far.
#[derive(Debug)]
pub(crate) struct Loading {
    dispatch: DispatchConfig,
    origins: [Origin; Key::ALL.len()],
    /// Where the setting that was removed stood first.
    removed: Option<Origin>,
    pub(crate) problems: Vec<Problem>,
}

impl Default for Loading {
    fn default() -> Self {
        Self {
            dispatch: DispatchConfig::default(),
            origins: Key::ALL.map(|_| Origin::Default),
            removed: None,
            problems: Vec::new(),
        }
    }
}

impl Loading {
    /// Takes a value, or `None` if the key does not accept it.
    pub(crate) fn set(&mut self, key: Key, raw: Raw<'_>, origin: &Origin) -> Option<()> {
        value::set(&mut self.dispatch, key, raw)?;
        self.origins[key as usize] = origin.clone();
        Some(())
    }

    pub(crate) fn refuse(&mut self, origin: Origin, refusal: Refusal) {
        self.problems.push(Problem { origin, refusal });
    }

    /// Notes once that somebody still sets what was removed.
    pub(crate) fn notice_removed(&mut self, origin: &Origin) {
        self.removed.get_or_insert_with(|| origin.clone());
    }

    /// What has no effect: the setting that was removed, keys of the strategy that is not chosen, and an overflow of keys
    /// without a limit.
    fn notices(&self) -> Vec<String> {
        let chosen = self.dispatch.strategy;
        let removed = self.removed.iter().map(|origin| {
            // It was the number of groups; where there are none, who set it wants to look at the workers.
            let instead = if chosen == Strategy::Grouped { Key::Groups } else { Key::Workers };
            format!("{origin}: wow.{} is no longer used, see {instead}", REMOVED.0)
        });
        let unread = Key::ALL.into_iter().filter(|key| key.strategy().is_some_and(|only| only != chosen));
        let unread = unread.filter(|key| self.origins[*key as usize] != Origin::Default).map(|key| {
            let (origin, strategy) = (&self.origins[key as usize], Key::Strategy);
            format!("{origin}: {key} has no effect while {strategy} is {chosen}")
        });
        let executor = &self.dispatch.executor;
        let limited = chosen == Strategy::Grouped || executor.max_per_key.is_some();
        let origin = &self.origins[Key::Overflow as usize];
        let unlimited = (!limited && *origin != Origin::Default)
            .then(|| format!("{origin}: {} has no effect without {}", Key::Overflow, Key::MaxPerKey));
        removed.chain(unread).chain(unlimited).collect()
    }
}
