//! A conversation in an order that every API accepts.
//!
//! Sessions are interrupted and shortened, so a call may have lost its result and a result its call. APIs refuse such a
//! conversation as a whole. Here each call is followed by its result, and users do not speak twice in a row.

use std::borrow::Cow;

use crate::{Call, CallResult, Item, ModelMessage};

/// A placeholder for an empty text: APIs refuse an empty message.
pub(super) const NOTHING: &str = "(nothing)";

/// The result of a call that has none.
const NO_RESULT: &str = "There is no result: the call was interrupted.";

/// The items in a lawful order, borrowed where nothing had to change.
pub(super) fn lawful(items: &[Item]) -> Vec<Cow<'_, Item>> {
    let mut lawful: Vec<Cow<'_, Item>> = Vec::with_capacity(items.len());
    let mut open: &[Call] = &[];
    for item in items {
        let results: &[CallResult] = match item {
            Item::Results { results } => results,
            Item::User { .. } | Item::Model(_) => &[],
        };
        answer_calls(&mut lawful, std::mem::take(&mut open), results, Some(item));
        match item {
            Item::User { text } => add_words(&mut lawful, text, Some(item)),
            Item::Model(model_message) if !is_empty(model_message) => {
                lawful.push(Cow::Borrowed(item));
                open = &model_message.calls;
            }
            Item::Model(_) | Item::Results { .. } => {}
        }
    }
    answer_calls(&mut lawful, open, &[], None);
    lawful
}

fn is_empty(model_message: &ModelMessage) -> bool {
    model_message.text.trim().is_empty() && model_message.calls.is_empty() && model_message.native.is_none()
}

/// Puts one result for each open call, in the order of the calls; results of no open call become words. The item is the
/// one that has the results, to be borrowed where it is right as it is.
fn answer_calls<'a>(
    lawful: &mut Vec<Cow<'a, Item>>,
    open: &[Call],
    results: &[CallResult],
    item: Option<&'a Item>,
) {
    if open.is_empty() && results.is_empty() {
        return;
    }
    let as_called = open.iter().map(|call| &call.id).eq(results.iter().map(|result| &result.id));
    match item {
        Some(item) if as_called => lawful.push(Cow::Borrowed(item)),
        _ if open.is_empty() => {}
        _ => {
            let results = open.iter().map(|call| result_of(call, results)).collect();
            lawful.push(Cow::Owned(Item::Results { results }));
        }
    }
    for stray in results.iter().filter(|result| open.iter().all(|call| call.id != result.id)) {
        add_words(lawful, &format!("Result of an earlier call of {}:\n{}", stray.name, stray.output), None);
    }
}

fn result_of(call: &Call, results: &[CallResult]) -> CallResult {
    results.iter().find(|result| result.id == call.id).cloned().unwrap_or_else(|| CallResult {
        id: call.id.clone(),
        name: call.name.clone(),
        output: NO_RESULT.to_owned(),
        failed: true,
    })
}

/// Adds the user's words, to those that came right before if there are any. The item is the one that holds them.
fn add_words<'a>(lawful: &mut Vec<Cow<'a, Item>>, text: &str, item: Option<&'a Item>) {
    if let Some(last) = lawful.last_mut()
        && let Item::User { text: before } = last.as_ref()
    {
        let text = format!("{before}\n\n{text}");
        *last = Cow::Owned(Item::User { text });
        return;
    }
    lawful.push(match item {
        _ if text.trim().is_empty() => Cow::Owned(Item::User { text: NOTHING.to_owned() }),
        Some(item) => Cow::Borrowed(item),
        None => Cow::Owned(Item::User { text: text.to_owned() }),
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(text: &str) -> Item {
        Item::User { text: text.into() }
    }

    fn calls(ids: &[&str]) -> Item {
        let call = |id: &&str| Call { id: (*id).into(), name: "run".into(), input: json!({}) };
        Item::Model(ModelMessage { calls: ids.iter().map(call).collect(), ..ModelMessage::default() })
    }

    fn result(id: &str, output: &str, failed: bool) -> CallResult {
        CallResult { id: id.into(), name: "run".into(), output: output.into(), failed }
    }

    fn results(of: &[(&str, &str)]) -> Item {
        Item::Results { results: of.iter().map(|(id, output)| result(id, output, false)).collect() }
    }

    fn check(items: &[Item], expected: &[Item]) {
        let lawful = lawful(items);
        assert_eq!(lawful.iter().map(Cow::as_ref).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_lawful_conversation_is_left_alone() {
        let items = [user("a"), calls(&["1", "2"]), results(&[("1", "x"), ("2", "y")]), user("b")];
        check(&items, &items);
        assert!(lawful(&items).iter().all(|item| matches!(item, Cow::Borrowed(_))));
    }

    #[test]
    fn every_call_gets_its_result_right_behind_it() {
        let none = |id| result(id, NO_RESULT, true);
        check(
            &[user("a"), calls(&["1", "2"]), results(&[("2", "y")])],
            &[
                user("a"),
                calls(&["1", "2"]),
                Item::Results { results: vec![none("1"), result("2", "y", false)] },
            ],
        );
        check(
            &[user("a"), calls(&["1"]), user("b"), calls(&["2"])],
            &[
                user("a"),
                calls(&["1"]),
                Item::Results { results: vec![none("1")] },
                user("b"),
                calls(&["2"]),
                Item::Results { results: vec![none("2")] },
            ],
        );
    }

    #[test]
    fn results_without_a_call_become_words_and_words_are_joined() {
        check(
            &[
                results(&[("0", "old")]),
                user("a"),
                Item::Model(ModelMessage::default()),
                user("b"),
                results(&[]),
            ],
            &[user("Result of an earlier call of run:\nold\n\na\n\nb")],
        );
        check(&[user(" ")], &[user(NOTHING)]);
    }
}
