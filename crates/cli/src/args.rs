//! The command line, as `--help` teaches it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, Parser, Subcommand};
use towline_core::{BudgetChange, Phase};

use crate::commands;

/// Drive coding agents until the work is done, and prove it
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

State is in $TOWLINE_HOME, or in towline/ below $XDG_STATE_HOME
(default: ~/.local/state). --log FILE appends each decision of the
engine to FILE.";

/// The command line without hidden commands, for completions and manual pages.
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

fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    let number: usize = text.parse().map_err(|_| "it must be a number".to_owned())?;
    NonZeroUsize::new(number).ok_or_else(|| "it must be at least 1".to_owned())
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Drive an agent until your checks pass
    ///
    /// The agent works in a private clone; your checkout is not touched, unless you ask for it with --in-place.
    /// After each attempt Towline itself runs the checks on a clean checkout of the agent's work, and sends the failures to
    /// the agent. The goal is done when all checks pass. When it ends, its work becomes a branch in your repository.
    Run(Run),
    /// Queue goals for the server
    ///
    /// All goals are checked before the first one is queued. The server starts them in the order of their priority and age, as many at
    /// once as `[caps]` allows.
    Add(commands::add::Add),
    /// Watch a failing sample project being fixed, with nothing but this program and git
    Demo(RunFormat),
    /// Write a towline.toml that fits this project and the agents that are installed
    ///
    /// Detects how the project is built and tested (cargo, npm, pnpm, yarn, bun, pytest, go, Maven, Gradle, make, just) and
    /// writes a commented file to the root of the repository. Starts no agent and changes nothing else.
    Init(commands::init::Init),
    /// Accept settings of this repository's towline.toml that widen what agents may do
    ///
    /// Settings that widen what agents may do (programs, permissions, variables, a way out of the sandbox) take effect only after you
    /// have accepted exactly these values. Without --yes, shows them and asks. `towline run` and `towline add` ask the same on a terminal.
    Trust(commands::trust::Trust),
    /// Check whether Towline can work here, and print how to fix problems
    ///
    /// Checks the agents, git, the state directory, the configuration and the system. Changes nothing and needs no
    /// network. Exits with 0 if nothing is wrong, and with 4 if something must be fixed.
    Doctor(OutputFormat),
    /// List the agents in order of preference, or check one of them
    ///
    /// Starts agents only to ask for their version. That costs nothing and needs no network.
    Agents(Agents),
    /// List the goals of this repository, newest first
    ///
    /// Outside of a repository, list the goals of all repositories.
    Ls(Ls),
    /// List the goals that run and those that wait, each with the reason
    Queue(OutputFormat),
    /// List the accounts that agents use and whether they can be used, or open one
    Accounts(commands::accounts::Accounts),
    /// Print what was spent
    Cost(commands::cost::Cost),
    /// Show everything about a goal
    Show(GoalAndFormat),
    /// Show the live view of a goal that another process runs
    ///
    /// Type a line to answer a question or to send a message. Ctrl-C leaves the view; the goal keeps running.
    Attach(Attach),
    /// Show all goals of the server in a dashboard: what needs you, what runs, and one goal at a time
    ///
    /// Answer, steer and merge from there; ? lists the keys. Ctrl-C leaves the dashboard; the goals keep running. Without a
    /// server or a terminal, `towline watch ID` is `towline attach ID`.
    Watch(commands::watch::Watch),
    /// Print the log of a goal
    Logs(Logs),
    /// Print the changes of a goal
    Diff(Diff),
    /// Replay an attempt from the raw output of its agent
    ///
    /// Reads the output again, and compares the events with those that were stored while the agent ran. Starts nothing and
    /// changes nothing.
    Replay(commands::replay::Replay),
    /// List open questions
    Questions(OutputFormat),
    /// Answer a question of an agent
    ///
    /// Name an option by its number or label, or write an answer of your own. Allow a permission with `yes`, and refuse
    /// it with `no`, optionally followed by what the agent should do instead. An agent that is waiting gets the answer at
    /// once; otherwise it is started again with it.
    Answer(Answer),
    /// Send a message to the agent that works on a goal
    ///
    /// The agent gets it as soon as its running tool has ended, or when its turn is over: `towline agents check NAME` shows
    /// which (steering). An agent that is not running gets it with its next prompt. A goal that sleeps or needs a person
    /// continues with it.
    Tell(Tell),
    /// Take over a goal: open the agent's own session in its workspace
    ///
    /// Pauses the goal, then starts the agent's program on your terminal in the goal's conversation (`claude --resume`, `codex resume`).
    /// While you are there, no other command can resume the goal. Afterwards `towline resume` continues the same conversation: your
    /// changes stay, and the next prompt reports that a person worked there. Towline does not count what you spend.
    Enter(OneGoal),
    /// Summarise a goal's conversation before its next prompt
    ///
    /// The next attempt continues with the summary, which frees the model's context. `compact_focus` in the agent's settings
    /// names what a summary keeps; FOCUS replaces it for this one. `towline agents check NAME` shows whether an agent can
    /// do it (compaction).
    Compact(commands::steer::Compact),
    /// End a goal and everything that runs for it
    Cancel(OneGoal),
    /// Pause a goal, to be resumed later
    ///
    /// Ends everything that runs for the goal. Its session, work and questions stay. A pause counts neither as an attempt
    /// nor as an error. SIGTERM pauses the goal of a running `towline run`.
    Pause(OneGoal),
    /// Resume a paused goal in its session
    ///
    /// A goal that waits for a quota, or for a provider that does not answer, stops waiting.
    Resume(Resume),
    /// Reopen an ended goal and continue it
    ///
    /// A goal that waits for a quota, or for a provider that does not answer, stops waiting.
    Retry(commands::retry::Retry),
    /// Merge a goal's verified commit into your branch
    ///
    /// Merges exactly the verified commit into the branch that is checked out: by a fast-forward, or, if the branch has
    /// new commits, by a merge commit, on which the checks run first. If the merge is not possible, nothing is changed,
    /// and Towline prints what to do.
    Merge(commands::merge::Merge),
    /// Push a goal's verified commit to a remote
    ///
    /// The verified commit becomes the goal's branch there, without a merge. The answer of the remote is printed; most
    /// hosts answer with the address that opens a pull request.
    Push(commands::push::Push),
    /// Run a goal's checks again on the verified commit, or verify a proof
    ///
    /// With an id, run the goal's checks in a clean checkout of the commit that the recorded verdict is about. The result is
    /// recorded in the goal's log; the goal's phase does not change. With --proof, check who signed the proof, and compare it with the
    /// repository that you are in; nothing is executed without --run.
    Verify(commands::verify::Verify),
    /// Print a signed proof that a goal's checks passed on its commit
    ///
    /// An in-toto statement in a DSSE envelope, signed with a key of this state directory. It names the commit, the hash of every check
    /// and of what it printed, and how far the verdict can be trusted.
    Proof(commands::proof::Prove),
    /// List the public keys that verify your proofs, or make a new key
    Keys(commands::keys::Keys),
    /// Restore your files as they were before a goal worked on them in place
    ///
    /// Restores all files, or those at the given paths. Ignored files are in no snapshot and stay, and so do your commits,
    /// branches and index. The files of the goal are preserved: `towline diff` shows them.
    Restore(commands::restore::Restore),
    /// Remove goals with their workspaces, branches and logs, but never unmerged work
    Rm(commands::rm::Rm),
    /// Remove files that are no longer needed, but never work
    Gc(commands::gc::Gc),
    /// Run the server, which runs queued goals side by side
    ///
    /// Starts queued goals as far as there is room, and continues what an earlier server or `towline run` left. It may be killed at
    /// any moment: the next one continues. Ctrl-C and SIGTERM stop it like `towline down`. Agents keep running, even after a second
    /// Ctrl-C.
    Up(crate::commands::up::Up),
    /// Stop the server
    ///
    /// It starts nothing new and waits for running turns, as long as `towline up --wait` allows. A second `towline down` stops the
    /// wait. Agents keep running; the next `towline up` continues them.
    Down,
    /// Print a link to the page of the running server
    ///
    /// The link signs one browser in, once, within 10 minutes. A session lasts 30 days, or until you sign out.
    Open(commands::open::Open),
    /// Run the server as a service of your systemd user session
    Service(crate::commands::service::Service),
    /// Serve Towline's own tools to an agent, over MCP on standard input and output
    ///
    /// Agents that Towline starts have it: `ask`, `sleep`, `progress` and `submit`, each for the agent's own goal, as
    /// long as its attempt lives.
    Mcp,
    /// Run the built-in agent, which uses the API of a model, over the Agent Client Protocol on standard input and output
    ///
    /// Any ACP client can start it. It reads and changes files and runs commands in the directory of its session. In its
    /// mode `ask`, the default, it asks the client before it changes anything; in `bypass` it does not.
    Acp(commands::acp::Acp),
    /// Print a completion script for your shell
    Completions(commands::completions::Completions),
    /// Print the manual page of towline, or write the pages of all commands
    Man(commands::man::ManPages),
    /// List the possible values of an argument, for completion scripts
    #[command(hide = true)]
    Complete(commands::completions::Complete),
    /// Run the scripted agent
    #[command(hide = true)]
    Script(Script),
}

impl Command {
    /// Whether it runs as an agent or for one: then the process has only the agent's environment.
    pub(crate) fn is_agents(&self) -> bool {
        matches!(self, Self::Mcp | Self::Acp(_) | Self::Script(_))
    }

    /// Whether it changes goals or what belongs to them, so that only the operator may use it.
    #[rustfmt::skip]
    pub(crate) fn changes_goals(&self) -> bool {
        match self {
            Self::Run(_) | Self::Add(_) | Self::Demo(_) | Self::Attach(_) | Self::Watch(_) | Self::Answer(_) | Self::Tell(_) | Self::Enter(_) | Self::Compact(_) | Self::Cancel(_)
            | Self::Pause(_) | Self::Resume(_) | Self::Retry(_) | Self::Restore(_) | Self::Merge(_)
            | Self::Push(_) | Self::Proof(_) | Self::Rm(_) | Self::Up(_) | Self::Down | Self::Open(_) | Self::Service(_) | Self::Trust(_) => true,
            Self::Gc(gc) => !gc.dry_run,
            Self::Accounts(accounts) => accounts.command.is_some(),
            Self::Keys(keys) => keys.command.is_some(),
            Self::Verify(verify) => verify.runs_checks(),
            // These read, write files that are no state, or are an agent's own.
            Self::Init(_) | Self::Queue(_) | Self::Cost(_) | Self::Show(_) | Self::Ls(_) | Self::Doctor(_) | Self::Agents(_) | Self::Logs(_)
            | Self::Replay(_) | Self::Diff(_) | Self::Questions(_) | Self::Completions(_) | Self::Complete(_)
            | Self::Man(_) | Self::Mcp | Self::Acp(_) | Self::Script(_) => false,
        }
    }
}

#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  towline run \"fix the failing test\" --check \"cargo test\"
  towline run \"make the linter happy\" --check \"npm run lint\" --check \"npm test\" --budget usd=2
  towline run - --check \"make test\" < goal.txt
  towline run --file goals/login.md        the goal and its settings are in a file
  towline run --continue 1a2b3c4d \"now add tests\" --check \"cargo test\"
  towline run --goal 1a2b3c4d              resume a goal")]
pub(crate) struct Run {
    /// The task, in plain words; `-` reads it from standard input
    #[arg(required_unless_present_any = ["goal", "file"], conflicts_with = "goal")]
    pub(crate) prompt: Vec<String>,
    /// A file with the goal and its settings: TOML, or Markdown whose front matter holds the settings
    ///
    /// Flags override the file, and the file overrides the configuration. `--check` replaces the file's checks.
    #[arg(long, value_name = "GOAL.md", conflicts_with = "goal")]
    pub(crate) file: Option<PathBuf>,
    /// A command that must exit with 0 on a clean checkout of the work; may be given several times
    ///
    /// With `--goal`, these replace the goal's checks.
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Vec<String>,
    /// The agent to use, by its name in the configuration; give it several times to list agents in order of preference
    #[arg(long, value_name = "NAME", conflicts_with = "goal")]
    pub(crate) agent: Vec<String>,
    /// The model to use
    #[arg(long, value_name = "M", conflicts_with = "goal")]
    pub(crate) model: Option<String>,
    /// A limit, such as `usd=5` or `wall=2h`; the axes are turns, attempts, wall, tokens, usd, errors and denials
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
    /// The agent changes your files right away. Towline takes a snapshot first, and `towline restore ID` restores it.
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
    /// Continue the conversation of an earlier goal, at the same path; the work starts from that goal's result
    ///
    /// The earlier goal must have ended, and cannot be opened again afterwards. Its work and its log stay.
    #[arg(long = "continue", value_name = "ID", conflicts_with = "goal")]
    pub(crate) continues: Option<String>,
    /// Resume an existing goal instead of creating one
    #[arg(long, value_name = "ID")]
    pub(crate) goal: Option<String>,
    /// Hand the goal to the running server and return at once
    #[arg(long, conflicts_with_all = ["goal", "events"])]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) format: RunFormat,
}

/// The output format of a foreground run.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct RunFormat {
    /// Print nothing but the goal as JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Print each event as a line of JSON when it happens
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
}

/// A goal, and the form of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct GoalAndFormat {
    /// The goal's id, any prefix of it that no other goal shares, or `@` for the newest goal
    pub(crate) id: String,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ls {
    /// List the goals of all repositories
    #[arg(short, long)]
    pub(crate) all: bool,
    /// List only goals in this phase, such as `running` or `failed`; may be given several times
    #[arg(long, value_name = "PHASE", value_parser = PossibleValuesParser::new(Phase::names()), hide_possible_values = true)]
    pub(crate) phase: Vec<String>,
    /// List the N newest goals; without it, all of them
    #[arg(short = 'n', value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<NonZeroUsize>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The form of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputFormat {
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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
    /// Show what an agent can do, and what is wrong with it
    ///
    /// Exits with 0 if nothing is wrong, and with 4 if something must be fixed.
    Check {
        /// The agent's name in the configuration
        name: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Attach {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) format: RunFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// Keep printing new events until the goal ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the agent's raw output, secrets included, of the last attempt or of `--attempt`
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// With --raw: print the agent's standard error instead of its standard output
    #[arg(long, requires = "raw")]
    pub(crate) stderr: bool,
    /// Print only this attempt
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Print each event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// Print only the files and how many lines changed
    #[arg(long)]
    pub(crate) stat: bool,
    /// Print the diff as `git apply` needs it, secrets included
    #[arg(long, conflicts_with = "stat")]
    pub(crate) raw: bool,
}

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
    /// The answer; `-` reads it from standard input. For a question with several parts, separate the answers with `;`
    #[arg(required = true)]
    pub(crate) text: Vec<String>,
    /// The number of the question, if several are open [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) question: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tell {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// The message; `-` reads it from standard input
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) text: Vec<String>,
}

/// The arguments of a command on one goal.
#[derive(Debug, clap::Args)]
pub(crate) struct OneGoal {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The goal's id, a prefix of it, or `@` [default: the only paused goal of this repository]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) format: RunFormat,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Script {
    /// The path of the script.
    pub(crate) script: PathBuf,
    /// Begin this session.
    #[arg(long, required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) session: Option<String>,
    /// Continue this session.
    #[arg(long)]
    pub(crate) resume: Option<String>,
}
