//! A goal's state as rows, so that an append writes what it changes and not the whole history.
//!
//! Each attempt, question and message is a subtree of the state, and so is the rest of it. What is long inside a subtree, such as
//! a verdict, has a row of its own below it. A row is written when its text differs from what is stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::Value;
use towline_core::{GoalId, GoalState};

use super::failure::Failure;
use super::reads::text;
use super::text::{from_json, to_json};

/// The path of the state without its lists. It sorts before every other path.
const ROOT: &str = ".";

/// The longest JSON that stays in the row around it, in bytes.
const INLINE: usize = 256;

/// What is being read or written, for errors.
const STATE: &str = "the state";

/// How many states are remembered at most.
const REMEMBERED: usize = 256;

/// The states that this program wrote last, by goal: what equals them does not have to be compared with rows.
#[derive(Default)]
pub(super) struct Written(Mutex<HashMap<GoalId, (i64, Arc<GoalState>)>>);

impl Written {
    /// The state of a goal, if it is the one that has this revision.
    pub(super) fn at(&self, goal: GoalId, revision: i64) -> Option<Arc<GoalState>> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(&goal).filter(|(known, _)| *known == revision).map(|(_, state)| Arc::clone(state))
    }

    /// Remembers what is being written. A write that is undone leaves a revision that no row has.
    pub(super) fn remember(&self, goal: GoalId, revision: i64, state: &Arc<GoalState>) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if states.len() >= REMEMBERED && !states.contains_key(&goal) {
            states.clear();
        }
        states.insert(goal, (revision, Arc::clone(state)));
    }

    /// Drops the state of a goal that is not moved here any more.
    pub(super) fn forget(&self, goal: GoalId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&goal);
    }
}

/// A state that is to be written, and the JSON of all but its lists.
pub(super) struct SplitState {
    pub(super) state: Arc<GoalState>,
    root: Value,
}

impl SplitState {
    pub(super) fn new(mut state: GoalState) -> Result<Self, Failure> {
        let attempts = std::mem::take(&mut state.attempts);
        let questions = std::mem::take(&mut state.questions);
        let messages = std::mem::take(&mut state.messages);
        let root = to_value(&state)?;
        let state = Arc::new(GoalState { attempts, questions, messages, ..state });
        Ok(Self { state, root })
    }

    /// Brings the rows in line with the state. Items that are as in `before`, which is stored, are left alone.
    pub(super) fn write(
        &self,
        connection: &Connection,
        goal: &str,
        before: Option<&GoalState>,
    ) -> Result<(), Failure> {
        let rows = Rows { connection, goal };
        rows.write_subtree(ROOT, self.root.clone())?;
        let state = &self.state;
        rows.write_list("attempts", &state.attempts, before.map(|before| &*before.attempts))?;
        rows.write_list("questions", &state.questions, before.map(|before| &*before.questions))?;
        rows.write_list("messages", &state.messages, before.map(|before| &*before.messages))
    }
}

/// The parts of one goal.
struct Rows<'a> {
    connection: &'a Connection,
    goal: &'a str,
}

impl Rows<'_> {
    fn write_list<T: Serialize + PartialEq>(
        &self,
        list: &str,
        items: &[T],
        before: Option<&[T]>,
    ) -> Result<(), Failure> {
        for (index, item) in items.iter().enumerate() {
            if before.and_then(|before| before.get(index)) != Some(item) {
                self.write_subtree(&item_path(list, index), to_value(item)?)?;
            }
        }
        if before.is_none_or(|before| before.len() > items.len()) {
            self.connection
                .prepare_cached("DELETE FROM parts WHERE goal = ?1 AND path >= ?2 AND path < ?3")?
                .execute([self.goal, &item_path(list, items.len()), &after(list)])?;
        }
        Ok(())
    }

    /// Writes the rows of a subtree that differ from what is stored.
    fn write_subtree(&self, path: &str, value: Value) -> Result<(), Failure> {
        let mut wanted = BTreeMap::new();
        cut(path, value, &mut wanted)?;
        let mut statement = self
            .connection
            .prepare_cached("SELECT path, body FROM parts WHERE goal = ?1 AND path >= ?2 AND path < ?3")?;
        let mut rows = statement.query([self.goal, path, &after(path)])?;
        let mut superfluous = Vec::new();
        while let Some(row) = rows.next()? {
            let path = text(row, 0)?;
            match wanted.get(path) {
                // Equal, or damaged and about to be replaced.
                Some(body) if row.get_ref(1)?.as_str().is_ok_and(|stored| stored == body) => {
                    wanted.remove(path);
                }
                Some(_) => {}
                None => superfluous.push(path.to_owned()),
            }
        }
        for path in superfluous {
            self.connection
                .prepare_cached("DELETE FROM parts WHERE goal = ?1 AND path = ?2")?
                .execute([self.goal, &path])?;
        }
        for (path, body) in wanted {
            self.connection
                .prepare_cached(
                    "INSERT INTO parts (goal, path, body) VALUES (?1, ?2, ?3)
                     ON CONFLICT (goal, path) DO UPDATE SET body = excluded.body",
                )?
                .execute(params![self.goal, path, body])?;
        }
        Ok(())
    }
}

/// The state of a goal from its parts; none if it has no parts yet.
pub(super) fn load(connection: &Connection, goal: GoalId) -> Result<Option<GoalState>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT path, body FROM parts WHERE goal = ?1 ORDER BY path")?;
    let mut rows = statement.query([goal.to_string()])?;
    let mut state = None;
    while let Some(row) = rows.next()? {
        let path = text(row, 0)?;
        let body = row.get_ref(1)?.as_str().map_err(|why| Failure::unreadable(STATE, why))?;
        let value = from_json(STATE, body)?;
        match &mut state {
            None if path == ROOT => state = Some(value),
            None => return Err(Failure::unreadable(STATE, "its first part is missing")),
            Some(state) => place(state, path, value)
                .ok_or_else(|| Failure::unreadable(STATE, format!("the part {path} has no place")))?,
        }
    }
    state.map(serde_json::from_value).transpose().map_err(|why| Failure::unreadable(STATE, why))
}

/// Puts a part where its path leads; parts come after those that they belong to.
fn place(state: &mut Value, path: &str, value: Value) -> Option<()> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut around = state;
    let mut keys: Vec<&str> = path.split('/').collect();
    let last = keys.pop()?;
    for key in keys {
        around = match around {
            Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?)?,
            Value::Object(fields) => fields.get_mut(&unescaped(key))?,
            _ => return None,
        };
    }
    match around {
        Value::Array(items) if last.parse() == Ok(items.len()) => items.push(value),
        Value::Object(fields) => drop(fields.insert(unescaped(last), value)),
        _ => return None,
    }
    Some(())
}

/// Adds the rows of a value: itself, without what is long in it, and that below it.
fn cut(path: &str, mut value: Value, rows: &mut BTreeMap<String, String>) -> Result<(), Failure> {
    let mut whole = to_json(STATE, &value)?;
    if whole.len() > INLINE {
        match &mut value {
            Value::Object(fields) => {
                for (key, field) in std::mem::take(fields) {
                    if to_json(STATE, &field)?.len() > INLINE {
                        cut(&format!("{path}/{}", escaped(&key)), field, rows)?;
                    } else {
                        fields.insert(key, field);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in std::mem::take(items).into_iter().enumerate() {
                    cut(&item_path(path, index), item, rows)?;
                }
            }
            // A long text is a row as it is.
            _ => {}
        }
        whole = to_json(STATE, &value)?;
    }
    rows.insert(path.to_owned(), whole);
    Ok(())
}

/// The path of an item. Paths sort as their items do.
fn item_path(list: &str, index: usize) -> String {
    format!("{list}/{index:09}")
}

/// The end of the paths that begin with this one: `0` is the character after the slash.
fn after(path: &str) -> String {
    format!("{path}0")
}

/// A key as it is in a path.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

fn to_value<T: Serialize>(value: &T) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|why| Failure::unreadable(STATE, why))
}
