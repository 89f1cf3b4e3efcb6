//! The log of one goal as lines, of which a bounded part is in memory: the end, or what one has scrolled to.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::Value;
use towline_core::Envelope;
use towline_terminal::{Detail, Paint, Story, columns, wrapped};

/// How many entries are read at once.
pub(crate) const PAGE: u64 = 300;
/// How many lines stay in memory.
const MOST_LINES: usize = 4_000;
/// How close to the edge of what is in memory the next page is wanted.
const NEAR: usize = 30;

/// What an entry of the log adds.
struct Told {
    seq: u64,
    lines: Vec<String>,
    /// The same for a screen of this width.
    rows: Vec<String>,
}

/// Which part of the log is wanted next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// What comes before.
    Older { after: u64, limit: u64 },
    /// What comes after, where the end is not in memory.
    Newer { after: u64 },
}

/// The log of one goal, as far as it is in memory.
pub(crate) struct Transcript {
    story: Story,
    told: VecDeque<Told>,
    width: usize,
    lines: usize,
    /// The first and the last entry in memory; 0 without one.
    first: u64,
    last: u64,
    /// The newest entry that there is.
    newest: u64,
    /// The row at the top of the screen: an entry, and a row of it. None at the end, which moves.
    top: Option<(u64, usize)>,
    /// The page that is on its way.
    loading: Option<Part>,
}

fn story() -> Story {
    Story::new(Paint::Colour, Detail::Short)
}

impl Transcript {
    /// A log that is read from after this place on.
    pub(crate) fn after(place: u64) -> Self {
        Self {
            story: story(),
            told: VecDeque::new(),
            width: 80,
            lines: 0,
            first: place + 1,
            last: place,
            newest: place,
            top: None,
            loading: None,
        }
    }

    /// The last entry that was heard of.
    #[cfg(test)]
    pub(crate) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Takes an entry of the stream. Each counts once.
    pub(crate) fn take(&mut self, json: &Value, now: Timestamp) {
        let Some(seq) = json["seq"].as_u64().filter(|seq| *seq > self.newest) else { return };
        let is_at_the_end = self.last == self.newest;
        self.newest = seq;
        // For somebody who reads further up, the end makes room; it is read again when they go there.
        if is_at_the_end && self.follows() {
            self.add(seq, json, now);
            self.drop_oldest();
        } else if is_at_the_end && self.lines < MOST_LINES {
            self.add(seq, json, now);
        }
    }

    fn add(&mut self, seq: u64, json: &Value, now: Timestamp) {
        let lines = lines_of(&mut self.story, json, now);
        self.last = seq;
        self.lines += lines.len();
        let rows = rows_of(&lines, self.width);
        self.told.push_back(Told { seq, lines, rows });
    }

    fn drop_oldest(&mut self) {
        while self.lines > MOST_LINES {
            let Some(oldest) = self.told.pop_front() else { return };
            self.lines -= oldest.lines.len();
            self.first = oldest.seq + 1;
        }
    }

    /// Takes a page that was wanted, unless it does not fit any more. Returns what has to be read next.
    pub(crate) fn take_page(&mut self, part: Part, events: &[Value], now: Timestamp) -> Option<Part> {
        if self.loading != Some(part) {
            return None;
        }
        self.loading = None;
        match part {
            Part::Older { after, limit } if after + limit + 1 == self.first => {
                self.take_older(after, events, now);
            }
            Part::Newer { after } if after == self.last => {
                self.story = story();
                for event in events {
                    let Some(seq) = event["seq"].as_u64().filter(|seq| *seq > self.last) else { continue };
                    self.add(seq, event, now);
                    self.newest = self.newest.max(seq);
                }
                self.drop_oldest();
                // Nothing more is asked of a server that has nothing.
                return if self.last > after { self.catch_up() } else { None };
            }
            Part::Older { .. } | Part::Newer { .. } => {}
        }
        None
    }

    /// What has to be read so that the end of the log is on the screen of somebody who follows it.
    pub(crate) fn catch_up(&mut self) -> Option<Part> {
        let lags = self.follows() && self.last < self.newest;
        lags.then_some(Part::Newer { after: self.last }).filter(|part| self.start(*part))
    }

    /// Whether this page is asked for now: only one is on its way at a time.
    fn start(&mut self, part: Part) -> bool {
        let is_free = self.loading.is_none();
        self.loading.get_or_insert(part);
        is_free
    }

    fn take_older(&mut self, after: u64, events: &[Value], now: Timestamp) {
        let mut story = story();
        let mut older = Vec::new();
        for event in events {
            let Some(seq) = event["seq"].as_u64().filter(|seq| *seq > after && *seq < self.first) else {
                continue;
            };
            let lines = lines_of(&mut story, event, now);
            let rows = rows_of(&lines, self.width);
            older.push(Told { seq, lines, rows });
        }
        self.first = after + 1;
        for told in older.into_iter().rev() {
            self.lines += told.lines.len();
            self.told.push_front(told);
        }
        // The other end makes room; it is read again when somebody scrolls there.
        while self.lines > MOST_LINES && self.top.is_some() {
            let Some(newest) = self.told.pop_back() else { return };
            self.lines -= newest.lines.len();
            self.last = self.told.back().map_or(self.first - 1, |told| told.seq);
        }
    }

    /// Breaks the lines for a screen of this width.
    pub(crate) fn set_width(&mut self, width: usize) {
        if self.width != width {
            self.width = width;
            self.told.iter_mut().for_each(|told| told.rows = rows_of(&told.lines, width));
        }
    }

    fn rows(&self) -> usize {
        self.told.iter().map(|told| told.rows.len()).sum()
    }

    /// The number of the row at the top of a screen of this height.
    fn top_row(&self, height: usize) -> usize {
        let end = self.rows().saturating_sub(height);
        let Some((seq, row)) = self.top else { return end };
        let before: usize =
            self.told.iter().take_while(|told| told.seq < seq).map(|told| told.rows.len()).sum();
        (before + row).min(end)
    }

    /// The rows on a screen of this height.
    pub(crate) fn shown(&self, height: usize) -> Vec<&str> {
        let rows = self.told.iter().flat_map(|told| &told.rows);
        rows.skip(self.top_row(height)).take(height).map(String::as_str).collect()
    }

    /// Whether the end of the log is on the screen, and stays there as it grows.
    pub(crate) const fn follows(&self) -> bool {
        self.top.is_none()
    }

    /// How many rows there are below the screen, as far as they are in memory.
    pub(crate) fn below(&self, height: usize) -> usize {
        self.rows().saturating_sub(self.top_row(height) + height)
    }

    /// Whether the log begins before what is in memory.
    pub(crate) const fn begins_earlier(&self) -> bool {
        self.first > 1
    }

    /// Moves the screen by so many rows, and returns what has to be read for that.
    pub(crate) fn scroll(&mut self, by: isize, height: usize) -> Option<Part> {
        let end = self.rows().saturating_sub(height);
        let row = self.top_row(height).saturating_add_signed(by).min(end);
        self.go_to(row, end);
        self.wanted(row, height)
    }

    fn go_to(&mut self, row: usize, end: usize) {
        let is_end = row >= end && self.last == self.newest;
        self.top = if is_end { None } else { self.place_of(row) };
    }

    fn place_of(&self, row: usize) -> Option<(u64, usize)> {
        let mut left = row;
        for told in &self.told {
            if left < told.rows.len() {
                return Some((told.seq, left));
            }
            left -= told.rows.len();
        }
        None
    }

    /// What is missing near a screen whose top is this row.
    fn wanted(&mut self, row: usize, height: usize) -> Option<Part> {
        let part = if row < NEAR && self.begins_earlier() {
            let after = (self.first - 1).saturating_sub(PAGE);
            Part::Older { after, limit: self.first - 1 - after }
        } else if row + height + NEAR >= self.rows() && self.last < self.newest {
            Part::Newer { after: self.last }
        } else {
            return None;
        };
        self.start(part).then_some(part)
    }

    /// A page could not be read; scrolling asks for it again.
    pub(crate) fn give_up_page(&mut self, part: Part) {
        self.loading.take_if(|loading| *loading == part);
    }

    /// Goes to the end, and returns what has to be read for that.
    pub(crate) fn jump_to_end(&mut self, height: usize) -> Option<Part> {
        self.top = None;
        if self.last < self.newest {
            let after = self.newest.saturating_sub(PAGE);
            let newest = self.newest;
            let part = Part::Newer { after };
            *self = Self { newest, width: self.width, loading: Some(part), ..Self::after(after) };
            return Some(part);
        }
        self.wanted(self.rows().saturating_sub(height), height)
    }

    /// Goes to the first row in memory, and returns what has to be read before it.
    pub(crate) fn jump_to_beginning(&mut self, height: usize) -> Option<Part> {
        self.scroll(isize::MIN + 1, height)
    }

    /// Goes to the nearest row above the screen with this text, or to the last one. Whether there is one.
    pub(crate) fn find(&mut self, text: &str, height: usize) -> bool {
        let text = text.to_lowercase();
        let rows: Vec<&String> = self.told.iter().flat_map(|told| &told.rows).collect();
        let has_it = |row: &usize| rows[*row].to_lowercase().contains(&text);
        let top = self.top_row(height);
        let found = (0..top).rev().find(has_it).or_else(|| (top..rows.len()).rev().find(has_it));
        let Some(row) = found else { return false };
        let end = rows.len().saturating_sub(height);
        self.go_to(row.min(end), end);
        true
    }
}

/// The lines of an entry. One that a later version wrote has a line, too.
fn lines_of(story: &mut Story, json: &Value, now: Timestamp) -> Vec<String> {
    match serde_json::from_value::<Envelope>(json.clone()) {
        // The screen has spaces for tabs, which lines are measured with.
        Ok(envelope) => story.lines(&envelope, now).iter().map(|line| line.replace('\t', "    ")).collect(),
        Err(_) => vec![Paint::Colour.dim("  (an entry that this version does not understand)")],
    }
}

fn rows_of(lines: &[String], width: usize) -> Vec<String> {
    let width = width.max(1);
    lines
        .iter()
        .flat_map(|line| if columns(line) <= width { vec![line.clone()] } else { wrapped(line, width) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64) -> Value {
        serde_json::json!({
            "goal": "01932f6e-7c00-7abc-8def-0123456789ab", "seq": seq, "at": "2026-03-01T08:00:00Z", "attempt": null,
            "source": "towline", "parent": null, "raw": null, "event": {"kind": "notice", "text": format!("entry {seq}.")},
        })
    }

    fn events(seqs: std::ops::RangeInclusive<u64>) -> Vec<Value> {
        seqs.map(event).collect()
    }

    /// The numbers of the entries on the screen.
    fn seen(transcript: &Transcript) -> Vec<u64> {
        transcript
            .shown(3)
            .iter()
            .filter_map(|row| row.split("entry ").nth(1)?.split('.').next()?.parse().ok())
            .collect()
    }

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn each_entry_is_shown_once_and_the_end_stays_on_the_screen() {
        let mut transcript = Transcript::after(7);
        for seq in [8, 9, 9, 8, 10, 11] {
            transcript.take(&event(seq), NOW);
        }
        assert_eq!((seen(&transcript), transcript.newest()), (vec![9, 10, 11], 11));
        assert!(transcript.follows());
    }

    #[test]
    fn what_one_reads_stays_on_the_screen_while_the_log_grows() {
        let mut transcript = Transcript::after(0);
        for seq in 1..=100 {
            transcript.take(&event(seq), NOW);
        }
        assert_eq!(transcript.scroll(-40, 3), None);
        assert_eq!(seen(&transcript), [58, 59, 60]);
        transcript.take(&event(101), NOW);
        assert_eq!((seen(&transcript), transcript.follows()), (vec![58, 59, 60], false));
        assert_eq!(transcript.scroll(1_000, 3), None);
        assert_eq!((seen(&transcript), transcript.follows()), (vec![99, 100, 101], true));
        assert!(transcript.find("ENTRY 42.", 3));
        assert_eq!(seen(&transcript), [42, 43, 44]);
        assert!(!transcript.find("entry 102", 3));
    }

    #[test]
    fn older_entries_are_read_on_demand_and_memory_stays_bounded() {
        let end = 20_000;
        let mut transcript = Transcript::after(end - PAGE);
        for seq in end - PAGE + 1..=end {
            transcript.take(&event(seq), NOW);
        }
        let mut wanted = transcript.jump_to_beginning(3);
        let mut pages = 0;
        while let Some(part) = wanted {
            let Part::Older { after, limit } = part else { panic!("{part:?}") };
            assert_eq!(transcript.jump_to_beginning(3), None, "one page at a time");
            transcript.take_page(part, &events(after + 1..=after + limit), NOW);
            pages += 1;
            assert!(transcript.lines <= MOST_LINES, "{}", transcript.lines);
            wanted = transcript.jump_to_beginning(3);
        }
        assert_eq!((seen(&transcript), pages), (vec![1, 2, 3], (end - 1) / PAGE));
        // What happens meanwhile is not lost.
        transcript.take(&event(end + 1), NOW);
        assert_eq!(seen(&transcript), [1, 2, 3]);
        let part = transcript.jump_to_end(3).expect("the end is not in memory");
        let Part::Newer { after } = part else { panic!("{part:?}") };
        transcript.take_page(part, &events(after + 1..=end + 1), NOW);
        assert_eq!((seen(&transcript), transcript.follows()), (vec![end - 1, end, end + 1], true));
        transcript.take(&event(end + 2), NOW);
        assert_eq!(seen(&transcript), [end, end + 1, end + 2]);
    }

    #[test]
    fn a_line_of_ten_megabytes_with_orders_to_the_terminal_is_short_and_harmless() {
        let mut hostile = event(1);
        hostile["event"]["text"] = format!("\u{1b}[2J\u{202e}{}", "x".repeat(10_000_000)).into();
        let mut transcript = Transcript::after(0);
        transcript.set_width(40);
        transcript.take(&hostile, NOW);
        let text = transcript.shown(100).join("\n");
        assert!(text.len() < 2_000, "{}", text.len());
        assert!(
            !text.replace("\u{1b}[2m", "").contains("\u{1b}[2J") && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }

    #[test]
    fn the_end_is_followed_although_entries_came_before_its_page() {
        let mut transcript = Transcript::after(0);
        (1..=1_000).for_each(|seq| transcript.take(&event(seq), NOW));
        // Whoever reads far above has the end dropped.
        transcript.scroll(-500, 3);
        transcript.told.truncate(600);
        (transcript.last, transcript.lines) = (600, 600);
        let part = transcript.jump_to_end(3).expect("the end is not in memory");
        let Part::Newer { after } = part else { panic!("{part:?}") };
        transcript.take(&event(1_001), NOW);
        let next = transcript.take_page(part, &events(after + 1..=after + PAGE), NOW);
        assert_eq!(next, Some(Part::Newer { after: 1_000 }));
        assert_eq!(transcript.catch_up(), None, "one page at a time");
        transcript.give_up_page(Part::Newer { after: 1_000 });
        let part = transcript.catch_up().expect("it is asked for again");
        assert_eq!(transcript.take_page(part, &events(1_001..=1_001), NOW), None);
        transcript.take(&event(1_002), NOW);
        assert_eq!(seen(&transcript), [1_000, 1_001, 1_002]);
    }

    #[test]
    fn a_page_that_does_not_fit_any_more_leaves_no_gap() {
        let mut transcript = Transcript::after(5_000);
        (5_001..=5_300).for_each(|seq| transcript.take(&event(seq), NOW));
        let older = transcript.jump_to_beginning(3).expect("older entries");
        let Part::Older { after, limit } = older else { panic!("{older:?}") };
        // The end, which is read anew meanwhile, is far from that page.
        transcript.told.truncate(100);
        (transcript.last, transcript.newest, transcript.lines) = (5_100, 9_000, 100);
        let newer = transcript.jump_to_end(3).expect("the end is not in memory");
        assert_eq!(transcript.take_page(older, &events(after + 1..=after + limit), NOW), None);
        assert_eq!((transcript.told.len(), transcript.first), (0, 9_001 - PAGE));
        assert_eq!(transcript.catch_up(), None, "its page is still under way");
        transcript.take_page(newer, &events(9_001 - PAGE..=9_000), NOW);
        assert_eq!(seen(&transcript), [8_998, 8_999, 9_000]);
        // A page whose place was dropped meanwhile is asked for again.
        let older = transcript.jump_to_beginning(3).expect("older entries");
        transcript.first += 1;
        assert_eq!(transcript.take_page(older, &[], NOW), None);
        assert!(transcript.jump_to_beginning(3).is_some());
    }

    #[test]
    fn what_one_reads_stays_although_the_log_grows_beyond_what_is_kept() {
        let most = MOST_LINES as u64;
        let mut transcript = Transcript::after(0);
        (1..=most).for_each(|seq| transcript.take(&event(seq), NOW));
        transcript.jump_to_beginning(3);
        (most + 1..=most + 500).for_each(|seq| transcript.take(&event(seq), NOW));
        assert_eq!((seen(&transcript), transcript.newest()), (vec![1, 2, 3], most + 500));
        let part = transcript.scroll(isize::MAX, 3);
        assert_eq!(part, Some(Part::Newer { after: most }));
    }
}
