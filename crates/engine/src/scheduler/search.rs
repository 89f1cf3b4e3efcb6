//! Looks through the rest of a long queue, a page at each look, while the goals that the store shows first all wait. So a look takes as
//! long with a long queue as with a short one, and goals that could start are found however many wait before them.

use jiff::Timestamp;
use towline_core::PoolGoal;

use super::earlier;
use crate::slots::Place;

/// How many goals of the queue are a page.
pub(super) const PAGE: usize = 1_024;

/// How far the queue is looked through.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The end of the last page; none before the first.
    after: Option<Place>,
    /// Whether something has changed since the first page.
    is_stale: bool,
    /// When a goal of a page can start.
    look_again: Option<Timestamp>,
}

impl Search {
    /// Goals that were looked at may be able to start by now.
    pub(super) fn note_change(&mut self) {
        self.is_stale = self.after.is_some();
    }

    /// Where the next page begins, if the rest of the queue begins here.
    pub(super) fn begins(&self, rest: Place) -> Place {
        self.after.unwrap_or(rest)
    }

    /// No goal of this page can start, before this time at least. Returns when to look again: at once until the whole queue was looked
    /// through as it is.
    pub(super) fn pass(
        &mut self,
        page: &[PoolGoal],
        look_again: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.look_again = earlier(self.look_again, look_again);
        match page.last().filter(|_| page.len() >= PAGE) {
            Some(last) => {
                self.after = Some((last.rank, last.goal));
                Some(now)
            }
            None if self.is_stale => {
                *self = Self::default();
                Some(now)
            }
            None => std::mem::take(self).look_again,
        }
    }
}

#[cfg(test)]
mod tests {
    use towline_core::{GoalState, Lane};

    use super::*;
    use crate::tests::values::{beginning, goal};

    fn page(goals: usize, second: i64) -> Vec<PoolGoal> {
        let (goal, rank) = (goal(1), at(second));
        let lane = Lane::of(&goal, &GoalState::new(&goal));
        vec![
            PoolGoal { goal: goal.id, lane, rank, left: None, spent: towline_core::MicroUsd::default() };
            goals
        ]
    }

    fn at(second: i64) -> Timestamp {
        beginning() + jiff::SignedDuration::from_secs(second)
    }

    #[test]
    fn pages_follow_each_other_until_the_queue_is_over() {
        let mut search = Search::default();
        let (rest, now) = ((at(0), goal(1).id), at(100));
        assert_eq!(search.begins(rest), rest);
        assert_eq!(search.pass(&page(PAGE, 1), Some(at(900)), now), Some(now));
        assert_eq!(search.begins(rest), (at(1), goal(1).id));
        assert_eq!(search.pass(&page(PAGE, 2), Some(at(500)), now), Some(now));
        assert_eq!(search.pass(&page(3, 3), None, now), Some(at(500)), "the earliest time of all pages");
        assert_eq!(search.begins(rest), rest, "the next change begins anew");
        assert_eq!(search.pass(&[], None, now), None);
    }

    #[test]
    fn a_change_has_the_pages_before_it_looked_at_again_once() {
        let mut search = Search::default();
        let (rest, now) = ((at(0), goal(1).id), at(100));
        search.note_change();
        assert_eq!(search.pass(&page(PAGE, 1), None, now), Some(now));
        search.note_change();
        assert_eq!(search.begins(rest), (at(1), goal(1).id), "it goes on where it was");
        assert_eq!(search.pass(&page(3, 2), None, now), Some(now));
        assert_eq!(search.begins(rest), rest);
        assert_eq!(search.pass(&page(PAGE, 1), None, now), Some(now));
        assert_eq!(search.pass(&page(3, 2), None, now), None);
    }
}
