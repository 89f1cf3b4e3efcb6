//! Where settings come from: named layers, and places within them.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// What the variables that set a key start with: `TOWLINE_SET_agents__claude__model=opus`.
pub const ENVIRONMENT_PREFIX: &str = "TOWLINE_SET_";

/// Which layer it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerName {
    /// What holds when nobody sets anything. Always there, below all others.
    Defaults,
    /// The user's file.
    User(PathBuf),
    /// The repository's file.
    Repository(PathBuf),
    Environment,
    /// The command line.
    Flags,
    /// The file of a goal.
    Goal(PathBuf),
    /// What a goal that exists has set for itself when it was created.
    StoredGoal,
}

impl LayerName {
    /// Whether it is a file that comes with a repository, whoever has written that.
    pub(crate) const fn is_repository(&self) -> bool {
        matches!(self, Self::Repository(_))
    }
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => f.write_str("the built-in defaults"),
            Self::User(path) | Self::Repository(path) | Self::Goal(path) => path.display().fmt(f),
            Self::Environment => write!(f, "the environment ({ENVIRONMENT_PREFIX}…)"),
            Self::Flags => f.write_str("the command line"),
            Self::StoredGoal => f.write_str("the goal's own settings"),
        }
    }
}

/// What a layer sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerContent {
    /// A whole file.
    Toml(String),
    /// TOML that nobody has written: places in it help nobody.
    Generated(String),
    /// Single settings. Keys are dotted (`agents.claude.model`); in the environment layer they may be written with
    /// `__` instead of dots and with [`ENVIRONMENT_PREFIX`] in front. A value is TOML if it reads as TOML, and a
    /// plain string if not.
    Pairs(Vec<(String, String)>),
}

/// One layer of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Where it comes from.
    pub name: LayerName,
    /// What it sets.
    pub content: LayerContent,
}

impl Layer {
    /// The environment layer, out of all variables there are: those without [`ENVIRONMENT_PREFIX`] are left aside.
    pub fn environment(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = variables.into_iter().filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX)).collect();
        Self { name: LayerName::Environment, content: LayerContent::Pairs(ours) }
    }
}

/// A place in a text, as editors count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The character within the line, from 1.
    pub column: usize,
}

impl Position {
    /// The position of a byte of the text.
    fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// Where something was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// In which layer.
    pub layer: LayerName,
    /// Where in its text, if it is a text.
    pub position: Option<Position>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layer.fmt(f)?;
        match self.position {
            Some(Position { line, column }) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

/// A layer that is being read: turns byte ranges into places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    layer: &'a LayerName,
    /// Its text, if it is one that a person can look into.
    text: Option<&'a str>,
}

impl<'a> Origin<'a> {
    /// A layer that is a whole text. Nobody can open the defaults: they have no positions.
    pub(crate) fn of(layer: &'a LayerName, text: &'a str) -> Self {
        Self { layer, text: (*layer != LayerName::Defaults).then_some(text) }
    }

    /// A layer of single settings, or one that was made: a position within those helps nobody.
    pub(crate) const fn without_positions(layer: &'a LayerName) -> Self {
        Self { layer, text: None }
    }

    /// Whether it is a file that comes with a repository, whoever has written that.
    pub(crate) const fn is_repository(&self) -> bool {
        self.layer.is_repository()
    }

    /// The place of these bytes.
    pub(crate) fn place(&self, span: Range<usize>) -> Place {
        let position = self.text.map(|text| Position::of(text, span.start));
        Place { layer: self.layer.clone(), position }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a\nä = 1\n";
        let places = [0, 1, 2, 5, text.len(), 99].map(|byte| {
            let Position { line, column } = Position::of(text, byte);
            (line, column)
        });
        assert_eq!(places, [(1, 1), (1, 2), (2, 1), (2, 3), (3, 1), (3, 1)]);
    }

    #[test]
    fn the_environment_layer_takes_only_our_variables() {
        let pair = |name: &str| (name.to_owned(), "x".to_owned());
        let layer = Layer::environment([pair("PATH"), pair("TOWLINE_SET_budget__usd"), pair("TOWLINE_HOME")]);
        let expected = LayerContent::Pairs(vec![pair("TOWLINE_SET_budget__usd")]);
        assert_eq!(layer, Layer { name: LayerName::Environment, content: expected });
    }
}
