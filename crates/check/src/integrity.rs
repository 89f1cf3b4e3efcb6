//! Whether the files that are judged are still those of the candidate: after setup, before each check and after the last.
//!
//! Setup and checks run the candidate's own scripts, which may rewrite what judges them. A file that setup changes before any
//! work too, or that the goal lists as generated, is allowed and named. Anything else makes the verdict red. What a check
//! adds in a protected place, as test runners do with their caches, is removed before the next one could see it. In the goal's
//! warm directories it stays, as build output for the next verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use towline_core::CheckResult;
use towline_workspace::{Change, Difference, Protect, Scope, Verification, WorkspaceError};

use crate::CheckError;
use crate::blocking::blocking;
use crate::evidence;
use crate::finding::Finding;
use crate::verdict::CheckRun;

/// The name of the failed check.
const INTEGRITY: &str = "integrity";

/// What may differ, and what did.
pub(crate) struct Integrity {
    checkout: Arc<Verification>,
    protect: Protect,
    generated: Protect,
    /// What setup changes before any work, with the id of what is there then.
    setup_changes: BTreeMap<String, Option<String>>,
    /// Files in protected places that were copied from the user's checkout, with the id of what they hold.
    copied: BTreeMap<PathBuf, Option<String>>,
    /// Files that setup was allowed to change, as it left them.
    accepted: BTreeMap<PathBuf, Option<String>>,
    allowed: BTreeSet<String>,
    found: Option<(String, Vec<Difference>)>,
}

impl Integrity {
    fn new(checkout: Arc<Verification>, run: &CheckRun<'_>) -> Result<Self, CheckError> {
        Ok(Self {
            checkout,
            // Files to copy must stay as they are, too.
            protect: Protect::of_candidate(run.goal)?,
            generated: Protect::new(&run.goal.workspace.generated)?,
            setup_changes: run.setup_changes.clone(),
            copied: BTreeMap::new(),
            accepted: BTreeMap::new(),
            allowed: BTreeSet::new(),
            found: None,
        })
    }

    /// For a checkout that was just made.
    pub(crate) async fn of(checkout: Arc<Verification>, run: &CheckRun<'_>) -> Result<Self, CheckError> {
        let mut integrity = Self::new(checkout, run)?;
        // Nothing has run yet, so whatever is not in the commit was copied.
        let copied = integrity.differences(Scope::Protected).await?;
        integrity.copied = copied.into_iter().map(|copy| (copy.path, copy.now)).collect();
        Ok(integrity)
    }

    /// For a checkout that an interrupted verdict left. What was copied is compared with where it came from, since a program that
    /// runs there may change it at any moment. None when it cannot be read.
    pub(crate) async fn reopened(
        checkout: Arc<Verification>,
        run: &CheckRun<'_>,
    ) -> Result<Option<Self>, CheckError> {
        let mut integrity = Self::new(Arc::clone(&checkout), run)?;
        let names = run.goal.workspace.copy.clone();
        let copied = blocking(move || Ok(checkout.copied(&names)?)).await?;
        Ok(copied.map(|copied| {
            integrity.copied = copied;
            integrity
        }))
    }

    /// The same after setup has run. None when a file that is judged is not as in the commit, as it was copied or as setup makes it
    /// before any work: nobody can know who changed it.
    pub(crate) async fn after_setup(mut self) -> Result<Option<Self>, CheckError> {
        let mut missing: BTreeSet<PathBuf> = self.copied.keys().cloned().collect();
        for Difference { path, kind, now } in self.differences(Scope::All).await? {
            let shown = path.to_string_lossy().into_owned();
            let by_setup = self.setup_changes.get(&shown);
            let is_protected = self.protect.covers(&path);
            if let Some(source) = self.copied.get(&path) {
                missing.remove(&path);
                if *source != now {
                    return Ok(None);
                }
            } else if by_setup.is_some_and(|before| !is_protected || *before == now) {
                self.allowed.insert(shown);
                self.accepted.insert(path, now);
            } else if self.generated.covers(&path) {
                self.allowed.insert(shown);
            } else if is_protected && (by_setup.is_some() || kind != Change::Added) {
                return Ok(None);
            }
        }
        Ok(missing.is_empty().then_some(self))
    }

    /// A digest of the files that were copied.
    pub(crate) fn copies(&self) -> String {
        let mut digest = Sha256::new();
        for (path, id) in &self.copied {
            for part in [path.as_os_str().as_bytes(), id.as_deref().unwrap_or_default().as_bytes()] {
                digest.update(part);
                digest.update([0]);
            }
        }
        towline_core::hexadecimal(&digest.finalize())
    }

    /// Whether something was found.
    pub(crate) fn has_found(&self) -> bool {
        self.found.is_some()
    }

    /// Compares. Only the first step at which something was found is reported: what follows may follow from it.
    pub(crate) async fn look(&mut self, step: &str, scope: Scope) -> Result<(), CheckError> {
        if self.found.is_some() {
            return Ok(());
        }
        let differences = self.differences(scope).await?;
        let bad: Vec<Difference> = self
            .without_copies(differences)
            .into_iter()
            .filter(|difference| !self.allows(difference, scope))
            .collect();
        let by_check = |difference: &Difference| {
            scope == Scope::Protected
                && difference.kind == Change::Added
                && !self.accepted.contains_key(&difference.path)
        };
        let (added, mut bad): (Vec<Difference>, Vec<Difference>) = bad.into_iter().partition(by_check);
        let checkout = Arc::clone(&self.checkout);
        bad.extend(blocking(move || Ok(checkout.remove_added(added)?)).await?);
        if !bad.is_empty() {
            self.found = Some((step.to_owned(), bad));
        }
        Ok(())
    }

    async fn differences(&self, scope: Scope) -> Result<Vec<Difference>, CheckError> {
        let (checkout, protect) = (Arc::clone(&self.checkout), self.protect.clone());
        // Directories that setup makes before any work.
        let known = self.setup_changes.keys().filter(|path| path.ends_with('/'));
        let known: BTreeSet<Vec<u8>> = known.map(|path| path.clone().into_bytes()).collect();
        blocking(move || Ok(checkout.differences(scope, &protect, &known)?)).await
    }

    /// The differences, where a copied file counts as one of the commit: it is to stay as it was copied.
    fn without_copies(&self, differences: Vec<Difference>) -> Vec<Difference> {
        let mut missing: BTreeSet<&PathBuf> = self.copied.keys().collect();
        let mut found = Vec::new();
        for difference in differences {
            match self.copied.get(&difference.path) {
                None => found.push(difference),
                Some(copied) => {
                    missing.remove(&difference.path);
                    if *copied != difference.now {
                        found.push(Difference { kind: Change::Changed, ..difference });
                    }
                }
            }
        }
        let deleted = |path: &PathBuf| Difference { path: path.clone(), kind: Change::Deleted, now: None };
        found.extend(missing.into_iter().map(deleted));
        found
    }

    fn allows(&mut self, difference: &Difference, scope: Scope) -> bool {
        let Difference { path, now, .. } = difference;
        if self.accepted.get(path).is_some_and(|accepted| accepted == now) {
            return true;
        }
        let is_protected = self.protect.covers(path);
        let shown = path.to_string_lossy();
        let by_setup = scope == Scope::All
            && self.setup_changes.get(shown.as_ref()).is_some_and(|before| !is_protected || before == now);
        let is_allowed = by_setup || self.generated.covers(path);
        if is_allowed {
            self.allowed.insert(shown.into_owned());
            if by_setup {
                self.accepted.insert(path.clone(), now.clone());
            }
        }
        is_allowed
    }

    /// What a person should know about the verdict.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |path: &String| format!("{path} was changed by setup or a check, which is allowed");
        self.allowed.iter().map(note).collect()
    }

    /// The failed check, if something differed.
    pub(crate) fn into_result(self) -> Option<CheckResult> {
        let (step, differences) = self.found?;
        let problem = format!("files that are judged were changed {step}");
        let evidence = evidence::listed(differences.iter().map(ToString::to_string));
        Some(Finding::not_met(problem).with_evidence(evidence).into_result(INTEGRITY, Duration::ZERO))
    }
}

/// The failed check for a candidate that cannot be checked out whole.
pub(crate) fn incomplete(missing: &WorkspaceError) -> CheckResult {
    let finding = Finding::not_met("a large file of the work is missing".to_owned());
    finding.with_evidence(missing.to_string()).into_result(INTEGRITY, Duration::ZERO)
}
