//! Turns a prompt's blocks of content into the text that the model reads.

use serde::Deserialize;

use super::rpc::Refusal;

/// A block of content, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: String,
    },
    Resource {
        resource: Resource,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct Resource {
    uri: String,
    text: Option<String>,
}

/// The text of a prompt.
pub(super) fn words(blocks: Vec<Block>) -> Result<String, Refusal> {
    let pieces = blocks.into_iter().map(|block| match block {
        Block::Text { text } => Ok(text),
        Block::ResourceLink { uri, name } if name.is_empty() => Ok(format!("<{uri}>")),
        Block::ResourceLink { uri, name } => Ok(format!("[{name}]({uri})")),
        Block::Resource { resource: Resource { uri, text: Some(text) } } => {
            Ok(format!("<resource uri=\"{uri}\">\n{text}\n</resource>"))
        }
        Block::Resource { resource: Resource { uri, text: None } } => Err(format!("{uri} is not text")),
        Block::Other => Err("it has a block that is neither text nor a resource".to_owned()),
    });
    let pieces: Result<Vec<_>, _> = pieces.collect();
    let refused = |why| Refusal::invalid_params(format!("the prompt cannot be used: {why}; send text"));
    let words = pieces.map_err(refused)?.join("\n");
    if words.trim().is_empty() {
        return Err(Refusal::invalid_params("the prompt is empty; describe the task"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(blocks: Value) -> Result<String, i64> {
        words(serde_json::from_value(blocks).expect("blocks")).map_err(|refusal| refusal.code)
    }

    #[test]
    fn text_references_and_embedded_resources_become_text() {
        let reference = json!({"type": "resource_link", "uri": "file:///a.rs", "name": "a.rs", "size": 3});
        let text = json!({"uri": "file:///b.rs", "mimeType": "text/x-rust", "text": "fn b() {}"});
        let blocks =
            json!([{"type": "text", "text": "Look at"}, reference, {"type": "resource", "resource": text}]);
        let wanted = "Look at\n[a.rs](file:///a.rs)\n<resource uri=\"file:///b.rs\">\nfn b() {}\n</resource>";
        assert_eq!(read(blocks), Ok(wanted.to_owned()));
    }

    #[test]
    fn content_that_is_not_text_is_refused() {
        let blob = json!({"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}});
        for block in
            [blob, json!({"type": "image", "data": "", "mimeType": "image/png"}), json!({"type": "x"})]
        {
            assert_eq!(read(json!([block])), Err(-32_602), "{block}");
        }
        assert_eq!(read(json!([])), Err(-32_602));
        assert_eq!(read(json!([{"type": "text", "text": " \n"}])), Err(-32_602));
    }
}
