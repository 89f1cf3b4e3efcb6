//! `towline accounts`: quota states.

use clap::Subcommand;
use jiff::Timestamp;
use towline_api::{AccountLine, OpenedAccount, RefusedGoal};
use towline_app::{Context, Error, accounts, open_account};
use towline_engine::{Clock, SystemClock};
use towline_terminal::{age, clock_time};

use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline accounts                         which can be used
  towline accounts open anthropic-main     try it again, after you have signed in")]
pub(crate) struct Accounts {
    /// What to do instead of listing them.
    #[command(subcommand)]
    pub(crate) command: Option<AccountsCommand>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

/// What to do with an account.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountsCommand {
    /// Open an account that is limited or closed: one goal tries it
    Open {
        /// The account's name; that of its agent where the configuration names none
        name: String,
    },
}

/// Lists accounts, or opens one.
pub(crate) async fn run(context: &Context, args: Accounts) -> Result<(), Error> {
    let now = SystemClock.now();
    match args.command {
        Some(AccountsCommand::Open { name }) => {
            let opened = open_account(context, &name, now).await?;
            if args.json {
                output::print_json_or_exit(Layout::Pretty, &opened);
            } else {
                opened_lines(&opened, now).iter().for_each(output::print_or_exit);
            }
        }
        None => {
            let accounts = accounts(context).await?;
            if args.json {
                output::print_json_or_exit(Layout::Pretty, &accounts);
            } else if accounts.is_empty() {
                output::eprint(format_args!("no attempt has used an account yet"));
            } else {
                table(&accounts, now).iter().for_each(output::print_or_exit);
            }
        }
    }
    Ok(())
}

fn opened_lines(opened: &OpenedAccount, now: Timestamp) -> Vec<String> {
    let OpenedAccount { account, continued, refused } = opened;
    let mut lines = vec![format!("{}: {}", output::brief(&account.name), state(account, now))];
    match continued.len() {
        0 => {}
        1 => lines.push("1 goal that waited for it is queued again".to_owned()),
        count => lines.push(format!("{count} goals that waited for it are queued again")),
    }
    let cannot = |refused: &RefusedGoal| {
        let (goal, why) = (output::brief(&refused.goal), output::brief(&refused.why));
        format!("{goal} cannot continue: {why}")
    };
    lines.extend(refused.iter().map(cannot));
    lines
}

fn table(accounts: &[AccountLine], now: Timestamp) -> Vec<String> {
    let mut rows = vec![["ACCOUNT", "AGENT", "SINCE", "STATE"].map(str::to_owned).to_vec()];
    rows.extend(accounts.iter().map(|account| {
        vec![
            output::brief(&account.name),
            output::brief(&account.agent),
            age(account.updated_at, now),
            state(account, now),
        ]
    }));
    output::table(&rows, &["SINCE", "AGENT"])
}

fn state(account: &AccountLine, now: Timestamp) -> String {
    match (account.state.as_str(), account.until) {
        ("limited", Some(until)) => {
            let guessed = if account.guessed { " (a guess)" } else { "" };
            format!("limited until {}{guessed}", clock_time(until, now))
        }
        ("closed", _) => "closed: its credentials were refused".to_owned(),
        ("trial", _) => "open for one goal, which tries it".to_owned(),
        (state, _) => state.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use towline_core::{Account, AccountStatus, AgentName};

    use super::*;

    #[test]
    fn opening_an_account_shows_how_many_goals_continue() {
        let account = Account {
            name: "main".into(),
            agent: AgentName::new("claude"),
            status: AccountStatus::Trial,
            updated_at: at(0),
        };
        let lines = |continued: &[&str]| {
            let refused = vec![RefusedGoal { goal: "c".into(), why: "the budget `wall` is spent".into() }];
            let continued = continued.iter().map(|&goal| goal.to_owned()).collect();
            let lines =
                opened_lines(&OpenedAccount { account: (&account).into(), continued, refused }, at(0));
            lines.join("\n")
        };
        let (opened, refused) =
            ("main: open for one goal, which tries it", "c cannot continue: the budget `wall` is spent");
        assert_eq!(lines(&[]), format!("{opened}\n{refused}"));
        let one = "1 goal that waited for it is queued again";
        assert_eq!(lines(&["a"]), format!("{opened}\n{one}\n{refused}"));
        let two = "2 goals that waited for it are queued again";
        assert_eq!(lines(&["a", "b"]), format!("{opened}\n{two}\n{refused}"));
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    #[test]
    fn every_state_of_an_account_is_shown() {
        let line = |name: &str, status| {
            AccountLine::from(&Account {
                name: name.into(),
                agent: AgentName::new("claude"),
                status,
                updated_at: at(0),
            })
        };
        let accounts = [
            line("main", AccountStatus::Open),
            line("second", AccountStatus::Limited { until: Some(at(3_600)), guessed: true }),
            line("third", AccountStatus::Limited { until: None, guessed: false }),
            line("fourth", AccountStatus::Closed),
            line("fifth", AccountStatus::Trial),
        ];
        let expected = [
            "ACCOUNT  AGENT   SINCE  STATE",
            "main     claude  1m     open",
            "second   claude  1m     limited until 09:00:00 (a guess)",
            "third    claude  1m     limited",
            "fourth   claude  1m     closed: its credentials were refused",
            "fifth    claude  1m     open for one goal, which tries it",
        ];
        assert_eq!(table(&accounts, at(60)), expected);
    }
}
