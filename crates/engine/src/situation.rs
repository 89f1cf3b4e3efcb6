//! What decides who is next in a pool, besides the goals. The scheduler and whoever shows why a goal waits read it here, so that they
//! cannot disagree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use towline_core::{AgentName, HoldReason, Lane, MicroUsd, Purse, PurseScope, Situation};
use towline_store::{PoolView, SpentByProject, Store, StoreError};

use crate::home::Home;
use crate::rules::{Limits, PoolRules, ProjectRules};

/// Everything that decides which of these goals start, besides the goals.
pub async fn situation(
    store: &dyn Store,
    home: &Home,
    rules: &Arc<dyn PoolRules>,
    limits: &Limits,
    view: &PoolView,
) -> Result<Situation, StoreError> {
    let mut situation = Situation { caps: limits.caps.clone(), ..Situation::default() };
    let mut budgets = BTreeMap::new();
    let looks = projects(view).into_iter().map(|(project, agents)| rules_of(rules, project, agents));
    // All at once: those that do not answer are waited for together.
    for (project, ProjectRules { problem, budget, without_credentials }) in join_all(looks).await {
        let lacking = without_credentials.into_iter();
        situation
            .without_credentials
            .extend(lacking.map(|(agent, missing)| ((project.clone(), agent), missing)));
        situation.broken.extend(problem.map(|problem| (project.clone(), problem)));
        budgets.extend(budget.map(|budget| (project, budget)));
    }
    situation.purses = purses(store, limits, budgets).await?;
    if !situation.purses.is_empty() {
        situation.usual_cost = store.usual_costs().await?;
    }
    situation.accounts = store.accounts().await?;
    let directory = home.root().to_string_lossy();
    let (root, needed) = (home.root().to_owned(), limits.free_space);
    let space = rules.reads().read(&directory, move || too_little_space(&root, needed));
    // What is not known closes nothing.
    situation.closed = space.await.ok().flatten();
    Ok(situation)
}

/// What holds for a project. One that does not answer is one whose configuration cannot be used.
async fn rules_of(
    rules: &Arc<dyn PoolRules>,
    project: String,
    agents: BTreeSet<AgentName>,
) -> (String, ProjectRules) {
    let (reading, of) = (Arc::clone(rules), project.clone());
    let read = rules.reads().read(&project, move || reading.project(&of, &agents)).await;
    let found = read.unwrap_or_else(|why| ProjectRules {
        problem: Some(format!("cannot read {project}: {why}")),
        budget: rules.last_budget(&project),
        ..ProjectRules::default()
    });
    (project, found)
}

/// The projects of these goals, each with the agents that its goals may use: the configuration of each is read once.
fn projects(view: &PoolView) -> BTreeMap<String, BTreeSet<AgentName>> {
    let mut projects: BTreeMap<String, BTreeSet<AgentName>> = BTreeMap::new();
    for Lane { project, agent, others, .. } in view.queued.iter().chain(&view.working).map(|goal| &goal.lane)
    {
        let agents = projects.entry(project.clone()).or_default();
        agents.extend([agent].into_iter().chain(others.iter().map(|(other, _)| other)).cloned());
    }
    projects
}

/// The money that goals share, with what is spent of it.
async fn purses(
    store: &dyn Store,
    limits: &Limits,
    projects: BTreeMap<String, MicroUsd>,
) -> Result<Vec<Purse>, StoreError> {
    let is_daily = limits.day.is_some() || !projects.is_empty();
    let today = if is_daily { store.spent(Some(limits.today)).await? } else { SpentByProject::default() };
    let renews_at = Some(limits.today.1);
    let mut purses = Vec::new();
    if let Some(limit) = limits.day {
        purses.push(Purse { scope: PurseScope::Day, limit, spent: today.in_all(), renews_at });
    }
    if let Some(limit) = limits.pool {
        let spent = store.spent(None).await?.in_all();
        purses.push(Purse { scope: PurseScope::Pool, limit, spent, renews_at: None });
    }
    purses.extend(projects.into_iter().map(|(project, limit)| {
        let spent = today.of(&project);
        Purse { scope: PurseScope::Project { project }, limit, spent, renews_at }
    }));
    Ok(purses)
}

/// Why nothing can start on this disk, if so.
fn too_little_space(path: &Path, needed: u64) -> Option<HoldReason> {
    let about = rustix::fs::statvfs(path).ok()?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    (free < needed).then_some(HoldReason::Disk { free, needed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_too_little_space_holds_all_goals() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        assert_eq!(too_little_space(dir.path(), 0), None);
        let held = too_little_space(dir.path(), u64::MAX);
        assert!(matches!(held, Some(HoldReason::Disk { needed: u64::MAX, .. })), "{held:?}");
        assert_eq!(too_little_space(&dir.path().join("gone"), u64::MAX), None, "nothing is known");
    }
}
