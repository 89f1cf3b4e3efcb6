//! `towline gc` removes what is no longer needed, and never work.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use support::{Desk, Ran};
use towline_core::Goal;
use towline_engine::{
    Clock, Dispatching, Engine, EngineSettings, Findings, Home, Resolved, Resolver, SpareReason, SystemClock,
    Unresolved, WasteKind, look,
};
use towline_process::SupervisorProgram;
use towline_store::{SqliteStore, Store};
use towline_testkit::hostile;

/// A goal that no store has heard of.
const UNKNOWN: &str = "01932f6e-7c00-7abc-8def-0123456789ab";
const DAY: Duration = Duration::from_secs(24 * 3_600);

fn desk() -> Desk {
    Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"))
}

fn run_a_goal(desk: &Desk, check: &str) -> String {
    let ran = desk.towline(["run", "fix it", "--check", check, "--budget", "attempts=1", "--json"]);
    ran.json()["id"].as_str().expect("an id").to_owned()
}

fn gc(desk: &Desk, more: &[&str]) -> Ran {
    let mut args = vec!["gc"];
    args.extend(more);
    let ran = desk.towline(args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// The kinds and the paths below the state directory of what was removed, or of what was left.
fn listed(desk: &Desk, report: &Value, list: &str) -> Vec<(String, PathBuf)> {
    let home = desk.home.towline().canonicalize().expect("a state directory");
    let entries = report[list].as_array().expect("a list").iter();
    entries
        .map(|entry| {
            let path = Path::new(entry["path"].as_str().expect("a path"));
            let below = path.strip_prefix(&home).expect("below the state directory").to_path_buf();
            (entry["kind"].as_str().unwrap_or("left").to_owned(), below)
        })
        .collect()
}

fn entry(kind: &str, path: &str) -> (String, PathBuf) {
    (kind.to_owned(), PathBuf::from(path))
}

fn make_old(path: &Path, age: Duration) {
    let file = File::open(path).expect("a file");
    #[expect(clippy::disallowed_methods, reason = "the age of a file is a matter of wall time")]
    let then = SystemTime::now() - age;
    file.set_modified(then).expect("an older file");
}

#[test]
fn workspaces_of_merged_goals_go_and_all_others_stay_with_the_reason() {
    let desk = desk();
    let merged = run_a_goal(&desk, "true");
    let failed = run_a_goal(&desk, "false");
    let unmerged = run_a_goal(&desk, "test -e fix.txt");
    assert_eq!(desk.towline(["merge", &merged]).code, Some(0));
    let workspace = desk.show(&unmerged)["workspace"].as_str().expect("a workspace").to_owned();
    fs::write(Path::new(&workspace).join("more.txt"), "not merged\n").expect("written");

    let branch = desk.show(&merged)["branch"].as_str().expect("a branch").to_owned();
    let named = gc(&desk, &["--dry-run"]).stdout;
    assert!(named.contains(&format!("and branch {branch}")), "{named}");
    let dry = gc(&desk, &["--dry-run", "--json"]).json();
    let expected = [entry("workspace", &format!("workspaces/{merged}"))];
    assert_eq!(
        (listed(&desk, &dry, "removed"), &dry["removed"][0]["branch"]),
        (expected.to_vec(), &json!(branch))
    );
    assert!(desk.home.towline().join(format!("workspaces/{merged}")).exists(), "nothing was changed");

    let cleared = gc(&desk, &["--json"]).json();
    assert_eq!(listed(&desk, &cleared, "removed"), expected);
    assert!(cleared["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{cleared}");
    let left =
        [entry("left", &format!("workspaces/{unmerged}")), entry("left", &format!("workspaces/{failed}"))];
    assert_eq!(listed(&desk, &cleared, "kept"), left);
    let why = |at: usize| cleared["kept"][at]["why"].as_str().expect("a reason").to_owned();
    assert!(why(0).contains("in none of your branches"), "{}", why(0));
    assert!(why(1).contains("towline retry"), "{}", why(1));
    assert!(!desk.home.towline().join(format!("workspaces/{merged}")).exists());
    assert!(!desk.project.git(["branch", "--list"]).contains(&merged[28..]));
    assert_eq!(desk.towline(["ls", "--json"]).json().as_array().map(Vec::len), Some(3), "goals stay");
    assert_eq!(desk.towline(["diff", &merged]).code, Some(0), "what it changed can still be seen");

    let again = gc(&desk, &[]);
    assert!(again.stdout.contains("nothing to remove"), "{}", again.stdout);
    assert_eq!(desk.towline(["rm", &merged]).code, Some(0));
}

#[test]
fn logs_are_removed_after_the_time_in_the_configuration() {
    let desk = desk();
    let goal = run_a_goal(&desk, "true");
    let logs = desk.home.towline().join(format!("attempts/{goal}"));
    gc(&desk, &[]);
    assert!(logs.exists(), "they are younger than 30 days");
    gc(&desk, &["--older-than", "1h"]);
    assert!(logs.exists(), "and than an hour");

    desk.project.write("towline.toml", "[retention]\nlogs = \"0s\"\n");
    let refused = desk.towline(["gc"]);
    assert!(logs.exists(), "a repository must not decide it");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("`retention.logs` cannot be set"), "{refused:?}");
    desk.project.write("towline.toml", "");

    let mut command = desk.command(["gc", "--json"]);
    command.env("TOWLINE_SET_retention__logs", "0s");
    let cleared = support::finish(command.spawn().expect("towline starts")).json();
    assert_eq!(listed(&desk, &cleared, "removed"), [entry("logs", &format!("attempts/{goal}"))]);
    assert!(!logs.exists());
    let raw = desk.towline(["logs", &goal, "--raw"]);
    assert_eq!(raw.code, Some(5), "{raw:?}");
    assert!(raw.stderr.contains("retention.logs"), "{}", raw.stderr);
    let replayed = desk.towline(["replay", &goal]);
    assert_eq!(replayed.code, Some(5), "{replayed:?}");
    assert!(replayed.stderr.contains("the raw logs of attempt 1 were removed"), "{}", replayed.stderr);
    assert!(desk.towline(["logs", &goal]).stdout.contains("✓ done"), "the story is still there");
    assert_eq!(desk.towline(["verify", &goal]).code, Some(0));
}

/// Nothing starts for any goal.
struct NoProject;

impl Resolver for NoProject {
    fn resolve(&self, _goal: &Goal) -> Result<Resolved, Unresolved> {
        Ok(Resolved::default())
    }
}

/// An engine of this process on the state directory, beside those of the program.
fn engine_beside(home: &Home, store: &Arc<dyn Store>) -> Engine {
    let settings = EngineSettings {
        home: home.clone(),
        store: Arc::clone(store),
        clock: Arc::new(SystemClock),
        supervisor: SupervisorProgram { path: PathBuf::from("none"), args: Vec::new(), shown: None },
        resolver: Arc::new(NoProject),
        dispatch: Dispatching::Given { slots: 1 },
    };
    Engine::open(settings).expect("an engine")
}

/// Why nothing of the findings was removed.
fn reason(cleared: &Findings) -> &SpareReason {
    assert_eq!(cleared.waste, []);
    let logs = cleared.spared.iter().find(|spared| spared.path.to_string_lossy().contains("attempts"));
    &logs.expect("the logs are among what stays").why
}

#[test]
fn logs_of_a_goal_that_went_on_after_the_look_stay() {
    let desk = desk();
    let goal = run_a_goal(&desk, "false");
    let home = Home::open(&desk.home.towline()).expect("a state directory");
    let logs = desk.home.towline().join(format!("attempts/{goal}/1"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&home.database()).expect("a store"));
        let now = SystemClock.now();
        let found = async || look(&home, &store, now, Duration::ZERO, |_, _| {}).await.expect("a look");
        let (first, second) = (found().await, found().await);
        assert_eq!(first.waste.iter().map(|waste| waste.kind).collect::<Vec<_>>(), [WasteKind::Logs]);

        let (holder, clearer) = (engine_beside(&home, &store), engine_beside(&home, &store));
        let held = holder.hold(goal.parse().expect("an id")).await.expect("no engine runs it");
        assert_eq!(reason(&clearer.remove_waste(first).await), &SpareReason::Busy);
        held.give_back().await;
        let retried = desk.towline(["retry", &goal, "--budget", "attempts=+1"]);
        assert_eq!(retried.code, Some(3), "{retried:?}");
        assert_eq!(reason(&clearer.remove_waste(second).await), &SpareReason::JustEnded);
        holder.close().await;
        clearer.close().await;
    });
    assert!(logs.exists());
}

#[test]
fn what_belongs_to_nobody_goes_and_files_that_may_be_work_do_not() {
    let desk = desk();
    run_a_goal(&desk, "true");
    let home = desk.home.towline();
    for (path, text) in [
        (format!("attempts/{UNKNOWN}/1/stdout.log"), "left\n"),
        (format!("verify/{UNKNOWN}/file"), "left\n"),
        (format!("workspaces/{UNKNOWN}/file"), "who knows\n"),
        ("engines/gone.sock".to_owned(), ""),
        ("engines/dead.lock".to_owned(), ""),
    ] {
        let path = home.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    let cleared = gc(&desk, &["--json"]).json();
    let mut removed = listed(&desk, &cleared, "removed");
    removed.sort();
    let expected = [
        entry("engine", "engines/dead.lock"),
        entry("engine", "engines/gone.sock"),
        entry("orphan", &format!("attempts/{UNKNOWN}")),
        entry("orphan", &format!("verify/{UNKNOWN}")),
    ];
    assert_eq!(removed, expected);
    assert!(home.join(format!("workspaces/{UNKNOWN}/file")).exists());
    assert!(
        cleared["kept"].as_array().expect("a list").iter().any(|left| left["goal"] == UNKNOWN),
        "{cleared}"
    );
    for path in ["attempts", "verify"] {
        assert!(!home.join(path).join(UNKNOWN).exists(), "{path}");
    }
}

#[test]
fn conversations_go_when_they_are_old_and_nobody_has_them() {
    let desk = desk();
    run_a_goal(&desk, "true");
    let folder = desk.home.towline().join("sessions");
    fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str| folder.join(format!("{name}.jsonl"));
    for name in ["old", "young", "open"] {
        fs::write(file(name), "{}\n").expect("written");
    }
    make_old(&file("old"), 31 * DAY);
    make_old(&file("open"), 31 * DAY);
    let open = File::open(file("open")).expect("a file");
    open.lock().expect("nobody else has it");
    gc(&desk, &[]);
    let left = ["old", "young", "open"].map(|name| file(name).exists());
    assert_eq!(left, [false, true, true]);
}

#[test]
fn without_any_state_there_is_nothing_to_do_and_nothing_is_made() {
    let desk = Desk::new();
    let ran = gc(&desk, &[]);
    assert!(ran.stdout.contains("nothing to remove"), "{}", ran.stdout);
    assert!(!desk.home.towline().join("towline.db").exists());
    assert_eq!(desk.towline(["gc", "--older-than", "soon"]).code, Some(2));
}
