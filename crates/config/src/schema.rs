//! The tables of known keys: what each looks like, and whether this version acts on it.
//!
//! Reading, merging, suggestions and warnings all follow these tables, so that a key exists when it has a line here. A
//! configuration and the file of a goal have a table each; what they share is one.

use std::fmt;

use crate::error::did_you_mean;
use crate::suggest::nearest;
use crate::trust::Trust;

/// The kinds of agents that a configuration may name.
const AGENT_KINDS: &[&str] = &towline_agent::Kind::NAMES;

/// What an agent may do beyond its lists.
const PERMISSIONS: &[&str] = &towline_agent::Permission::NAMES;

/// What to do with the checks on the base.
const BASELINES: &[&str] = &["auto", "red", "off"];

/// Whether programs run in a sandbox.
const SANDBOX_MODES: &[&str] = &["auto", "required", "off"];

/// What shows that the work is what makes a check pass.
const PROBES: &[&str] = &["revert"];

/// A known key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its dotted name; `*` means a name that the author chooses.
    pub(crate) pattern: &'static str,
    /// What its value looks like.
    pub(crate) shape: Shape,
    /// Whether it has an effect.
    pub(crate) effect: Effect,
    /// Who may set it.
    pub(crate) set_by: SetBy,
    /// Whether it has an effect in a repository's file that the user has not accepted.
    pub(crate) trust: Trust,
}

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetBy {
    Anybody,
    /// Not a repository's file: it is about what belongs to all projects of the user, and a repository may be anybody's.
    UserOnly,
}

/// Whether a key does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Acts,
    /// It is stored for later versions.
    NotYet,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `true` or `false`.
    Flag,
    /// A whole number from 0.
    Count,
    /// A whole number from 0 that fits 32 bits.
    SmallCount,
    /// One side of a terminal, in characters.
    Cells,
    /// How many goals may run at once: a whole number from 1.
    Slots,
    /// How many hours earlier a goal is in the queue; may be negative.
    Priority,
    /// An amount of money.
    Dollars,
    /// A number above 0 and up to 1.
    Share,
    Text,
    /// A string that is not blank.
    Line,
    List,
    /// A program and its arguments.
    Command,
    /// A duration with its unit.
    Duration,
    /// A duration above zero: with no time at all nothing could ever go well.
    Timeout,
    /// A regular expression.
    Pattern,
    /// The path of a file, relative to the repository's root.
    File,
    /// Patterns of paths, relative to the repository's root; at least one.
    Paths,
    /// The same, where none is fine.
    Globs,
    /// Names of environment variables.
    Variables,
    /// The name of an environment variable.
    Variable,
    /// An amount of disk space with its unit.
    Bytes,
    /// An address to listen on, with its port.
    Address,
    /// Where something is sent by HTTP.
    Url,
    /// Goals that must come to their end first.
    Prerequisites,
    /// Directories of a checkout.
    Directories,
    /// Files and directories outside the repository.
    OutsidePaths,
    /// Whether agents know more of a check than its name.
    Visibility,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The same, where earlier words are read as the ones of today.
    Renamed(&'static [&'static str], &'static [(&'static str, &'static str)]),
    /// `[[checks]]`; the keys of one check are those of the table that begin with this key.
    Checks,
    /// A table that may hold anything.
    Free,
}

impl Shape {
    /// Whether it is written as a string.
    pub(crate) const fn is_text(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Line
                | Self::Duration
                | Self::Timeout
                | Self::Pattern
                | Self::File
                | Self::Variable
                | Self::Bytes
                | Self::Address
                | Self::Url
                | Self::Choice(_)
                | Self::Renamed(..)
        )
    }
}

const fn acts(pattern: &'static str, shape: Shape) -> Key {
    Key { pattern, shape, effect: Effect::Acts, set_by: SetBy::Anybody, trust: Trust::NotNeeded }
}

const fn acts_for_user(pattern: &'static str, shape: Shape) -> Key {
    Key { set_by: SetBy::UserOnly, ..acts(pattern, shape) }
}

const fn not_yet(pattern: &'static str, shape: Shape) -> Key {
    Key { effect: Effect::NotYet, ..acts(pattern, shape) }
}

/// One that gives an agent or a check more than it has without it.
const fn widens(pattern: &'static str, shape: Shape) -> Key {
    Key { trust: Trust::Needed, ..acts(pattern, shape) }
}

/// The same, but for these values.
const fn widens_unless(pattern: &'static str, shape: Shape, narrow: &'static [&'static str]) -> Key {
    Key { trust: Trust::NeededUnless(narrow), ..acts(pattern, shape) }
}

/// The keys of one kind of file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    tables: &'static [&'static [Key]],
}

impl Schema {
    /// What the layers of a configuration may set.
    pub(crate) const CONFIGURATION: Self = Self { tables: &[SHARED, CONFIGURATION] };
    /// What the file of a goal may set.
    pub(crate) const GOAL: Self = Self { tables: &[SHARED, GOAL] };

    /// Every key that there is.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static Key> {
        self.tables.iter().copied().flatten()
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self::CONFIGURATION
    }
}

/// What a goal may set as well as a configuration, in the same words.
const SHARED: &[Key] = &[
    acts("budget.turns", Shape::Count),
    acts("budget.attempts", Shape::Count),
    acts("budget.wall", Shape::Timeout),
    acts("budget.tokens", Shape::Count),
    acts("budget.usd", Shape::Dollars),
    acts("budget.errors", Shape::Count),
    acts("budget.denials", Shape::Count),
    acts("checks", Shape::Checks),
    acts("checks.name", Shape::Line),
    acts("checks.run", Shape::Line),
    acts("checks.timeout", Shape::Timeout),
    acts("checks.stdout", Shape::Pattern),
    acts("checks.file", Shape::File),
    acts("checks.matches", Shape::Pattern),
    acts("checks.untouched", Shape::Paths),
    acts("checks.committed", Shape::Flag),
    acts("checks.program", Shape::Command),
    acts("checks.judge", Shape::Line),
    acts("checks.agent", Shape::Line),
    acts("checks.hidden", Shape::Visibility),
    acts("checks.files", Shape::OutsidePaths),
    acts("checks.floor", Shape::Flag),
    acts("checks.probe", Shape::Choice(PROBES)),
    acts("protect.paths", Shape::List),
    widens_unless(
        "workspace.mode",
        Shape::Renamed(&["clone", "in-place"], &[("worktree", "clone")]),
        &["clone"],
    ),
    acts("workspace.base", Shape::Line),
    acts("workspace.setup", Shape::List),
    acts("workspace.copy", Shape::List),
    acts("workspace.generated", Shape::Globs),
    widens("workspace.pass_env", Shape::Variables),
    acts("workspace.warm", Shape::Directories),
    acts("workspace.confirm", Shape::Choice(&["clean", "never"])),
];

/// What only a configuration may set.
const CONFIGURATION: &[Key] = &[
    Key { trust: Trust::NeededForOtherAgents, ..acts("defaults.agents", Shape::List) },
    not_yet("defaults.max_parallel", Shape::Count),
    acts("defaults.briefing", Shape::Flag),
    acts_for_user("budget.day.usd", Shape::Dollars),
    acts("budget.project.usd", Shape::Dollars),
    acts_for_user("budget.pool.usd", Shape::Dollars),
    acts_for_user("caps.pool", Shape::Slots),
    acts_for_user("caps.project", Shape::Slots),
    acts_for_user("caps.agents.*", Shape::Slots),
    acts_for_user("caps.accounts.*", Shape::Slots),
    acts_for_user("caps.labels.*", Shape::Slots),
    acts_for_user("server.listen", Shape::Address),
    acts_for_user("server.hosts", Shape::List),
    acts("baseline.mode", Shape::Choice(BASELINES)),
    widens_unless("sandbox.mode", Shape::Choice(SANDBOX_MODES), &["required"]),
    widens_unless("sandbox.network", Shape::Flag, &["false"]),
    widens_unless("sandbox.setup_network", Shape::Flag, &["false"]),
    widens_unless("sandbox.checks_network", Shape::Flag, &["false"]),
    widens("sandbox.read", Shape::List),
    widens("sandbox.write", Shape::List),
    widens("sandbox.hide", Shape::List),
    acts_for_user("retention.logs", Shape::Duration),
    acts_for_user("retention.free", Shape::Bytes),
    widens("agents.*.kind", Shape::Choice(AGENT_KINDS)),
    widens("agents.*.command", Shape::Command),
    acts("agents.*.model", Shape::Line),
    widens_unless("agents.*.permission", Shape::Choice(PERMISSIONS), &["deny", "ask", "read-only"]),
    widens("agents.*.allow", Shape::List),
    widens("agents.*.deny", Shape::List),
    acts("agents.*.system_append", Shape::Text),
    widens("agents.*.dirs", Shape::List),
    acts("agents.*.max_turns", Shape::SmallCount),
    widens("agents.*.mcp.*.command", Shape::Command),
    widens("agents.*.mcp.*.url", Shape::Line),
    widens("agents.*.mcp.*.headers.*", Shape::Text),
    widens("agents.*.mcp_file", Shape::Line),
    widens("agents.*.args", Shape::List),
    widens("agents.*.env.*", Shape::Text),
    widens("agents.*.pass_env", Shape::List),
    acts("agents.*.prompt", Shape::Choice(&["stdin", "file", "argument"])),
    widens("agents.*.resume", Shape::List),
    acts("agents.*.session_pattern", Shape::Pattern),
    widens("agents.*.cost_pattern", Shape::Pattern),
    acts("agents.*.limit_pattern", Shape::Pattern),
    acts("agents.*.terminal", Shape::Flag),
    acts("agents.*.columns", Shape::Cells),
    acts("agents.*.rows", Shape::Cells),
    acts("agents.*.account", Shape::Line),
    acts("agents.*.startup_timeout", Shape::Timeout),
    acts("agents.*.idle_timeout", Shape::Timeout),
    acts("agents.*.turn_timeout", Shape::Timeout),
    acts("agents.*.stop_grace", Shape::Duration),
    acts("agents.*.context_threshold", Shape::Share),
    acts("agents.*.compact_focus", Shape::Text),
    acts("agents.*.session_idle_limit", Shape::Duration),
    acts("agents.*.session_age_limit", Shape::Duration),
    widens("agents.*.provider", Shape::Choice(&["openai", "gemini", "anthropic"])),
    acts("agents.*.api", Shape::Choice(&["responses", "chat"])),
    widens("agents.*.base_url", Shape::Line),
    widens("agents.*.key_env", Shape::Line),
    acts("agents.*.context_window", Shape::Count),
    acts("agents.*.max_output", Shape::Count),
    widens_unless("agents.*.fetch", Shape::Flag, &["false"]),
    widens("prices.*.input", Shape::Dollars),
    widens("prices.*.output", Shape::Dollars),
    widens("prices.*.cache_read", Shape::Dollars),
    widens("prices.*.cache_write", Shape::Dollars),
    acts_for_user("notify.command", Shape::Line),
    acts_for_user("notify.webhook", Shape::Url),
    acts_for_user("notify.secret_env", Shape::Variable),
    acts_for_user("notify.channels.*.command", Shape::Line),
    acts_for_user("notify.channels.*.webhook", Shape::Url),
];

/// What only a goal may set. Its settings of agents are those of `[agents.NAME]`, for all agents that it names.
const GOAL: &[Key] = &[
    acts("prompt", Shape::Line),
    acts("title", Shape::Line),
    acts("agents", Shape::List),
    acts("model", Shape::Line),
    acts("permission", Shape::Choice(PERMISSIONS)),
    acts("allow", Shape::List),
    acts("deny", Shape::List),
    acts("system_append", Shape::Text),
    acts("dirs", Shape::List),
    acts("max_turns", Shape::SmallCount),
    acts("mcp.*.command", Shape::Command),
    acts("mcp.*.url", Shape::Line),
    acts("mcp.*.headers.*", Shape::Text),
    acts("mcp_file", Shape::Line),
    acts("args", Shape::List),
    acts("briefing", Shape::Flag),
    acts("baseline", Shape::Choice(BASELINES)),
    acts("red_first", Shape::Flag),
    acts("unprotect", Shape::List),
    acts("labels", Shape::List),
    acts("metadata", Shape::Free),
    acts("origin.channel", Shape::Line),
    acts("origin.thread", Shape::Line),
    acts("origin.by", Shape::Line),
    acts("template", Shape::Flag),
    acts("context", Shape::Free),
    acts("after", Shape::Prerequisites),
    acts("priority", Shape::Priority),
    acts("touches", Shape::Globs),
];

impl Key {
    /// Whether the path leads to this key or, if shorter, towards it.
    fn is_below(&self, path: &KeyPath) -> bool {
        let mut names = self.pattern.split('.');
        path.0.iter().all(|given| names.next().is_some_and(|name| name == "*" || name == given))
    }

    fn depth(&self) -> usize {
        self.pattern.split('.').count()
    }
}

/// The way to a setting, name by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyPath(pub(crate) Vec<String>);

impl KeyPath {
    /// A path of these names.
    pub(crate) fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|&name| name.to_owned()).collect())
    }

    /// One name further.
    pub(crate) fn join(&self, name: &str) -> Self {
        Self(self.0.iter().cloned().chain([name.to_owned()]).collect())
    }

    /// Whether this path is `other` or leads on from it.
    pub(crate) fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if !name.is_empty() && name.chars().all(is_bare) {
                write!(f, "{dot}{name}")?;
            } else {
                write!(f, "{dot}{name:?}")?;
            }
        }
        Ok(())
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found {
    Key(&'static Key),
    /// A table that holds keys.
    Table,
    /// Nothing we know.
    Unknown,
}

/// Keys whose values may be secrets, or hold some: variables, arguments of programs, addresses with tokens in them.
const SECRETS: &[&str] = &[
    "agents.*.env.*",
    "agents.*.mcp.*.command",
    "agents.*.mcp.*.url",
    "agents.*.mcp.*.headers.*",
    "notify.command",
    "notify.webhook",
    "notify.channels.*.command",
    "notify.channels.*.webhook",
];

/// Whether the value of this key may be shown to whoever looks at a report.
pub(crate) fn may_be_shown(path: &KeyPath) -> bool {
    let leads_to = |pattern: &str| {
        let names = pattern.split('.');
        names.clone().count() == path.0.len()
            && names.zip(&path.0).all(|(name, given)| name == "*" || name == given)
    };
    !SECRETS.iter().any(|pattern| leads_to(pattern))
}

impl Schema {
    /// Looks a path up.
    pub(crate) fn find(self, path: &KeyPath) -> Found {
        let depth = path.0.len();
        match self.keys().filter(|key| key.is_below(path)).min_by_key(|key| key.depth()) {
            Some(key) if key.depth() == depth => Found::Key(key),
            Some(_) => Found::Table,
            None => Found::Unknown,
        }
    }

    /// What to write instead of an unknown path: the nearest name in that table, or the list of what there is and the same name in
    /// another table.
    pub(crate) fn suggestion(self, unknown: &KeyPath) -> String {
        let Some((written, parent)) = unknown.0.split_last() else { return String::new() };
        let parent = KeyPath(parent.to_vec());
        let below = self.keys().filter(|key| key.is_below(&parent));
        let mut siblings: Vec<&str> = Vec::new();
        for name in below.filter_map(|key| key.pattern.split('.').nth(parent.0.len())) {
            if !siblings.contains(&name) {
                siblings.push(name);
            }
        }
        if let Some(near) = nearest(written, siblings.iter().copied()) {
            return question(&parent.join(near).to_string());
        }
        let elsewhere = self.keys().find(|key| key.pattern.rsplit('.').next() == Some(written));
        let elsewhere = elsewhere.map(|key| question(&key.pattern.replace('*', "NAME")));
        match elsewhere {
            Some(question) if parent.0.is_empty() => question,
            Some(question) => format!("known keys there: {}; or {question}", siblings.join(", ")),
            None => format!("known keys there: {}", siblings.join(", ")),
        }
    }
}

fn question(nearest: &str) -> String {
    did_you_mean(Some(nearest)).trim_start_matches("; ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_of_the_baseline_can_be_named() {
        assert_eq!(BASELINES, towline_core::BaselineMode::NAMES.map(|(name, _)| name));
    }

    #[test]
    fn a_path_with_odd_characters_is_shown_quoted() {
        assert_eq!(
            KeyPath::of(&["agents", "a-b_1", "env", "x.y", ""]).to_string(),
            r#"agents.a-b_1.env."x.y"."""#
        );
    }

    #[test]
    fn suggestions_look_at_the_same_level_then_elsewhere_then_list_what_there_is() {
        let paths = [
            &["agents", "claude", "modle"][..],
            &["model"],
            &["protect", "zzz"],
            &["turns"],
            &["protect", "model"],
        ];
        let suggested = paths.map(|path| Schema::CONFIGURATION.suggestion(&KeyPath::of(path)));
        assert_eq!(
            suggested,
            [
                "did you mean `agents.claude.model`?",
                "did you mean `agents.NAME.model`?",
                "known keys there: paths",
                "did you mean `budget.turns`?",
                "known keys there: paths; or did you mean `agents.NAME.model`?",
            ]
        );
    }
}
