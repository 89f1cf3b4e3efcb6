//! What judges report while checks run: that they begin, what they use, and how they end. It moves the goal nowhere; the verdict
//! does.

use super::Stepper;
use crate::{AttemptNo, Event, Judging, Usage};

impl Stepper<'_> {
    /// An agent is about to be asked. One that is recorded already changes nothing.
    pub(super) fn begin_judging(&mut self, attempt: AttemptNo, event: &Event) {
        let Event::JudgeStarted { n, check, agent, account, model, directory } = event else { return };
        if self.state.judges.iter().any(|judge| judge.n == *n) {
            return;
        }
        self.state.judges.push(Judging {
            n: *n,
            attempt,
            check: check.clone(),
            agent: agent.clone(),
            account: account.clone(),
            model: model.clone(),
            directory: directory.clone(),
            started_at: self.now,
            ended_at: None,
            end: None,
            usage: Usage::default(),
        });
    }

    /// What a judge used is a sum, so the same report twice counts once.
    pub(super) fn follow_judge(&mut self, event: &Event) {
        let (Event::JudgeUsed { n, .. } | Event::JudgeEnded { n, .. }) = event else { return };
        let now = self.now;
        let Some(judge) = self.state.judges.iter_mut().find(|judge| judge.n == *n) else { return };
        match event {
            Event::JudgeUsed { model, used, .. } => {
                judge.usage = *used;
                judge.model = model.clone().or(judge.model.take());
            }
            Event::JudgeEnded { end, .. } => {
                judge.end = Some(end.clone());
                judge.ended_at.get_or_insert(now);
            }
            _ => {}
        }
    }
}
