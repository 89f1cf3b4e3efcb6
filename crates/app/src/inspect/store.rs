//! What is stored, what waits for a person, and whether there is room for more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};
use towline_api::{CheckoutFacts, LeftGoal, OpenQuestion, StoreFacts};
use towline_core::{GoalId, Phase};
use towline_engine::{checkouts_size, is_driven, workspaces_size};
use towline_store::{GoalRecord, Listing, Loaded, UnreadableGoal, load_all};

use super::frames::Stored;
use super::rows::{Mark, Row, Section};
use crate::context::{Context, State};
use crate::error::{Action, Error, Hint};
use crate::next_steps::way_to_continue;

/// Less than this is too little: workspaces, logs and the database all need room.
const LOW_SPACE: u64 = 1 << 30;
/// How many goals are named one by one.
const NAMED: usize = 5;

/// Looks at what is stored; makes nothing.
pub(crate) async fn look(context: &Context) -> (Section<StoreFacts>, Stored) {
    let mut facts = StoreFacts::default();
    let root = match context.home_path() {
        Ok(root) => root,
        Err(error) => return (Section { facts, rows: vec![error_row(&error)] }, Stored::default()),
    };
    facts.path = Some(root.display().to_string());
    let (mut rows, stored) = match read(context).await {
        Ok(Some((state, loaded))) => {
            let mut rows = stored_rows(&state, &loaded.records, &mut facts);
            rows.extend(unreadable_rows(&loaded.unreadable));
            facts.unreadable = loaded.unreadable.iter().map(|goal| goal.id.to_string()).collect();
            (rows, Stored::here(context, loaded.records, state.store))
        }
        Ok(None) => {
            let text = format!("nothing is stored yet in {}", root.display());
            (vec![Row::new(Mark::Good, "state", text)], Stored::default())
        }
        Err(error) => (vec![error_row(&error)], Stored::default()),
    };
    rows.extend(disk_rows(&root, &mut facts));
    (Section { facts, rows }, stored)
}

async fn read(context: &Context) -> Result<Option<(State, Loaded)>, Error> {
    let Some(state) = context.existing_state()? else { return Ok(None) };
    let loaded = load_all(state.store.as_ref(), Listing::all()).await?;
    Ok(Some((state, loaded)))
}

fn error_row(error: &Error) -> Row {
    let fix = error.way_out().unwrap_or_else(|| {
        "see that it is a database of Towline's that you may write to, or set TOWLINE_HOME to another directory"
            .into()
    });
    Row::new(Mark::Problem, "state", error.to_string()).fix(fix)
}

fn stored_rows(state: &State, records: &[GoalRecord], facts: &mut StoreFacts) -> Vec<Row> {
    facts.exists = true;
    facts.bytes = database_bytes(&state.home.database());
    for record in records {
        *facts.goals.entry(record.state.phase.name().to_owned()).or_default() += 1;
    }
    let left = records
        .iter()
        .filter(|record| !record.state.phase.is_settled() && !is_driven(&state.home, record.lease.as_ref()))
        .map(|record| (record.goal.id, record.goal.title.clone(), record.state.phase.clone()));
    let left: Vec<Left> = left.collect();
    facts.left = left
        .iter()
        .map(|(goal, title, phase)| LeftGoal {
            goal: goal.short(),
            title: title.clone(),
            phase: phase.name().to_owned(),
        })
        .collect();
    let answerable = records.iter().filter(|record| record.state.phase.takes_answers());
    let questions = answerable.flat_map(|record| {
        let open = record.state.open_questions();
        open.map(|question| (record.goal.id, question.n.0, question.ask.title()))
    });
    let questions: Vec<(GoalId, u32, String)> = questions.collect();
    facts.questions = questions
        .iter()
        .map(|(goal, question, text)| OpenQuestion {
            goal: goal.short(),
            question: *question,
            text: text.clone(),
        })
        .collect();
    let size = shown_bytes(facts.bytes);
    let mut rows = vec![Row::new(Mark::Good, "state", format!("{} · {size}", state.home.root().display()))];
    rows.push(Row::new(Mark::Plain, "goals", goals_text(&facts.goals)));
    rows.extend(left_rows(&left));
    rows.extend(question_rows(&questions));
    let (goals, bytes) = checkouts_size(&state.home);
    facts.checkouts = CheckoutFacts { goals, bytes };
    rows.extend(checkout_row(&facts.checkouts));
    let (goals, bytes) = workspaces_size(&state.home);
    facts.workspaces = CheckoutFacts { goals, bytes };
    rows.extend((goals > 0).then(|| Row {
        more: Some((Action::RemoveLeftovers, "removes those whose work is merged")),
        ..Row::new(Mark::Plain, "workspaces", format!("{} in {goals}", shown_bytes(bytes)))
    }));
    rows
}

fn checkout_row(checkouts: &CheckoutFacts) -> Option<Row> {
    let size = shown_bytes(checkouts.bytes);
    let goals = if checkouts.goals == 1 { "1 goal".to_owned() } else { format!("{} goals", checkouts.goals) };
    let text = format!("{size} of packages and build output of {goals}, removed when a goal ends");
    (checkouts.goals > 0).then(|| Row::new(Mark::Plain, "checkouts", text))
}

fn goals_text(goals: &BTreeMap<String, usize>) -> String {
    if goals.is_empty() {
        return "none".to_owned();
    }
    goals.iter().map(|(phase, count)| format!("{count} {phase}")).collect::<Vec<_>>().join(" · ")
}

/// A goal that no engine runs, with its title and its phase.
type Left = (GoalId, String, Phase);

fn left_rows(left: &[Left]) -> Vec<Row> {
    let row = |(goal, title, phase): &Left| {
        let text = format!("no engine is running {} ({}): {title}", goal.short(), phase.name());
        Row::new(Mark::Note, "left", text).fix(way_to_continue(*goal, phase))
    };
    named(left, row, "left", "goals that no engine is running", Action::List)
}

fn unreadable_rows(unreadable: &[UnreadableGoal]) -> Vec<Row> {
    let row =
        |goal: &UnreadableGoal| Row::new(Mark::Problem, "goal", goal.why.clone()).fix(Hint::mend(goal.id));
    named(unreadable, row, "goal", "goals that cannot be read", Action::List)
}

fn question_rows(questions: &[(GoalId, u32, String)]) -> Vec<Row> {
    let row = |(goal, number, text): &(GoalId, u32, String)| {
        let text = format!("{} asks: {text}", goal.short());
        Row::new(Mark::Note, "question", text).fix(Action::Answer(*goal, *number))
    };
    named(questions, row, "question", "open questions", Action::Questions)
}

/// A row for each, and one for those beyond the number that is named one by one.
fn named<T>(items: &[T], row: impl Fn(&T) -> Row, label: &str, what: &str, list: Action) -> Vec<Row> {
    let mut rows: Vec<Row> = items.iter().take(NAMED).map(row).collect();
    if let Some(more) = items.len().checked_sub(NAMED).filter(|more| *more > 0) {
        rows.push(Row::new(Mark::Note, label, format!("{more} more {what}")).fix(list));
    }
    rows
}

fn database_bytes(database: &Path) -> u64 {
    let log = PathBuf::from(format!("{}-wal", database.display()));
    [database, &log].into_iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

fn disk_rows(root: &Path, facts: &mut StoreFacts) -> Vec<Row> {
    let Some(there) = root.ancestors().find(|path| path.exists()) else { return Vec::new() };
    let mut rows = Vec::new();
    if access(there, Access::WRITE_OK).is_err() {
        let fix = format!(
            "make it writable for you, or set TOWLINE_HOME to another directory than {}",
            root.display()
        );
        rows.push(Row::new(Mark::Problem, "state", format!("{} is not writable", there.display())).fix(fix));
    }
    facts.free_bytes = statvfs(there).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    rows.extend(facts.free_bytes.and_then(|free| space_row(free, there)));
    rows
}

fn space_row(free: u64, place: &Path) -> Option<Row> {
    (free < LOW_SPACE).then(|| {
        let text = format!("only {} are free on the disk of {}", shown_bytes(free), place.display());
        Row::new(Mark::Problem, "space", text)
            .fix("free some space, or set TOWLINE_HOME to a directory on another disk")
    })
}

fn shown_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_space_is_a_problem_with_a_fix_and_enough_is_not_spoken_of() {
        assert_eq!(space_row(LOW_SPACE, Path::new("/s")), None);
        let row = space_row(512_000_000, Path::new("/s")).expect("a row");
        assert_eq!(
            (row.mark, row.text.as_str()),
            (Mark::Problem, "only 512.0 MB are free on the disk of /s")
        );
        assert!(row.fix.is_some());
    }

    #[test]
    fn checkouts_are_counted_where_there_are_any() {
        assert_eq!(checkout_row(&CheckoutFacts::default()), None);
        let row = checkout_row(&CheckoutFacts { goals: 2, bytes: 3_000_000 }).expect("a row");
        let text = "3.0 MB of packages and build output of 2 goals, removed when a goal ends";
        assert_eq!((row.mark, row.text.as_str()), (Mark::Plain, text));
    }

    #[test]
    fn a_long_list_is_cut_and_names_the_command_for_the_rest() {
        let goal = |n: u128| GoalId::from_uuid(uuid::Uuid::from_u128(n));
        let goals: Vec<Left> = (0..7).map(|n| (goal(n), "t".to_owned(), Phase::Queued)).collect();
        let rows = left_rows(&goals);
        let last = Row::new(Mark::Note, "left", "2 more goals that no engine is running").fix(Action::List);
        assert_eq!((rows.len(), rows.last()), (NAMED + 1, Some(&last)));
        assert_eq!(rows[0].fix, Some(Action::Continue(goal(0)).into()));
        assert_eq!(left_rows(&goals[..NAMED]).len(), NAMED);
    }
}
