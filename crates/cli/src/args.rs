//! The command line, as `--help` teaches it.

mod acp;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use towline_core::{BudgetChange, Phase};

pub(crate) use acp::Acp;

pub(crate) use crate::commands::gc::Gc;
pub(crate) use crate::commands::merge::Merge;
pub(crate) use crate::commands::push::Push;
pub(crate) use crate::commands::restore::Restore;
pub(crate) use crate::commands::retry::Retry;
pub(crate) use crate::commands::rm::Rm;
pub(crate) use crate::commands::verify::Verify;

/// Takes coding agents to done, and proves it.
#[derive(Debug, Parser)]
#[command(name = "towline", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Append each decision of the engine to this file; `-` is standard error
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0 done · 1 internal error · 2 wrong usage or configuration · 3 failed
  4 a person is needed · 5 not found · 6 unproven (no checks) · 130 cancelled · 143 paused

State is kept in $TOWLINE_HOME, or else in towline/ below
$XDG_STATE_HOME or ~/.local/state. --log FILE appends each decision of the
engine to FILE.";

/// The command line without what is hidden, for everything that is made from it.
pub(crate) fn visible() -> clap::Command {
    let all = Args::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect::<Vec<_>>();
    clap::Command::new("towline")
        .version(env!("CARGO_PKG_VERSION"))
        .about(all.get_about().cloned().unwrap_or_default())
        .after_help(EXIT_CODES)
        .subcommand_required(true)
        .subcommands(shown)
}

/// Names the commands for words that people use for them elsewhere.
pub(crate) fn with_suggestions(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let commands: &[&str] = match word.as_str() {
        "stop" | "kill" | "abort" | "quit" => &["cancel", "pause"],
        "list" | "status" | "ps" => &["ls", "show"],
        "continue" | "start" => &["resume", "run"],
        "delete" | "remove" => &["rm"],
        "apply" | "accept" => &["merge"],
        "follow" | "tail" => &["attach", "logs"],
        "message" | "say" | "send" => &["tell"],
        _ => return error,
    };
    let commands = commands.iter().map(|command| (*command).to_owned()).collect();
    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(commands));
    error
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Drive an agent until your checks pass
    ///
    /// The agent works in a private clone; your checkout is not touched, unless you want it to work there (--in-place).
    /// After each attempt Towline itself runs the checks on a clean checkout of the agent's work, and gives the agent what
    /// failed. The goal is done when all checks pass. When it ends, its work becomes a branch in your repository.
    Run(Run),
    /// Watch a failing sample project being fixed, with nothing but this program and git
    Demo(RunFormat),
    /// Write a towline.toml that fits this project and the agents that are installed
    ///
    /// Looks for what the project is built and tested with (cargo, npm and its kin, pytest, go, make) and writes a
    /// commented file at the top of the repository. Starts no agent and changes nothing else.
    Init(crate::commands::init::Init),
    /// Say whether Towline can work here, and what to do where it cannot
    ///
    /// Looks at the agents, git, what is stored, the configuration and the system. Changes nothing and needs no
    /// network. Exits with 0 when nothing is wrong, and with 4 when something must be fixed.
    Doctor(OutputFormat),
    /// List the agents in order of preference, and say what one of them can do
    ///
    /// Starts no agent but to ask for its version: it costs nothing and needs no network.
    Agents(Agents),
    /// List the goals of this repository, the newest first
    ///
    /// Outside of a repository, the goals of all repositories are listed.
    Ls(Ls),
    /// Show everything about a goal
    Show(Show),
    /// Show the live view of a goal that another process runs
    ///
    /// What you type there answers questions. Ctrl-C leaves the view; the goal keeps running.
    #[command(visible_alias = "watch")]
    Attach(Attach),
    /// Show what happened to a goal
    Logs(Logs),
    /// Show what a goal changed
    Diff(Diff),
    /// Replay an attempt from the raw bytes that its agent left
    ///
    /// The bytes are read anew, as they were while the agent ran, and held against what was stored of them then. Starts
    /// nothing and changes nothing.
    Replay(crate::commands::replay::Replay),
    /// List open questions
    Questions(OutputFormat),
    /// Answer what an agent asks
    ///
    /// An option may be given by its number or its label; other words are welcome, too. A permission is given by `yes`
    /// and refused by `no`, with what the agent should do instead if you like. An agent that still waits hears the
    /// answer at once; otherwise it is called again with it.
    Answer(Answer),
    /// Say something to the agent that works on a goal
    ///
    /// It hears it within its turn, as soon as its running tool has ended, or else when its turn is over: `towline agents
    /// check NAME` says which (steering). An agent that does not run hears it first thing. A goal that sleeps or needs a person goes on with it.
    Tell(Tell),
    /// End a goal and everything that runs for it
    Cancel(OneGoal),
    /// Interrupt a goal so that it can be resumed later
    ///
    /// Ends everything that runs for the goal and keeps its session, its work and its questions. This costs neither an attempt
    /// nor an error. SIGTERM does the same to a running `towline run`.
    Pause(OneGoal),
    /// Resume a paused goal in its session
    ///
    /// A goal that waits, for a quota or for a provider that does not answer, stops waiting.
    Resume(Resume),
    /// Open an ended goal again and continue it
    ///
    /// A goal that waits, for a quota or for a provider that does not answer, stops waiting.
    Retry(Retry),
    /// Take a goal's proven work into your branch
    ///
    /// Merges exactly the commit that was proven into what your checkout has checked out: by a fast-forward, or, when the
    /// branch has moved on, by a merge commit, on which the checks are run first. Nothing is ever left half done: what
    /// cannot be merged is refused, with what to do about it.
    Merge(Merge),
    /// Push a goal's verified commit to a remote
    ///
    /// The commit that was proven becomes the goal's branch there, without a merge. What the remote answers is printed: most
    /// hosts answer with the link that opens a pull request.
    Push(Push),
    /// Run a goal's checks again on what it stands for, and compare
    ///
    /// The checks are those that the goal was created with, on the very commit that the recorded verdict speaks about, in a
    /// clean checkout. What becomes of it stands in the goal's log; the goal itself stays what it is.
    Verify(Verify),
    /// Put your files back as they were before a goal worked on them in place
    ///
    /// All of them, or those at the paths that are named; ignored files are in no snapshot and stay. Your commits, branches
    /// and index stay, too. What the goal left is kept, and can be looked at with `towline diff`.
    Restore(Restore),
    /// Remove goals with their workspaces, branches and logs, but never work that is not merged
    Rm(Rm),
    /// Clear away what nobody needs any more, but never work
    Gc(Gc),
    /// Towline's own tools for an agent, as an MCP server on standard input and output
    ///
    /// Agents that Towline starts are given it: `ask`, `sleep`, `progress` and `submit`, each for the agent's own goal, as
    /// long as its attempt lives.
    Mcp,
    /// The built-in agent: works over the API of a model, and speaks the Agent Client Protocol on standard input and output
    ///
    /// Any ACP client can start it, Towline among them. It reads and changes files and runs commands in the directory of
    /// its session. In its mode `ask`, the default, it asks the client before it changes anything; in `bypass` it does not.
    Acp(Acp),
    /// Print a script that completes towline's command line in your shell
    Completions(crate::commands::completions::Completions),
    /// Print the manual page of towline, or write the pages of all commands
    Man(crate::commands::man::ManPages),
    /// What a word of the command line can be, for the scripts of `completions`
    #[command(hide = true)]
    Complete(crate::commands::completions::Complete),
    /// The scripted agent
    #[command(hide = true)]
    Script(Script),
}

impl Command {
    /// Whether an agent starts it, or is it: then the process has no more than the agent's own environment.
    pub(crate) fn is_agents(&self) -> bool {
        matches!(self, Self::Mcp | Self::Acp(_) | Self::Script(_))
    }

    /// Whether it changes goals or what belongs to them, so that only the operator may use it.
    #[rustfmt::skip]
    pub(crate) fn changes_goals(&self) -> bool {
        match self {
            Self::Run(_) | Self::Demo(_) | Self::Attach(_) | Self::Answer(_) | Self::Tell(_) | Self::Cancel(_)
            | Self::Pause(_) | Self::Resume(_) | Self::Retry(_) | Self::Restore(_) | Self::Merge(_)
            | Self::Push(_) | Self::Verify(_) | Self::Rm(_) => true,
            Self::Gc(gc) => !gc.dry_run,
            // These read, write files that are no state, or are an agent's own.
            Self::Init(_) | Self::Show(_) | Self::Ls(_) | Self::Doctor(_) | Self::Agents(_) | Self::Logs(_)
            | Self::Replay(_) | Self::Diff(_) | Self::Questions(_) | Self::Completions(_) | Self::Complete(_)
            | Self::Man(_) | Self::Mcp | Self::Acp(_) | Self::Script(_) => false,
        }
    }
}

/// Drive an agent until your checks pass.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  towline run \"fix the failing test\" --check \"cargo test\"
  towline run \"make the linter happy\" --check \"npm run lint\" --check \"npm test\" --budget usd=2
  towline run - --check \"make test\" < goal.txt
  towline run --file goals/login.md        the goal and its settings are in a file
  towline run --goal 1a2b3c4d              go on with a goal that was left")]
pub(crate) struct Run {
    /// What is to be done, in plain words; `-` reads it from standard input
    #[arg(required_unless_present_any = ["goal", "file"], conflicts_with = "goal")]
    pub(crate) prompt: Vec<String>,
    /// A file with the goal and its settings: TOML, or Markdown whose front matter holds the settings
    ///
    /// The flags win over the file, and the file over the configuration. `--check` replaces the file's checks.
    #[arg(long, value_name = "GOAL.md", conflicts_with = "goal")]
    pub(crate) file: Option<PathBuf>,
    /// A command that must exit with 0 on a clean checkout of the work; may be given several times
    ///
    /// With `--goal`, these replace the goal's checks.
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Vec<String>,
    /// The agent to use, by its name in the configuration
    #[arg(long, value_name = "NAME", conflicts_with = "goal")]
    pub(crate) agent: Vec<String>,
    /// The model to use
    #[arg(long, value_name = "M", conflicts_with = "goal")]
    pub(crate) model: Option<String>,
    /// A limit: turns, attempts, wall, tokens, usd, errors or denials
    #[arg(long, value_name = "AXIS=VALUE", conflicts_with = "goal")]
    pub(crate) budget: Vec<BudgetChange>,
    /// The commit that the work starts from [default: HEAD]
    #[arg(long, value_name = "REF", conflicts_with_all = ["goal", "include_dirty", "in_place"])]
    pub(crate) base: Option<String>,
    /// Start from your uncommitted changes, too: modified, staged, deleted and untracked files, not ignored ones
    #[arg(long, conflicts_with = "goal")]
    pub(crate) include_dirty: bool,
    /// Let the agent work in your own directory instead of a private clone; it need not be in a git repository
    ///
    /// Nothing keeps the agent and you apart then: your files are changed right away. What was there before is kept, and
    /// `towline restore ID` puts it back.
    #[arg(long, conflicts_with = "goal")]
    pub(crate) in_place: bool,
    /// Take a snapshot of your files even if they are more than 20,000 or 1 GiB
    #[arg(long, conflicts_with = "goal")]
    pub(crate) allow_large: bool,
    /// Start the agent only if the checks fail before any work; the same as `mode = "red"` in `[baseline]`
    #[arg(long, conflicts_with = "goal")]
    pub(crate) red_first: bool,
    /// Let this goal change a protected path, or a section such as `package.json#scripts`; may be given several times
    #[arg(long, value_name = "PATH", conflicts_with = "goal")]
    pub(crate) unprotect: Vec<String>,
    /// Go on with an existing goal instead of making one
    #[arg(long, value_name = "ID")]
    pub(crate) goal: Option<String>,
    #[command(flatten)]
    pub(crate) format: RunFormat,
}

/// How a foreground run tells what happens.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct RunFormat {
    /// Print nothing but the goal as JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Print each event as a line of JSON when it happens
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
}

/// Show everything about a goal.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The goal's id, any prefix of it that no other goal shares, or `@` for the newest goal
    pub(crate) id: String,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List goals.
#[derive(Debug, clap::Args)]
pub(crate) struct Ls {
    /// List the goals of all repositories
    #[arg(short, long)]
    pub(crate) all: bool,
    /// List only goals in this phase, such as `running` or `failed`; may be given several times
    #[arg(long, value_name = "PHASE", value_parser = PossibleValuesParser::new(Phase::NAMES), hide_possible_values = true)]
    pub(crate) phase: Vec<String>,
    /// List the N newest goals; without it, all of them
    #[arg(short = 'n', value_name = "N")]
    pub(crate) limit: Option<NonZeroUsize>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The form of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputFormat {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the agents.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline agents                           all agents of the configuration
  towline agents check codex               what Codex can do here, and what is wrong with it")]
pub(crate) struct Agents {
    /// What to do instead of listing them.
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What to do with an agent.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Say what an agent can do, and what is wrong with it
    ///
    /// Exits with 0 when nothing is wrong, and with 4 when something must be fixed.
    Check {
        /// The agent's name in the configuration
        name: String,
    },
}

/// Show the live view of a goal.
#[derive(Debug, clap::Args)]
pub(crate) struct Attach {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) format: RunFormat,
}

/// Show what happened to a goal.
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// Go on while the goal does
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The agent's own output, byte for byte and with its secrets, of the last attempt or of `--attempt`
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// With --raw: print the agent's standard error instead of its standard output
    #[arg(long, requires = "raw")]
    pub(crate) stderr: bool,
    /// Only this attempt
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Print each event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what a goal changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// Only the files and how many lines changed
    #[arg(long)]
    pub(crate) stat: bool,
    /// The bytes as they are, secrets included, as `git apply` needs them
    #[arg(long, conflicts_with = "stat")]
    pub(crate) raw: bool,
}

/// Answer what an agent asks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline answer 1a2b3c4d 2                the second option
  towline answer 1a2b3c4d use SQLite       an answer of your own
  towline answer 1a2b3c4d no, use git clean instead
  towline answer 1a2b3c4d --question 2 yes
  towline answer 1a2b3c4d -- --release     an answer that begins with a dash
  towline answer 1a2b3c4d - < answer.txt")]
pub(crate) struct Answer {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// The answer, or `-` to read it from standard input; where several things are asked, one for each, separated by `;`
    #[arg(required = true)]
    pub(crate) text: Vec<String>,
    /// The number of the question, where several are open [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) question: Option<u32>,
}

/// Say something to the agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Tell {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// The words; `-` reads them from standard input
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) text: Vec<String>,
}

/// A goal.
#[derive(Debug, clap::Args)]
pub(crate) struct OneGoal {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
}

/// Resume a paused goal.
#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The goal's id, a prefix of it, or `@` [default: the only paused goal of this repository]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) format: RunFormat,
}

/// The scripted agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Script {
    /// The path of the script.
    pub(crate) script: PathBuf,
    /// Begin this session.
    #[arg(long, required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) session: Option<String>,
    /// Go on with this session.
    #[arg(long)]
    pub(crate) resume: Option<String>,
}
