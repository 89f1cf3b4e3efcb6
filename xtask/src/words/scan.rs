//! Finds unwanted phrases, doc comments that add nothing, and public items without a doc comment. No I/O.
//!
//! A phrase is compared word by word. `snake_case` and `CamelCase` names are split into their words, so that names of
//! tests and types are held to the same vocabulary as sentences. A phrase may cross the end of a line.

use std::collections::HashMap;

use super::vocabulary::{ALLOWED, Allowed, RULES};

/// A doc comment with fewer words repeats the name below it.
const FEWEST_WORDS: usize = 3;

/// Keywords that begin a public item which needs a doc comment.
const ITEMS: [&str; 9] = [
    "pub fn ",
    "pub async fn ",
    "pub const ",
    "pub unsafe ",
    "pub static ",
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub type ",
];

/// Something to change in one line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) message: String,
}

/// The vocabulary, indexed by the first word of each phrase.
pub(super) struct Scanner {
    phrases: HashMap<&'static str, Vec<Phrase>>,
}

struct Phrase {
    words: Vec<&'static str>,
    instead: &'static str,
}

impl Scanner {
    pub(super) fn new() -> Self {
        let mut phrases: HashMap<&'static str, Vec<Phrase>> = HashMap::new();
        for rule in RULES {
            for phrase in rule.phrases {
                let words: Vec<&'static str> = phrase.split(' ').collect();
                phrases.entry(words[0]).or_default().push(Phrase { words, instead: rule.instead });
            }
        }
        Self { phrases }
    }

    /// All findings of a file, by line.
    pub(super) fn scan(&self, path: &str, text: &str) -> Vec<Finding> {
        let mut findings = self.phrases_in(path, text);
        if path.ends_with(".rs") {
            findings.extend(short_docs(text));
            findings.extend(undocumented(path, text));
        }
        findings.sort_by_key(|finding| finding.line);
        findings
    }

    fn phrases_in(&self, path: &str, text: &str) -> Vec<Finding> {
        let allowed: Vec<&Allowed> = ALLOWED.iter().filter(|entry| path.starts_with(entry.within)).collect();
        let mut words = Vec::new();
        for (index, line) in text.lines().enumerate() {
            split_words(&without_allowed(line, &allowed), index + 1, &mut words);
        }
        let mut findings = Vec::new();
        for (start, (line, first)) in words.iter().enumerate() {
            for phrase in self.phrases.get(first.as_str()).into_iter().flatten() {
                let here = words[start..].iter().map(|(_, word)| word.as_str());
                if here.take(phrase.words.len()).eq(phrase.words.iter().copied()) {
                    let message = format!("`{}`: write {}", phrase.words.join(" "), phrase.instead);
                    findings.push(Finding { line: *line, message });
                }
            }
        }
        findings
    }
}

/// A line with each allowed text replaced by something that is part of no phrase.
fn without_allowed(line: &str, allowed: &[&Allowed]) -> String {
    let line = line.trim_start().trim_start_matches(['/', '!', '#', '>', '*']);
    allowed.iter().fold(line.to_owned(), |line, entry| line.replace(entry.text, " . "))
}

/// Splits a line into lower-case words. Punctuation that ends a thought becomes an empty word, which no phrase has.
fn split_words(line: &str, number: usize, words: &mut Vec<(usize, String)>) {
    let mut word = String::new();
    let mut last = ' ';
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
        let starts_word =
            character.is_uppercase() && (last.is_lowercase() || (last.is_uppercase() && next_is_lower));
        if starts_word || !character.is_alphanumeric() {
            end_word(&mut word, number, words);
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        } else if ![' ', '_', '-', '`'].contains(&character) {
            words.push((number, String::new()));
        }
        last = character;
    }
    end_word(&mut word, number, words);
}

fn end_word(word: &mut String, number: usize, words: &mut Vec<(usize, String)>) {
    if !word.is_empty() {
        words.push((number, std::mem::take(word)));
    }
}

/// The text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

fn short_docs(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let Some(first) = doc_text(line) else { continue };
        let mut words = first.split_whitespace().count();
        while let Some(more) = lines.next_if(|(_, next)| doc_text(next).is_some()) {
            words += more.1.split_whitespace().count() - 1;
        }
        if words < FEWEST_WORDS {
            let message =
                format!("doc comment `{}`: add what the name does not show, or delete it", first.trim());
            findings.push(Finding { line: index + 1, message });
        }
    }
    findings
}

/// Public items of a library without a doc comment. Fields and variants need one only where the name is not enough.
fn undocumented(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut documented = !path.contains("/src/");
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if doc_text(line).is_some() || line.starts_with("#[doc") || line.starts_with("$(#[") {
            documented = true;
            continue;
        }
        if !documented && ITEMS.iter().any(|item| line.starts_with(item)) {
            let message = "public item without a doc comment".to_owned();
            findings.push(Finding { line: index + 1, message });
        }
        if path.contains("/src/") && (line.is_empty() || line.ends_with(['{', '}', ';'])) {
            documented = false;
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        Scanner::new().scan(path, text).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_finding_has_the_line_the_phrase_and_the_word_to_use() {
        let findings = Scanner::new().scan("docs/a.md", "Fine.\nThe engine goes on with the goal.\n");
        let message = "`goes on with`: write resume, continue or adopt".to_owned();
        assert_eq!(findings, [Finding { line: 2, message }]);
    }

    #[test]
    fn phrases_are_found_in_sentences_names_and_across_lines() {
        for text in [
            "Nobody drives it.",
            "fn nobody_drives_it() {}",
            "struct NobodyDrives;",
            "/// a goal that nobody\n/// drives",
            "let reason = \"nobody drives it\";",
            "how-manieth",
            "the `wish` of a user",
            "HTTPWish",
        ] {
            assert_eq!(lines("crates/a/tests/a.rs", text), [1], "{text}");
        }
    }

    #[test]
    fn longer_words_other_sentences_and_letters_are_no_phrases() {
        for text in
            ["understands", "wishful", "I see nobody. Drives are cheap.", "nobody(drives)", "essay", "essays"]
        {
            assert_eq!(lines("docs/a.md", text), [0; 0], "{text}");
        }
    }

    #[test]
    fn an_allowed_text_is_left_out_where_it_is_allowed_and_the_rest_of_the_line_is_not() {
        assert_eq!(lines("docs/a.md", "Send it with `towline tell ID`."), [0; 0]);
        assert_eq!(lines("docs/a.md", "`towline tell ID` will tell the agent."), [1]);
        assert_eq!(lines("docs/a.md", "a hard link, and a link"), [1]);
    }

    #[test]
    fn every_exception_covers_an_unwanted_phrase_and_has_a_reason() {
        let scanner = Scanner::new();
        for entry in ALLOWED {
            let mut words = Vec::new();
            split_words(entry.text, 1, &mut words);
            let covers = words.iter().any(|(_, word)| scanner.phrases.contains_key(word.as_str()));
            assert!(covers && entry.reason.split(' ').count() > 2, "{}", entry.text);
        }
    }

    #[test]
    fn doc_comments_of_one_or_two_words_are_found() {
        let text = "//! Two words.\n\n/// One.\nstruct A;\n\n/// Three whole words.\nstruct B;\n\n/// One\n/// more word.\nstruct C;\n";
        assert_eq!(lines("crates/a/tests/a.rs", text), [1, 3]);
    }

    #[test]
    fn public_items_of_a_library_need_a_doc_comment_and_their_fields_do_not() {
        let text = "/// A documented type.\n#[derive(Debug)]\npub struct A {\n    pub field: u8,\n}\n\npub fn bare() {}\n";
        assert_eq!(lines("crates/a/src/a.rs", text), [7]);
        assert_eq!(lines("crates/a/tests/a.rs", text), [0; 0]);
    }
}
