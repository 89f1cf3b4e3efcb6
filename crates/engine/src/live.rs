//! The message that an agent is writing now, for watchers. Never stored: the log has each message once it is whole.
//!
//! A watcher gets the message as far as it is written, not the pieces, so a slow one sees fewer steps and misses nothing. Of
//! a long message it gets the end. Secrets are hidden in the whole message when it is read, because a piece may hold half of one.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;
use towline_core::{AgentEvent, AttemptNo, Event, Incoming, Role, without_escapes};
use towline_mask::Mask;

/// How much of a message is passed on: its end, in bytes.
const LONGEST: usize = 16 * 1024;
/// How much of an unfinished word is held back, in bytes: it may be the beginning of a secret.
const HELD_BACK: usize = 128;
/// The shortest time between two steps.
const PAUSE: Duration = Duration::from_millis(50);

/// A message that an agent is writing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveMessage {
    /// Grows with each message.
    pub number: u64,
    /// The attempt that it belongs to.
    pub attempt: Option<AttemptNo>,
    /// What is written of it, or the end of that. Empty once the message is whole or given up.
    pub text: String,
}

/// A message as its pieces come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writing {
    message: LiveMessage,
    /// Hides secrets; none where another process has hidden them.
    mask: Option<Arc<Mask>>,
}

impl Writing {
    /// One that another process passed on.
    pub(crate) const fn passed_on(message: LiveMessage) -> Self {
        Self { message, mask: None }
    }

    /// Takes note of what an agent did. Whether anything is different now.
    pub(crate) fn follow(&mut self, incoming: &Incoming, mask: &Arc<Mask>) -> bool {
        match &incoming.event {
            // Agents below the first one write at the same time.
            Event::Agent { .. } if incoming.parent.is_some() => false,
            Event::Agent { event: AgentEvent::MessageDelta { text } } => {
                self.add(text);
                self.message.attempt = incoming.stamp.attempt;
                self.mask = Some(Arc::clone(mask));
                true
            }
            Event::Agent {
                event: AgentEvent::Message { role: Role::Assistant, .. } | AgentEvent::TurnEnded(_),
            }
            | Event::AttemptEnded { .. } => !std::mem::take(&mut self.message.text).is_empty(),
            _ => false,
        }
    }

    fn add(&mut self, piece: &str) {
        let text = &mut self.message.text;
        if text.is_empty() {
            self.message.number += 1;
        }
        text.push_str(piece);
        if text.len() > 2 * LONGEST {
            let from = text.ceil_char_boundary(text.len() - LONGEST);
            // Half a word may be half a secret.
            let from = text[from..].find(char::is_whitespace).map_or(from, |word| from + word);
            text.drain(..from);
        }
    }

    /// What may be shown.
    fn shown(&self) -> LiveMessage {
        let Some(mask) = &self.mask else { return self.message.clone() };
        let text = &self.message.text;
        let whole_words = text.rfind(char::is_whitespace).unwrap_or(0);
        let end = whole_words.max(text.floor_char_boundary(text.len().saturating_sub(HELD_BACK)));
        let shown = without_escapes(&text[..end]);
        let mut shown = mask.text(&shown).into_owned();
        let from = shown.ceil_char_boundary(shown.len().saturating_sub(LONGEST));
        shown.drain(..from);
        LiveMessage { text: shown, ..self.message.clone() }
    }
}

/// The message that an agent is writing, in steps.
pub struct Live {
    writing: watch::Receiver<Writing>,
    given: LiveMessage,
    next_at: Instant,
}

impl Live {
    pub(crate) fn new(writing: watch::Receiver<Writing>) -> Self {
        Self { writing, given: LiveMessage::default(), next_at: Instant::now() }
    }

    /// Waits until more of the message is written, another one is begun, or it is whole, which its empty text shows. None once
    /// no engine runs the goal. Safe to drop while waiting.
    pub async fn next(&mut self) -> Option<LiveMessage> {
        loop {
            tokio::time::sleep_until(self.next_at).await;
            self.writing.changed().await.ok()?;
            let message = self.writing.borrow_and_update().shown();
            if message != self.given {
                self.next_at = Instant::now() + PAUSE;
                self.given.clone_from(&message);
                return Some(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use towline_core::{Generation, Stamp};
    use towline_mask::Secrets;

    use super::*;
    use crate::news::own;

    fn piece(text: &str) -> Incoming {
        let stamp = Stamp { generation: Generation(1), attempt: Some(AttemptNo::FIRST) };
        own(stamp, Event::Agent { event: AgentEvent::MessageDelta { text: text.to_owned() } })
    }

    fn mask() -> Arc<Mask> {
        let mut secrets = Secrets::default();
        secrets.add("KEY", "correct-horse-battery");
        Arc::new(Mask::new(&secrets))
    }

    /// What is shown after each of these pieces.
    fn shown_after<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let (mut writing, mask) = (Writing::default(), mask());
        let shown = pieces.into_iter().map(|text| {
            assert!(writing.follow(&piece(text), &mask));
            writing.shown().text
        });
        shown.collect()
    }

    #[test]
    fn no_part_of_a_secret_is_shown_however_it_is_cut() {
        let text = "The key is correct-horse-battery and sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789, you see.\n";
        for length in 1..40 {
            let pieces: Vec<String> =
                text.as_bytes().chunks(length).map(|piece| String::from_utf8_lossy(piece).into()).collect();
            let shown = shown_after(pieces.iter().map(String::as_str));
            assert!(
                shown.iter().all(|shown| !shown.contains("corr") && !shown.contains("api03")),
                "{shown:?}"
            );
            let last = shown.last().expect("a piece");
            assert!(last.starts_with("The key is [masked KEY] and [masked "), "{last}");
        }
    }

    #[test]
    fn escape_sequences_are_left_out_even_when_they_are_cut() {
        assert_eq!(
            shown_after(["red: \u{1b}[3", "1mred\u{1b}[0m ", "over\n"]),
            ["red:", "red: red", "red: red over"]
        );
    }

    #[test]
    fn of_a_long_message_the_end_is_shown() {
        let (mut writing, mask) = (Writing::default(), mask());
        for number in 0..20_000 {
            writing.follow(&piece(&format!("word {number}\n")), &mask);
            assert!(writing.message.text.len() <= 2 * LONGEST);
        }
        let shown = writing.shown().text;
        assert!(shown.len() <= LONGEST && shown.ends_with("word 19998\nword 19999"), "{shown}");
        for _ in 0..4_000 {
            writing.follow(&piece("ありがとう"), &mask);
        }
        assert!((LONGEST - 16..=LONGEST).contains(&writing.shown().text.len()), "without spaces");
    }

    #[test]
    fn what_agents_below_the_first_one_write_is_left_out() {
        let mut writing = Writing::default();
        let below = Incoming { parent: Some("call".into()), ..piece("hidden \n") };
        assert!(!writing.follow(&below, &mask()));
        assert_eq!(writing.shown(), LiveMessage::default());
    }
}
