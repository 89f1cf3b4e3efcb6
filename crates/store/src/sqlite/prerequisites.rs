//! What goals of the queue wait for: other goals, and what they must have come to.

use rusqlite::{Connection, params};
use towline_core::{Goal, GoalId, Need, Prerequisite};

use super::failure::Failure;
use super::pool::goal_id;
use super::reads::{self, text};
use crate::{StoreError, Unmet};

pub(super) const UNMET: &str = "SELECT needs, need, summaries.phase
    FROM prerequisites LEFT JOIN summaries ON summaries.goal = needs
    WHERE prerequisites.goal = ?1 AND met IS NOT 1 ORDER BY place";

pub(super) fn unmet(connection: &Connection, goal: GoalId) -> Result<Vec<Unmet>, Failure> {
    reads::must_exist(connection, goal)?;
    prerequisites(connection, goal)
}

/// The prerequisites of a goal that are not met.
pub(super) fn prerequisites(connection: &Connection, goal: GoalId) -> Result<Vec<Unmet>, Failure> {
    let mut statement = connection.prepare_cached(UNMET)?;
    let mut rows = statement.query([goal.to_string()])?;
    let mut unmet = Vec::new();
    while let Some(row) = rows.next()? {
        let need = Need::named(text(row, 1)?)
            .ok_or_else(|| Failure::unreadable("a prerequisite", "what it needs is unknown"))?;
        let prerequisite = Prerequisite { goal: goal_id(text(row, 0)?)?, need };
        // What is damaged in the row of another goal is that goal's.
        let phase = row.get_ref(2)?.as_bytes_or_null().ok().flatten();
        let phase = phase.map(|phase| String::from_utf8_lossy(phase).into_owned());
        unmet.push(Unmet { prerequisite, phase });
    }
    Ok(unmet)
}

/// Records what a new goal needs.
pub(super) fn add(connection: &Connection, goal: &Goal) -> Result<(), Failure> {
    let id = goal.id.to_string();
    for (place, prerequisite) in goal.scheduling.after.iter().enumerate() {
        let is_met = is_met(connection, *prerequisite)?;
        connection
            .prepare_cached(
                "INSERT INTO prerequisites (goal, place, needs, need, met) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![id, place, prerequisite.goal.to_string(), prerequisite.need.name(), is_met])?;
    }
    Ok(())
}

fn is_met(connection: &Connection, prerequisite: Prerequisite) -> Result<bool, Failure> {
    match reads::load(connection, prerequisite.goal) {
        Ok(needed) => Ok(prerequisite.need.is_met(&needed.state)),
        Err(Failure::Refused(StoreError::NotFound(_)) | Failure::Unreadable { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Frees goals that need this one, or holds them again.
pub(super) fn update_dependants(
    connection: &Connection,
    id: &str,
    is_met: impl Fn(Need) -> bool,
) -> Result<(), Failure> {
    let mut changed = 0;
    for need in Need::ALL {
        changed += connection
            .prepare_cached(
                "UPDATE prerequisites SET met = ?3 WHERE needs = ?1 AND need = ?2 AND met IS NOT ?3",
            )?
            .execute(params![id, need.name(), is_met(need)])?;
    }
    if changed > 0 {
        connection
            .prepare_cached(
                "UPDATE pool SET unmet = (SELECT COUNT(*) FROM prerequisites
                     WHERE prerequisites.goal = pool.goal AND met IS NOT 1)
                 WHERE goal IN (SELECT goal FROM prerequisites WHERE needs = ?1)",
            )?
            .execute([id])?;
    }
    Ok(())
}

/// Removes what a goal needs. Goals that need it wait for it from now on.
pub(super) fn remove(connection: &Connection, id: &str) -> Result<(), Failure> {
    connection.prepare_cached("DELETE FROM prerequisites WHERE goal = ?1")?.execute([id])?;
    update_dependants(connection, id, |_| false)
}
