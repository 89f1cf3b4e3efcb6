//! The message of a commit that holds a goal's work.

use crate::{Goal, misleads};

/// Names the goal that a commit belongs to.
const GOAL_TRAILER: &str = "Towline-Goal";
/// Names the checks that decide about the commit.
const CHECKS_TRAILER: &str = "Towline-Checks";
/// Names the verified commit that another commit has the files of.
const CANDIDATE_TRAILER: &str = "Towline-Candidate";

/// The longest subject and body, in characters.
const LONGEST_SUBJECT: usize = 72;
const LONGEST_BODY: usize = 4_000;

/// Whether the checks decide about a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    Yes,
    /// Its files are a mixture, and no checks ran on them.
    No,
}

impl Goal {
    /// The message of a commit with the goal's work: its title, the agent's last summary, and trailers.
    pub fn commit_message(&self, summary: &str) -> String {
        self.message_of(&self.subject(), summary, None, Checked::Yes)
    }

    /// The same with words of the operator's, for a commit that takes the place of the verified one.
    pub fn merge_message(&self, text: &str, candidate: &str, checked: Checked) -> String {
        let text = text.trim();
        let (subject, body) = text.split_once('\n').unwrap_or((text, ""));
        self.message_of(subject, body, Some(candidate), checked)
    }

    /// The title as one line of a commit.
    pub fn subject(&self) -> String {
        let title = one_line(&self.title);
        match title.char_indices().nth(LONGEST_SUBJECT) {
            _ if title.is_empty() => format!("Goal {}", self.id.short()),
            Some((end, _)) => format!("{}…", title[..end].trim_end()),
            None => title,
        }
    }

    fn message_of(&self, subject: &str, body: &str, candidate: Option<&str>, checked: Checked) -> String {
        let body = plain(body);
        let body = match body.char_indices().nth(LONGEST_BODY) {
            Some((end, _)) => format!("{}…", &body[..end]),
            None => body,
        };
        let mut message = format!("{}\n\n", plain(subject).trim());
        if !body.trim().is_empty() {
            message.push_str(body.trim());
            message.push_str("\n\n");
        }
        message.push_str(&format!("{GOAL_TRAILER}: {}\n", self.id));
        let names: Vec<String> = self.checks.iter().map(|check| one_line(&check.name)).collect();
        if !names.is_empty() && checked == Checked::Yes {
            message.push_str(&format!("{CHECKS_TRAILER}: {}\n", names.join(", ")));
        }
        if let Some(candidate) = candidate {
            message.push_str(&format!("{CANDIDATE_TRAILER}: {candidate}\n"));
        }
        message
    }
}

fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text without what could rewrite the terminal of whoever reads the log.
fn plain(text: &str) -> String {
    text.chars().filter(|c| *c == '\n' || !misleads(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::Checked;
    use crate::fixtures::goal;

    #[test]
    fn a_commit_has_the_title_the_summary_and_trailers_at_its_end() {
        let mut goal = goal();
        goal.title = "Fix the\nlogin".to_owned();
        let id = goal.id;
        let names: Vec<String> = goal.checks.iter().map(|check| check.name.clone()).collect();
        let checks = format!("Towline-Checks: {}\n", names.join(", "));
        let message = goal.commit_message("  The form used an old token.\u{1b}[31m\n\nIt is cleared now.\n");
        let body = "The form used an old token.[31m\n\nIt is cleared now.";
        assert_eq!(message, format!("Fix the login\n\n{body}\n\nTowline-Goal: {id}\n{checks}"));
        assert_eq!(goal.commit_message(" \n"), format!("Fix the login\n\nTowline-Goal: {id}\n{checks}"));
        for (checked, checks) in [(Checked::Yes, checks.as_str()), (Checked::No, "")] {
            let merged = goal.merge_message("Repair sign-in\n\nCloses #7", "abc", checked);
            let trailers = format!("Towline-Goal: {id}\n{checks}Towline-Candidate: abc\n");
            assert_eq!(merged, format!("Repair sign-in\n\nCloses #7\n\n{trailers}"));
        }
    }

    #[test]
    fn long_and_empty_titles_still_make_a_subject() {
        let mut goal = goal();
        goal.title = "word ".repeat(40);
        let subject = goal.subject();
        assert!(subject.chars().count() <= 73 && subject.ends_with('…'), "{subject}");
        goal.title = "\u{202e}\n".to_owned();
        assert_eq!(goal.subject(), format!("Goal {}", goal.id.short()));
        let body = "x".repeat(10_000);
        assert!(goal.commit_message(&body).len() < 5_000);
    }
}
