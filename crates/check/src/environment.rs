//! What setup and checks get of the user's environment: all of it, but for Towline's own variables, what looks secret, and
//! what belongs to agents.
//!
//! Nothing here reads an environment. The goal names the variables that are passed although they look secret.

use std::collections::BTreeMap;

use std::io;

use towline_core::{Network, Sandbox};
use towline_mask::is_secret_variable;
use towline_sandbox::{Private, Room};
use towline_workspace::LOCATION_VARIABLES;

/// How many withheld variables are named.
const NAMED: usize = 12;

/// The environment of setup and checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    withheld: Vec<String>,
    confinement: Option<Confinement>,
}

/// The sandbox of the commands in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub sandbox: Sandbox,
    /// What starts a setup command in it.
    pub setup: Vec<String>,
    /// What starts a check in it.
    pub checks: Vec<String>,
    /// The same for checks that read files of their own, by name.
    pub with_files: BTreeMap<String, Vec<String>>,
    pub checks_network: Network,
    /// What has directories of these commands alone, which begin empty in each checkout. None for those that other programs use as well.
    pub own: Option<Room>,
}

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose<'a> {
    Setup,
    /// The check of this name.
    Check(&'a str),
}

impl Environment {
    /// Leaves out what is only meant for Towline (a check must not be able to find out that it is one), and withholds secrets and
    /// the variables `of_agents`, unless `passed` names them.
    pub fn new(
        inherited: &BTreeMap<String, String>,
        passed: &[String],
        of_agents: impl Fn(&str) -> bool,
    ) -> Self {
        let mut environment = Self::default();
        for (name, value) in inherited.iter().filter(|(name, _)| !is_towlines(name)) {
            let is_private = is_secret_variable(name, value) || of_agents(name);
            if is_private && !passed.contains(name) {
                environment.withheld.push(name.clone());
            } else {
                environment.variables.insert(name.clone(), value.clone());
            }
        }
        environment
    }

    /// The same in a sandbox.
    pub fn confined(self, confinement: Option<Confinement>) -> Self {
        Self { confinement, ..self }
    }

    /// What confines the commands.
    pub(crate) fn sandbox(&self) -> Option<Sandbox> {
        self.confinement.as_ref().map(|confinement| confinement.sandbox)
    }

    /// What starts a command in its sandbox.
    pub(crate) fn wrapper(&self, purpose: Purpose<'_>) -> &[String] {
        match (&self.confinement, purpose) {
            (Some(confinement), Purpose::Setup) => &confinement.setup,
            (Some(confinement), Purpose::Check(name)) => {
                confinement.with_files.get(name).unwrap_or(&confinement.checks)
            }
            (None, _) => &[],
        }
    }

    /// Forgets what commands left outside of their directory.
    pub(crate) fn renew(&self) -> io::Result<()> {
        let Some(confinement) = &self.confinement else { return Ok(()) };
        let Some(own) = &confinement.own else { return Ok(()) };
        towline_files::remove_tree(own.private.root())?;
        Private::make(own.private.root())?;
        own.prepare(confinement.sandbox)
    }

    /// Removes the home of this checkout.
    pub(crate) fn forget(&self) {
        if let Some(own) = self.confinement.as_ref().and_then(|confinement| confinement.own.as_ref()) {
            // The next checkout begins by removing it.
            let _ = towline_files::remove_tree(own.private.root());
        }
    }

    /// What commands get.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Names what was withheld, never its values.
    pub(crate) fn note(&self) -> Option<String> {
        if self.withheld.is_empty() {
            return None;
        }
        let more = match self.withheld.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = self.withheld.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        Some(format!(
            "variables that setup and checks do not get: {names}{more} (`pass_env` in [workspace] passes one)"
        ))
    }

    /// What a failed command printed, and after it what was withheld from the command: it may have failed for that.
    pub(crate) fn explain(&self, evidence: String) -> String {
        match self.note() {
            Some(note) if evidence.trim().is_empty() => format!("note: {note}\n"),
            Some(note) => format!("{}\n\nnote: {note}\n", evidence.trim_end()),
            None => evidence,
        }
    }
}

/// Whether a variable is only meant for Towline, or would make git in a check act on another repository than the checkout.
fn is_towlines(name: &str) -> bool {
    name.starts_with("TOWLINE_") || LOCATION_VARIABLES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)], passed: &[&str]) -> Environment {
        let inherited = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let passed: Vec<String> = passed.iter().map(|name| (*name).to_owned()).collect();
        Environment::new(&inherited.collect(), &passed, |name| name.starts_with("ANTHROPIC_"))
    }

    #[test]
    fn secrets_and_variables_of_agents_are_withheld_unless_they_are_passed_by_name() {
        let variables = [
            ("PATH", "/usr/bin"),
            ("HTTPS_PROXY", "http://proxy.example.org:3128"),
            ("SSH_AUTH_SOCK", "/run/user/1000/ssh"),
            ("NPM_TOKEN", "abcdef0123456789"),
            ("DEPLOY_PASSWORD", "hunter2"),
            ("ANTHROPIC_BASE_URL", "https://example.org"),
            ("TOWLINE_HOME", "/state"),
            ("GIT_DIR", "/elsewhere"),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/elsewhere"),
            ("GIT_SHALLOW_FILE", "/elsewhere"),
        ];
        let names = |environment: &Environment| environment.variables.keys().cloned().collect::<Vec<_>>();
        let usual = environment(&variables, &[]);
        assert_eq!(names(&usual), ["HTTPS_PROXY", "PATH", "SSH_AUTH_SOCK"]);
        assert_eq!(usual.withheld, ["ANTHROPIC_BASE_URL", "DEPLOY_PASSWORD", "NPM_TOKEN"]);
        let passed = environment(&variables, &["NPM_TOKEN", "ANTHROPIC_BASE_URL", "TOWLINE_HOME", "GIT_DIR"]);
        assert_eq!(
            names(&passed),
            ["ANTHROPIC_BASE_URL", "HTTPS_PROXY", "NPM_TOKEN", "PATH", "SSH_AUTH_SOCK"]
        );
        assert_eq!(passed.withheld, ["DEPLOY_PASSWORD"]);
    }

    #[test]
    fn a_note_names_a_few_variables_and_no_value() {
        assert_eq!(environment(&[("PATH", "/usr/bin")], &[]).note(), None);
        let many: Vec<String> = (10..25).map(|number| format!("SECRET_{number}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "value-of-a-secret")).collect();
        let note = environment(&many, &[]).note().expect("a note");
        assert!(note.contains("SECRET_10, SECRET_11") && note.contains("SECRET_21 and 3 more"), "{note}");
        assert!(!note.contains("SECRET_22") && !note.contains("value-of-a-secret"), "{note}");
    }
}
