//! Asks an agent to judge the work: a conversation of its own, in a checkout of its own, by the same code as an attempt.
//!
//! Neighbours: `towline-check` decides when a judge is asked and what its answer means for the verdict; `attempt` starts the agent and
//! reads its output; `hearing` adds up what it reports. What it used is recorded while it works, as a sum, so it counts once whatever
//! happens to this engine.

mod hearing;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use towline_agent::{AgentSettings, UnknownPrice, agent};
use towline_check::{Asking, CheckError, Judge, JudgeAnswer, JudgeQuestion};
use towline_core::{
    AgentName, AttemptId, AttemptNo, Axis, End, Event, Exhibit, Goal, GoalState, Launch, MicroUsd, Opinion,
    SessionPlan, Tokens, Usage, show_duration,
};
use towline_workspace::{Candidate, Repository};

use self::hearing::{Cut, Heard, Hearing};
pub(crate) use self::hearing::{LeftByJudge, left_by};
use crate::attempt::{self, AttemptJob, JudgeSeat};
use crate::confinement::give_back_of_judge;
use crate::engine::Shared;
use crate::executors::ExecutorControl;
use crate::news::{DriverGone, EventSender, StopLevel, own};
use crate::prepare::{stopped, try_stoppable};
use crate::resolver::Resolved;

/// The folder of the candidate, below the directory that the judge works in. Agents read their instructions and settings from the
/// directory they are started in, and the agent that did the work has written those of the candidate.
const FOLDER: &str = "candidate";
/// How many batches of a judge's events may wait.
const NEWS_WAITING: usize = 4;
/// How much of a list of changed files is part of a prompt.
const LONGEST_LIST: usize = 16 * 1024;
/// How much of a last message is shown that is no answer.
const LONGEST_WORDS: usize = 1_000;

/// Asks the judges of one verdict.
pub(crate) struct AgentJudge<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) goal: &'a Goal,
    pub(crate) resolved: &'a Arc<Resolved>,
    pub(crate) repository: &'a Repository,
    pub(crate) candidate: &'a Candidate,
    /// The attempt whose work is judged.
    pub(crate) attempt: AttemptNo,
    pub(crate) sender: &'a EventSender,
    pub(crate) stop: watch::Receiver<StopLevel>,
    pub(crate) lease_ends: watch::Receiver<Instant>,
    pub(crate) means: Mutex<JudgeMeans>,
}

/// What the judges of a verdict may still use.
#[derive(Debug, Clone, Default)]
pub(crate) struct JudgeMeans {
    /// How many judges the goal has asked so far.
    asked: u32,
    /// What was left of the goal's budgets before the verdict.
    usd: Option<MicroUsd>,
    tokens: Option<Tokens>,
    /// The model that the goal names for its agents.
    model: Option<String>,
    /// What judges have used since.
    used: Usage,
}

impl JudgeMeans {
    pub(crate) fn of(goal: &Goal, state: &GoalState) -> Self {
        let tokens = state.usage().tokens();
        Self {
            asked: state.judges.iter().map(|judge| judge.n).max().unwrap_or(0),
            usd: state.usd_left(),
            tokens: state.budget.tokens.map(|limit| Tokens(limit.0.saturating_sub(tokens.0))),
            model: state.model.clone().or_else(|| goal.model.clone()),
            used: Usage::default(),
        }
    }

    /// The budget that is spent when this was used as well.
    fn spent_with(&self, used: Usage) -> Option<Axis> {
        let all = self.used + used;
        let usd = self.usd.filter(|left| all.spent().amount >= *left).map(|_| Axis::Usd);
        let tokens = || self.tokens.filter(|left| all.tokens() >= *left).map(|_| Axis::Tokens);
        usd.or_else(tokens)
    }
}

/// An agent that is to judge.
struct Chosen {
    name: AgentName,
    settings: AgentSettings,
    model: Option<String>,
}

impl Judge for AgentJudge<'_> {
    fn ask<'a>(&'a self, question: JudgeQuestion<'a>) -> Asking<'a> {
        Box::pin(async move {
            let place = self.shared.home.judges_place(self.goal.id);
            let answer = self.ask_in(&place, question).await;
            // What cannot be removed now is removed before the next judge, or with the goal.
            let _ = self.clear(&place);
            answer
        })
    }
}

impl AgentJudge<'_> {
    fn means(&self) -> MutexGuard<'_, JudgeMeans> {
        self.means.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_in(&self, place: &Path, question: JudgeQuestion<'_>) -> Result<JudgeAnswer, CheckError> {
        let no_opinion = |why: String| Ok(JudgeAnswer::NoOpinion { why, words: String::new() });
        if let Some(axis) = self.means().spent_with(Usage::default()) {
            return no_opinion(format!(
                "the goal's budget `{axis}` is spent, so it was not asked; raise it and retry the goal"
            ));
        }
        let chosen = match self.choose(question.agent) {
            Ok(chosen) => chosen,
            Err(why) => return no_opinion(why),
        };
        let prompt = self.check_out(place, question.rubric).await?;
        let n = {
            let mut means = self.means();
            means.asked += 1;
            means.asked
        };
        let sign_in = agent(chosen.settings.kind).sign_in_hint(&chosen.settings);
        let name = chosen.name.clone();
        let heard = self.converse(n, place, chosen, prompt, &question).await.map_err(lost)?;
        self.means().used += heard.used;
        if *self.stop.borrow() > StopLevel::Run {
            return Err(CheckError::Stopped);
        }
        Ok(answer(heard, &question, &name, &sign_in))
    }

    /// The agent that judges: the one that the check names, or the goal's first.
    fn choose(&self, named: Option<&AgentName>) -> Result<Chosen, String> {
        let name = named.or_else(|| self.goal.agents.first()).ok_or("the goal has no agent")?;
        let settings = self.resolved.agents.get(name).ok_or_else(|| {
            format!("agent `{name}` is not in the configuration; add `[agents.{name}]`, and retry the goal")
        })?;
        let settings =
            settings.as_judge().map_err(|fix| format!("agent `{name}` cannot be a judge: {fix}"))?;
        // What the goal names for its own agents may mean nothing to another one.
        let model = self.means().model.clone().filter(|_| self.goal.agents.contains(name));
        Ok(Chosen { name: name.clone(), settings, model })
    }

    /// Makes a checkout of the candidate for the judge alone, and writes the prompt.
    async fn check_out(&self, place: &Path, rubric: &str) -> Result<String, CheckError> {
        // A killed engine may have left a home in which an agent had refreshed what signs it in.
        if let Err(text) = give_back_of_judge(&self.shared.home, self.goal).await {
            // A driver that is gone needs no report.
            let _ = self.sender.send_own(Event::Notice { text }).await;
        }
        let made = self.clear(place).and_then(|()| self.shared.home.make(place));
        made.map_err(|source| CheckError::Logs { action: "make", path: place.to_owned(), source })?;
        let (own, path) = (self.repository.clone(), place.join(FOLDER));
        let (base, commit) = (self.goal.workspace.base.clone(), self.candidate.commit.clone());
        let made = try_stoppable(stopped(self.stop.clone()), move |halt| {
            let own = own.until(halt);
            // What the user copies into checkouts may be secret.
            towline_workspace::verification(&own, &path, &commit, &[]).map(drop)?;
            let files = own.diff_stat(&base, &commit)?.to_string();
            Ok((files, own.diff(&base, &commit)?))
        });
        let (files, diff) = made.await?;
        let exhibit = Exhibit {
            rubric,
            candidate: &self.candidate.commit,
            folder: FOLDER,
            files: &files[..files.floor_char_boundary(LONGEST_LIST)],
            diff: &diff,
        };
        Ok(exhibit.prompt(self.goal))
    }

    fn clear(&self, place: &Path) -> io::Result<()> {
        self.shared.home.remove(place)?;
        self.shared.home.remove(&self.shared.home.judges_home(self.goal.id))
    }

    /// Holds one conversation to its end, and records its start, what it uses, and its end.
    async fn converse(
        &self,
        n: u32,
        place: &Path,
        chosen: Chosen,
        prompt: String,
        question: &JudgeQuestion<'_>,
    ) -> Result<Heard, DriverGone> {
        let id = AttemptId::of_judge(self.goal.id, n);
        let directory = question.run_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let started = Event::JudgeStarted {
            n,
            check: question.check.to_owned(),
            agent: chosen.name.clone(),
            account: self.goal.account_of(&chosen.name).to_owned(),
            model: chosen.model.clone().or_else(|| chosen.settings.model.clone()),
            directory,
        };
        // Nothing is spent that no engine could find again.
        self.sender.send_and_wait(vec![own(self.sender.stamp(), started)]).await?;
        let launch = Launch {
            attempt: self.attempt,
            id,
            agent: chosen.name,
            model: chosen.model,
            session: SessionPlan::Fresh(id.fresh_session()),
            compact: None,
            prompt,
            permitted: Vec::new(),
        };
        let (run_dir, directory) = (question.run_dir.clone(), place.to_owned());
        let seat = JudgeSeat { run_dir, directory, settings: chosen.settings };
        let (batches, incoming) = mpsc::channel(NEWS_WAITING);
        let sender = EventSender::new(batches, self.sender.stamp().generation, Some(self.attempt));
        let (stop, stopped) = watch::channel(StopLevel::Run);
        // Nobody speaks to a judge.
        let (_nobody, deliveries) = mpsc::unbounded_channel();
        let control = ExecutorControl { stop: stopped, lease_ends: self.lease_ends.clone(), deliveries };
        let run = attempt::run(Arc::clone(self.shared), self.job(launch, seat), sender, control);
        let hearing = Hearing::new(self, n, stop, question.timeout);
        let ((), heard) = tokio::join!(run, hearing.listen(incoming));
        let heard = heard?;
        let ended = Event::JudgeEnded { n, end: heard.end.clone() };
        self.sender.send_and_wait(vec![own(self.sender.stamp(), ended)]).await?;
        Ok(heard)
    }

    fn job(&self, launch: Launch, seat: JudgeSeat) -> AttemptJob {
        let unknown_price = match self.means().usd {
            Some(_) => UnknownPrice::Report,
            None => UnknownPrice::Ignore,
        };
        AttemptJob {
            goal: self.goal.clone(),
            resolved: Arc::clone(self.resolved),
            workspace: None,
            checked: None,
            read_to: 0,
            started: false,
            started_at: self.shared.clock.now(),
            answered: BTreeMap::new(),
            used_before: Usage::default(),
            unknown_price,
            launch,
            judge: Some(seat),
        }
    }
}

/// The next engine finds what this one has started.
fn lost(DriverGone: DriverGone) -> CheckError {
    CheckError::Lost { message: "the goal's driver ended while a judge was asked".to_owned() }
}

/// What a conversation means that is over. Only a whole answer of an agent that has finished is an opinion.
fn answer(heard: Heard, question: &JudgeQuestion<'_>, name: &AgentName, sign_in: &str) -> JudgeAnswer {
    let Heard { end, cut, text, .. } = heard;
    let no_opinion = |why: String| JudgeAnswer::NoOpinion { why, words: last_words(&text) };
    match (cut, end) {
        (Some(Cut::Asked), _) => {
            no_opinion("it asked a question, which nobody answers while it judges".to_owned())
        }
        (_, End::Completed) => match Opinion::read(&text) {
            Ok(opinion) => JudgeAnswer::Opinion(opinion),
            Err(why) => no_opinion(why),
        },
        (Some(Cut::Spent(axis)), _) => no_opinion(format!(
            "the goal's budget `{axis}` was spent while it judged; raise it and retry the goal"
        )),
        (Some(Cut::TimeIsUp), _) => {
            no_opinion(format!("it did not answer within {}", show_duration(question.timeout)))
        }
        (Some(Cut::Refused), _) | (None, End::Auth { .. }) => no_opinion(format!(
            "the credentials of agent `{name}` were refused; {sign_in}, and retry the goal"
        )),
        (Some(Cut::Silent(timeout)), _) => {
            JudgeAnswer::NotNow { why: format!("agent `{name}` reached its {timeout} timeout") }
        }
        (
            None,
            end @ (End::RateLimited { .. }
            | End::ServerError { .. }
            | End::Crashed { .. }
            | End::Lost
            | End::SpawnFailed { .. }
            | End::Interrupted
            | End::TimedOut { .. }),
        ) => JudgeAnswer::NotNow { why: in_words(name, &end) },
        (None, end) => no_opinion(in_words(name, &end)),
    }
}

fn in_words(name: &AgentName, end: &End) -> String {
    match (end, end.detail()) {
        (End::SpawnFailed { problem }, _) => format!("agent `{name}` could not be started: {problem}"),
        (end, Some(detail)) => format!("agent `{name}` ended as {}: {detail}", end.name()),
        (end, None) => format!("agent `{name}` ended as {}", end.name()),
    }
}

fn last_words(text: &str) -> String {
    let text = text.trim();
    text[text.ceil_char_boundary(text.len().saturating_sub(LONGEST_WORDS))..].to_owned()
}

/// Where a judge that an engine has started has its logs.
pub(crate) fn logs_of(shared: &Shared, goal: &Goal, judging: &towline_core::Judging) -> PathBuf {
    shared.home.attempt(goal.id, judging.attempt).join("checks").join(&judging.directory)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use towline_core::{LaunchProblem, Timeout};

    use super::*;
    use crate::tests::values::goal;

    const ACCEPTS: &str = r#"{"towline": "judge", "accept": true}"#;

    fn answer_to(cut: Option<Cut>, end: End, text: &str) -> JudgeAnswer {
        let heard = Heard { end, cut, text: text.to_owned(), used: Usage::default() };
        let question = JudgeQuestion {
            check: "review",
            rubric: "r",
            agent: None,
            run_dir: PathBuf::new(),
            timeout: Duration::from_secs(60),
        };
        answer(heard, &question, &AgentName::new("critic"), "run `critic login`")
    }

    #[test]
    fn only_a_whole_answer_of_an_agent_that_has_finished_is_an_opinion() {
        let accepted = JudgeAnswer::Opinion(Opinion { accepts: true, reasons: Vec::new() });
        assert_eq!(answer_to(None, End::Completed, ACCEPTS), accepted);
        // It had finished in the moment in which it was stopped.
        assert_eq!(answer_to(Some(Cut::TimeIsUp), End::Completed, ACCEPTS), accepted);
        let crashed = || End::Crashed { message: "exit code 1".into() };
        let not_found = LaunchProblem::NotFound { program: "critic".into() };
        for (cut, end) in [
            (None, crashed()),
            (None, End::Lost),
            (None, End::RateLimited { until: None }),
            (None, End::ServerError { status: Some(529), message: "overloaded".into() }),
            (None, End::SpawnFailed { problem: not_found }),
            (Some(Cut::Silent(Timeout::Idle)), crashed()),
        ] {
            let answer = answer_to(cut, end.clone(), ACCEPTS);
            assert!(matches!(answer, JudgeAnswer::NotNow { .. }), "{end:?}: {answer:?}");
        }
        for (cut, end, part) in [
            (None, End::Completed, "does not end in a JSON object"),
            (Some(Cut::Asked), End::Completed, "asked a question"),
            (Some(Cut::Spent(Axis::Usd)), crashed(), "budget `usd` was spent"),
            (Some(Cut::TimeIsUp), crashed(), "did not answer within"),
            (Some(Cut::Refused), crashed(), "run `critic login`"),
            (None, End::Auth { message: "401".into() }, "run `critic login`"),
            (None, End::Declined { message: "no".into() }, "agent `critic` ended as"),
            (None, End::MaxTurns, "agent `critic` ended as"),
        ] {
            let answer = answer_to(cut, end.clone(), "accept: true");
            let JudgeAnswer::NoOpinion { why, words } = &answer else { panic!("{end:?}: {answer:?}") };
            assert!(why.contains(part), "{end:?}: {why}");
            assert_eq!(words, "accept: true");
        }
    }

    #[test]
    fn judges_may_use_what_is_left_of_the_budget_and_share_it() {
        let mut goal = goal(1);
        (goal.budget.usd, goal.budget.tokens) = (Some(MicroUsd(100)), Some(Tokens(1_000)));
        let mut means = JudgeMeans::of(&goal, &GoalState::new(&goal));
        let used = |tokens, micro| Usage { input: Tokens(tokens), cost: MicroUsd(micro), ..Usage::default() };
        assert_eq!(means.spent_with(used(999, 99)), None);
        assert_eq!(means.spent_with(used(1, 100)), Some(Axis::Usd));
        assert_eq!(means.spent_with(used(1_000, 1)), Some(Axis::Tokens));
        means.used += used(500, 60);
        assert_eq!(means.spent_with(used(1, 40)), Some(Axis::Usd));
        assert_eq!(JudgeMeans::default().spent_with(used(1 << 40, 1 << 40)), None);
    }
}
