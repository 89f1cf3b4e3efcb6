//! The list of all goals: what needs a person on top, then the rest by status.

use std::collections::BTreeMap;

use jiff::Timestamp;
use towline_api::{AccountLine, QuestionLine};
use towline_terminal::Group;

use super::{List, Model, Row};

/// A line of the list, which may take several rows of the screen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HomeLine<'a> {
    /// Begins a group; with the number of its goals, and whether there are more.
    Head(&'static str, usize, More),
    Question(&'a QuestionLine, Option<&'a Row>),
    Goal(&'a Row),
    /// Its credentials were refused, and its goals wait until somebody signs in again.
    Account(&'a AccountLine),
}

/// Whether a list was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    Listed,
    Unlisted,
}

impl<'a> HomeLine<'a> {
    /// What identifies it while the list changes; none for what cannot be chosen.
    pub(crate) fn key(&self) -> Option<String> {
        match self {
            Self::Head(..) => None,
            Self::Question(line, _) => Some(format!("{}?{}", line.goal, line.question.id)),
            Self::Goal(row) => Some(row.id.clone()),
            Self::Account(account) => Some(format!("account {}", account.name)),
        }
    }

    /// The goal that it is about.
    pub(crate) fn goal(&self) -> Option<&'a str> {
        match self {
            Self::Head(..) | Self::Account(_) => None,
            Self::Question(line, _) => Some(&line.goal),
            Self::Goal(row) => Some(&row.id),
        }
    }
}

impl Model {
    /// How many things need a person: open questions, closed accounts, and goals that stopped and that nobody has opened since.
    pub(crate) fn needs(&self, now: Timestamp) -> usize {
        self.questions.len()
            + self.closed.len()
            + self.rows.values().filter(|row| self.must_be_seen(row, now)).count()
    }

    /// Whether a goal counts without a question of its own.
    fn must_be_seen(&self, row: &Row, now: Timestamp) -> bool {
        let is_asking = self.asking.contains(&row.id);
        row.stopped_lately(now) && !is_asking && !self.seen.contains(&row.seen_as())
    }

    /// Whether it is listed among those that need a person: it stays there after it was looked at, unless it has ended.
    fn is_in_inbox(&self, row: &Row, now: Timestamp) -> bool {
        let is_asking = self.asking.contains(&row.id);
        let waits = row.status().group == Group::Needs && !is_asking;
        waits || self.must_be_seen(row, now)
    }

    /// A goal was opened, so it does not have to be seen any more.
    pub(super) fn mark_seen(&mut self, id: &str) {
        const MOST: usize = 10_000;
        if let Some(row) = self.rows.get(id) {
            if self.seen.len() > MOST {
                self.seen.clear();
            }
            self.seen.insert(row.seen_as());
        }
    }

    /// The lines of the list, as far as the filter finds them.
    pub(crate) fn home<'a>(&'a self, now: Timestamp) -> Vec<HomeLine<'a>> {
        let filter = self.filter.to_lowercase();
        let fits = |row: &&Row| filter.is_empty() || row.matches(&filter);
        let mut needs: Vec<HomeLine<'a>> = self
            .questions
            .iter()
            .map(|line| HomeLine::Question(line, self.rows.get(&line.goal)))
            .filter(|line| match line {
                HomeLine::Question(question, row) => {
                    row.as_ref().is_some_and(fits) || question.title.to_lowercase().contains(&filter)
                }
                _ => true,
            })
            .collect();
        let mut groups: [Vec<&'a Row>; 4] = Default::default();
        for row in self.rows.values().filter(fits) {
            let group = row.status().group;
            let is_asking = group == Group::Needs && !self.is_in_inbox(row, now);
            if !is_asking {
                let group = if self.is_in_inbox(row, now) { Group::Needs } else { group };
                groups[group as usize].push(row);
            }
        }
        let [mut stopped, mut running, mut waiting, mut ended] = groups;
        for newest_first in [&mut stopped, &mut ended] {
            newest_first.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
        }
        running.sort_by_key(|row| row.created_at);
        let places = self.waiting.iter().zip(0..).collect::<BTreeMap<&String, usize>>();
        waiting.sort_by_key(|row| {
            let place = places.get(&row.id).copied().unwrap_or(usize::MAX);
            (row.until.is_none(), row.until, place, row.created_at)
        });
        needs.extend(stopped.into_iter().map(HomeLine::Goal));
        let closed = self.closed.iter().filter(|account| account.name.to_lowercase().contains(&filter));
        needs.extend(closed.map(HomeLine::Account));
        let more = |list| if self.has_more(list) { More::Unlisted } else { More::Listed };
        let goals = |rows: Vec<&'a Row>| rows.into_iter().map(HomeLine::Goal).collect();
        let mut lines = Vec::new();
        for (title, of_group, more) in [
            ("Needs you", needs, More::Listed),
            ("Running", goals(running), more(List::Active)),
            ("Waiting", goals(waiting), more(List::Active)),
            ("Ended", goals(ended), more(List::Ended)),
        ] {
            group(&mut lines, title, of_group, more);
        }
        lines
    }

    /// The line that is chosen, and its place.
    pub(crate) fn chosen(&self, now: Timestamp) -> Option<(usize, HomeLine<'_>)> {
        let lines = self.home(now);
        let is_it = |line: &HomeLine<'_>| line.key().is_some() && line.key() == self.selected;
        lines.iter().position(is_it).map(|place| (place, lines[place]))
    }

    /// Chooses another line by so many steps.
    pub(super) fn choose(&mut self, by: isize, now: Timestamp) {
        let keys: Vec<(usize, String)> = self.keys(now);
        let at = keys.iter().position(|(_, key)| Some(key) == self.selected.as_ref()).unwrap_or(0);
        let wanted = at.saturating_add_signed(by).min(keys.len().saturating_sub(1));
        if let Some((place, key)) = keys.get(wanted) {
            (self.selected_at, self.selected) = (*place, Some(key.clone()));
        }
        self.read_on_near_the_end(wanted, keys.len());
    }

    fn read_on_near_the_end(&mut self, place: usize, count: usize) {
        const NEAR: usize = 20;
        if place + NEAR >= count {
            self.read_on(List::Active);
            self.read_on(List::Ended);
        }
    }

    /// Keys of what can be chosen, with their places in the list.
    fn keys(&self, now: Timestamp) -> Vec<(usize, String)> {
        let lines = self.home(now);
        lines.iter().enumerate().filter_map(|(place, line)| Some((place, line.key()?))).collect()
    }

    /// Chooses another line of the same goal when the chosen line has gone, or else a neighbour. Nothing is chosen until somebody moves or the lists are there.
    pub(super) fn keep_selection(&mut self, now: Timestamp) {
        let keys = self.keys(now);
        if let Some((place, _)) = keys.iter().find(|(_, key)| Some(key) == self.selected.as_ref()) {
            self.selected_at = *place;
            return;
        }
        // A goal that asks, or that has its answer, has another key; keys for pause and retry still mean the same goal.
        let goal_of = |key: &str| key.split('?').next().map(str::to_owned);
        let goal = self.selected.as_deref().and_then(goal_of);
        let same = keys.iter().find(|(_, key)| goal.is_some() && goal_of(key) == goal);
        let near = || keys.iter().min_by_key(|(place, _)| place.abs_diff(self.selected_at));
        let found = if self.selected.is_none() { keys.first() } else { same.or_else(near) };
        if let Some((place, key)) = found.filter(|_| self.is_loaded) {
            (self.selected_at, self.selected) = (*place, Some(key.clone()));
        }
    }
}

/// Adds a group that is not empty.
fn group<'a>(lines: &mut Vec<HomeLine<'a>>, title: &'static str, of_group: Vec<HomeLine<'a>>, more: More) {
    if !of_group.is_empty() {
        lines.push(HomeLine::Head(title, of_group.len(), more));
        lines.extend(of_group);
    }
}
