//! Versions of agent programs, and those that Towline is tested with.

use std::fmt;

/// The version that a program reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    /// What follows the numbers, such as `-alpha.3`.
    suffix: String,
}

impl Version {
    /// The first version in a text: three numbers with dots between them, and the text after them up to a space.
    pub(crate) fn find(text: &str) -> Option<Self> {
        text.split(|c: char| c.is_whitespace() || "(),;".contains(c)).find_map(Self::read)
    }

    fn read(word: &str) -> Option<Self> {
        let word = word.strip_prefix('v').unwrap_or(word);
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (numbers, suffix) = word.split_at(end);
        if !(suffix.is_empty() || suffix.starts_with(['-', '+'])) || suffix.chars().any(char::is_control) {
            return None;
        }
        let numbers: Vec<u64> =
            numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        Some(Self { numbers: numbers.try_into().ok()?, suffix: suffix.to_owned() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}{}", self.suffix)
    }
}

/// The versions of an agent that Towline is tested with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestedVersions {
    pub oldest: [u64; 3],
    pub newest: [u64; 3],
}

/// How a version relates to the tested ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    Older,
    /// It is one of them, or between two of them.
    Within,
    Newer,
}

impl TestedVersions {
    /// How this version relates to the tested ones.
    pub fn compare(&self, version: &Version) -> Tested {
        if version.numbers < self.oldest {
            Tested::Older
        } else if version.numbers > self.newest {
            Tested::Newer
        } else {
            Tested::Within
        }
    }
}

impl fmt::Display for TestedVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.oldest;
        write!(f, "{major}.{minor}.{patch}")?;
        if self.newest != self.oldest {
            let [major, minor, patch] = self.newest;
            write!(f, " to {major}.{minor}.{patch}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_other_words() {
        let texts = [
            "2.1.197 (Claude Code)\n",
            "codex-cli 0.42.0-alpha.3",
            "v1.20.0",
            "tool (1.2.3)",
            "built 2024.1 with 1.2",
            "1.2.3x",
            "1..3",
            "99999999999999999999.0.0",
            "command not found",
            "",
        ];
        let found = texts.map(|text| Version::find(text).map(|version| version.to_string()));
        let expected = [
            Some("2.1.197"),
            Some("0.42.0-alpha.3"),
            Some("1.20.0"),
            Some("1.2.3"),
            None,
            None,
            None,
            None,
            None,
            None,
        ];
        assert_eq!(found, expected.map(|version| version.map(str::to_owned)));
    }

    #[test]
    fn versions_compare_by_their_numbers_not_by_their_letters() {
        let tested = TestedVersions { oldest: [1, 9, 0], newest: [2, 1, 197] };
        let compared = ["1.8.99", "1.9.0", "1.10.0", "2.1.197", "2.1.198", "2.10.0"]
            .map(|text| Version::find(text).map(|version| tested.compare(&version)));
        use Tested::{Newer, Older, Within};
        assert_eq!(compared, [Older, Within, Within, Within, Newer, Newer].map(Some));
        assert_eq!(tested.to_string(), "1.9.0 to 2.1.197");
        assert_eq!(TestedVersions { oldest: [2, 1, 197], ..tested }.to_string(), "2.1.197");
    }
}
