//! The command line inside the shell call that the agent shows: `/bin/bash -lc 'make test'` is `make test`.
//!
//! Rules are about the command line. A shell call that cannot be parsed with certainty is used as it is.

/// The command line of a shell call; `None` if this is none.
pub(super) fn script(shown: &str) -> Option<String> {
    let words = split(shown)?;
    let [program, flag, script] = <[String; 3]>::try_from(words).ok()?;
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_shell = matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh");
    (is_shell && matches!(flag.as_str(), "-c" | "-lc")).then_some(script)
}

/// The words as a shell sees them; `None` if a quote is open, or if there is more syntax than quotes.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '$' | '`' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '#' => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// The rest of a word in double quotes.
fn quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '$' | '`' => return None,
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                '\n' => {}
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_the_argument_of_the_shell() {
        let cases = [
            ("/bin/bash -lc 'touch a.txt'", "touch a.txt"),
            ("/bin/bash -lc ls", "ls"),
            ("bash -c \"it's\"", "it's"),
            (r#"/bin/zsh -lc "echo \"it's\" '"'$HOME'"' \\\\ | cat""#, r#"echo "it's" '$HOME' \\ | cat"#),
            ("/bin/sh -c 'a\nb'", "a\nb"),
        ];
        for (shown, wanted) in cases {
            assert_eq!(script(shown).as_deref(), Some(wanted), "{shown}");
        }
    }

    #[test]
    fn anything_but_one_clear_shell_call_is_not_changed() {
        let others = [
            "",
            "ls",
            "/bin/bash -lc 'touch /workspace",
            "/bin/bash -lc \"open",
            "/bin/bash -lc ls; rm x",
            "/bin/bash -lc \"$(rm x)\"",
            "/bin/bash -lc a b",
            "/bin/bash -x 'a'",
            "python -c 'a'",
            "/bin/bash -lc a\\",
        ];
        for shown in others {
            assert_eq!(script(shown), None, "{shown}");
        }
    }
}
