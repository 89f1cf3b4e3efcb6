//! Proves a goal that is done: a signed statement of its verdict, from what the store has recorded.

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use towline_core::{Check, CheckResult, Event, GoalId, OutputHashes, Phase, Seq, Verdict};
use towline_mask::Mask;
use towline_proof::{
    CheckFacts, Facts, GoalFacts, KeyId, OutputFacts, ProtectionFacts, SetupFacts, SignerFacts, Statement,
    TrustFacts, VerdictTimes, Versions, sha256_of_json, sign,
};
use towline_store::{GoalRecord, Store};

use crate::context::Context;
use crate::error::{Action, Error, Hint};
use crate::find;
use crate::inspect::git;
use crate::keys::Keys;
use crate::report::trust_level;
use crate::server::VERSION;

/// How many events are read at once.
const PAGE: usize = 512;

/// A proof that was made.
pub struct Proof {
    pub goal: GoalId,
    /// The envelope: one line of JSON.
    pub json: String,
    /// The key that signed it.
    pub key: KeyId,
    /// Checks whose definitions are not in it, because they are hidden or hold a secret.
    pub withheld: Vec<String>,
}

/// Proves the verdict on a goal that is done. Makes a key if there is none yet.
pub async fn prove(context: &Context, id: &str, now: Timestamp) -> Result<Proof, Error> {
    let found = find::goal(context, id).await?;
    let record = &found.record;
    let verdict = proven(record)?;
    let recorded = last_verdict(found.state.store.as_ref(), record.goal.id).await?;
    let Some(recorded) = recorded.filter(|recorded| recorded.verdict == *verdict) else {
        let goal = record.goal.id.short();
        return Err(Error::internal(format!("the log of goal {goal} has another verdict than its state"))
            .hint([("see it", Action::Log(record.goal.id))]));
    };
    let versions = Versions { towline: VERSION.to_owned(), git: git_version(context)? };
    let key = Keys::of(&found.state.home).signing(now)?;
    let public = key.public().map_err(|error| internal(&error))?;
    let facts = Stated { record, recorded: &recorded, mask: &context.secrets.mask() }
        .facts(versions, SignerFacts::of(&public))?;
    let withheld = facts.checks.iter().filter(|check| check.definition.is_none());
    let withheld = withheld.map(|check| check.name.clone()).collect();
    let statement = Statement::passed(verdict.candidate.as_str(), &verdict.tree, facts);
    must_be_without_secrets(context, &statement)?;
    let payload = statement.payload().map_err(|error| internal(&error))?;
    let envelope = sign(payload, &key).map_err(|error| internal(&error))?;
    let json = envelope.json().map_err(|error| internal(&error))?;
    Ok(Proof { goal: record.goal.id, json, key: public.id(), withheld })
}

fn internal(error: &dyn std::error::Error) -> Error {
    Error::internal(format!("cannot make the proof: {error}"))
}

/// The verdict that made the goal done.
fn proven(record: &GoalRecord) -> Result<&Verdict, Error> {
    let goal = record.goal.id;
    let refused = |why: &str, hint: Hint| {
        Err(Error::usage(format!("goal {} has no proof: {why}", goal.short())).hint(hint))
    };
    match &record.state.phase {
        Phase::Done => {
            let verdict = record.state.last_verdict().filter(|verdict| verdict.met());
            verdict.ok_or_else(|| Error::internal(format!("goal {} is done without a verdict", goal.short())))
        }
        Phase::Unproven => {
            let hint = [("give it checks", Action::RetryWithChecks(goal))];
            refused("it has no checks, so nothing was proven", hint.into())
        }
        phase if !phase.is_settled() => refused(
            &format!("it is {}; only a goal that is done has one", phase.name()),
            Hint::of_unfinished(goal),
        ),
        phase => refused(
            &format!("it is {}, and only a goal that is done has one", phase.name()),
            [("see how it ended", Action::Show(goal)), ("continue it", Action::Retry(goal))].into(),
        ),
    }
}

/// A verdict as the log has it.
struct Recorded {
    verdict: Verdict,
    began_at: Option<Timestamp>,
    reached_at: Timestamp,
}

/// The newest verdict of the goal's log.
async fn last_verdict(store: &dyn Store, goal: GoalId) -> Result<Option<Recorded>, Error> {
    let (mut found, mut began_at, mut after) = (None, None, Seq(0));
    loop {
        let page = store.events(goal, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.seq;
        for envelope in page {
            match envelope.event {
                Event::CheckStarted { .. } => began_at = began_at.or(Some(envelope.at)),
                Event::ChecksFailed { .. } | Event::JudgeUnavailable { .. } | Event::Stopped => {
                    began_at = None
                }
                Event::VerdictReached { verdict } => {
                    found = Some(Recorded { verdict, began_at: began_at.take(), reached_at: envelope.at });
                }
                _ => {}
            }
        }
    }
}

fn git_version(context: &Context) -> Result<String, Error> {
    let path = find::program("git", &context.directory, context.variable("PATH"));
    let version = path.as_deref().map(|path: &Path| git::version(context, path));
    match version {
        Some(Ok(version)) => Ok(version),
        Some(Err(why)) => Err(Error::internal(format!("cannot ask git for its version: {why}"))),
        None => Err(Error::internal("git was not found")),
    }
}

/// What the store has recorded.
struct Stated<'a> {
    record: &'a GoalRecord,
    recorded: &'a Recorded,
    mask: &'a Mask,
}

impl Stated<'_> {
    fn facts(&self, versions: Versions, signer: SignerFacts) -> Result<Facts, Error> {
        let Self { record, recorded: Recorded { verdict, began_at, reached_at }, .. } = self;
        let (goal, state) = (&record.goal, &record.state);
        let checks = goal.checks.iter().map(|check| self.check(check)).collect::<Result<_, _>>()?;
        let sandbox = state.confined_by();
        let checkout = serde_json::to_value(verdict.checkout).map_err(|error| internal(&error))?;
        Ok(Facts {
            goal: GoalFacts { id: goal.id.to_string(), title: self.mask.text(&goal.title).into_owned() },
            base: goal.workspace.base.to_string(),
            head: verdict.head.as_ref().map(ToString::to_string),
            checks,
            checkout: checkout.as_str().unwrap_or_default().to_owned(),
            setup: self.setup(),
            protected: ProtectionFacts::new(&goal.protect, &goal.unprotect),
            restored: verdict.restored.clone(),
            trust: TrustFacts {
                level: trust_level(sandbox),
                sandbox: sandbox.map(|sandbox| sandbox.name().to_owned()),
                in_place: goal.workspace.mode.is_in_place(),
            },
            verdict: VerdictTimes {
                began_at: began_at.map(|at| at.to_string()),
                reached_at: reached_at.to_string(),
            },
            versions,
            signer,
        })
    }

    fn check(&self, check: &Check) -> Result<CheckFacts, Error> {
        let definition = serde_json::to_value(check).map_err(|error| internal(&error))?;
        let sha256 = sha256_of_json(&definition).map_err(|error| internal(&error))?;
        let is_it = |result: &&CheckResult| result.name == check.name;
        let result =
            self.recorded.verdict.checks.iter().find(is_it).ok_or_else(|| {
                Error::internal(format!("the verdict has no result of check `{}`", check.name))
            })?;
        let output = result.output.as_ref().map(|OutputHashes { stdout, stderr }| OutputFacts {
            stdout_sha256: stdout.clone(),
            stderr_sha256: stderr.clone(),
        });
        let is_withheld = is_hidden(&definition) || has_secret(&definition, self.mask);
        Ok(CheckFacts {
            name: check.name.clone(),
            sha256,
            definition: (!is_withheld).then_some(definition),
            exit_code: result.exit_code,
            output,
        })
    }

    fn setup(&self) -> SetupFacts {
        let place = &self.record.goal.workspace;
        let changes = self.record.state.workspace.as_ref().map(|workspace| workspace.setup_changes.clone());
        let is_shown = !place.setup.iter().any(|command| self.mask.finds(command));
        SetupFacts {
            sha256: SetupFacts::hash(&place.setup),
            commands: is_shown.then(|| place.setup.clone()),
            generated: place.generated.clone(),
            changes: changes.unwrap_or_default(),
            warm: place.warm.clone(),
        }
    }
}

/// Whether agents may not know this check, by its stored form.
fn is_hidden(definition: &Value) -> bool {
    !matches!(&definition["hidden"], Value::Null | Value::Bool(false)) && definition["hidden"] != "shown"
}

fn has_secret(value: &Value, mask: &Mask) -> bool {
    match value {
        Value::String(text) => mask.finds(text),
        Value::Array(items) => items.iter().any(|item| has_secret(item, mask)),
        Value::Object(fields) => {
            fields.iter().any(|(name, field)| mask.finds(name) || has_secret(field, mask))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A proof is for others to read, so nothing in it may be a known secret.
fn must_be_without_secrets(context: &Context, statement: &Statement) -> Result<(), Error> {
    let value = serde_json::to_value(statement).map_err(|error| internal(&error))?;
    if !has_secret(&value, &context.secrets.mask()) {
        return Ok(());
    }
    Err(Error::usage("the proof would contain a secret, in the name of a check or in a path").hint(
        "`towline show` prints the goal with its secrets masked; name the check or the path differently in a new goal",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_check_that_agents_may_not_know_is_recognised_by_its_stored_form() {
        let of = |hidden: Value| is_hidden(&json!({"name": "a", "hidden": hidden}));
        assert!(!is_hidden(&json!({"name": "a"})));
        assert_eq!([json!(false), json!("shown")].map(of), [false, false]);
        assert_eq!([json!(true), json!("hidden"), json!("best_effort")].map(of), [true, true, true]);
    }
}
