//! `towline completions`: what a shell needs to complete towline's command line, and the hidden command that the script
//! asks for goals, agents and budgets.

use clap::ValueEnum;
use clap_complete::Shell;
use towline_app::{Context, Error};
use towline_core::Axis;
use towline_store::{Listed, Listing};

use crate::args;
use crate::{find, output};

/// How many goals are offered.
const OFFERED: usize = 50;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline completions bash > ~/.local/share/bash-completion/completions/towline
  towline completions zsh > \"${fpath[1]}/_towline\"
  towline completions fish > ~/.config/fish/completions/towline.fish")]
pub(crate) struct Completions {
    /// The shell to print completions for
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Complete {
    /// What the word names.
    kind: Kind,
}

/// What a word of the command line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Goals,
    Agents,
    Axes,
}

/// Prints the script.
pub(crate) fn run(args: &Completions) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::visible(), "towline", &mut script);
    let script = String::from_utf8_lossy(&script);
    output::print_bytes_or_exit(with_values(args.shell, &script, &commands_of_goals()).as_bytes());
}

/// Prints each word and what it means, separated by a tab. Whatever cannot be read completes to nothing.
pub(crate) async fn complete(context: &Context, args: Complete) -> Result<(), Error> {
    let words = match args.kind {
        Kind::Goals => goals(context).await?,
        Kind::Agents => {
            let agents = context.read_configuration(&context.directory, None)?.0.config.agents;
            agents.into_iter().map(|(name, agent)| (name.to_string(), agent.kind.name().to_owned())).collect()
        }
        Kind::Axes => Axis::ALL.iter().map(|axis| (format!("{axis}="), "a limit".to_owned())).collect(),
    };
    for (word, meaning) in words {
        output::print_or_exit(format_args!("{word}\t{}", output::brief(&meaning)));
    }
    Ok(())
}

async fn goals(context: &Context) -> Result<Vec<(String, String)>, Error> {
    let Some(state) = context.existing_state()? else { return Ok(Vec::new()) };
    let listing = Listing { repository: find::repository_here(context), ..Listing::first(OFFERED) };
    let listed = state.store.list(&listing).await?;
    let goals = listed.into_iter().filter_map(Listed::readable);
    Ok(goals.map(|goal| (goal.id.short(), format!("{} ({})", goal.title, goal.phase.name()))).collect())
}

/// The commands whose first word is a goal.
fn commands_of_goals() -> Vec<String> {
    let takes_goal = |command: &&clap::Command| {
        command.get_positionals().next().is_some_and(|word| ["id", "ids"].contains(&word.get_id().as_str()))
    };
    args::visible()
        .get_subcommands()
        .filter(takes_goal)
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_visible_aliases()))
        .map(str::to_owned)
        .collect()
}

/// The script with goals, agents and budgets, where the shell can ask for them.
fn with_values(shell: Shell, script: &str, commands: &[String]) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{}", BASH.replace("COMMANDS", &commands.join("|"))),
        Shell::Fish => format!("{script}\n{}", FISH.replace("COMMANDS", &commands.join(" "))),
        Shell::Zsh => {
            let (head, rest) = script.split_once('\n').unwrap_or((script, ""));
            let lines = rest.lines().map(asking_zsh).collect::<Vec<_>>().join("\n");
            format!("{head}\n{ZSH}\n{lines}\n")
        }
        _ => script.to_owned(),
    }
}

/// A line of the script for zsh that asks for the word that it is about.
fn asking_zsh(line: &str) -> String {
    let kinds = [
        ("':id -- ", "goals"),
        ("'*::ids -- ", "goals"),
        ("--goal=[", "goals"),
        ("--after=[", "goals"),
        ("--agent=[", "agents"),
        ("--budget=[", "axes"),
    ];
    match kinds.iter().find(|(about, _)| line.contains(about)) {
        Some((_, kind)) => line.replace(":_default'", &format!(":_towline_{kind}'")),
        None => line.to_owned(),
    }
}

const ZSH: &str = include_str!("completions/towline.zsh");
const FISH: &str = include_str!("completions/towline.fish");
const BASH: &str = include_str!("completions/towline.bash");
