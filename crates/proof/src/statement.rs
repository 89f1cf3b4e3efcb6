//! What is signed: an in-toto statement about a commit, with the facts of its verdict.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::canonical::sha256_of_json;
use crate::key::{KeyId, PublicKey};

pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
pub const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// The longest proof that is read.
pub const LONGEST_PROOF: u64 = 8 * 1024 * 1024;

/// The names of the subjects.
const COMMIT: &str = "commit";
const TREE: &str = "tree";

/// The algorithms of their digests.
const GIT_COMMIT: &str = "gitCommit";
const GIT_TREE: &str = "gitTree";
const SHA256: &str = "sha256";

/// An in-toto statement, version 1, about one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    #[serde(rename = "_type")]
    pub kind: String,
    pub subject: Vec<Resource>,
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    pub predicate: Predicate,
}

/// Something that has a name and digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub name: String,
    pub digest: BTreeMap<String, String>,
}

/// The predicate "test result", with a field of ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicate {
    pub result: TestOutcome,
    pub configuration: Vec<Resource>,
    pub passed_tests: Vec<String>,
    #[serde(default)]
    pub warned_tests: Vec<String>,
    #[serde(default)]
    pub failed_tests: Vec<String>,
    pub towline: Facts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TestOutcome {
    Passed,
    Warned,
    Failed,
}

/// How the verdict was reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub goal: GoalFacts,
    /// The commit that the work started from.
    pub base: String,
    /// The agent's own last commit below the candidate, where it is recorded.
    pub head: Option<String>,
    pub checks: Vec<CheckFacts>,
    /// The kind of checkout: `clean`, `warm` or `warm_then_clean`.
    pub checkout: String,
    pub setup: SetupFacts,
    pub protected: ProtectionFacts,
    /// Protected paths that were put back as in the base.
    pub restored: Vec<String>,
    pub trust: TrustFacts,
    pub verdict: VerdictTimes,
    /// What made this statement.
    pub versions: Versions,
    pub signer: SignerFacts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalFacts {
    pub id: String,
    pub title: String,
}

/// A check that passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckFacts {
    pub name: String,
    /// Of the canonical JSON of its definition.
    pub sha256: String,
    /// None of a check that is hidden from agents, and of one with a secret in it.
    pub definition: Option<Value>,
    /// Of its command, if it has one.
    pub exit_code: Option<i32>,
    /// As its supervisor recorded it; none of a check that runs no program, and of verdicts of earlier versions.
    pub output: Option<OutputFacts>,
}

/// The hashes of what a command printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFacts {
    pub stdout_sha256: String,
    pub stderr_sha256: String,
}

/// What made the checkout ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupFacts {
    /// Of the canonical JSON of the list of commands.
    pub sha256: String,
    /// None where one of them has a secret in it.
    pub commands: Option<Vec<String>>,
    /// Globs of tracked files that it may change.
    pub generated: Vec<String>,
    /// What it changes before any work, with the id of what is there then.
    pub changes: BTreeMap<String, Option<String>>,
    /// Directories that builds may fill.
    pub warm: Vec<String>,
}

/// What the agent could not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectionFacts {
    /// Of the canonical JSON of both lists.
    pub sha256: String,
    pub paths: Vec<String>,
    /// Paths that were not protected for this goal.
    pub lifted: Vec<String>,
}

/// What the verdict was protected from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustFacts {
    pub level: u8,
    pub sandbox: Option<String>,
    /// Whether the agent worked in the user's own directory.
    pub in_place: bool,
}

/// When the checks ran, in RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictTimes {
    pub began_at: Option<String>,
    pub reached_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    pub towline: String,
    pub git: String,
}

/// Who signs it. The key is here so that the envelope can be read as whole even by those who do not know the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignerFacts {
    pub keyid: KeyId,
    pub public_key: String,
}

/// What does not fit together in a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    #[error("it is no statement of a verdict: {0}")]
    NotJson(String),
    #[error("its {field} is `{found}`, not `{expected}`")]
    OtherType { field: &'static str, found: String, expected: &'static str },
    #[error("it names no {0} with a full id")]
    NoSubject(&'static str),
    #[error("its base or its head is no full id of a commit")]
    NoBase,
    #[error("it does not report that all checks passed")]
    NotPassed,
    #[error("check `{0}` is not the one that its hash names")]
    CheckChanged(String),
    #[error("the setup commands are not those that their hash names")]
    SetupChanged,
    #[error("the protected paths are not those that their hash names")]
    ProtectionChanged,
    #[error("its configuration names other hashes than its checks, setup and protected paths")]
    ConfigurationChanged,
}

impl StatementError {
    /// Whether an id is not one that git could be asked about.
    pub const fn is_about_ids(&self) -> bool {
        matches!(self, Self::NoSubject(_) | Self::NoBase)
    }
}

impl Statement {
    /// The statement that these checks passed on this commit.
    pub fn passed(candidate: &str, tree: &str, facts: Facts) -> Self {
        Self {
            kind: STATEMENT_TYPE.to_owned(),
            subject: vec![Resource::new(COMMIT, GIT_COMMIT, candidate), Resource::new(TREE, GIT_TREE, tree)],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: Predicate {
                result: TestOutcome::Passed,
                configuration: facts.configuration(),
                passed_tests: facts.check_names(),
                warned_tests: Vec::new(),
                failed_tests: Vec::new(),
                towline: facts,
            },
        }
    }

    /// Reads a payload.
    pub fn read(payload: &[u8]) -> Result<Self, StatementError> {
        let broken = |error: serde_json::Error| StatementError::NotJson(error.to_string());
        let value: Value = serde_json::from_slice(payload).map_err(broken)?;
        // What is of another type may look quite different.
        for (field, expected) in [("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)] {
            let found = value[field].as_str().unwrap_or_default();
            if found != expected {
                return Err(StatementError::OtherType { field, found: found.to_owned(), expected });
            }
        }
        serde_json::from_value(value).map_err(broken)
    }

    /// As it is signed.
    pub fn payload(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// The commit that it is about.
    pub fn candidate(&self) -> Option<&str> {
        self.subject_id(COMMIT, GIT_COMMIT)
    }

    /// The tree of that commit.
    pub fn tree(&self) -> Option<&str> {
        self.subject_id(TREE, GIT_TREE)
    }

    fn subject_id(&self, name: &str, algorithm: &str) -> Option<&str> {
        let subject = self.subject.iter().find(|subject| subject.name == name)?;
        subject.digest.get(algorithm).map(String::as_str).filter(|id| is_object_id(id))
    }

    /// Everything in it that does not fit together. Ids of git that are not complete are faults, so that nobody gives git
    /// something else.
    pub fn faults(&self) -> Vec<StatementError> {
        let (predicate, facts) = (&self.predicate, &self.predicate.towline);
        let mut faults = Vec::new();
        if self.candidate().is_none() {
            faults.push(StatementError::NoSubject(COMMIT));
        }
        if self.tree().is_none() {
            faults.push(StatementError::NoSubject(TREE));
        }
        if !is_object_id(&facts.base) || facts.head.as_deref().is_some_and(|head| !is_object_id(head)) {
            faults.push(StatementError::NoBase);
        }
        let passed = predicate.result == TestOutcome::Passed
            && predicate.warned_tests.is_empty()
            && predicate.failed_tests.is_empty()
            && !facts.checks.is_empty()
            && predicate.passed_tests == facts.check_names();
        if !passed {
            faults.push(StatementError::NotPassed);
        }
        for check in &facts.checks {
            if !check.is_its_hash() {
                faults.push(StatementError::CheckChanged(check.name.clone()));
            }
        }
        let setup = &facts.setup;
        if setup.commands.as_ref().is_some_and(|commands| SetupFacts::hash(commands) != setup.sha256) {
            faults.push(StatementError::SetupChanged);
        }
        let protected = &facts.protected;
        if ProtectionFacts::hash(&protected.paths, &protected.lifted) != protected.sha256 {
            faults.push(StatementError::ProtectionChanged);
        }
        if predicate.configuration != facts.configuration() {
            faults.push(StatementError::ConfigurationChanged);
        }
        faults
    }
}

impl Resource {
    fn new(name: impl Into<String>, algorithm: &str, digest: &str) -> Self {
        Self { name: name.into(), digest: [(algorithm.to_owned(), digest.to_owned())].into() }
    }
}

impl Facts {
    fn check_names(&self) -> Vec<String> {
        self.checks.iter().map(|check| check.name.clone()).collect()
    }

    /// What decided the verdict besides the commit.
    fn configuration(&self) -> Vec<Resource> {
        let checks = self
            .checks
            .iter()
            .map(|check| Resource::new(format!("check/{}", check.name), SHA256, &check.sha256));
        let others = [("setup", &self.setup.sha256), ("protected", &self.protected.sha256)];
        checks.chain(others.map(|(name, hash)| Resource::new(name, SHA256, hash))).collect()
    }
}

impl CheckFacts {
    fn is_its_hash(&self) -> bool {
        let Some(definition) = &self.definition else { return true };
        definition["name"] == *self.name && sha256_of_json(definition).is_ok_and(|hash| hash == self.sha256)
    }
}

impl SetupFacts {
    /// The hash of the commands.
    pub fn hash(commands: &[String]) -> String {
        // Serialising strings cannot fail; an empty hash would only ever compare unequal.
        sha256_of_json(&commands).unwrap_or_default()
    }
}

impl ProtectionFacts {
    pub fn new(paths: &[String], lifted: &[String]) -> Self {
        Self { sha256: Self::hash(paths, lifted), paths: paths.to_vec(), lifted: lifted.to_vec() }
    }

    fn hash(paths: &[String], lifted: &[String]) -> String {
        sha256_of_json(&json!({"paths": paths, "lifted": lifted})).unwrap_or_default()
    }
}

impl SignerFacts {
    pub fn of(key: &PublicKey) -> Self {
        Self { keyid: key.id(), public_key: key.pem() }
    }
}

/// Whether this is a full id of git.
fn is_object_id(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
