//! A page of the documentation, taken apart.

use std::fs;
use std::path::{Path, PathBuf};

/// A page that is written for users.
pub(crate) struct Page {
    /// Its path in the repository.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// Lines between two fences.
pub(crate) struct Block {
    pub(crate) language: String,
    /// The line of its beginning.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// The exit code of the last command: the N of `<!-- exits with N -->` above it, or 0.
    pub(crate) exit_code: i32,
}

impl Block {
    /// Whether it is the file of a goal: only such a file has a prompt.
    pub(crate) fn is_goal(&self) -> bool {
        match self.language.as_str() {
            "markdown" => true,
            "toml" => self.text.lines().any(|line| line.starts_with("prompt = ") && line.contains("\"\"\"")),
            _ => false,
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The README and everything in `docs/`.
pub(crate) fn pages() -> Vec<Page> {
    let folder = fs::read_dir(repository().join("docs")).expect("the folder of the documentation");
    let files = folder.map(|entry| entry.expect("a page").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        files.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    names.push("README.md".to_owned());
    names.sort();
    names.into_iter().map(Page::read).collect()
}

impl Page {
    fn read(name: String) -> Self {
        let text = fs::read_to_string(repository().join(&name)).expect("a page");
        Self { blocks: blocks(&text), name, text }
    }

    /// What a reader types.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.language == "sh")
    }

    /// Commands of Towline in the text.
    pub(crate) fn named_commands(&self) -> Vec<String> {
        let mut fenced = false;
        let mut named = Vec::new();
        for line in self.text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
            }
            if !fenced {
                let spans = line.split('`').skip(1).step_by(2);
                named.extend(spans.filter(|span| span.starts_with("towline ")).map(str::to_owned));
            }
        }
        named
    }

    /// References to pages or headings that do not exist.
    pub(crate) fn dead_references(&self, pages: &[Self]) -> Vec<String> {
        let targets = self.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let local = targets.filter(|target| !target.contains("://"));
        local
            .filter(|target| !self.leads_somewhere(target, pages))
            .map(|target| format!("{}: {target}", self.name))
            .collect()
    }

    fn leads_somewhere(&self, target: &str, pages: &[Self]) -> bool {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let folder = Path::new(&self.name).parent().unwrap_or(Path::new(""));
        let path = if file.is_empty() { PathBuf::from(&self.name) } else { folder.join(file) };
        if heading.is_empty() {
            return repository().join(path).exists();
        }
        pages.iter().any(|page| Path::new(&page.name) == path && page.has_heading(heading))
    }

    fn has_heading(&self, anchor: &str) -> bool {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| line.trim_start_matches('#').trim()).any(|heading| slug(heading) == anchor)
    }
}

/// The anchor that a heading gets on the usual sites.
fn slug(heading: &str) -> String {
    let letters = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    letters.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut exit_code = 0;
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(code) = line.strip_prefix("<!-- exits with ").and_then(|rest| rest.strip_suffix(" -->")) {
            exit_code = code.parse().expect("an exit code");
        }
        let Some(language) = line.strip_prefix("```") else { continue };
        let inside = lines.by_ref().map(|(line, _)| line).take_while(|line| *line != "```");
        let text = inside.fold(String::new(), |text, line| text + line + "\n");
        blocks.push(Block {
            language: language.to_owned(),
            line: number,
            text,
            exit_code: std::mem::take(&mut exit_code),
        });
    }
    blocks
}
