//! The phrases that are not used, what to write instead, and the exceptions.

/// Phrases in lower case that have one replacement.
pub(super) struct Rule {
    pub(super) phrases: &'static [&'static str],
    pub(super) instead: &'static str,
}

/// A text in which an unwanted word is right, in the files whose path starts with `within`.
pub(super) struct Allowed {
    pub(super) within: &'static str,
    pub(super) text: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "written for readers of this list"))]
    pub(super) reason: &'static str,
}

const fn rule(instead: &'static str, phrases: &'static [&'static str]) -> Rule {
    Rule { phrases, instead }
}

pub(super) const RULES: &[Rule] = &[
    rule("resume, continue or adopt", &["take up", "takes up", "taken up", "taking up", "took up"]),
    rule(
        "resume, continue or adopt",
        &["go on with", "goes on with", "going on with", "gone on with", "went on with"],
    ),
    rule("no engine is running this goal", &["nobody drives", "nobody drove"]),
    rule("report, print, show or send", &["tell", "tells", "telling", "told"]),
    rule("report, print, show or state", &["say", "says", "saying", "said"]),
    rule("record or store", &["kept", "keep in", "keeps in"]),
    rule("is, record or store", &["stand", "stands", "stood"]),
    rule("supervisor lost", &["lost sight of", "lose sight of", "loses sight of"]),
    rule(
        "cancelled, stopped or ended by a signal",
        &["brought to its end", "bring to its end", "brought to an end"],
    ),
    rule("error, failure or reason", &["became of", "become of", "becomes of"]),
    rule("attempt number", &["manieth"]),
    rule(
        "remove leftovers",
        &["clear away", "clears away", "cleared away", "clearing away", "what nobody needs"],
    ),
    rule("survive a crash", &["live through", "lives through", "lived through"]),
    rule("request or command", &["wish", "wishes", "wished"]),
    rule("sender", &["newsline"]),
    rule("control", &["reins"]),
    rule("lease guard", &["custody"]),
    rule("permission notice", &["candour"]),
    rule("supervisor", &["shim", "shims"]),
    rule("workspace", &["worktree", "worktrees"]),
    rule("waiting", &["parked"]),
    rule("symlink", &["link", "links"]),
];

const fn allow(within: &'static str, text: &'static str, reason: &'static str) -> Allowed {
    Allowed { within, text, reason }
}

pub(super) const ALLOWED: &[Allowed] = &[
    allow("", "towline tell", "the name of the command"),
    allow("", "`tell`", "the name of the command"),
    allow("", "`/tell", "the name of the command"),
    allow("", "\"tell\"", "the name of the command"),
    allow("crates/core/src/", "tell/", "the key of a stored effect"),
    allow("crates/core/src/step/tests/table.rs", "told            ", "a stored name"),
    allow("crates/core/src/", "\"telling\"", "a stored name"),
    allow("crates/core/src/names.rs", "answered told", "a stored name"),
    allow("crates/core/src/", "\"said\"", "a stored name"),
    allow("crates/core/src/", "taken_up_at\")", "a stored name"),
    allow("crates/core/src/step/tests/endings.rs", "kept |", "the column of a table"),
    allow("crates/app/src/", "Tell(", "the command as a hint"),
    allow("crates/app/src/", "Action::Tell", "the command as a hint"),
    allow("crates/cli/src/args.rs", "Tell", "the arguments of the command"),
    allow("crates/cli/src/commands/steer.rs", "Tell", "the arguments of the command"),
    allow("crates/cli/src/commands/steer.rs", "async fn tell", "carries out the command"),
    allow("crates/cli/src/operator.rs", "Tell", "the arguments of the command"),
    allow("crates/cli/src/hints.rs", "Action::Tell", "the command as a hint"),
    allow(
        "crates/cli/src/main.rs",
        "Tell(tell) => commands::steer::tell(&context, tell)",
        "calls the command",
    ),
    allow("crates/cli/", "\"/tell ", "the command in the live view"),
    allow("crates/cli/tests/authority.rs", "\"tell $", "the command in a script"),
    allow("crates/cli/tests/authority.rs", "\"wish\"", "a name on the control socket"),
    allow("crates/cli/tests/cheats/tricks/authority.rs", "\"wish\"", "a name on the control socket"),
    allow("crates/cli/tests/", "\"kept\"", "a name in the JSON of a reply"),
    allow("crates/cli/tests/", "{ say = \"", "a key of the scripted agent"),
    allow("crates/cli/tests/", " shim ", "the hidden subcommand's name"),
    allow("crates/cli/tests/cheats/tricks/", "shim*", "files that other versions read"),
    allow("crates/cli/tests/cheats/tricks/", "skip-worktree", "a flag of git"),
    allow("crates/cli/tests/cheats/tricks/", "worktreeConfig", "a setting of git"),
    allow("crates/cli/tests/cheats/tricks/", "--worktree", "a flag of git"),
    allow("crates/cli/tests/cheats/tricks/", "config.worktree", "a file of git"),
    allow("crates/cli/tests/cheats/tricks/", "link_section", "an attribute of Rust"),
    allow("crates/cli/src/args.rs", "\"say\"", "a word that users type instead of the command"),
    allow("", "GoalCommand::Tell", "the message of the command"),
    allow("crates/engine/src/goal_command.rs", "Tell {", "the message of the command"),
    allow("crates/engine/src/", "\"wish\"", "a name on the control socket"),
    allow("crates/api/src/steps.rs", "\"kept\"", "a name in the JSON of a reply"),
    allow("crates/core/src/step/tests/endings.rs", "\"kept\"", "the column of a table"),
    allow("", "Steer::Tell", "the message of the command"),
    allow("crates/store/src/sqlite/tests/", "'tell'", "a name that earlier versions stored"),
    allow("crates/store/src/sqlite/tests/", "'told'", "a stored name"),
    allow("", "towline shim", "the hidden subcommand's name"),
    allow("", "`shim`", "the hidden subcommand's name"),
    allow("", "\"shim\"", "the hidden subcommand's name"),
    allow("", "towline-shim", "a program that keeps its name"),
    allow("", "shim.pid", "a file that other versions read"),
    allow("", "shim.sock", "a file that other versions read"),
    allow("", "shim.log", "a file that other versions read"),
    allow("", "hard link", "no symlink but another name of a file"),
    allow("", "hard_link", "no symlink but another name of a file"),
    allow("", "read_link", "a function of the standard library"),
    allow("", "git worktree", "the name of git's own command"),
    allow("", "linked worktree", "git's name for such a checkout"),
    allow("", "\"worktree\"", "a value that earlier versions wrote"),
    allow("", "\\\"worktree\\\"", "the same inside a string"),
    allow("", "`worktree`", "a name that earlier versions used"),
    allow("", "GOAL/worktree", "a ref that earlier versions read"),
    allow("crates/workspace/", "worktree", "git's own worktrees, which this crate reads and converts"),
    allow("crates/workspace/", "Worktree", "git's own worktrees, which this crate reads and converts"),
    allow("crates/workspace/tests/", "\"link\"", "the path of a symlink in a test's project"),
    allow("crates/workspace/tests/", "/link\"", "the path of a symlink in a test's project"),
    allow("crates/workspace/tests/", "\"link/", "the path of a symlink in a test's project"),
    allow("", "core.worktree", "a setting of git"),
    allow("", "per-worktree", "a kind of git's settings"),
    allow("", "EnterWorktree", "a tool of Claude Code"),
    allow("", "ExitWorktree", "a tool of Claude Code"),
    allow("", "`told/`", "a folder that other versions read"),
    allow("", "\"told\"", "a folder that other versions read"),
    allow("", "say = ", "a key of the scripted agent's files"),
    allow("", "\"say\"", "a key of the scripted agent's files"),
    allow("", "`say`", "a key of the scripted agent's files"),
    allow("crates/builtin/src/script/format.rs", "say and run", "two keys of the scripted agent's files"),
    allow("", "ResourceLink", "the protocol's name for a block of content"),
    allow("", "resource_link", "the protocol's name for a block of content"),
    allow("crates/agent/", "\"tell-", "the id of a message in stored logs"),
    allow("crates/agent/", "\"tell ", "the id of a message in stored logs"),
    allow("crates/agent/tests/", "\"tell_", "the name of a recording"),
    allow("crates/agent/src/protocol.rs", "Tell {", "the message of the command"),
];
