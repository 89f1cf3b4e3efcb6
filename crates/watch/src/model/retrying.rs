//! Opening a goal again, with more of the budget that is spent.

use std::collections::BTreeMap;

use towline_core::{Axis, BudgetChange};
use towline_terminal::short_id;

use super::{Act, Line, Mode, Model, Purpose};
use crate::client::Failure;

impl Model {
    /// Asks for a larger budget where one is spent: the goal would not start without.
    pub(super) fn begin_retry(&mut self, goal: String) {
        let Some(axis) = self.spent_axis(&goal) else {
            return self.send(goal, Act::Retry { budget: BTreeMap::new() });
        };
        let purpose = Purpose::Retry { goal };
        self.drafts.entry(purpose.clone()).or_insert_with(|| axis.suggestion().to_owned());
        self.begin_typing(purpose);
    }

    /// The budget that a goal has spent, as far as it is known.
    pub(crate) fn spent_axis(&self, goal: &str) -> Option<Axis> {
        let reason = self.rows.get(goal).and_then(|row| row.reason.as_deref());
        let named = reason.and_then(|reason| reason.strip_prefix("budget: "));
        let ended_by = Axis::ALL.into_iter().find(|axis| Some(axis.name()) == named);
        ended_by.or_else(|| self.spent.get(goal).copied())
    }

    /// Retries a goal with the limits that were typed.
    pub(super) fn submit_retry(&mut self, goal: String, line: Line) {
        let text = line.text().trim().to_owned();
        let purpose = Purpose::Retry { goal: goal.clone() };
        match changes(&text) {
            Ok(budget) => self.send_text(purpose, goal, Act::Retry { budget }, text),
            Err(why) => {
                self.mode = Mode::Typing(purpose, line);
                self.warn(&why);
            }
        }
    }

    /// Takes note of the budget that a refused retry names.
    pub(super) fn note_spent(&mut self, goal: &str, failure: &Failure) -> Option<Axis> {
        let Failure::Refused(why) = failure else { return None };
        let names = |axis: &Axis| why.contains(&format!("has spent its budget `{axis}`"));
        let axis = Axis::ALL.into_iter().find(names)?;
        self.spent.insert(goal.to_owned(), axis);
        Some(axis)
    }
}

/// What to do about a goal that a retry does not start. The status line has room for little.
pub(super) fn how_to_raise(goal: &str, axis: Axis) -> String {
    format!("{} has spent `{axis}`: R raises it; or {}", short_id(goal), raising_command(goal, axis))
}

/// The same as a command line.
pub(crate) fn raising_command(goal: &str, axis: Axis) -> String {
    format!("towline retry {} --budget {}", short_id(goal), axis.suggestion())
}

/// The limits as HTTP takes them.
fn changes(text: &str) -> Result<BTreeMap<String, String>, String> {
    let change = |word: &str| {
        word.parse::<BudgetChange>().map_err(|error| error.to_string())?;
        let (axis, value) = word.split_once('=').unwrap_or_default();
        Ok((axis.to_owned(), value.to_owned()))
    };
    text.split_whitespace().map(change).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{acts, at, id, line, model, press};
    use super::super::{Input, Reply};
    use super::*;

    fn failed(reason: &str) -> Model {
        model(&[line(1, "failed", "x", &json!({"reason": reason}))], Vec::new())
    }

    fn raise(axis: &str, value: &str) -> Act {
        Act::Retry { budget: BTreeMap::from([(axis.to_owned(), value.to_owned())]) }
    }

    #[test]
    fn a_retry_of_a_spent_budget_asks_how_much_more_and_suggests_it() {
        for (keys, wanted) in [
            ("R", None),
            ("R\n", Some(raise("usd", "+5"))),
            ("R0\n", Some(raise("usd", "+50"))),
            ("R\u{1b}R\n", Some(raise("usd", "+5"))),
            ("Ra lot\n", None),
        ] {
            let mut model = failed("budget: usd");
            press(&mut model, keys);
            assert_eq!(acts(&mut model).pop().map(|(act, _)| act), wanted, "{keys:?}");
            assert_eq!(matches!(model.mode, Mode::Typing(..)), wanted.is_none(), "{keys:?}");
        }
    }

    #[test]
    fn a_refused_retry_names_the_command_and_the_next_one_asks_how_much_more() {
        let mut model = failed("cancelled");
        press(&mut model, "R");
        let (act, key) = acts(&mut model).pop().expect("sent");
        assert_eq!(act, Act::Retry { budget: BTreeMap::new() });
        let why = "goal 00000001 has spent its budget `wall`; POST /api/v1/goals/1/retry";
        let refused = Err(Failure::Refused(why.to_owned()));
        model.take(Input::Reply(Reply::Acted(id(1), act, key, refused)), at(0));
        let (_, notice) = model.notice.clone().expect("a notice");
        let wanted = "00000001 has spent `wall`: R raises it; or towline retry 00000001 --budget wall=+1h";
        assert_eq!(notice, wanted);
        press(&mut model, "R\n");
        assert_eq!(acts(&mut model).pop().map(|(act, _)| act), Some(raise("wall", "+1h")));
    }
}
