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
    use crate::fixtures::{at, session_started, tool, turn_end};
    use crate::{ToolStatus, TurnStop};

    fn deadlines() -> Deadlines {
        let limits = Timeouts {
            startup: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            turn: Duration::from_secs(3_600),
        };
        Deadlines::start(limits, at(0))
    }

    /// What may happen to an attempt, each a second or more after the one before.
    #[derive(Debug, Clone)]
    enum Sign {
        Raw,
        Event(AgentEvent),
        Asks,
        Answer,
    }

    fn session() -> Sign {
        Sign::Event(session_started("s", false))
    }

    fn tool_is(status: ToolStatus) -> Sign {
        Sign::Event(tool("t", status))
    }

    fn turn_ended() -> Sign {
        Sign::Event(AgentEvent::TurnEnded(turn_end(TurnStop::Done, "")))
    }

    /// A pause of 100 seconds.
    fn retrying() -> Sign {
        let error = String::new();
        Sign::Event(AgentEvent::Retrying { status: Some(500), attempt: 1, delay_ms: 100_000, error })
    }

    fn apply(deadlines: &mut Deadlines, sign: &Sign, now: Timestamp) {
        match sign {
            Sign::Raw => deadlines.heard(now),
            Sign::Event(event) => deadlines.saw(event, now),
            Sign::Asks => deadlines.waiting(now),
            Sign::Answer => deadlines.answered(now),
        }
    }

    /// What happens at which second, and the deadline after it.
    type Row = (i64, Sign, (i64, Timeout));

    #[track_caller]
    fn assert_deadlines(rows: &[Row]) {
        let mut deadlines = deadlines();
        for (second, sign, (due, timeout)) in rows {
            apply(&mut deadlines, sign, at(*second));
            assert_eq!(deadlines.next(), (at(*due), *timeout), "{sign:?} at {second}");
        }
    }

    #[test]
    fn the_startup_timeout_runs_until_there_is_a_session_or_a_turn() {
        assert_eq!(deadlines().next(), (at(60), Timeout::Startup));
        assert_deadlines(&[(5, session(), (605, Timeout::Idle))]);
        assert_deadlines(&[(1, Sign::Event(AgentEvent::TurnStarted), (601, Timeout::Idle))]);
    }

    #[test]
    fn a_running_tool_is_not_idleness_but_the_turn_timeout_still_runs() {
        let running = || (10, tool_is(ToolStatus::Running), (3_600, Timeout::Turn));
        let begun = || (5, session(), (605, Timeout::Idle));
        assert_deadlines(&[begun(), running(), (2_000, tool_is(ToolStatus::Ok), (2_600, Timeout::Idle))]);
        // A tool whose end was never reported ends with its turn.
        assert_deadlines(&[begun(), running(), (20, turn_ended(), (620, Timeout::Idle))]);
    }

    #[test]
    fn output_without_a_meaning_and_an_announced_retry_move_the_idle_timeout() {
        let begun = || (5, session(), (605, Timeout::Idle));
        assert_deadlines(&[begun(), (100, Sign::Raw, (700, Timeout::Idle))]);
        assert_deadlines(&[
            begun(),
            (10, retrying(), (710, Timeout::Idle)),
            // A pause that ended early counts no longer.
            (20, Sign::Event(AgentEvent::TurnStarted), (620, Timeout::Idle)),
        ]);
    }

    #[test]
    fn while_the_agent_waits_for_an_answer_only_that_timeout_runs() {
        assert_deadlines(&[
            (5, session(), (605, Timeout::Idle)),
            (100, Sign::Asks, (700, Timeout::Answer)),
            (3_500, Sign::Asks, (700, Timeout::Answer)),
        ]);
        // Before the session, it holds the startup timeout as well.
        assert_deadlines(&[
            (10, Sign::Asks, (610, Timeout::Answer)),
            (110, Sign::Answer, (160, Timeout::Startup)),
        ]);
    }

    #[test]
    fn an_answer_starts_the_idle_timeout_anew_and_gives_the_turn_its_time_back() {
        assert_deadlines(&[
            (5, session(), (605, Timeout::Idle)),
            (100, Sign::Asks, (700, Timeout::Answer)),
            (600, Sign::Answer, (1_200, Timeout::Idle)),
            (4_000, Sign::Raw, (4_100, Timeout::Turn)),
            (4_010, Sign::Asks, (4_610, Timeout::Answer)),
            (4_020, Sign::Answer, (4_110, Timeout::Turn)),
        ]);
        // A request that was never answered ends with its turn.
        assert_deadlines(&[
            (5, session(), (605, Timeout::Idle)),
            (100, Sign::Asks, (700, Timeout::Answer)),
            (150, turn_ended(), (750, Timeout::Idle)),
            (3_600, Sign::Raw, (3_650, Timeout::Turn)),
        ]);
    }

    #[test]
    fn a_wait_lasts_until_the_last_of_several_requests_is_answered_and_is_counted_once() {
        assert_deadlines(&[
            (5, session(), (605, Timeout::Idle)),
            (100, Sign::Asks, (700, Timeout::Answer)),
            (200, Sign::Asks, (700, Timeout::Answer)),
            (300, Sign::Answer, (800, Timeout::Answer)),
            (400, Sign::Answer, (1_000, Timeout::Idle)),
            (3_800, Sign::Raw, (3_900, Timeout::Turn)),
        ]);
    }

    #[test]
    fn an_answer_to_nothing_changes_nothing() {
        assert_deadlines(&[
            (5, session(), (605, Timeout::Idle)),
            (100, Sign::Answer, (605, Timeout::Idle)),
            (200, Sign::Asks, (800, Timeout::Answer)),
        ]);
    }

    fn any_sign() -> impl Strategy<Value = Sign> {
        let tools = [ToolStatus::Running, ToolStatus::Ok].map(tool_is);
        let events = [session(), retrying(), turn_ended()].into_iter().chain(tools).collect::<Vec<_>>();
        prop_oneof![Just(Sign::Raw), prop::sample::select(events), Just(Sign::Asks), Just(Sign::Answer),]
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
