//! Takes a goal's file apart into its settings and its prompt.

use std::ops::Range;
use std::path::Path;

/// The longest file of a goal, in bytes. More than this belongs into files that the prompt names.
pub const LONGEST_GOAL_FILE: usize = 1024 * 1024;

/// How the settings of a goal are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Toml,
    Yaml,
}

/// A file's parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The settings, if there are any. All that is not theirs is blank, so that bytes are where they are in the file.
    pub(crate) settings: Option<(Language, String)>,
    /// The bytes of the body; nothing when the file has none, because it is all settings.
    pub(crate) body: Option<Range<usize>>,
}

/// Why a file cannot be taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shapeless {
    pub(crate) what: String,
    pub(crate) fix: String,
}

/// Takes a file apart, by the ending of its name and by how it begins.
pub(crate) fn take_apart(path: &Path, text: &str) -> Result<Parts, Shapeless> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("toml") => Ok(Parts { settings: Some((Language::Toml, text.to_owned())), body: None }),
        Some(other @ ("yaml" | "yml" | "json")) => Err(Shapeless {
            what: format!("a goal cannot be written as `.{other}`"),
            fix: "write it as TOML (`.toml`), or as Markdown (`.md`) with its settings between `---` lines"
                .to_owned(),
        }),
        _ => front_matter(text),
    }
}

fn front_matter(text: &str) -> Result<Parts, Shapeless> {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    let language = match first.trim_end() {
        "+++" => Language::Toml,
        "---" => Language::Yaml,
        _ => return Ok(Parts { settings: None, body: Some(0..text.len()) }),
    };
    let fence = first.trim_end();
    let mut end = first.len();
    for line in text[first.len()..].split_inclusive('\n') {
        if line.trim_end() == fence {
            let settings = format!("{}{}", blank(first), &text[first.len()..end]);
            return Ok(Parts {
                settings: Some((language, settings)),
                body: Some(end + line.len()..text.len()),
            });
        }
        end += line.len();
    }
    Err(Shapeless {
        what: format!("the front matter that begins with `{fence}` does not end"),
        fix: format!(
            "add a line `{fence}` after the settings; if it is none, begin the file with an empty line"
        ),
    })
}

/// As many bytes without meaning.
fn blank(line: &str) -> String {
    line.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(name: &str, text: &'a str) -> (Option<(Language, String)>, Option<&'a str>) {
        let parts = take_apart(Path::new(name), text).unwrap();
        (parts.settings, parts.body.map(|body| &text[body]))
    }

    #[test]
    fn files_are_taken_apart_by_their_ending_and_by_how_they_begin() {
        let toml = |text: &str| Some((Language::Toml, text.to_owned()));
        let yaml = |text: &str| Some((Language::Yaml, text.to_owned()));
        for (name, text, settings, body) in [
            ("a.toml", "prompt = 'x'\n", toml("prompt = 'x'\n"), None),
            ("a.TOML", "+++\n", toml("+++\n"), None),
            ("a.md", "Do it.\n", None, Some("Do it.\n")),
            ("a.md", "+++\na = 1\n+++\nDo it.\n", toml("   \na = 1\n"), Some("Do it.\n")),
            ("a.md", "---\r\na: 1\r\n---\r\nDo it.", yaml("    \na: 1\r\n"), Some("Do it.")),
            ("a", "---\n---", yaml("   \n"), Some("")),
            ("a.txt", "---\na: 1\n---  \n---\nb", yaml("   \na: 1\n"), Some("---\nb")),
            ("a.md", "\n---\nno front matter\n", None, Some("\n---\nno front matter\n")),
            ("a.md", "---- \nx", None, Some("---- \nx")),
            ("a.md", "", None, Some("")),
        ] {
            assert_eq!(parts(name, text), (settings, body), "{name}: {text:?}");
        }
    }

    #[test]
    fn front_matter_without_an_end_and_other_formats_are_refused() {
        for (name, text) in
            [("a.md", "---\na: 1\n"), ("a.md", "+++\na = 1\n---\n"), ("a.yaml", "a: 1"), ("a.json", "{}")]
        {
            assert!(take_apart(Path::new(name), text).is_err(), "{name}: {text:?}");
        }
    }
}
