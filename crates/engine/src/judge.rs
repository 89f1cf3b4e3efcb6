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
    AbsentJudge, AgentName, AttemptId, AttemptNo, Axis, CheckResult, End, Event, Exhibit, Goal, GoalState,
    Judging, Launch, MicroUsd, NoOpinion, Opinion, SessionPlan, Tokens, Usage, show_duration,
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
/// The folder of the logs, below that of the attempt. Those of checks are removed when the work is checked again.
const LOGS: &str = "judges";
/// How many batches of a judge's events may wait.
const NEWS_WAITING: usize = 4;
/// How much of a list of changed files is part of a prompt.
const LONGEST_LIST: usize = 16 * 1024;
/// How much of a last message is shown that is no answer.
const LONGEST_WORDS: usize = 200;

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
    /// The judge without which the work got no verdict before.
    absent: Option<AbsentJudge>,
    /// What judges have accepted of the attempt, each with the tree.
    accepted: Vec<(String, CheckResult)>,
}

impl JudgeMeans {
    pub(crate) fn of(goal: &Goal, state: &GoalState, attempt: AttemptNo) -> Self {
        let accepted = state.judges.iter().filter(|judge| judge.attempt == attempt);
        let accepted = accepted.filter_map(|judge| Some((judge.tree.clone(), judge.accepted.clone()?)));
        let tokens = state.usage().tokens();
        Self {
            asked: state.judges.iter().map(|judge| judge.n).max().unwrap_or(0),
            usd: state.usd_left(),
            tokens: state.budget.tokens.map(|limit| Tokens(limit.0.saturating_sub(tokens.0))),
            model: state.model.clone().or_else(|| goal.model.clone()),
            used: Usage::default(),
            absent: state.absent_judge.clone(),
            accepted: accepted.collect(),
        }
    }

    /// What the judge of this check found, if it has accepted this tree before.
    fn accepted(&self, check: &str, tree: &str) -> Option<CheckResult> {
        let mut accepted = self.accepted.iter();
        let found = accepted.find(|(judged, result)| judged == tree && result.name == check);
        found.map(|(_, result)| result.clone())
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
        if let Some(result) = self.means().accepted(question.check, &self.candidate.tree) {
            return Ok(JudgeAnswer::Accepted(result));
        }
        if let Some(axis) = self.means().spent_with(Usage::default()) {
            return Ok(JudgeAnswer::No(NoOpinion::Budget { axis }));
        }
        let chosen = match self.choose(question.agent) {
            Ok(chosen) => chosen,
            Err(message) => return Ok(JudgeAnswer::No(NoOpinion::Unusable { message })),
        };
        if let Some(reason) = self.known_obstacle(&chosen.name).await {
            return Ok(JudgeAnswer::No(reason));
        }
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
        // One that had finished is paid for: what it accepted need not be asked again.
        if *self.stop.borrow() > StopLevel::Run && heard.end != End::Completed {
            return Err(CheckError::Stopped);
        }
        Ok(answer(heard, &question, &name, &sign_in))
    }

    /// The agent that judges, as it is to be started.
    fn choose(&self, name: &AgentName) -> Result<Chosen, String> {
        let settings = self.resolved.agents.get(name).ok_or_else(|| {
            format!("agent `{name}` is not in the configuration; add `[agents.{name}]`, and retry the goal")
        })?;
        let settings = settings
            .as_judge()
            .map_err(|fix| format!("agent `{name}` cannot be a judge: {fix}, and retry the goal"))?;
        // What the goal names for its own agents may mean nothing to another one.
        let model = self.means().model.clone().filter(|_| self.goal.agents.contains(name));
        Ok(Chosen { name: name.clone(), settings, model })
    }

    /// What is known of the agent's account that makes asking useless. What cannot be read is no obstacle.
    async fn known_obstacle(&self, agent: &AgentName) -> Option<NoOpinion> {
        let accounts = self.shared.store.accounts().await.unwrap_or_default();
        let account = accounts.iter().find(|account| account.name == self.goal.account_of(agent))?;
        account.keeps_from_judging(self.means().absent.as_ref(), self.shared.clock.now())
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
        let directory = format!("{LOGS}/{}", question.run);
        let run_dir = self.shared.home.attempt(self.goal.id, self.attempt).join(&directory);
        let started = Event::JudgeStarted {
            n,
            check: question.check.to_owned(),
            agent: chosen.name.clone(),
            account: self.goal.account_of(&chosen.name).to_owned(),
            model: chosen.model.clone().or_else(|| chosen.settings.model.clone()),
            directory,
            tree: self.candidate.tree.clone(),
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
        let seat = JudgeSeat { run_dir, directory: place.to_owned(), settings: chosen.settings };
        let (batches, incoming) = mpsc::channel(NEWS_WAITING);
        let sender = EventSender::new(batches, self.sender.stamp().generation, Some(self.attempt));
        let (stop, stopped) = watch::channel(StopLevel::Run);
        // Nobody speaks to a judge.
        let (_nobody, deliveries) = mpsc::unbounded_channel();
        let control = ExecutorControl { stop: stopped, lease_ends: self.lease_ends.clone(), deliveries };
        let run = attempt::run(Arc::clone(self.shared), self.job(launch, seat), sender, control);
        let hearing = Hearing::new(self, n, stop, question.left);
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
    let paid = !heard.used.is_empty() || Judging::used_at_end(&heard.end);
    let Heard { end, cut, text, .. } = heard;
    let unusable = |message: String| JudgeAnswer::No(NoOpinion::Unusable { message });
    match (&end, cut) {
        (End::Completed, _) => match Opinion::read(&text) {
            Ok(opinion) => JudgeAnswer::Opinion(opinion),
            Err(why) => JudgeAnswer::Unclear { why: format!("{why}{}", last_words(&text)) },
        },
        (End::RateLimited { until }, _) => {
            JudgeAnswer::No(NoOpinion::Limited { until: *until, guessed: false })
        }
        (End::OverBudget, Some(Cut::Spent(axis))) => JudgeAnswer::No(NoOpinion::Budget { axis }),
        (End::Asked, _) => unusable(format!(
            "it asked a question, which nobody answers while it judges{}; retry the goal, or let another model judge",
            last_words(&text)
        )),
        (End::Auth { .. }, _) => {
            unusable(format!("the credentials of agent `{name}` were refused; {sign_in}, and retry the goal"))
        }
        (End::TimedOut { .. }, Some(Cut::TimeIsUp)) => {
            JudgeAnswer::NotNow { why: format!("no answer within {}", show_duration(question.timeout)), paid }
        }
        (
            End::ServerError { .. }
            | End::Crashed { .. }
            | End::Lost
            | End::Interrupted
            | End::TimedOut { .. },
            _,
        ) => JudgeAnswer::NotNow { why: in_words(name, &end), paid },
        _ => unusable(format!("{}; retry the goal, or let another agent judge", in_words(name, &end))),
    }
}

fn in_words(name: &AgentName, end: &End) -> String {
    match (end, end.detail()) {
        (End::SpawnFailed { problem }, _) => format!("agent `{name}` could not be started: {problem}"),
        (end, Some(detail)) => format!("agent `{name}` ended as {}: {detail}", end.kind()),
        (end, None) => format!("agent `{name}` ended as {}", end.kind()),
    }
}

/// The end of a last message in one line, to be put after what is wrong with it.
fn last_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match &text[text.ceil_char_boundary(text.len().saturating_sub(LONGEST_WORDS))..] {
        "" => String::new(),
        end => format!(" (“{end}”)"),
    }
}

/// Where a judge that an engine has started has its logs.
pub(crate) fn logs_of(shared: &Shared, goal: &Goal, judging: &Judging) -> PathBuf {
    shared.home.attempt(goal.id, judging.attempt).join(judging.logs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use towline_core::{LaunchProblem, Timeout};

    use super::*;
    use crate::tests::values::goal;

    const ACCEPTS: &str = r#"{"towline": "judge", "accept": true}"#;

    fn answer_to(cut: Option<Cut>, end: End, text: &str) -> JudgeAnswer {
        answer_with(Usage::default(), cut, end, text)
    }

    fn answer_with(used: Usage, cut: Option<Cut>, end: End, text: &str) -> JudgeAnswer {
        let heard = Heard { end, cut, text: text.to_owned(), used };
        let critic = AgentName::new("critic");
        let (timeout, left) = (Duration::from_secs(60), Duration::from_secs(20));
        let run = "1-review".to_owned();
        let question = JudgeQuestion { check: "review", rubric: "r", agent: &critic, run, timeout, left };
        answer(heard, &question, &critic, "run `critic login`")
    }

    #[test]
    fn a_judge_that_used_something_without_an_answer_is_paid_also_if_it_could_not_report_it() {
        let not_now = |paid| move |why: &str| JudgeAnswer::NotNow { why: why.to_owned(), paid };
        let timed_out = |timeout| End::TimedOut { timeout };
        let late = Some(Cut::TimeIsUp);
        let no_answer = "no answer within 1m 00s";
        assert_eq!(answer_to(late, timed_out(Timeout::Turn), ""), not_now(true)(no_answer));
        assert_eq!(answer_to(late, timed_out(Timeout::Startup), ""), not_now(false)(no_answer));
        let used = Usage { input: Tokens(1), ..Usage::default() };
        let lost = "agent `critic` ended as supervisor lost";
        assert_eq!(answer_to(None, End::Lost, ""), not_now(false)(lost));
        assert_eq!(answer_with(used, None, End::Lost, ""), not_now(true)(lost));
    }

    #[test]
    fn only_a_whole_answer_of_an_agent_that_has_finished_is_an_opinion() {
        let accepted = JudgeAnswer::Opinion(Opinion { accepts: true, reasons: Vec::new() });
        assert_eq!(answer_to(None, End::Completed, ACCEPTS), accepted);
        assert_eq!(answer_to(Some(Cut::TimeIsUp), End::Completed, ACCEPTS), accepted);
        let timed_out = |timeout| End::TimedOut { timeout };
        for (cut, end) in [
            (None, End::Crashed { message: "exit code 1".into() }),
            (None, End::Lost),
            (None, End::ServerError { status: Some(529), message: "overloaded".into() }),
            (Some(Cut::Silent(Timeout::Idle)), timed_out(Timeout::Idle)),
            (Some(Cut::TimeIsUp), timed_out(Timeout::Turn)),
        ] {
            let answer = answer_to(cut, end.clone(), ACCEPTS);
            assert!(matches!(answer, JudgeAnswer::NotNow { .. }), "{end:?}: {answer:?}");
        }
        let limited = JudgeAnswer::No(NoOpinion::Limited { until: None, guessed: false });
        assert_eq!(answer_to(None, End::RateLimited { until: None }, ACCEPTS), limited);
        let spent = JudgeAnswer::No(NoOpinion::Budget { axis: Axis::Usd });
        assert_eq!(answer_to(Some(Cut::Spent(Axis::Usd)), End::OverBudget, ACCEPTS), spent);
        let JudgeAnswer::Unclear { why } = answer_to(None, End::Completed, "accept:\ntrue") else {
            panic!("it is clear");
        };
        assert_eq!(why, "its last message does not end in a JSON object (“accept: true”)");
    }

    #[test]
    fn what_a_person_must_repair_names_the_agent_and_the_fix() {
        let not_found = LaunchProblem::NotFound { program: "critic".into() };
        for (end, parts) in [
            (End::Asked, ["asked a question", "retry the goal"]),
            (End::Auth { message: "401".into() }, ["agent `critic`", "run `critic login`"]),
            (End::SpawnFailed { problem: not_found }, ["agent `critic` could not be started", "install it"]),
            (End::Declined { message: "no".into() }, ["agent `critic` ended as", "let another agent judge"]),
            (End::MaxTurns, ["agent `critic` ended as", "let another agent judge"]),
        ] {
            let answer = answer_to(None, end.clone(), ACCEPTS);
            let JudgeAnswer::No(NoOpinion::Unusable { message }) = &answer else {
                panic!("{end:?}: {answer:?}");
            };
            assert!(parts.iter().all(|part| message.contains(part)), "{end:?}: {message}");
        }
    }

    #[test]
    fn an_acceptance_is_one_of_its_check_its_tree_and_its_attempt() {
        let mut state = GoalState::new(&goal(1));
        let result = |name: &str| CheckResult {
            name: name.into(),
            met: true,
            exit_code: None,
            problem: None,
            evidence: String::new(),
            took: Duration::ZERO,
            output: None,
            tests: None,
        };
        state.judges.push(Judging {
            n: 1,
            attempt: AttemptNo::FIRST,
            check: "review".into(),
            agent: AgentName::new("critic"),
            account: "critic".into(),
            model: None,
            directory: "judges/1-review-1".into(),
            started_at: crate::tests::values::beginning(),
            ended_at: None,
            end: Some(End::Completed),
            usage: Usage::default(),
            tree: "t1".into(),
            accepted: Some(result("review")),
        });
        let means = JudgeMeans::of(&goal(1), &state, AttemptNo::FIRST);
        assert_eq!(means.accepted("review", "t1"), Some(result("review")));
        assert_eq!((means.accepted("review", "t2"), means.accepted("other", "t1")), (None, None));
        let second = JudgeMeans::of(&goal(1), &state, AttemptNo::after(1));
        assert_eq!(second.accepted("review", "t1"), None);
    }

    #[test]
    fn judges_may_use_what_is_left_of_the_budget_and_share_it() {
        let mut goal = goal(1);
        (goal.budget.usd, goal.budget.tokens) = (Some(MicroUsd(100)), Some(Tokens(1_000)));
        let mut means = JudgeMeans::of(&goal, &GoalState::new(&goal), AttemptNo::FIRST);
        let used = |tokens, micro| Usage { input: Tokens(tokens), cost: MicroUsd(micro), ..Usage::default() };
        assert_eq!(means.spent_with(used(999, 99)), None);
        assert_eq!(means.spent_with(used(1, 100)), Some(Axis::Usd));
        assert_eq!(means.spent_with(used(1_000, 1)), Some(Axis::Tokens));
        means.used += used(500, 60);
        assert_eq!(means.spent_with(used(1, 40)), Some(Axis::Usd));
        assert_eq!(JudgeMeans::default().spent_with(used(1 << 40, 1 << 40)), None);
    }
}
