//! Where the checkouts of goals are in the state directory, how much room they take, and their removal.
//!
//! A verdict makes one and removes it. One with warm directories is left for the next verdict of the goal, until the goal has
//! ended. Neighbours: `towline-check` makes and leaves them; `sweep` and `gc` remove what a killed engine left.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use towline_core::GoalId;
use towline_workspace::aside_of;

use crate::home::{BASE, Home, JUDGE};
use crate::removal::size_of;
use crate::sweep::named_entries;

/// How many goals have checkouts, and how many bytes their files have.
pub fn checkouts_size(home: &Home) -> (usize, u64) {
    let found = all(home);
    let goals: BTreeSet<GoalId> = found.iter().map(|(goal, _)| *goal).collect();
    (goals.len(), found.iter().map(|(_, path)| size_of(path)).sum())
}

/// The checkout of a goal, the place of an earlier one while it is replaced, the checkout of the base, and that of a judge.
pub(crate) fn of_goal(home: &Home, goal: GoalId) -> [PathBuf; 7] {
    let checkout = home.verification(goal);
    [
        home.base_verification(goal),
        aside_of(&checkout),
        checkout,
        home.checks_home(goal),
        home.base_home(goal),
        home.judges_place(goal),
        home.judges_home(goal),
    ]
}

/// All entries in those places, whichever goal they are of.
pub(crate) fn all(home: &Home) -> Vec<(GoalId, PathBuf)> {
    let named = named_entries::<String>(&home.verifications()).into_iter();
    let goal = |name: &str| {
        let goal = [".warm", BASE, JUDGE].iter().find_map(|place| name.strip_suffix(place));
        goal.unwrap_or(name).parse::<GoalId>().ok()
    };
    named.filter_map(|(name, path)| Some((goal(&name)?, path))).collect()
}

/// Removes the checkouts of a goal that makes no verdict now.
pub(crate) fn remove(home: &Home, goal: GoalId) -> io::Result<()> {
    of_goal(home, goal).iter().try_for_each(|path| home.remove(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tests::values::goal;

    #[test]
    fn all_places_of_a_goal_are_counted_and_removed() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(scratch.path().join("state")).expect("a state directory");
        let [one, other] = [1, 2].map(|number| goal(number).id);
        assert_eq!(checkouts_size(&home), (0, 0));
        for place in of_goal(&home, one).iter().chain(&of_goal(&home, other)[2..]) {
            home.make(&place.join("target")).expect("made");
            fs::write(place.join("target/out"), "0123456789").expect("written");
        }
        home.make(&home.verifications().join("else.warm")).expect("made");
        assert_eq!(checkouts_size(&home), (2, 60));
        remove(&home, one).expect("removed");
        assert_eq!(checkouts_size(&home), (1, 20));
        let mut left = all(&home);
        left.sort();
        assert_eq!(left, [(other, home.verification(other)), (other, home.judges_place(other))]);
    }
}
