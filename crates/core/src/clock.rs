//! The clocks that watch a living attempt.
//!
//! They say when something is overdue; the engine waits for that moment and reports it as
//! [`crate::Event::ClockRanOut`].

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::AgentEvent;

/// Which clock ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// No session came up.
    Startup,
    /// Nothing was heard for too long.
    Idle,
    /// The turn took too long.
    Turn,
    /// The goal's time is up.
    Wall,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "start-up",
            Self::Idle => "idle",
            Self::Turn => "turn",
            Self::Wall => "wall",
        })
    }
}

/// How long each may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockLimits {
    /// From the start of the process to its session.
    pub startup: Duration,
    /// Between two signs of life.
    pub idle: Duration,
    /// One turn.
    pub turn: Duration,
}

/// The clocks of one attempt.
#[derive(Debug, Clone)]
pub struct Clocks {
    limits: ClockLimits,
    started: Timestamp,
    wall_ends: Option<Timestamp>,
    in_session: bool,
    last_sign: Timestamp,
    /// Tools at work: a long build is not idleness.
    tools: BTreeSet<String>,
    /// The end of a pause that the agent announced, such as before a retry.
    announced_pause: Option<Timestamp>,
}

impl Clocks {
    /// Clocks for an attempt that starts now.
    pub const fn start(limits: ClockLimits, now: Timestamp, wall_ends: Option<Timestamp>) -> Self {
        Self {
            limits,
            started: now,
            wall_ends,
            in_session: false,
            last_sign: now,
            tools: BTreeSet::new(),
            announced_pause: None,
        }
    }

    /// Takes note that the agent printed something, whatever it means.
    pub const fn heard(&mut self, now: Timestamp) {
        self.last_sign = now;
    }

    /// Takes note of what the agent said or did.
    pub fn saw(&mut self, event: &AgentEvent, now: Timestamp) {
        self.last_sign = now;
        self.announced_pause = None;
        match event {
            AgentEvent::SessionStarted(_) => self.in_session = true,
            AgentEvent::Tool(tool) if tool.status.is_over() => {
                self.tools.remove(&tool.id);
            }
            AgentEvent::Tool(tool) => {
                self.tools.insert(tool.id.clone());
            }
            AgentEvent::Retrying { delay_ms, .. } => {
                self.announced_pause = Some(later(now, Duration::from_millis(*delay_ms)));
            }
            AgentEvent::TurnEnded(_) => self.tools.clear(),
            _ => {}
        }
    }

    /// The next moment at which something is overdue.
    pub fn next(&self) -> (Timestamp, Clock) {
        let quiet = if !self.in_session {
            Some((later(self.started, self.limits.startup), Clock::Startup))
        } else if self.tools.is_empty() {
            let from = self.announced_pause.map_or(self.last_sign, |pause| pause.max(self.last_sign));
            Some((later(from, self.limits.idle), Clock::Idle))
        } else {
            None
        };
        let turn = (later(self.started, self.limits.turn), Clock::Turn);
        let wall = self.wall_ends.map(|ends| (ends, Clock::Wall));
        [quiet, wall]
            .into_iter()
            .flatten()
            .fold(turn, |first, other| if other.0 < first.0 { other } else { first })
    }
}

/// A moment later, at most the end of time.
pub(crate) fn later(from: Timestamp, by: Duration) -> Timestamp {
    from.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SessionId, SessionStarted, ToolKind, ToolStatus, ToolUse, TurnEnd, TurnStop};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    fn clocks() -> Clocks {
        let limits = ClockLimits {
            startup: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            turn: Duration::from_secs(3_600),
        };
        Clocks::start(limits, at(0), None)
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

    #[test]
    fn the_startup_clock_stands_until_there_is_a_session() {
        let mut clocks = clocks();
        assert_eq!(clocks.next(), (at(60), Clock::Startup));
        clocks.saw(&session(), at(5));
        assert_eq!(clocks.next(), (at(605), Clock::Idle));
    }

    #[test]
    fn a_running_tool_is_not_idleness_but_the_turn_clock_stands_above_it() {
        let mut clocks = clocks();
        clocks.saw(&session(), at(5));
        clocks.saw(&tool(ToolStatus::Running), at(10));
        assert_eq!(clocks.next(), (at(3_600), Clock::Turn));
        clocks.saw(&tool(ToolStatus::Ok), at(2_000));
        assert_eq!(clocks.next(), (at(2_600), Clock::Idle));
    }

    #[test]
    fn output_without_a_meaning_is_a_sign_of_life() {
        let mut clocks = clocks();
        clocks.saw(&session(), at(5));
        clocks.heard(at(100));
        assert_eq!(clocks.next(), (at(700), Clock::Idle));
    }

    #[test]
    fn an_announced_retry_moves_the_idle_clock() {
        let mut clocks = clocks();
        clocks.saw(&session(), at(5));
        let retry =
            AgentEvent::Retrying { status: Some(500), attempt: 1, delay_ms: 100_000, error: String::new() };
        clocks.saw(&retry, at(10));
        assert_eq!(clocks.next(), (at(710), Clock::Idle));
    }

    #[test]
    fn a_pause_that_ended_early_counts_no_longer() {
        let mut clocks = clocks();
        clocks.saw(&session(), at(5));
        let retry =
            AgentEvent::Retrying { status: Some(500), attempt: 1, delay_ms: 100_000, error: String::new() };
        clocks.saw(&retry, at(10));
        clocks.saw(&AgentEvent::TurnStarted, at(20));
        assert_eq!(clocks.next(), (at(620), Clock::Idle));
    }

    #[test]
    fn a_tool_whose_end_was_never_told_ends_with_its_turn() {
        let mut clocks = clocks();
        clocks.saw(&session(), at(5));
        clocks.saw(&tool(ToolStatus::Running), at(10));
        let turn = TurnEnd {
            stop: TurnStop::Done,
            text: String::new(),
            structured: None,
            inner_turns: None,
            reported_cost: None,
        };
        clocks.saw(&AgentEvent::TurnEnded(turn), at(20));
        assert_eq!(clocks.next(), (at(620), Clock::Idle));
    }

    #[test]
    fn the_goals_own_end_of_time_comes_first_when_it_is_first() {
        let limits = clocks().limits;
        assert_eq!(Clocks::start(limits, at(0), Some(at(30))).next(), (at(30), Clock::Wall));
    }
}
