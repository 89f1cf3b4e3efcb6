//! Merging: first the plan, then what the plan says.

use jiff::Timestamp;
use towline_api::MergeReport;
use towline_terminal::{brief, short_id};

use super::{Act, Mode, Model, Proof, Request};
use crate::client::Failure;

impl Model {
    pub(super) fn begin_merge(&mut self, goal: String) {
        let is_unproven = self.rows.get(&goal).is_some_and(|row| row.phase == "unproven");
        let proof = if is_unproven { Proof::Unproven } else { Proof::Checked };
        self.mode = Mode::Merge { goal: goal.clone(), proof, plan: None };
        let key = self.new_key();
        self.want(Request::Act { goal, act: Act::PlanMerge(proof), key });
    }

    pub(super) fn take_merged(
        &mut self,
        goal: &str,
        act: &Act,
        reply: Result<Box<MergeReport>, Failure>,
        now: Timestamp,
    ) {
        let is_planned = matches!(&self.mode, Mode::Merge { goal: planned, .. } if planned == goal);
        let is_plan = matches!(act, Act::PlanMerge(_));
        match reply {
            Ok(report) if is_plan => {
                if let Mode::Merge { plan, .. } = &mut self.mode
                    && is_planned
                {
                    *plan = Some(report);
                }
            }
            Ok(report) => {
                let commit =
                    report.commit.as_deref().map(|commit| format!(" at {}", &commit[..commit.len().min(10)]));
                self.report(&format!("merged into {}{}", brief(&report.into), commit.unwrap_or_default()));
                self.stale.spoil_goal(goal, now);
            }
            Err(failure) => {
                if is_plan && is_planned {
                    self.mode = Mode::Browse;
                }
                self.warn(&format!("cannot merge goal {}: {}", short_id(goal), failure.text()));
            }
        }
    }
}
