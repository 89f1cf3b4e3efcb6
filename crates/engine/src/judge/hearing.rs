//! What a judge reports, added up; and when it has to be stopped.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use towline_core::{AgentEvent, Axis, End, Event, Incoming, LimitStatus, Policy, Timeout, Usage};
use towline_process::ExitRecord;

use super::AgentJudge;
use crate::news::{Batch, DriverGone, StopLevel, own};
use crate::replay::Replay;

/// A conversation that is over.
pub(super) struct Heard {
    /// How it ended: by our reason, if this engine ended it.
    pub(super) end: End,
    /// Why it was ended, if this engine did that.
    pub(super) cut: Option<Cut>,
    /// The agent's last message.
    pub(super) text: String,
    pub(super) used: Usage,
}

/// Why a judge is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Spent(Axis),
    /// Its check has a timeout.
    TimeIsUp,
    /// The agent has timeouts of its own.
    Silent(Timeout),
    Asked,
    /// The provider refused its credentials, more than once.
    Refused,
}

/// What the events of an agent add up to.
#[derive(Debug, Default)]
struct Tally {
    /// Whether a conversation came up.
    in_session: bool,
    model: Option<String>,
    used: Usage,
    text: String,
    has_asked: bool,
    refused_in_row: u32,
    /// Whether the agent waits for a quota and repeats its request.
    waits_for_quota: bool,
    /// When the quota opens again that is used up.
    limit_until: Option<Timestamp>,
}

impl Tally {
    fn follow(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::SessionStarted(session) => {
                self.in_session = true;
                self.model = session.model.clone().or(self.model.take());
            }
            AgentEvent::Usage { used, .. } => {
                self.used.record(*used);
                if !used.is_empty() {
                    self.refused_in_row = 0;
                    self.waits_for_quota = false;
                }
            }
            AgentEvent::Retrying { status, .. } => {
                self.waits_for_quota = *status == Some(429);
                if matches!(status, Some(401 | 403)) {
                    self.refused_in_row += 1;
                }
            }
            AgentEvent::RateLimit(limit) if limit.status == LimitStatus::Rejected => {
                self.limit_until = limit.resets_at.or(self.limit_until);
            }
            AgentEvent::Asked(_) => self.has_asked = true,
            AgentEvent::TurnEnded(end) => self.text.clone_from(&end.text),
            _ => {}
        }
    }

    /// How a conversation ended of which this is known.
    fn name_end(&self, cut: Option<Cut>, found: End) -> End {
        match (cut, found) {
            (Some(Cut::Asked), _) => End::Asked,
            // It had finished in the moment in which it was stopped.
            (_, End::Completed) => End::Completed,
            (_, End::RateLimited { until }) => End::RateLimited { until: until.or(self.limit_until) },
            (Some(Cut::TimeIsUp | Cut::Silent(_)), _) if self.waits_for_quota => {
                End::RateLimited { until: self.limit_until }
            }
            // Without a conversation, nothing was used.
            (Some(Cut::TimeIsUp | Cut::Silent(Timeout::Turn)), _) if !self.in_session => {
                End::TimedOut { timeout: Timeout::Startup }
            }
            (Some(Cut::TimeIsUp), _) => End::TimedOut { timeout: Timeout::Turn },
            (Some(Cut::Silent(timeout)), _) => End::TimedOut { timeout },
            (Some(Cut::Refused), _) => {
                let message = "the provider refused the credentials twice in a row".to_owned();
                End::Auth { message }
            }
            (Some(Cut::Spent(_)), _) => End::OverBudget,
            (None, end) => end,
        }
    }
}

/// What is known of a judge of which no engine heard to the end.
pub(crate) struct LeftByJudge {
    pub(crate) model: Option<String>,
    pub(crate) used: Usage,
    /// How it ended, if others must not run into the same; lost otherwise. Its answer counts for nothing: whatever ran beside it
    /// could have written the logs.
    pub(crate) end: End,
}

/// Reads it from the logs; nothing where they are gone. Waits for the disk.
pub(crate) fn left_by(run_dir: PathBuf) -> Option<LeftByJudge> {
    let record = ExitRecord::read(&run_dir).ok().flatten();
    let (mut tally, mut end) = (Tally::default(), End::Lost);
    for replayed in Replay::of(run_dir, record).ok()? {
        match replayed.event {
            Event::Agent { event } => tally.follow(&event),
            Event::AttemptEnded { end: found, .. } => end = tally.name_end(None, found),
            _ => {}
        }
    }
    let matters = matches!(end, End::RateLimited { .. } | End::Auth { .. });
    let end = if matters { end } else { End::Lost };
    Some(LeftByJudge { model: tally.model, used: tally.used, end })
}

/// Listens to one judge.
pub(super) struct Hearing<'a> {
    judge: &'a AgentJudge<'a>,
    n: u32,
    tally: Tally,
    /// What is recorded of its model and its usage.
    recorded: (Option<String>, Usage),
    cut: Option<Cut>,
    end: Option<End>,
    stop: watch::Sender<StopLevel>,
    time_is_up: Instant,
}

impl<'a> Hearing<'a> {
    pub(super) fn new(
        judge: &'a AgentJudge<'a>,
        n: u32,
        stop: watch::Sender<StopLevel>,
        timeout: Duration,
    ) -> Self {
        Self {
            judge,
            n,
            tally: Tally::default(),
            recorded: (None, Usage::default()),
            cut: None,
            end: None,
            stop,
            time_is_up: Instant::now() + timeout,
        }
    }

    /// Takes in everything until the agent is gone.
    pub(super) async fn listen(mut self, mut incoming: mpsc::Receiver<Batch>) -> Result<Heard, DriverGone> {
        let mut stop = self.judge.stop.clone();
        self.pass_on(*stop.borrow_and_update());
        loop {
            tokio::select! {
                batch = incoming.recv() => match batch {
                    Some(batch) => self.take_in(batch).await?,
                    None => break,
                },
                Ok(()) = stop.changed() => self.pass_on(*stop.borrow_and_update()),
                () = tokio::time::sleep_until(self.time_is_up), if self.cut.is_none() => {
                    self.cut_off(Cut::TimeIsUp);
                }
            }
        }
        // Whoever stops reporting without an end was left alone by the driver.
        let end = match self.tally.name_end(self.cut, self.end.ok_or(DriverGone)?) {
            // It did not fail: its goal was stopped.
            End::Crashed { .. } if *stop.borrow() > StopLevel::Run => End::Interrupted,
            end => end,
        };
        Ok(Heard { end, cut: self.cut, text: self.tally.text, used: self.tally.used })
    }

    async fn take_in(&mut self, batch: Batch) -> Result<(), DriverGone> {
        for Incoming { event, .. } in batch.incoming {
            match event {
                Event::Agent { event } => self.tally.follow(&event),
                Event::TimeoutReached { timeout } => self.cut_off(Cut::Silent(timeout)),
                Event::AttemptEnded { end, .. } => self.end = Some(end),
                _ => {}
            }
        }
        self.record().await?;
        if let Some(axis) = self.judge.means().spent_with(self.tally.used) {
            self.cut_off(Cut::Spent(axis));
        } else if self.tally.has_asked {
            self.cut_off(Cut::Asked);
        } else if self.tally.refused_in_row >= Policy::AUTH_FAILURES {
            self.cut_off(Cut::Refused);
        }
        if let Some(recorded) = batch.recorded {
            // The receiver may be gone by now.
            let _ = recorded.send(());
        }
        Ok(())
    }

    /// Records what it has used so far, if that is news.
    async fn record(&mut self) -> Result<(), DriverGone> {
        let known = (self.tally.model.clone(), self.tally.used);
        if known == self.recorded {
            return Ok(());
        }
        let (model, used) = known.clone();
        self.recorded = known;
        let sender = self.judge.sender;
        sender.send(vec![own(sender.stamp(), Event::JudgeUsed { n: self.n, model, used })]).await
    }

    fn cut_off(&mut self, cut: Cut) {
        if self.cut.is_some() || self.end.is_some() {
            return;
        }
        self.cut = Some(cut);
        self.pass_on(match cut {
            Cut::Spent(_) => StopLevel::StopSpending,
            Cut::TimeIsUp | Cut::Silent(_) | Cut::Asked | Cut::Refused => StopLevel::Stop,
        });
    }

    /// Stops the agent at least as urgently as before.
    fn pass_on(&self, level: StopLevel) {
        self.stop.send_if_modified(|current| {
            let is_higher = level > *current;
            *current = level.max(*current);
            is_higher
        });
    }
}

#[cfg(test)]
mod tests {
    use towline_core::{Limit, SessionId, SessionStarted};

    use super::*;

    #[test]
    fn an_end_has_the_reason_of_whoever_ended_it_and_the_time_that_was_announced() {
        let reset = Timestamp::from_second(1_800_000_000).expect("in range");
        let limit = |resets_at| {
            let limit = Limit { scope: None, status: LimitStatus::Rejected, utilization: None, resets_at };
            AgentEvent::RateLimit(limit)
        };
        let retrying = |status| AgentEvent::Retrying {
            status: Some(status),
            attempt: 1,
            delay_ms: 1,
            error: String::new(),
        };
        let session = || {
            AgentEvent::SessionStarted(SessionStarted {
                native_id: SessionId::new("s"),
                resumed: false,
                model: None,
                agent_version: None,
            })
        };
        let crashed = || End::Crashed { message: "exit code 1".into() };
        let limited = |until| End::RateLimited { until };
        let (silent, late) = (Some(Cut::Silent(Timeout::Idle)), Some(Cut::TimeIsUp));
        for (heard, cut, found, expected) in [
            (vec![], None, End::Completed, End::Completed),
            (vec![], late, End::Completed, End::Completed),
            (vec![], Some(Cut::Asked), End::Completed, End::Asked),
            (vec![], None, limited(None), limited(None)),
            (vec![limit(Some(reset)), limit(None)], None, limited(None), limited(Some(reset))),
            (vec![], silent, crashed(), End::TimedOut { timeout: Timeout::Idle }),
            (vec![session()], silent, crashed(), End::TimedOut { timeout: Timeout::Idle }),
            (vec![session()], late, crashed(), End::TimedOut { timeout: Timeout::Turn }),
            (vec![], late, crashed(), End::TimedOut { timeout: Timeout::Startup }),
            (vec![retrying(429)], silent, crashed(), limited(None)),
            (vec![retrying(429)], late, crashed(), limited(None)),
            (
                vec![session(), retrying(429), retrying(500)],
                late,
                crashed(),
                End::TimedOut { timeout: Timeout::Turn },
            ),
            (vec![], Some(Cut::Spent(Axis::Usd)), crashed(), End::OverBudget),
            (vec![], None, crashed(), crashed()),
        ] {
            let mut tally = Tally::default();
            heard.iter().for_each(|event| tally.follow(event));
            assert_eq!(tally.name_end(cut, found.clone()), expected, "{heard:?} {cut:?} {found:?}");
        }
        let refused = Tally::default().name_end(Some(Cut::Refused), crashed());
        assert!(matches!(refused, End::Auth { .. }), "{refused:?}");
    }
}
