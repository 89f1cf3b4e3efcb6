//! The deadlines of a running attempt.
//!
//! The engine waits for the next one and reports it as [`crate::Event::TimeoutReached`]. The result depends only on the
//! times that are passed in, so an attempt that is read again from its log has the deadlines of the original run.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::AgentEvent;
use crate::policy::Policy;

/// The timeout that an attempt or a goal has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timeout {
    /// No session came up.
    Startup,
    /// Nothing was heard for too long.
    Idle,
    /// The turn took too long.
    Turn,
    /// The goal's time is up. The driver watches it, for all attempts together.
    Wall,
    /// Nobody answered the agent.
    Answer,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "start-up",
            Self::Idle => "idle",
            Self::Turn => "turn",
            Self::Wall => "wall",
            Self::Answer => "answer",
        })
    }
}

/// How long an attempt may take for each step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// From the start of the process to its session.
    pub startup: Duration,
    /// Between two signs of life.
    pub idle: Duration,
    pub turn: Duration,
}

/// The deadlines of one attempt.
#[derive(Debug, Clone)]
pub struct Deadlines {
    limits: Timeouts,
    started: Timestamp,
    in_session: bool,
    last_sign: Timestamp,
    /// Tools at work: a long build is not idleness.
    tools: BTreeSet<String>,
    /// The end of a pause that the agent announced, such as before a retry.
    announced_pause: Option<Timestamp>,
    /// When each unanswered request was made, oldest first.
    unanswered: VecDeque<Timestamp>,
    /// Since when the agent has been waiting for answers without a break.
    waiting_since: Option<Timestamp>,
    /// The time that went by in earlier waits. It is not the agent's, so it does not count against it.
    waited: Duration,
}

impl Deadlines {
    /// Deadlines for an attempt that started at this moment, now or before.
    pub const fn start(limits: Timeouts, started: Timestamp) -> Self {
        Self {
            limits,
            started,
            in_session: false,
            last_sign: started,
            tools: BTreeSet::new(),
            announced_pause: None,
            unanswered: VecDeque::new(),
            waiting_since: None,
            waited: Duration::ZERO,
        }
    }

    /// Takes note that the agent printed something, whatever it means. The order of signs does not matter: the newest
    /// one counts.
    pub fn heard(&mut self, now: Timestamp) {
        self.last_sign = self.last_sign.max(now);
    }

    /// Takes note that the agent waits for an answer, ours or a person's. Until it has been [answered](Self::answered),
    /// only [`Policy::ANSWER_PATIENCE`] runs. Each of several open requests counts.
    pub fn waiting(&mut self, now: Timestamp) {
        self.heard(now);
        self.unanswered.push_back(now);
        self.waiting_since.get_or_insert(now);
    }

    /// Takes note that one request was answered or withdrawn: the oldest, as far as the deadlines know. With none open,
    /// nothing happens.
    pub fn answered(&mut self, now: Timestamp) {
        if self.unanswered.pop_front().is_some() {
            self.heard(now);
            if self.unanswered.is_empty() {
                self.stop_waiting(now);
            }
        }
    }

    fn stop_waiting(&mut self, now: Timestamp) {
        self.unanswered.clear();
        if let Some(since) = self.waiting_since.take() {
            self.waited += Duration::try_from(now.duration_since(since)).unwrap_or_default();
        }
    }

    /// Takes note of what the agent wrote or did.
    pub fn saw(&mut self, event: &AgentEvent, now: Timestamp) {
        self.heard(now);
        self.announced_pause = None;
        match event {
            AgentEvent::SessionStarted(_) | AgentEvent::TurnStarted => self.in_session = true,
            AgentEvent::Tool(tool) if tool.status.is_over() => {
                self.tools.remove(&tool.id);
            }
            AgentEvent::Tool(tool) => {
                self.tools.insert(tool.id.clone());
            }
            AgentEvent::Retrying { delay_ms, .. } => {
                self.announced_pause = Some(later(now, Duration::from_millis(*delay_ms)));
            }
            AgentEvent::Asked(ask) if ask.request.is_some() => self.waiting(now),
            AgentEvent::Withdrawn { .. } => self.answered(now),
            AgentEvent::TurnEnded(_) => {
                self.tools.clear();
                self.stop_waiting(now);
            }
            _ => {}
        }
    }

    /// The next moment at which something is overdue.
    pub fn next(&self) -> (Timestamp, Timeout) {
        match self.unanswered.front() {
            Some(oldest) => (later(*oldest, Policy::ANSWER_PATIENCE), Timeout::Answer),
            None => self.next_of_the_agent(),
        }
    }

    /// The next moment at which the agent is overdue, if it is the agent that everything waits for.
    fn next_of_the_agent(&self) -> (Timestamp, Timeout) {
        let begun = later(self.started, self.waited);
        let turn = (later(begun, self.limits.turn), Timeout::Turn);
        let quiet = if !self.in_session {
            (later(begun, self.limits.startup), Timeout::Startup)
        } else if self.tools.is_empty() {
            let from = self.announced_pause.map_or(self.last_sign, |pause| pause.max(self.last_sign));
            (later(from, self.limits.idle), Timeout::Idle)
        } else {
            return turn;
        };
        if quiet.0 < turn.0 { quiet } else { turn }
    }
}

/// A moment later, at most the end of time.
pub(crate) fn later(from: Timestamp, by: Duration) -> Timestamp {
    from.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{SessionId, SessionStarted, ToolKind, ToolStatus, ToolUse, TurnEnd, TurnStop};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    fn deadlines() -> Deadlines {
        let limits = Timeouts {
            startup: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            turn: Duration::from_secs(3_600),
        };
        Deadlines::start(limits, at(0))
    }

    fn session() -> AgentEvent {
        AgentEvent::SessionStarted(SessionStarted {
            native_id: SessionId::new("s"),
            resumed: false,
            model: None,
            agent_version: None,
        })
    }

    fn tool(status: ToolStatus) -> AgentEvent {
        AgentEvent::Tool(ToolUse {
            id: "t".into(),
            tool: ToolKind::Execute,
            name: "Bash".into(),
            title: "sleep".into(),
            status,
            input: None,
            output: None,
            exit_code: None,
            paths: vec![],
        })
    }

    fn turn_ended() -> AgentEvent {
        AgentEvent::TurnEnded(TurnEnd {
            stop: TurnStop::Done,
            text: String::new(),
            structured: None,
            inner_turns: None,
            reported_cost: None,
        })
    }

    /// A pause of 100 seconds.
    fn retrying() -> AgentEvent {
        AgentEvent::Retrying { status: Some(500), attempt: 1, delay_ms: 100_000, error: String::new() }
    }

    #[test]
    fn the_startup_timeout_runs_until_there_is_a_session() {
        let mut deadlines = deadlines();
        assert_eq!(deadlines.next(), (at(60), Timeout::Startup));
        deadlines.saw(&session(), at(5));
        assert_eq!(deadlines.next(), (at(605), Timeout::Idle));
    }

    #[test]
    fn an_agent_in_a_turn_has_started_even_if_it_never_names_its_session() {
        let mut deadlines = deadlines();
        deadlines.saw(&AgentEvent::TurnStarted, at(1));
        assert_eq!(deadlines.next(), (at(601), Timeout::Idle));
    }

    #[test]
    fn a_running_tool_is_not_idleness_but_the_turn_timeout_still_runs() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.saw(&tool(ToolStatus::Running), at(10));
        assert_eq!(deadlines.next(), (at(3_600), Timeout::Turn));
        deadlines.saw(&tool(ToolStatus::Ok), at(2_000));
        assert_eq!(deadlines.next(), (at(2_600), Timeout::Idle));
    }

    #[test]
    fn output_without_a_meaning_is_a_sign_of_life() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.heard(at(100));
        assert_eq!(deadlines.next(), (at(700), Timeout::Idle));
    }

    #[test]
    fn an_announced_retry_moves_the_idle_timeout() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.saw(&retrying(), at(10));
        assert_eq!(deadlines.next(), (at(710), Timeout::Idle));
    }

    #[test]
    fn a_pause_that_ended_early_counts_no_longer() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.saw(&retrying(), at(10));
        deadlines.saw(&AgentEvent::TurnStarted, at(20));
        assert_eq!(deadlines.next(), (at(620), Timeout::Idle));
    }

    #[test]
    fn a_tool_whose_end_was_never_reported_ends_with_its_turn() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.saw(&tool(ToolStatus::Running), at(10));
        deadlines.saw(&turn_ended(), at(20));
        assert_eq!(deadlines.next(), (at(620), Timeout::Idle));
    }

    #[test]
    fn while_the_agent_waits_for_an_answer_only_that_timeout_runs() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.waiting(at(100));
        assert_eq!(deadlines.next(), (at(700), Timeout::Answer));
        deadlines.waiting(at(3_500));
        assert_eq!(deadlines.next(), (at(700), Timeout::Answer));
    }

    #[test]
    fn an_answer_starts_the_idle_timeout_anew_and_gives_the_turn_its_time_back() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.waiting(at(100));
        deadlines.answered(at(600));
        assert_eq!(deadlines.next(), (at(1_200), Timeout::Idle));
        deadlines.heard(at(4_000));
        assert_eq!(deadlines.next(), (at(4_100), Timeout::Turn));
        deadlines.waiting(at(4_010));
        deadlines.answered(at(4_020));
        assert_eq!(deadlines.next(), (at(4_110), Timeout::Turn));
    }

    #[test]
    fn a_wait_lasts_until_the_last_of_several_requests_is_answered_and_is_counted_once() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.waiting(at(100));
        deadlines.waiting(at(200));
        deadlines.answered(at(300));
        assert_eq!(deadlines.next(), (at(800), Timeout::Answer));
        deadlines.answered(at(400));
        assert_eq!(deadlines.next(), (at(1_000), Timeout::Idle));
        deadlines.heard(at(3_800));
        assert_eq!(deadlines.next(), (at(3_900), Timeout::Turn));
    }

    #[test]
    fn an_answer_to_nothing_changes_nothing() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.answered(at(100));
        assert_eq!(deadlines.next(), (at(605), Timeout::Idle));
        deadlines.waiting(at(200));
        assert_eq!(deadlines.next(), (at(800), Timeout::Answer));
    }

    #[test]
    fn a_request_before_the_session_holds_the_startup_timeout_as_well() {
        let mut deadlines = deadlines();
        deadlines.waiting(at(10));
        assert_eq!(deadlines.next(), (at(610), Timeout::Answer));
        deadlines.answered(at(110));
        assert_eq!(deadlines.next(), (at(160), Timeout::Startup));
    }

    #[test]
    fn a_request_that_was_never_answered_ends_with_its_turn() {
        let mut deadlines = deadlines();
        deadlines.saw(&session(), at(5));
        deadlines.waiting(at(100));
        deadlines.saw(&turn_ended(), at(150));
        assert_eq!(deadlines.next(), (at(750), Timeout::Idle));
        deadlines.heard(at(3_600));
        assert_eq!(deadlines.next(), (at(3_650), Timeout::Turn));
    }

    /// What may happen to an attempt, each a second or more after the one before.
    #[derive(Debug, Clone)]
    enum Sign {
        Raw,
        Event(AgentEvent),
        Asks,
        Answer,
    }

    fn apply(deadlines: &mut Deadlines, sign: &Sign, now: Timestamp) {
        match sign {
            Sign::Raw => deadlines.heard(now),
            Sign::Event(event) => deadlines.saw(event, now),
            Sign::Asks => deadlines.waiting(now),
            Sign::Answer => deadlines.answered(now),
        }
    }

    fn any_sign() -> impl Strategy<Value = Sign> {
        let events = [session(), tool(ToolStatus::Running), tool(ToolStatus::Ok), retrying(), turn_ended()];
        prop_oneof![
            Just(Sign::Raw),
            prop::sample::select(events.to_vec()).prop_map(Sign::Event),
            Just(Sign::Asks),
            Just(Sign::Answer),
        ]
    }

    proptest! {
        /// Live, every sign is heard as it comes. From the log they come in chunks: first that there was output, at
        /// the time of its last byte, which may be in the middle of a line, then what its lines mean, each at its
        /// own time.
        #[test]
        fn a_log_that_is_read_again_gives_the_same_deadlines(
            chunks in prop::collection::vec(
                (prop::collection::vec((any_sign(), 1_i64..400), 1..6), 0_i64..400),
                0..8,
            ),
        ) {
            let (mut live, mut again) = (deadlines(), deadlines());
            let mut second = 0;
            for (chunk, half_a_line) in chunks {
                let timed: Vec<(Sign, Timestamp)> = chunk
                    .into_iter()
                    .map(|(sign, gap)| {
                        second += gap;
                        (sign, at(second))
                    })
                    .collect();
                for (sign, now) in &timed {
                    live.heard(*now);
                    apply(&mut live, sign, *now);
                }
                second += half_a_line;
                live.heard(at(second));
                again.heard(at(second));
                for (sign, now) in &timed {
                    apply(&mut again, sign, *now);
                }
                prop_assert_eq!(live.next(), again.next());
            }
        }
    }
}
