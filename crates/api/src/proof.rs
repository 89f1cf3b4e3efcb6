//! Proofs of verdicts: keys, and what a proof's verification found.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::VerdictReport;

/// One entry of `keys --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyReport {
    /// The SHA-256 of the public key in DER.
    pub id: String,
    /// Whether it signs new proofs.
    pub active: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When another key took its place; null while it is active.
    pub retired_at: Option<Timestamp>,
    /// The public key in PEM.
    pub public_key: String,
}

/// The reply of `verify --proof --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofVerifyReport {
    /// Whether everything holds.
    pub holds: bool,
    /// The goal's id, as the proof names it; null if the proof cannot be read.
    pub goal: Option<String>,
    /// The goal's title.
    pub title: Option<String>,
    /// The commit that the proof is about.
    pub candidate: Option<String>,
    /// When the verdict was reached, as the proof has it.
    pub reached_at: Option<String>,
    /// The level of trust of the verdict.
    pub level: Option<u8>,
    /// What confined agents and checks; null without a sandbox.
    pub sandbox: Option<String>,
    /// The kind of checkout that the checks ran in: `clean`, `warm` or `warm_then_clean`.
    pub checkout: Option<String>,
    /// What was compared, in order.
    pub findings: Vec<ProofFinding>,
    /// The verdict of the checks that ran again; null without `--run`.
    pub now: Option<VerdictReport>,
}

/// One thing that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofFinding {
    /// `envelope`, `signature`, `statement`, `candidate`, `base`, or with `--run` also `checks`.
    pub part: String,
    /// Whether it is as the proof states.
    pub holds: bool,
    /// What was found.
    pub text: String,
}
