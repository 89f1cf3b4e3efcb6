//! What keys do, and what comes of requests that change something.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use towline_api::{GoalReport, MergeReport};
use towline_terminal::{Step, printable, short_id, status};

use super::retrying::how_to_raise;
use super::{Act, Flight, GoalView, Line, Mode, Model, Part, Purpose, Request, Typed};
use crate::client::Failure;
use crate::keys::{Action, action};

impl Model {
    pub(super) fn press(&mut self, key: KeyEvent, now: Timestamp) {
        let pressed = action(key);
        // These work wherever one is.
        match pressed {
            Some(Action::Leave) => return self.want(Request::Leave),
            Some(Action::Suspend) => return self.want(Request::Suspend),
            Some(Action::Redraw) => return self.want(Request::Redraw),
            _ => {}
        }
        self.notice = None;
        if matches!(self.mode, Mode::Typing(..) | Mode::Help) && self.panel_scrolls(key) {
            return;
        }
        if key.code != KeyCode::Esc && self.is_too_soon(now) {
            return;
        }
        match &mut self.mode {
            Mode::Browse => pressed.into_iter().for_each(|action| self.act(action, key, now)),
            Mode::Help => self.mode = Mode::Browse,
            Mode::Refused { .. } => {
                if matches!(key.code, KeyCode::Enter | KeyCode::Esc) {
                    self.mode = Mode::Browse;
                }
            }
            Mode::Typing(_, line) => match line.take(key) {
                Typed::Enter => self.submit(now),
                Typed::Escape => self.stop_typing(),
                Typed::Edited => self.search_as_typed(),
                Typed::Other => {}
            },
            Mode::Confirm { .. } | Mode::Merge { .. } => self.confirm(key),
        }
    }

    pub(super) fn paste(&mut self, text: &str, now: Timestamp) {
        if self.is_too_soon(now) {
            return;
        }
        if let Mode::Typing(_, line) = &mut self.mode {
            line.insert(text);
            self.search_as_typed();
        }
    }

    fn act(&mut self, action: Action, key: KeyEvent, now: Timestamp) {
        let page = isize::try_from(self.rows_shown.saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            Action::Down => self.step(1, now),
            Action::Up => self.step(-1, now),
            Action::PageDown => self.step(page, now),
            Action::PageUp => self.step(-page, now),
            Action::Top => self.jump(isize::MIN, now),
            Action::Bottom => self.jump(isize::MAX, now),
            Action::Open => self.open_chosen(now),
            Action::Back => self.back(key),
            Action::Search => {
                let before = self.open.as_ref().map_or(&self.filter, |open| &open.search);
                self.mode = Mode::Typing(Purpose::Search, Line::of(before));
            }
            Action::SearchOn => self.search_log(),
            Action::Answer => {
                self.begin_answer(now);
                self.hold_typing();
            }
            Action::Tell => {
                self.with_goal(Step::Tell, now, |model, goal, _| model.begin_typing(Purpose::Tell { goal }));
                self.hold_typing();
            }
            Action::Pause => self.with_goal(Step::Pause, now, |model, goal, _| model.send(goal, Act::Pause)),
            Action::Resume => {
                self.with_goal(Step::Resume, now, |model, goal, _| model.send(goal, Act::Resume));
            }
            Action::Retry => self.with_goal(Step::Retry, now, |model, goal, _| model.begin_retry(goal)),
            Action::Cancel => self.with_goal(Step::Cancel, now, |model, goal, title| {
                let text =
                    format!("Cancel goal {} {title:?}? Everything that runs for it ends.", short_id(&goal));
                model.mode = Mode::Confirm { goal, act: Act::Cancel, text };
            }),
            Action::Merge => self.with_goal(Step::Merge, now, |model, goal, _| model.begin_merge(goal)),
            Action::Help => {
                self.panel_scroll = 0;
                self.mode = Mode::Help;
            }
            Action::Leave | Action::Suspend | Action::Redraw => {}
        }
    }

    fn step(&mut self, by: isize, now: Timestamp) {
        if self.open.is_none() {
            return self.choose(by, now);
        }
        let height = self.rows_shown;
        self.in_log(|transcript| transcript.scroll(by, height));
    }

    fn jump(&mut self, to: isize, now: Timestamp) {
        if self.open.is_none() {
            return self.choose(to, now);
        }
        let height = self.rows_shown;
        self.in_log(|transcript| {
            if to < 0 { transcript.jump_to_beginning(height) } else { transcript.jump_to_end(height) }
        });
    }

    /// Does something in the log that is open, and reads what is missing for it.
    pub(super) fn in_log(&mut self, does: impl FnOnce(&mut super::Transcript) -> Option<Part>) {
        let Some(open) = &mut self.open else { return };
        let part = open.transcript.as_mut().and_then(does);
        if let Some(part) = part {
            let id = open.id.clone();
            self.want(Request::Events(id, part));
        }
    }

    fn open_chosen(&mut self, now: Timestamp) {
        if self.open.is_none()
            && let Some(goal) = self.goal_at_hand(now).map(str::to_owned)
        {
            self.open_goal(goal);
        }
    }

    /// Opens a goal, and follows its log.
    pub(crate) fn open_goal(&mut self, id: String) {
        self.mark_seen(&id);
        self.want(Request::Goal(id.clone()));
        self.open = Some(GoalView::new(id));
    }

    fn back(&mut self, key: KeyEvent) {
        if self.open.take().is_some() {
            return self.want(Request::Unfollow);
        }
        if !self.filter.is_empty() {
            return self.filter.clear();
        }
        if key.code == KeyCode::Char('q') {
            self.want(Request::Leave);
        }
    }

    /// The goal that is open or chosen, if the step fits it.
    fn with_goal(&mut self, step: Step, now: Timestamp, does: impl FnOnce(&mut Self, String, String)) {
        let Some(id) = self.goal_at_hand(now).map(str::to_owned) else {
            return self.warn("no goal is chosen");
        };
        let Some(row) = self.rows.get(&id) else { return self.warn("the goal is not read yet") };
        if step == Step::Merge && row.is_merged {
            return self.warn("the work is merged already");
        }
        if !step.fits(&row.phase) {
            let text =
                format!("cannot {} goal {}: it is {}", step.name(), short_id(&id), in_words(&row.phase));
            return self.warn(&text);
        }
        let title = printable(&row.title);
        does(self, id, title);
    }

    /// The goal that is open or chosen.
    pub(crate) fn goal_at_hand(&self, now: Timestamp) -> Option<&str> {
        match &self.open {
            Some(open) => Some(&open.id),
            None => self.chosen(now).and_then(|(_, line)| line.goal()),
        }
    }

    /// Where a text was to be typed and cannot be, what is typed all the same gives no orders.
    fn hold_typing(&mut self) {
        if matches!(self.mode, Mode::Browse)
            && let Some((_, text)) = self.notice.take()
        {
            self.mode = Mode::Refused { text };
        }
    }

    pub(super) fn begin_typing(&mut self, purpose: Purpose) {
        self.panel_scroll = 0;
        self.lose_sight();
        let draft = self.drafts.get(&purpose).map(String::as_str).unwrap_or_default();
        self.mode = Mode::Typing(purpose.clone(), Line::of(draft));
    }

    /// Scrolls a question that is longer than its panel.
    fn panel_scrolls(&mut self, key: KeyEvent) -> bool {
        let page = isize::try_from(self.panel_page).unwrap_or(1);
        let by = match key.code {
            KeyCode::PageDown => page,
            KeyCode::PageUp => -page,
            KeyCode::Down => 1,
            KeyCode::Up => -1,
            _ => return false,
        };
        self.panel_scroll = self.panel_scroll.saturating_add_signed(by);
        true
    }

    /// Puts the text aside; it is there again when one goes on.
    fn stop_typing(&mut self) {
        if let Mode::Typing(purpose, line) = std::mem::replace(&mut self.mode, Mode::Browse) {
            match purpose {
                Purpose::Search => self.set_search(""),
                purpose => self.keep_draft(purpose, line.text()),
            }
        }
    }

    pub(super) fn keep_draft(&mut self, purpose: Purpose, text: &str) {
        if text.is_empty() {
            self.drafts.remove(&purpose);
        } else {
            self.drafts.insert(purpose, text.to_owned());
        }
    }

    /// The list shows what is found while one types.
    pub(super) fn search_as_typed(&mut self) {
        if let Mode::Typing(Purpose::Search, line) = &self.mode {
            let text = line.text().to_owned();
            self.set_search(&text);
        }
    }

    fn set_search(&mut self, text: &str) {
        match &mut self.open {
            Some(open) => text.clone_into(&mut open.search),
            None => text.clone_into(&mut self.filter),
        }
    }

    fn search_log(&mut self) {
        let height = self.rows_shown;
        let Some(open) = self.open.as_mut().filter(|open| !open.search.is_empty()) else { return };
        let is_found = open.transcript.as_mut().is_some_and(|log| log.find(&open.search, height));
        if !is_found {
            let text = format!("not found in what is loaded: {}", open.search);
            self.warn(&text);
        }
    }

    fn submit(&mut self, now: Timestamp) {
        let Mode::Typing(purpose, line) = std::mem::replace(&mut self.mode, Mode::Browse) else { return };
        let text = line.text().trim().to_owned();
        match purpose {
            Purpose::Search if self.open.is_some() => self.search_log(),
            Purpose::Search => self.choose(0, now),
            purpose if text.is_empty() => {
                self.mode = Mode::Typing(purpose, line);
                self.warn("type something first, or press Esc");
            }
            Purpose::Tell { goal } => {
                let purpose = Purpose::Tell { goal: goal.clone() };
                self.send_text(purpose, goal, Act::Tell(text.clone()), text);
            }
            Purpose::Answer { goal, question, part } => {
                let is_permission =
                    self.asked(&goal, question).is_some_and(|asked| asked.question.kind == "permission");
                match self.why_not_permitted(&text).filter(|_| is_permission) {
                    Some(why) => {
                        self.mode = Mode::Typing(Purpose::Answer { goal, question, part }, line);
                        self.warn(why);
                    }
                    None => self.submit_answer(goal, question, part, text),
                }
            }
            Purpose::Retry { goal } => self.submit_retry(goal, line),
        }
    }

    /// Sends the answer, or goes on to the next thing that is asked.
    fn submit_answer(&mut self, goal: String, question: u32, part: usize, text: String) {
        let Some(asked) = self.asked(&goal, question) else {
            self.keep_draft(Purpose::Answer { goal, question, part }, &text);
            return self.warn("this question is not open any more");
        };
        let (parts, is_permission) = (asked.question.parts.len(), asked.question.kind == "permission");
        let of = |part| Purpose::Answer { goal: goal.clone(), question, part };
        if part + 1 < parts {
            self.keep_draft(of(part), &text);
            return self.begin_typing(of(part + 1));
        }
        // Each thing that is asked has one line of the answer.
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let earlier = (0..part).map(|part| one_line(self.drafts.get(&of(part)).map_or("", String::as_str)));
        let last = if parts > 1 { one_line(&text) } else { text.clone() };
        let lines: Vec<String> = earlier.chain([last]).collect();
        let answer = match lines.as_slice() {
            [only] if is_permission => of_permission(only).to_owned(),
            lines => lines.join("\n"),
        };
        self.send_text(of(part), goal.clone(), Act::Answer { question, text: answer }, text);
    }

    /// Sends what was typed. It is kept until the server has it.
    pub(super) fn send_text(&mut self, purpose: Purpose, goal: String, act: Act, text: String) {
        self.drafts.remove(&purpose);
        let lost = self.flights.iter().position(|flight| flight.purpose == purpose && flight.text == text);
        let key = match lost.map(|place| self.flights.remove(place)) {
            Some(flight) => flight.key,
            None => self.new_key(),
        };
        self.flights.push(Flight { purpose, text, key: key.clone() });
        self.report("sending…");
        self.want(Request::Act { goal, act, key });
    }

    pub(super) fn new_key(&mut self) -> String {
        self.sent += 1;
        format!("watch-{}-{}", self.nonce, self.sent)
    }

    pub(super) fn send(&mut self, goal: String, act: Act) {
        let key = self.new_key();
        self.report("sending…");
        self.want(Request::Act { goal, act, key });
    }

    fn confirm(&mut self, key: KeyEvent) {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('y' | 'Y') if is_plain => {}
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => return self.mode = Mode::Browse,
            _ => return,
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Confirm { goal, act, .. } => self.send(goal, act),
            Mode::Merge { goal, proof, plan: Some(plan) } => {
                let MergeReport { into, candidate, .. } = *plan;
                self.send(goal, Act::Merge { proof, into, candidate });
                self.report("merging…");
            }
            mode => self.mode = mode,
        }
    }

    pub(super) fn take_acted(
        &mut self,
        goal: &str,
        act: &Act,
        key: &str,
        reply: Result<Box<GoalReport>, Failure>,
        now: Timestamp,
    ) {
        let flight = self.flights.iter().position(|flight| flight.key == key);
        let id = short_id(goal);
        match reply {
            Ok(report) => {
                flight
                    .map(|place| self.flights.remove(place))
                    .into_iter()
                    .for_each(|flight| self.arrived(flight));
                if let Act::Answer { question, .. } = act {
                    self.questions.retain(|line| line.goal != goal || line.question.id != *question);
                    self.asking = self.questions.iter().map(|line| line.goal.clone()).collect();
                }
                self.take_report(&report, None);
                self.stale.questions.spoil();
                self.stale.queue.spoil();
                self.stale.spoil_goal(goal, now);
                self.report(&done(act, &id));
            }
            Err(failure) => {
                if let Some(place) = flight {
                    self.give_back(place, &failure);
                }
                if matches!(failure, Failure::Missing(_)) {
                    return self.forget(goal);
                }
                if let Act::Retry { .. } = act
                    && let Some(axis) = self.note_spent(goal, &failure)
                {
                    return self.warn(&how_to_raise(goal, axis));
                }
                let kept = if flight.is_some() { "; your text is not lost" } else { "" };
                self.warn(&format!("cannot {} goal {id}: {}{kept}", name(act), failure.text()));
            }
        }
    }

    /// The server has the text, so the earlier parts of an answer are not needed any more.
    fn arrived(&mut self, flight: Flight) {
        if let Purpose::Answer { goal, question, .. } = flight.purpose {
            let is_its = |purpose: &Purpose| matches!(purpose, Purpose::Answer { goal: of, question: number, .. } if *of == goal && *number == question);
            self.drafts.retain(|purpose, _| !is_its(purpose));
        }
    }

    /// The text of a request that failed is a draft again. The key stays where the request may have been carried out.
    fn give_back(&mut self, place: usize, failure: &Failure) {
        let Flight { purpose, text, .. } = &self.flights[place];
        let (purpose, text) = (purpose.clone(), text.clone());
        if !matches!(failure, Failure::Lost(_)) {
            self.flights.remove(place);
        }
        match &mut self.mode {
            Mode::Typing(typing, line) if *typing == purpose => line.put_before(&text),
            _ => {
                let mut line = Line::of(self.drafts.get(&purpose).map(String::as_str).unwrap_or_default());
                line.put_before(&text);
                self.keep_draft(purpose, line.text());
            }
        }
    }
}

fn in_words(phase: &str) -> String {
    let label = status(phase).label;
    if label.starts_with("needs") { format!("{phase} ({label})") } else { label.to_owned() }
}

/// One letter is enough for an answer of three.
fn of_permission(text: &str) -> &str {
    match text {
        "y" | "Y" => "yes",
        "n" | "N" => "no",
        "A" => "always",
        text => text,
    }
}

fn name(act: &Act) -> &'static str {
    match act {
        Act::Answer { .. } => "answer",
        Act::Tell(_) => Step::Tell.name(),
        Act::Pause => Step::Pause.name(),
        Act::Resume => Step::Resume.name(),
        Act::Cancel => Step::Cancel.name(),
        Act::Retry { .. } => Step::Retry.name(),
        Act::PlanMerge(_) | Act::Merge { .. } => Step::Merge.name(),
    }
}

fn done(act: &Act, id: &str) -> String {
    match act {
        Act::Answer { .. } => format!("answered goal {id}"),
        Act::Tell(_) => format!("goal {id} has your message"),
        Act::Pause => format!("goal {id} is being paused"),
        Act::Resume => format!("goal {id} is resumed"),
        Act::Cancel => format!("goal {id} is being cancelled"),
        Act::Retry { .. } => format!("goal {id} is opened again"),
        Act::PlanMerge(_) | Act::Merge { .. } => String::new(),
    }
}
