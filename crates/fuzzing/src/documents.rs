//! What must hold of whole texts that people and agents write: the configuration, goals, questions, last messages, scripts.

use std::path::Path;

use towline_config::{Layer, LayerContent, LayerName, inspect, load, read_goal_file};
use towline_core::{Ask, End, LastWords, parse_duration};

/// The most bytes of an error message, beyond the length of the text.
const WORDS: usize = 64 * 1024;
const WORDS_PER_BYTE: usize = 256;

/// A configuration is read or refused, by a file and by single settings, and both ways to read it agree.
pub(crate) fn check_config(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect();
    for layer in [
        Layer {
            name: LayerName::Repository("towline.toml".into()),
            content: LayerContent::Toml(text.clone()),
        },
        Layer { name: LayerName::Flags, content: LayerContent::Pairs(pairs) },
    ] {
        let layers = [layer];
        let inspected = inspect(&layers);
        match load(&layers) {
            Ok(_) => assert!(inspected.problems.is_empty(), "loaded although there are problems"),
            Err(error) => {
                assert!(!inspected.problems.is_empty(), "refused without a problem");
                let words = error.to_string().len();
                assert!(words <= WORDS + WORDS_PER_BYTE * data.len(), "{words} bytes of complaint");
            }
        }
    }
}

/// The file of a goal is read or refused, whichever way it is written.
pub(crate) fn check_goal(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    for (name, text) in [
        ("goal.toml", text.clone()),
        ("goal.md", format!("---\n{text}\n---\nDo it.\n")),
        ("goal.md", format!("+++\ntemplate = true\n+++\n{text}\n")),
        ("goal.md", text),
    ] {
        if let Err(error) = read_goal_file(Path::new(name), &text) {
            let words = error.to_string();
            assert!(words.contains(&format!(" in {name} (line ")), "a problem without its place");
            assert!(words.len() <= WORDS + WORDS_PER_BYTE * text.len(), "{} bytes of complaint", words.len());
        }
    }
}

/// Questions, answers, last messages, durations and stored ends are read or refused.
pub(crate) fn check_words(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let bound = WORDS + 3 * data.len();
    if let Ok(ask) = Ask::read_written(&text) {
        assert!(format!("{ask:?}").len() <= WORDS + 16 * data.len(), "a question that grew");
        let _ = ask.read_answer(&text);
        let _ = ask.read_answer("1");
    }
    match LastWords::read(&text) {
        Some(Ok(LastWords::Sleep { reason, .. })) => assert!(reason.len() <= bound, "a reason that grew"),
        Some(Err(bad)) => assert!(bad.to_string().len() <= bound, "a complaint that grew"),
        Some(Ok(LastWords::Ask(_))) | None => {}
    }
    let _ = parse_duration(&text);
    if let Ok(end) = serde_json::from_str::<End>(&text) {
        let again = serde_json::to_string(&end).map(|text| serde_json::from_str(&text).ok());
        assert_eq!(again.ok().flatten(), Some(end), "an end that does not survive the store");
    }
}
