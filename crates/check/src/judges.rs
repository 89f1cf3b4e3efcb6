//! Checks by judges: agents that look at the work with a rubric in their hands, when every other check is met. They cost money, and
//! can only reject.
//!
//! Neighbours: the engine starts the agent and reads its answer ([`Judge`]); what it is asked and how its answer is read is in the core.
//! Only a clear acceptance is one. A judge that fails for reasons that have nothing to do with the work, and has used nothing, is asked
//! again. If that does not help, there is no verdict ([`CheckError::NoOpinion`]): the work meets all other checks, and no agent could do anything about it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use towline_core::{AgentName, Check, CheckKind, CheckResult, NoOpinion, Opinion};

use crate::finding::Finding;
use crate::stop::Stop;
use crate::verdict::{CheckRun, Progress, log_name};
use crate::{CheckError, evidence, run_logs};

/// The pauses before a judge is asked again that could not answer.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
/// The part of its check's timeout that a judge needs to be asked again: a quarter. With less, it would be paid and cut off.
const REST: u32 = 4;

/// What is reported of a judge whose name is not in the recorded verdict.
const NEVER_ASKED: &str = "the judge was not asked, because another check had failed; retry the goal";

/// Who asks the judges of a verdict.
#[derive(Clone, Copy)]
pub enum Judges<'a> {
    /// They are asked.
    Asked(&'a dyn Judge),
    /// They are not asked again: what these results have counts.
    Recorded(&'a [CheckResult]),
    /// They have no part in this verdict.
    LeftOut,
}

/// Asks an agent about the candidate of one verdict.
pub trait Judge: Sync {
    /// Asks once. When it returns, nothing of the agent is left.
    fn ask<'a>(&'a self, question: JudgeQuestion<'a>) -> Asking<'a>;
}

/// The answer of a judge that is being asked.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<JudgeAnswer, CheckError>> + Send + 'a>>;

/// What a judge is asked.
#[derive(Debug)]
pub struct JudgeQuestion<'a> {
    /// The name of the check.
    pub check: &'a str,
    pub rubric: &'a str,
    /// The agent that the check names, or else the goal's first.
    pub agent: &'a AgentName,
    /// An unused name for the directory of its logs.
    pub run: String,
    /// The timeout of the check.
    pub timeout: Duration,
    /// What is left of it.
    pub left: Duration,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeAnswer {
    Opinion(Opinion),
    /// It accepted the same files before, in a verdict that was not reached.
    Accepted(CheckResult),
    /// None, for a reason that may pass in a moment.
    NotNow {
        why: String,
        /// Whether it has used something. Then it is not asked again at once: the core counts what that costs, and decides.
        paid: bool,
    },
    /// It answered, and its answer is none.
    Unclear {
        why: String,
    },
    /// None, and asking again now would not help.
    No(NoOpinion),
}

impl fmt::Debug for Judges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked(_) => "Asked",
            Self::Recorded(_) => "Recorded",
            Self::LeftOut => "LeftOut",
        })
    }
}

impl CheckRun<'_> {
    /// The results of the goal's judges, for work that meets all other checks. The first that does not accept is the last that is asked.
    pub(crate) async fn ask_judges<F: Future<Output = ()>>(
        &self,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Vec<CheckResult>, CheckError> {
        let mut results: Vec<CheckResult> = Vec::new();
        let judges = self.goal.checks.iter().zip(1..).filter(|(check, _)| check.kind.is_judge());
        for (check, number) in judges {
            let started = Instant::now();
            let result = match self.judges {
                Judges::LeftOut => continue,
                Judges::Recorded(recorded) => {
                    not_asked_again(check, recorded).into_result(&check.name, started.elapsed())
                }
                Judges::Asked(judge) => {
                    on_progress(Progress::Started { name: check.name.clone(), process: None });
                    match self.asked(judge, check, &log_name(check, number), stop).await? {
                        Asked::Now(opinion) => found(opinion).into_result(&check.name, started.elapsed()),
                        Asked::Before(result) => result,
                    }
                }
            };
            on_progress(Progress::Finished { result: result.clone() });
            let is_last = !result.met;
            results.push(result);
            if is_last {
                break;
            }
        }
        Ok(results)
    }

    /// Asks until there is an opinion, as often as it makes sense and there is time.
    async fn asked<F: Future<Output = ()>>(
        &self,
        judge: &dyn Judge,
        check: &Check,
        log_name: &str,
        stop: &mut Stop<F>,
    ) -> Result<Asked, CheckError> {
        let bad = |problem| CheckError::BadCheck { check: check.name.clone(), problem };
        let CheckKind::Judge { rubric, agent } = &check.kind else { return Err(bad("is not a judge")) };
        let agent = agent.as_ref().or_else(|| self.goal.agents.first());
        let agent = agent.ok_or_else(|| bad("names no agent, and the goal has none; add `agent`"))?;
        let none =
            |reason| Err(CheckError::NoOpinion { check: check.name.clone(), agent: agent.clone(), reason });
        let (started, timeout) = (Instant::now(), check.timeout);
        let mut pauses = PAUSES.into_iter();
        let mut was_unclear = false;
        loop {
            stop.must_not_have_come().await?;
            let (run, left) = (run_logs::unused(log_name), timeout.saturating_sub(started.elapsed()));
            let question = JudgeQuestion { check: &check.name, rubric, agent, run, timeout, left };
            let answer = judge.ask(question).await?;
            let fits = |pause: &Duration| started.elapsed() + *pause + timeout / REST <= timeout;
            let pause = match answer {
                JudgeAnswer::Opinion(opinion) => return Ok(Asked::Now(opinion)),
                JudgeAnswer::Accepted(result) => return Ok(Asked::Before(result)),
                JudgeAnswer::No(reason) => return none(reason),
                JudgeAnswer::NotNow { why, paid } => match pauses.next().filter(fits) {
                    Some(pause) if !paid => pause,
                    _ => return none(NoOpinion::Unreachable { message: why }),
                },
                JudgeAnswer::Unclear { why } if was_unclear => {
                    return none(NoOpinion::Unusable {
                        message: format!("{why}; retry the goal, or let another model judge"),
                    });
                }
                JudgeAnswer::Unclear { why } if !fits(&Duration::ZERO) => {
                    return none(NoOpinion::Unreachable { message: why });
                }
                JudgeAnswer::Unclear { .. } => {
                    was_unclear = true;
                    Duration::ZERO
                }
            };
            tokio::select! {
                () = stop.wait() => return Err(CheckError::Stopped),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// That judges were not asked again, if so.
    pub(crate) fn recorded_note(&self) -> Option<String> {
        let is_recorded = matches!(self.judges, Judges::Recorded(_));
        let mut names = self.goal.checks.iter().filter(|check| check.kind.is_judge() && is_recorded);
        let first = names.next()?.name.clone();
        let names = names.fold(first, |names, check| format!("{names}, {}", check.name));
        Some(format!("not asked again, because a judge costs money: {names} (the recorded result counts)"))
    }
}

/// What a judge thinks of the work.
enum Asked {
    Now(Opinion),
    Before(CheckResult),
}

/// What an opinion means for the work.
fn found(Opinion { accepts, reasons }: Opinion) -> Finding {
    match accepts {
        true => Finding::met().with_evidence(words_of_judge(&reasons)),
        false if reasons.is_empty() => Finding::not_met("the judge rejects the work, and gives no reason"),
        false => Finding::not_met("the judge rejects the work; its reasons, in its own words, are below")
            .with_evidence(words_of_judge(&reasons)),
    }
}

fn words_of_judge(reasons: &[String]) -> String {
    evidence::listed(reasons.iter().map(|reason| {
        let words: Vec<&str> = reason.split_whitespace().collect();
        format!("- {}", words.join(" "))
    }))
}

/// What was found before counts. A judge that was never asked has accepted nothing.
fn not_asked_again(check: &Check, recorded: &[CheckResult]) -> Finding {
    match recorded.iter().find(|result| result.name == check.name) {
        None => Finding::not_met(NEVER_ASKED),
        Some(result) => {
            let finding = if result.met {
                Finding::met()
            } else {
                let problem = result.problem.clone();
                Finding::not_met(problem.unwrap_or_else(|| "the judge rejected the work".to_owned()))
            };
            finding.with_evidence(result.evidence.clone())
        }
    }
}
