//! Verifies a proof: who signed it, whether it fits together, and whether the repository here has what it names.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use towline_api::{ProofFinding, ProofVerifyReport, VerdictReport};
use towline_core::Commit;
use towline_proof::{LONGEST_PROOF, Opened, PublicKey, Signer, Statement, open};
use towline_workspace::{ProvenCommit, Repository, WorkspaceError};

use crate::context::Context;
use crate::error::Error;
use crate::keys;
use crate::proof_run;
use crate::recheck::RecheckStep;

/// The longest file with public keys.
const LONGEST_KEYS: u64 = 1024 * 1024;

/// What is to be verified, and how.
#[derive(Debug, Clone)]
pub struct ProofRequest {
    /// The file with the envelope.
    pub file: PathBuf,
    /// A file with the public keys to trust instead of those of this state directory.
    pub key: Option<PathBuf>,
    /// Whether the checks run again.
    pub run: bool,
}

/// The findings so far.
struct Findings(Vec<ProofFinding>);

impl Findings {
    fn add(&mut self, part: &str, holds: bool, text: impl Into<String>) {
        self.0.push(ProofFinding { part: part.to_owned(), holds, text: text.into() });
    }

    fn hold(&self) -> bool {
        self.0.iter().all(|finding| finding.holds)
    }
}

/// Verifies a proof in the repository of the context's directory. Nothing is executed unless the request wants the checks to run, and
/// they run only if everything else holds; none when `stop` came to its end first.
pub async fn verify_proof(
    context: &Context,
    request: &ProofRequest,
    now: Timestamp,
    stop: impl Future<Output = ()>,
    show: impl FnMut(RecheckStep),
) -> Result<Option<ProofVerifyReport>, Error> {
    let bytes = read(context, &request.file, "the proof", LONGEST_PROOF)?;
    let trusted = trusted(context, request.key.as_deref())?;
    let mut findings = Findings(Vec::new());
    let opened = match open(&bytes, &trusted) {
        Ok(opened) => opened,
        Err(error) => {
            findings.add("envelope", false, error.to_string());
            return Ok(Some(report(None, findings, None)));
        }
    };
    let statement = &opened.statement;
    findings.add_signer(&opened, request.key.is_some());
    let repository = repository_here(context)?;
    if findings.add_statement(statement) {
        findings.compare(&repository, statement)?;
    }
    let mut verdict = None;
    if request.run && !findings.hold() {
        findings.add("checks", false, "not run, because the proof does not hold");
    } else if request.run {
        let run = proof_run::run(context, &repository, statement, now, stop, show).await?;
        let Some(found) = run else { return Ok(None) };
        findings.add("checks", found.holds, found.text);
        verdict = found.verdict;
    }
    Ok(Some(report(Some(statement), findings, verdict.as_ref().map(VerdictReport::from))))
}

fn report(
    statement: Option<&Statement>,
    findings: Findings,
    now: Option<VerdictReport>,
) -> ProofVerifyReport {
    let facts = statement.map(|statement| &statement.predicate.towline);
    ProofVerifyReport {
        holds: findings.hold(),
        goal: facts.map(|facts| facts.goal.id.clone()),
        title: facts.map(|facts| facts.goal.title.clone()),
        candidate: statement.and_then(Statement::candidate).map(str::to_owned),
        reached_at: facts.map(|facts| facts.verdict.reached_at.clone()),
        level: facts.map(|facts| facts.trust.level),
        sandbox: facts.and_then(|facts| facts.trust.sandbox.clone()),
        checkout: facts.map(|facts| facts.checkout.clone()),
        findings: findings.0,
        now,
    }
}

/// The keys whose signatures count.
fn trusted(context: &Context, file: Option<&Path>) -> Result<Vec<PublicKey>, Error> {
    let Some(file) = file else {
        return keys::existing(context)?.map_or(Ok(Vec::new()), |keys| keys.public());
    };
    let bytes = read(context, file, "the key", LONGEST_KEYS)?;
    PublicKey::read_all(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        Error::usage(format!("cannot use the key in {}: {error}", file.display()))
            .hint("`towline keys` prints public keys, where the proof was made")
    })
}

fn read(context: &Context, file: &Path, what: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let path = context.directory.join(file);
    towline_files::read_following(&path, limit).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("{what} {} does not exist", file.display())),
        _ => Error::usage(format!("cannot read {what} {}: {error}", file.display())),
    })
}

fn repository_here(context: &Context) -> Result<Repository, Error> {
    Repository::discover(&context.directory).map_err(|error| match error {
        WorkspaceError::NotARepository { .. } => Error::usage(format!(
            "{} is in no repository, and the proof is about a commit of one",
            context.directory.display()
        ))
        .hint("run this in a clone of the repository"),
        error => error.into(),
    })
}

impl Findings {
    fn add_signer(&mut self, opened: &Opened, is_named: bool) {
        let (holds, text) = match &opened.signer {
            Signer::Trusted(key) if is_named => (true, format!("key {}, which --key names", key.short())),
            Signer::Trusted(key) => (true, format!("key {}, one of yours", key.short())),
            Signer::Unknown(key) => (
                false,
                format!(
                    "a valid signature by an unknown key: {key}; --key FILE accepts its public key, if you trust it"
                ),
            ),
            Signer::Nobody(key) => (
                false,
                format!("it does not fit: the proof was changed, or key {} did not sign it", key.short()),
            ),
        };
        self.add("signature", holds, text);
    }

    /// Whether ids in it can be looked up.
    fn add_statement(&mut self, statement: &Statement) -> bool {
        let faults = statement.faults();
        faults.iter().for_each(|fault| self.add("statement", false, fault.to_string()));
        if faults.is_empty() {
            let count = statement.predicate.towline.checks.len();
            let checks = if count == 1 { "1 check".to_owned() } else { format!("{count} checks") };
            self.add(
                "statement",
                true,
                format!("{checks} passed, with the definitions that their hashes name"),
            );
        }
        !faults.iter().any(towline_proof::StatementError::is_about_ids)
    }

    /// Compares the commits with those of the repository.
    fn compare(&mut self, repository: &Repository, statement: &Statement) -> Result<(), Error> {
        let (Some(candidate), Some(tree)) = (statement.candidate(), statement.tree()) else { return Ok(()) };
        let candidate = Commit::new(candidate);
        let short = candidate.short().to_owned();
        let (holds, text) = match repository.prove(&candidate)? {
            ProvenCommit::Missing => {
                (false, format!("commit {candidate} is not in this repository; fetch the branch that has it"))
            }
            ProvenCommit::Damaged(object) => {
                (false, format!("commit {short} is damaged here: object {object} is not what its id names"))
            }
            ProvenCommit::Whole { tree: here } if here != tree => {
                (false, format!("commit {short} has the tree {here}, and the proof names {tree}"))
            }
            ProvenCommit::Whole { .. } => {
                (true, format!("commit {short} is here, with the tree that the proof names"))
            }
        };
        self.add("candidate", holds, text);
        if holds {
            self.compare_base(repository, &candidate, &Commit::new(&statement.predicate.towline.base))?;
        }
        Ok(())
    }

    fn compare_base(
        &mut self,
        repository: &Repository,
        candidate: &Commit,
        base: &Commit,
    ) -> Result<(), Error> {
        let (short, of) = (base.short(), candidate.short());
        let is_below =
            base == candidate || (repository.has(base)? && repository.is_on_top(candidate, base)?);
        let text = match is_below {
            true => format!("commit {short}, where the work began, is below {of}"),
            false => format!("commit {base}, where the work began, is not below {of} in this repository"),
        };
        self.add("base", is_below, text);
        Ok(())
    }
}
