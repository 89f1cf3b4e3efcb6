//! Names for tools of servers that every model API accepts: `[a-zA-Z0-9_-]{1,64}`, all different.

use std::collections::HashSet;

const LONGEST: usize = 64;

/// Creates unique names.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// The name for a server's tool.
    pub(super) fn give(&mut self, server: &str, tool: &str) -> String {
        let wanted = format!("mcp__{}__{}", fit(server), fit(tool));
        let mut name = shortened(&wanted, "");
        let mut number = 2_u32;
        while !self.0.insert(name.clone()) {
            name = shortened(&wanted, &format!("_{number}"));
            number += 1;
        }
        name
    }
}

fn fit(text: &str) -> String {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    text.chars().map(|character| if fits(character) { character } else { '_' }).collect()
}

fn shortened(name: &str, end: &str) -> String {
    let length = name.len().min(LONGEST - end.len());
    format!("{}{end}", &name[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_api_and_differ() {
        let mut names = Names::default();
        assert_eq!(names.give("files", "read_file"), "mcp__files__read_file");
        assert_eq!(names.give("my files", "läs.fil"), "mcp__my_files__l_s_fil");
        assert_eq!(names.give("my.files", "läs fil"), "mcp__my_files__l_s_fil_2");
        let long = "x".repeat(100);
        assert_eq!(names.give("a", &long), format!("mcp__a__{}", "x".repeat(56)));
        assert_eq!(names.give("a", &long), format!("mcp__a__{}_2", "x".repeat(54)));
        assert_eq!(names.give("a", &long), format!("mcp__a__{}_3", "x".repeat(54)));
    }
}
