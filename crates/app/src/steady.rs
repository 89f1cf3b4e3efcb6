//! The operator's own files for a process that lives on while they are edited: while one is broken, what was read last counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use towline_config::{Layer, LayerContent, LayerName};

use crate::context::{Context, LayerFile};
use crate::error::Error;
use crate::service::read_variables;

/// What was read last without an error.
pub struct Steady {
    /// What to do about a file that was broken from the beginning.
    at_first: AtFirst,
    /// The environment of the process, where variables of a file are added to it.
    process_environment: Option<BTreeMap<String, String>>,
    last_good: Mutex<LastGood>,
}

/// What to do about a configuration that was broken from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtFirst {
    Fail,
    /// Do without it: nothing but a report depends on it.
    LeaveOut,
}

#[derive(Default)]
struct LastGood {
    /// The text of the configuration, if there was a file; none before it was read.
    configuration: Option<Option<String>>,
    /// The environment with the variables of the file.
    environment: Option<BTreeMap<String, String>>,
    /// What is wrong with either now.
    broken_configuration: Option<String>,
    broken_environment: Option<String>,
}

impl Steady {
    fn last_good(&self) -> MutexGuard<'_, LastGood> {
        self.last_good.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with the files, so that something else than they have now counts.
    fn problem(&self) -> Option<String> {
        let last_good = self.last_good();
        last_good.broken_configuration.clone().or_else(|| last_good.broken_environment.clone())
    }

    /// The text that counts: this one if it can be used in this environment.
    fn text_in_force(
        &self,
        name: &LayerName,
        read: Result<Option<String>, Error>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<String>, Error> {
        let usable = read.and_then(|text| {
            let layer = text.as_ref().map(|text| layer(name.clone(), text.clone()));
            let layers: Vec<Layer> =
                layer.into_iter().chain([Layer::environment(environment.clone())]).collect();
            towline_config::load(&layers)?;
            Ok(text)
        });
        let mut last_good = self.last_good();
        match usable {
            Ok(text) => {
                last_good.broken_configuration = None;
                last_good.configuration = Some(text.clone());
                Ok(text)
            }
            Err(error) if last_good.configuration.is_none() && self.at_first == AtFirst::Fail => Err(error),
            Err(error) => {
                last_good.broken_configuration = Some(error.message());
                Ok(last_good.configuration.clone().flatten())
            }
        }
    }
}

fn layer(name: LayerName, text: String) -> Layer {
    Layer { name, content: LayerContent::Toml(text) }
}

impl Context {
    /// The same context for a process that lives on while the operator's files are edited.
    pub(crate) fn steady(&self, at_first: AtFirst) -> Self {
        let new = || Arc::new(Steady { at_first, process_environment: None, last_good: Mutex::default() });
        let steady = self.steady.clone().unwrap_or_else(new);
        Self { steady: Some(steady), ..self.clone() }
    }

    /// The context of a server: with the variables of its file, where the environment does not have them. A file that others can
    /// read is an error.
    pub fn for_server(&self) -> Result<Self, Error> {
        let process_environment = Some(self.environment.clone());
        let steady = Steady { at_first: AtFirst::Fail, process_environment, last_good: Mutex::default() };
        let context = Self { steady: Some(Arc::new(steady)), ..self.clone() };
        let environment = context.read_environment(&self.environment)?;
        Ok(context.with_environment(environment))
    }

    /// The context as it is now: the operator may have added a credential to the file.
    pub fn current(&self) -> Self {
        let Some(steady) = &self.steady else { return self.clone() };
        let Some(process_environment) = &steady.process_environment else { return self.clone() };
        match self.read_environment(process_environment) {
            Ok(environment) => {
                steady.last_good().broken_environment = None;
                self.with_environment(environment)
            }
            Err(error) => {
                let mut last_good = steady.last_good();
                last_good.broken_environment = Some(error.message());
                let environment = last_good.environment.clone().unwrap_or_else(|| self.environment.clone());
                Self { environment, ..self.clone() }
            }
        }
    }

    fn with_environment(&self, environment: BTreeMap<String, String>) -> Self {
        self.secrets.add(&towline_engine::known_secrets(&environment, []));
        if let Some(steady) = &self.steady {
            steady.last_good().environment = Some(environment.clone());
        }
        Self { environment, ..self.clone() }
    }

    fn read_environment(
        &self,
        process: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut environment = process.clone();
        let Some(path) = self.environment_file() else { return Ok(environment) };
        for (name, value) in read_variables(&path)?.into_iter().flatten() {
            environment.entry(name).or_insert(value);
        }
        Ok(environment)
    }

    /// What is wrong with the operator's files, so that something else than they have now counts.
    pub(crate) fn problem(&self) -> Option<String> {
        self.steady.as_ref()?.problem()
    }

    /// Whether the operator's configuration was read before without an error.
    pub(crate) fn was_read(&self) -> bool {
        self.steady.as_ref().is_some_and(|steady| steady.last_good().configuration.is_some())
    }

    /// The layer that this file is; none if there is no such file. A broken file of the operator's counts as it was read last, where
    /// the context remembers that.
    pub(crate) fn layer_in_force(&self, file: LayerFile) -> Result<Option<Layer>, Error> {
        let LayerFile { name, text } = file;
        let read = text.map_err(|error| Error::usage(format!("cannot read {name}: {error}")));
        let text = match (&name, &self.steady) {
            (LayerName::User(_), Some(steady)) => steady.text_in_force(&name, read, &self.environment)?,
            _ => read?,
        };
        Ok(text.map(|text| layer(name, text)))
    }
}
