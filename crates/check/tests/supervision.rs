//! Nothing that a check starts outlives it: not at its timeout, not at a stop, not after a crash.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::future::{pending, ready};
use std::time::Duration;

use common::{Bench, file_is_there, result};
use towline_check::{CheckError, Progress};
use towline_core::CheckResult;
use towline_process::Priority;
use towline_testkit::scratch::{Found, clean_command, processes_with};

/// A command that leaves a process of its own session behind that ignores every polite signal, and reports it with a
/// file once it does. The process has `marker` in its environment.
fn stubborn(bench: &Bench, marker: &str) -> String {
    let flag = bench.flag("up");
    let script = format!("trap \"\" INT TERM HUP; touch {}; while :; do sleep 60; done", flag.display());
    format!(
        "STUBBORN={marker} setsid sh -c '{script}' & while [ ! -e {} ]; do sleep 0.02; done",
        flag.display()
    )
}

/// Unique on this machine, unlike what the supervisor and other processes of the test have in their environment.
fn marker(bench: &Bench) -> String {
    let name = bench.project.path().parent().unwrap().file_name().unwrap();
    format!("marker-of-{}", name.to_str().unwrap())
}

#[tokio::test]
async fn at_the_timeout_the_whole_tree_is_ended_and_the_other_checks_still_run() {
    let bench = Bench::new(&[]);
    let marker = marker(&bench);
    let hangs = format!("{}; echo up; wait", stubborn(&bench, &marker));
    let mut bench = bench.with_checks(&[&hangs, "true"]);
    bench.goal.checks[0].timeout = Duration::from_secs(3);
    let mut results = bench.results().await;
    assert_eq!(processes_with(&marker), []);
    assert_eq!(results[0].exit_code, None, "{results:?}");
    let timed_out = CheckResult {
        met: false,
        exit_code: None,
        problem: Some("timed out after 3s".into()),
        ..result("1", 0, "up\n")
    };
    // What a shell reports about signals to its children differs from one to the other.
    results[0].evidence.truncate(3);
    assert_eq!(results, [timed_out, result("2", 0, "")]);
}

#[tokio::test]
async fn what_a_check_leaves_in_the_background_is_ended_with_it() {
    let bench = Bench::new(&[]);
    let marker = marker(&bench);
    let leaves = stubborn(&bench, &marker);
    let bench = bench.with_checks(&[&leaves]);
    assert_eq!(bench.results().await, [result("1", 0, "")]);
    assert_eq!(processes_with(&marker), []);
}

#[tokio::test]
async fn a_stop_in_mid_check_leaves_nothing() {
    let bench = Bench::new(&[]);
    let marker = marker(&bench);
    let hangs = format!("{}; wait", stubborn(&bench, &marker));
    let bench = bench.with_checks(&[&hangs, "touch $HOME/second"]);
    let stopped = bench.run(file_is_there(bench.flag("up")), |_| ()).await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
    assert_eq!(processes_with(&marker), []);
    assert!(!bench.flag("second").exists());
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_stop_in_mid_setup_leaves_nothing() {
    let bench = Bench::new(&[]);
    let marker = marker(&bench);
    let commands = [format!("{}; wait", stubborn(&bench, &marker))];
    let (logs, supervisor) = (bench.home.towline().join("setup"), bench.supervisor());
    let stop = file_is_there(bench.flag("up"));
    let stopped =
        towline_check::setup(&commands, bench.workspace(), &logs, &supervisor, &bench.given(), stop).await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
    assert_eq!(processes_with(&marker), []);
}

#[tokio::test]
async fn a_stop_that_came_before_runs_nothing() {
    let bench = Bench::new(&[]).with_checks(&["touch $HOME/ran"]);
    let stopped = bench.run(ready(()), |_| ()).await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
    assert!(!bench.flag("ran").exists());
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_shutdown_that_reaches_the_supervisor_first_is_no_failed_check() {
    let bench = Bench::new(&[]).with_checks(&["echo run >> $HOME/up; sleep 600"]);
    let shutdown = async {
        file_is_there(bench.flag("up")).await;
        let supervisor = towline_process::supervisor_process(&bench.run_dirs("1-1")[0]).unwrap().unwrap();
        let killed = clean_command("kill").args(["-TERM", &supervisor.pid.to_string()]).status();
        assert!(killed.unwrap().success());
        while supervisor.is_running() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = bench.run(shutdown, |_| ()).await;
    assert!(matches!(ended, Err(CheckError::Stopped)), "{ended:?}");
    assert_eq!(std::fs::read_to_string(bench.flag("up")).unwrap(), "run\n");
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_verdict_begun_again_ends_what_the_interrupted_one_left() {
    let bench = Bench::new(&[]);
    let marker = marker(&bench);
    let again = bench.flag("again");
    // Hangs the first time only.
    let hangs = format!("[ -e {} ] || {{ {}; wait; }}", again.display(), stubborn(&bench, &marker));
    let bench = bench.with_checks(&["true", &hangs]);
    tokio::select! {
        verdict = bench.run(pending(), |_| ()) => panic!("ended by itself: {verdict:?}"),
        () = file_is_there(bench.flag("up")) => {}
    }
    assert_ne!(processes_with(&marker), [], "what was dropped goes on under its supervisor");

    std::fs::write(&again, "").unwrap();
    // The check itself, run again, names the marker in its command.
    let is_left = |found: &Found| !found.command.contains(&hangs);
    let left = || processes_with(&marker).into_iter().filter(is_left).collect::<Vec<_>>();
    let reported = bench.run(pending(), |_| assert_eq!(left(), [])).await;
    assert!(reported.unwrap().met());
    bench.assert_no_checkout();
}

#[tokio::test]
async fn checks_of_low_priority_give_way_and_end_at_once() {
    let mut bench = Bench::new(&[]).with_checks(&["nice", "trap '' INT TERM; touch \"$FLAG\"; sleep 600"]);
    bench.priority = Priority::Low;
    bench.environment.insert("FLAG".into(), bench.flag("runs").display().to_string());
    let flag = bench.flag("runs");
    let mut first = None;
    let begun = std::cell::Cell::new(None);
    let stop = async {
        while !flag.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        begun.set(Some(std::time::Instant::now()));
    };
    let stopped = bench.run(stop, |progress| {
        if let Progress::Finished { result } = progress {
            first.get_or_insert(result);
        }
    });
    assert!(matches!(stopped.await, Err(CheckError::Stopped)));
    let took = begun.get().expect("it ran").elapsed();
    assert!(took < Duration::from_secs(2), "SIGTERM, which they ignore, has two seconds: {took:?}");
    assert_eq!(first.expect("a result").evidence, "19\n");
    bench.assert_no_checkout();
}

/// Setup commands that count how often they run, the second of which waits for `go`.
fn counted(bench: &Bench) -> Vec<String> {
    let [one, two, three, go] =
        ["one", "two", "three", "go"].map(|name| bench.flag(name).display().to_string());
    let waits = format!("echo run >> {two}; until test -e {go}; do sleep 0.02; done; test ! -e {go}.bad");
    vec![format!("echo run >> {one}"), waits, format!("echo run >> {three}")]
}

/// Begins the setup and leaves it in the middle, as an engine does that is killed.
async fn begin_setup(bench: &Bench, commands: &[String], logs: &std::path::Path) {
    let (supervisor, environment) = (bench.supervisor(), bench.given());
    tokio::select! {
        ended = towline_check::setup(commands, bench.workspace(), logs, &supervisor, &environment, pending()) => {
            panic!("ended by itself: {ended:?}")
        }
        () = file_is_there(bench.flag("two")) => {}
    }
}

fn runs(bench: &Bench) -> [usize; 3] {
    ["one", "two", "three"]
        .map(|name| std::fs::read_to_string(bench.flag(name)).map_or(0, |text| text.lines().count()))
}

#[tokio::test]
async fn a_setup_command_that_still_runs_is_adopted_and_nothing_is_run_twice() {
    for is_bad in [false, true] {
        let bench = Bench::new(&[]);
        let (commands, logs) = (counted(&bench), bench.home.towline().join("setup"));
        begin_setup(&bench, &commands, &logs).await;
        let (supervisor, environment) = (bench.supervisor(), bench.given());
        let again =
            towline_check::setup(&commands, bench.workspace(), &logs, &supervisor, &environment, pending());
        let go = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            if is_bad {
                std::fs::write(bench.flag("go.bad"), "").unwrap();
            }
            std::fs::write(bench.flag("go"), "").unwrap();
        };
        let (ended, ()) = tokio::join!(again, go);
        if is_bad {
            assert!(
                matches!(&ended, Err(CheckError::Setup { problem, .. }) if problem == "exit code 1"),
                "{ended:?}"
            );
            assert_eq!(runs(&bench), [1, 1, 0]);
        } else {
            ended.unwrap();
            assert_eq!(runs(&bench), [1, 1, 1]);
        }
    }
}

#[tokio::test]
async fn a_setup_command_that_lost_its_supervisor_runs_again_and_a_forged_end_counts_for_nothing() {
    let bench = Bench::new(&[]);
    let (commands, logs) = (counted(&bench), bench.home.towline().join("setup"));
    begin_setup(&bench, &commands, &logs).await;
    let dirs: Vec<_> = std::fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    let living = dirs.iter().find_map(|dir| Some((dir, towline_process::supervisor_process(dir).unwrap()?)));
    let (dir, living) = living.unwrap();
    let forged = r#"{"code":0,"signal":null,"spawn_error":null,"started_at_ms":1,"ended_at_ms":2,"stopped":null,
        "leftovers_killed":0,"stdout_bytes":0,"stderr_bytes":0}"#;
    std::fs::write(dir.join("exit.json"), forged).unwrap();
    let (supervisor, environment) = (bench.supervisor(), bench.given());
    let again =
        towline_check::setup(&commands, bench.workspace(), &logs, &supervisor, &environment, pending());
    let kill = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let killed = clean_command("kill").args(["-KILL", &living.pid.to_string()]).status();
        assert!(killed.unwrap().success());
        while runs(&bench)[1] < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        std::fs::write(bench.flag("go"), "").unwrap();
    };
    let (ended, ()) = tokio::join!(again, kill);
    ended.unwrap();
    assert_eq!(runs(&bench), [2, 2, 1]);
}

#[tokio::test]
async fn a_suspended_supervisor_holds_up_no_stop_of_a_setup() {
    let bench = Bench::new(&[]);
    let up = bench.flag("up");
    let commands = [format!("kill -STOP $PPID; touch {}; sleep 300", up.display())];
    let (logs, supervisor) = (bench.home.towline().join("setup"), bench.supervisor());
    let stopped = towline_check::setup(
        &commands,
        bench.workspace(),
        &logs,
        &supervisor,
        &bench.given(),
        file_is_there(up),
    )
    .await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
}
