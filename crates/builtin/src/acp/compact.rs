//! Replaces a conversation that has become too long by a summary of it.
//!
//! The model reads the conversation as one text, with the results of calls shortened. That fits even where the
//! conversation itself does not, and needs no tools.

use serde_json::json;
use towline_provider::{ErrorClass, Item, ProviderError};

use super::ask::Audience;
use super::conversation::{Conversation, estimate, tokens};
use super::record::{Purpose, Record};
use super::trouble::Trouble;
use super::turn::{Stopped, Turn};
use super::updates;

/// The longest piece of one call's input or result in the text that is summarised.
const PIECE_BYTES: usize = 2000;

const REQUEST: &str = "\
Below is a conversation between a user and you, an agent that works on the user's files. It will be replaced by your \
summary, and you will go on from there without seeing it again. Write down everything that is needed for that: what the \
user wants, in their own words where they matter; what has been done and found out, with names of files, functions and \
commands; what was tried and did not work; what is left to do, and what comes next. Write only the summary.";

const PREFACE: &str = "\
[The conversation so far was too long and was replaced by this summary, which you wrote. The work that it describes as done is done: \
continue from there.]";

impl Turn<'_> {
    /// Compacts the conversation because the user asked for it.
    pub(super) async fn compact_by_hand(&mut self, focus: Option<&str>) -> Result<Stopped, Trouble> {
        let message = if self.session.look(|conversation| conversation.items.is_empty()) {
            "There is nothing to summarise yet.".to_owned()
        } else {
            let (before, after) = self.sum_up(focus, None).await?;
            format!("The conversation was summarised: about {before} tokens before, {after} after.")
        };
        let update = updates::chunk("agent_message_chunk", None, &message);
        self.outbox.update(&self.session.id, update);
        Ok(Stopped::EndTurn)
    }

    /// Replaces the conversation by a summary, followed by `prompt`. Returns the tokens before and after.
    pub(super) async fn sum_up(
        &mut self,
        focus: Option<&str>,
        prompt: Option<Item>,
    ) -> Result<(u64, u64), Trouble> {
        let before = self.session.look(Conversation::used);
        let question = Item::User { text: self.request(focus) };
        let answer = self.ask(&[question], &[], Audience::Nobody).await?;
        self.spent(Purpose::Summary, answer.usage)?;
        let summary = answer.message.text.trim();
        if summary.is_empty() {
            let message = "the model gave an empty summary of the conversation".to_owned();
            let class = ErrorClass::CutOff;
            return Err(ProviderError { class, status: None, until: None, message }.into());
        }
        let summary = Item::User { text: format!("{PREFACE}\n\n{summary}") };
        let items: Vec<_> = [summary].into_iter().chain(prompt).collect();
        let after = self.fixed_tokens() + items.iter().map(estimate).sum::<u64>();
        self.session.record(Record::Compacted { before, after, items })?;
        self.send_usage(answer.usage);
        let params = json!({"sessionId": self.session.id, "before": before, "after": after});
        self.outbox.notify("_towline/compacted", params);
        Ok((before, after))
    }

    /// The tokens of every question besides the conversation.
    fn fixed_tokens(&self) -> u64 {
        let specs = self.session.hands.specs();
        let spec = |spec: &towline_provider::ToolSpec| {
            tokens(spec.name.len() + spec.description.len() + spec.parameters.to_string().len())
        };
        tokens(self.session.system.len()) + specs.iter().map(spec).sum::<u64>()
    }

    fn request(&self, focus: Option<&str>) -> String {
        let focus = focus.map(|focus| format!("\n\nFocus on this: {focus}")).unwrap_or_default();
        // Half of the window at two bytes per token: that fits even where tokens are short.
        let limit = usize::try_from(self.settings.context_window).unwrap_or(usize::MAX);
        let written = self.session.look(|conversation| written(&conversation.items));
        let text = shortened(&written, limit, "\n\n[… the middle was cut out …]\n\n");
        format!("{REQUEST}{focus}\n\n<conversation>\n{text}\n</conversation>")
    }
}

/// The conversation as one text.
fn written(items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
        match item {
            Item::User { text: words } => text.push_str(&format!("User: {words}\n\n")),
            Item::Model(message) => {
                if !message.text.is_empty() {
                    text.push_str(&format!("You: {}\n\n", message.text));
                }
                for call in &message.calls {
                    let input = piece(&call.input.to_string());
                    text.push_str(&format!("You called {}: {input}\n\n", call.name));
                }
            }
            Item::Results { results } => {
                for result in results {
                    let how = if result.failed { "failed" } else { "gave" };
                    text.push_str(&format!("{} {how}: {}\n\n", result.name, piece(&result.output)));
                }
            }
        }
    }
    text
}

fn piece(text: &str) -> String {
    shortened(text, PIECE_BYTES, " […] ")
}

/// At most about `limit` bytes: a quarter from the beginning, the rest from the end.
fn shortened(text: &str, limit: usize, gap: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 4);
    let tail = text.ceil_char_boundary(text.len() - (limit - limit / 4));
    format!("{}{gap}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use towline_provider::{Call, CallResult, ModelMessage};

    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_more_of_its_end() {
        assert_eq!(shortened("abcdefgh", 8, "…"), "abcdefgh");
        assert_eq!(shortened("abcdefghi", 8, "…"), "ab…defghi");
        assert_eq!(shortened("üüüüü", 5, "…"), "…üü");
    }

    #[test]
    fn messages_and_calls_are_written_out_with_long_results_shortened() {
        let call = Call { id: "1".into(), name: "run".into(), input: json!({"command": "ls"}) };
        let message = ModelMessage { text: "I look.".into(), calls: vec![call], native: None };
        let output = format!("{}END", "x".repeat(9000));
        let result = CallResult { id: "1".into(), name: "run".into(), output, failed: true };
        let items =
            [Item::User { text: "go".into() }, Item::Model(message), Item::Results { results: vec![result] }];
        let text = written(&items);
        assert!(text.starts_with(
            "User: go\n\nYou: I look.\n\nYou called run: {\"command\":\"ls\"}\n\nrun failed: xxx"
        ));
        assert!(text.ends_with("xxEND\n\n") && text.len() < 2200, "{}", text.len());
    }
}
