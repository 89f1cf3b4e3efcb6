//! What plain `serde_json` makes of the same lines: what the figures are compared with.
//!
//! [`Thin`] is the least that can be asked of a line: which one it is. [`Claude`] holds, typed and borrowed, what the
//! events of a line are made of; parts that mean something only to some frames stay raw. Both are derived, but for the
//! one place where the format has a text or a list.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A borrowed text also inside of an `Option`, where a bare `Cow` would be copied.
#[derive(Deserialize)]
#[serde(transparent)]
#[expect(dead_code, reason = "it is there to be read into")]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The envelope that every frame of every protocol has, without its content.
#[derive(Deserialize)]
#[expect(dead_code, reason = "it is there to be read into")]
pub(crate) struct Thin<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    id: Option<IgnoredAny>,
}

/// Any line of Claude Code.
#[derive(Deserialize)]
#[expect(dead_code, reason = "it is there to be read into")]
pub(crate) struct Claude<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow)]
    parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    event: Option<Event<'a>>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    // Of the beginning.
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    cwd: Option<Text<'a>>,
    #[serde(borrow)]
    claude_code_version: Option<Text<'a>>,
    #[serde(borrow)]
    mcp_servers: Option<&'a RawValue>,
    // Of other news.
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    rate_limit_info: Option<&'a RawValue>,
    #[serde(borrow)]
    compact_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    task_id: Option<Text<'a>>,
    #[serde(borrow)]
    request_id: Option<Text<'a>>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    // Of the end.
    is_error: Option<bool>,
    api_error_status: Option<u16>,
    #[serde(borrow)]
    result: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    terminal_reason: Option<Text<'a>>,
    num_turns: Option<u32>,
    total_cost_usd: Option<f64>,
    usage: Option<Usage>,
    #[serde(borrow, rename = "modelUsage")]
    model_usage: Option<&'a RawValue>,
    #[serde(borrow)]
    permission_denials: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is there to be read into")]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is there to be read into")]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Block<'a>>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is there to be read into")]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is there to be read into")]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

/// A text, or a list of blocks. What serde derives for such a choice reads it twice, which would slow it down.
#[expect(dead_code, reason = "it is there to be read into")]
enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;
        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = Content<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a list of blocks")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = list.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(TextOrBlocks)
    }
}
