//! `towline add`: queues goals.

use std::path::{Path, PathBuf};

use towline_api::AddedGoal;
use towline_app::{Action, Added, Context, Error, Notice, Request, add, goal_requests, server_of};
use towline_core::{BudgetChange, Need};
use towline_engine::{Clock, SystemClock};
use towline_view::hints;

use crate::commands::trust::ask_first;
use crate::notices;
use crate::output::{self, Layout};
use crate::prompt::{as_task, prompt};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline add \"fix the failing test\" --check \"cargo test\"
  towline add goals/login.md goals/logout.md
  towline add goals/                       each .md and .toml file is a goal; they may name each other in `after`
  towline add \"write the docs\" --after 1a2b3c4d --priority 2")]
pub(crate) struct Add {
    /// The task in plain words, or files and folders with goals; `-` reads the task from standard input
    #[arg(required = true, value_name = "PROMPT|FILE|DIR")]
    words: Vec<String>,
    /// A command that must exit with 0 on a clean checkout of the work; may be given several times
    #[arg(long, value_name = "CMD")]
    check: Vec<String>,
    /// The agent to use, by its name in the configuration; give it several times to list agents in order of preference
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// A limit, such as `usd=5` or `wall=2h`; the axes are turns, attempts, wall, tokens, usd, errors and denials
    #[arg(long, value_name = "AXIS=VALUE")]
    budget: Vec<BudgetChange>,
    /// Start only when this goal is done; may be given several times
    #[arg(long, value_name = "ID")]
    after: Vec<String>,
    /// Go before others, as if the goal had waited for N more hours; a negative number lets others go first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    priority: Option<i32>,
    /// A word to find the goal by, and to limit how many run at once; may be given several times
    #[arg(long, value_name = "L")]
    label: Vec<String>,
    /// Files that the goal changes: goals of a project that change the same files do not run at once
    #[arg(long, value_name = "GLOB")]
    touches: Vec<String>,
    /// Print each goal as a line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(context: &Context, args: &Add) -> Result<(), Error> {
    let requests = requests(context, args)?;
    ask_first(context, args.json)?;
    // A server that would not understand them is reported before they are there.
    let server = server_of(&context.home()?)?;
    let added = add(context, &requests, SystemClock.now()).await?;
    let mut shown: Vec<&Notice> = Vec::new();
    for notice in added.iter().flat_map(|added| &added.notices) {
        if !shown.contains(&notice) {
            shown.push(notice);
            notices::print(std::slice::from_ref(notice));
        }
    }
    for Added { record, is_new, .. } in &added {
        let (id, phase) = (record.goal.id, record.state.phase.name());
        if args.json {
            let (id, phase) = (id.to_string(), phase.to_owned());
            output::print_json(Layout::Line, &AddedGoal { id, phase, added: *is_new });
        } else {
            output::print(format_args!("{phase} {}  {}", id.short(), output::brief(&record.goal.title)));
        }
    }
    let new = added.iter().filter(|added| added.is_new).count();
    if !args.json && (added.len() > 1 || new == 0) {
        output::print(summary(new, added.len() - new));
    }
    if server.is_none() && !args.json {
        let them = if added.len() == 1 { "it" } else { "them" };
        let up = hints::command_line(&Action::Up);
        output::print(format_args!("no server is running; start {them} with: {up}"));
    }
    Ok(())
}

/// How many goals were added, and how many were there before.
fn summary(new: usize, there: usize) -> String {
    let goals = |count: usize| if count == 1 { "1 goal".to_owned() } else { format!("{count} goals") };
    match (new, there) {
        (new, 0) => format!("{} added", goals(new)),
        (0, there) => format!("no goal added: {} already added and not ended", goals(there)),
        (new, there) => format!("{} added; {} already added and not ended", goals(new), goals(there)),
    }
}

/// What to do when something is neither a task nor there.
const INSTEAD: &str = "give files and folders that exist; quote a longer prompt";

fn requests(context: &Context, args: &Add) -> Result<Vec<Request>, Error> {
    let common = Request {
        checks: args.check.clone(),
        agents: args.agent.clone(),
        budget: args.budget.clone(),
        after: args.after.iter().map(|goal| (goal.clone(), Need::Done)).collect(),
        priority: args.priority,
        labels: args.label.clone(),
        touches: args.touches.clone(),
        ..Request::default()
    };
    // Without a name, it is the current folder that is there.
    let is_there = |word: &String| !word.is_empty() && context.directory.join(word).exists();
    if args.words.iter().all(is_there) {
        let paths: Vec<PathBuf> = args.words.iter().map(PathBuf::from).collect();
        return goal_requests(context, &paths, &common);
    }
    if let Some(missing) = args.words.iter().find(|word| names_file(word) && !is_there(word)) {
        return Err(Error::usage(format!("cannot read {missing}: there is no such file"))
            .hint(format!("{INSTEAD}; {}", as_task(missing, "add"))));
    }
    let prompt = prompt(&args.words, "add", INSTEAD)?;
    Ok(vec![Request { prompt: Some(prompt), ..common }])
}

/// Whether a word is the name of a goal's file, and hardly a word of a task.
fn names_file(word: &str) -> bool {
    let ending = Path::new(word).extension();
    !word.contains(char::is_whitespace) && ending.is_some_and(|ending| ending == "md" || ending == "toml")
}
