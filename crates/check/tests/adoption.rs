//! A verdict whose process was killed while a check ran is resumed, if nobody could have tampered with it.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;

use common::{Bench, file_is_there};
use towline_check::{CheckError, Interrupted, Progress};
use towline_core::{Checkout, Reuse, Verdict, Visibility};
use towline_process::ProcessId;
use towline_testkit::scratch::clean_command;

/// Three commands that count how often they run. The second waits for `go`, after it has run `first` in its checkout.
fn commands(bench: &Bench, first: &str) -> [String; 3] {
    let [one, two, three, go] =
        ["one", "two", "three", "go"].map(|name| bench.flag(name).display().to_string());
    let waits = format!("{first}; echo run >> {two}; until test -e {go}; do sleep 0.02; done; echo waited");
    [format!("echo run >> {one}; echo first"), waits, format!("echo run >> {three}")]
}

/// These as checks.
fn counted(bench: Bench, first: &str) -> Bench {
    let commands = commands(&bench, first);
    bench.with_checks(&commands.each_ref().map(String::as_str))
}

/// These as setup commands, for one check.
fn counted_setup(bench: Bench, first: &str, check: &str) -> Bench {
    let commands = commands(&bench, first);
    let mut bench = bench.with_checks(&[check]);
    bench.goal.workspace.setup = commands.to_vec();
    bench
}

fn runs(bench: &Bench) -> [usize; 3] {
    ["one", "two", "three"]
        .map(|name| std::fs::read_to_string(bench.flag(name)).map_or(0, |text| text.lines().count()))
}

/// Begins the verdict and leaves it while the second command runs, as a process does that is killed. Gives what it had reported.
async fn begin(bench: &Bench) -> Interrupted {
    let mut reported = Vec::new();
    let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
    let run = bench.run(pending(), |progress| {
        if let Progress::Started { process: Some(_), .. } = progress {
            sender.send(()).unwrap();
        }
        reported.push(progress);
    });
    let second_runs = async {
        started.recv().await.unwrap();
        started.recv().await.unwrap();
        file_is_there(bench.flag("two")).await;
    };
    tokio::select! {
        verdict = run => panic!("ended by itself: {verdict:?}"),
        () = second_runs => {}
    }
    let mut results = Vec::new();
    let mut process = None;
    for progress in reported {
        match progress {
            Progress::Finished { result } if result.name != "setup" => results.push(result),
            Progress::Started { process: begun, .. } => process = begun,
            _ => {}
        }
    }
    Interrupted { results, process: process.unwrap(), started_at_ms: now_ms() }
}

#[expect(clippy::disallowed_methods, reason = "the test is the edge")]
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap()
}

/// Resumes the verdict, and lets the second command end once it is waited for or has begun again.
async fn go_on(bench: &Bench) -> (Result<Verdict, CheckError>, Vec<String>) {
    let mut adopted = Vec::new();
    let was = runs(bench)[1];
    let (sender, mut is_adopted) = tokio::sync::mpsc::unbounded_channel();
    let verdict = bench.run(pending(), |progress| {
        if let Progress::Adopted { name } = progress {
            adopted.push(name);
            sender.send(()).unwrap();
        }
    });
    let go = async {
        tokio::select! {
            Some(()) = is_adopted.recv() => {}
            () = async { while runs(bench)[1] == was { tokio::time::sleep(Duration::from_millis(5)).await } } => {}
        }
        std::fs::write(bench.flag("go"), "").unwrap();
    };
    let (verdict, ()) = tokio::join!(verdict, go);
    (verdict, adopted)
}

#[tokio::test]
async fn a_check_that_still_runs_is_adopted_and_nothing_is_run_twice() {
    let mut bench = counted(Bench::new(&[("tests/one.txt", "1\n")]), "echo more > tests/cache");
    bench.goal.workspace.setup = vec!["echo ready > ready".into()];
    bench.goal.protect = vec!["tests/**".into()];
    bench.protect = bench.goal.protect.clone();
    bench.work("file", "work\n");
    bench.interrupted = Some(begin(&bench).await);
    // The time before it was adopted counts, too.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (verdict, adopted) = go_on(&bench).await;
    let verdict = verdict.unwrap();
    assert!(verdict.met(), "{verdict:?}");
    assert_eq!((runs(&bench), adopted), ([1, 1, 1], vec!["2".to_owned()]));
    let evidence: Vec<&str> = verdict.checks.iter().map(|check| check.evidence.as_str()).collect();
    assert_eq!(evidence, ["first\n", "waited\n", ""]);
    assert!(verdict.checks[1].took >= Duration::from_millis(300), "{verdict:?}");
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_hidden_check_that_still_runs_is_adopted_in_the_checkout_of_hidden_checks() {
    let mut bench = counted(Bench::new(&[]), "touch here");
    bench.goal.checks[2] = common::check("3", "test -e here");
    for check in &mut bench.goal.checks[1..] {
        check.hidden = Visibility::BestEffort;
    }
    bench.interrupted = Some(begin(&bench).await);
    let (verdict, adopted) = go_on(&bench).await;
    let verdict = verdict.unwrap();
    assert!(verdict.met() && verdict.checks.len() == 3, "{verdict:?}");
    assert_eq!((runs(&bench), adopted), ([1, 1, 0], vec!["2".to_owned()]));
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_setup_command_that_still_runs_is_adopted_and_nothing_is_run_twice() {
    let bench = Bench::new(&[("tests/one.txt", "1\n")]);
    let mut bench = counted_setup(bench, "echo two > built", "cat built .env tests/one.txt");
    bench.goal.protect = vec!["tests/**".into()];
    bench.protect = bench.goal.protect.clone();
    bench.project.write(".env", "KEY=1\n");
    bench.goal.workspace.copy = vec![".env".into()];
    bench.work("file", "work\n");
    bench.interrupted = Some(begin(&bench).await);
    let (verdict, adopted) = go_on(&bench).await;
    let verdict = verdict.unwrap();
    assert!(verdict.met(), "{verdict:?}");
    assert_eq!((runs(&bench), adopted), ([1, 1, 1], vec!["setup".to_owned()]));
    assert_eq!(verdict.checks.len(), 1);
    assert_eq!(verdict.checks[0].evidence, "two\nKEY=1\n1\n");
    bench.assert_no_checkout();
}

#[tokio::test]
async fn an_adopted_setup_command_that_fails_is_the_verdict() {
    let mut bench = counted_setup(Bench::new(&[]), "true", "true");
    bench.goal.workspace.setup[1].push_str("; echo broken; exit 3");
    bench.interrupted = Some(begin(&bench).await);
    let verdict = go_on(&bench).await.0.unwrap();
    let [failed] = &verdict.checks[..] else { panic!("{verdict:?}") };
    assert_eq!((failed.name.as_str(), failed.met, failed.exit_code), ("setup", false, Some(3)));
    assert_eq!(failed.evidence, "waited\nbroken\n");
    assert_eq!(runs(&bench), [1, 1, 0]);
}

#[tokio::test]
async fn an_adopted_setup_that_changes_what_is_judged_makes_the_verdict_run_again_and_red() {
    for weaken in ["echo weaker > tests/one.txt", "rm tests/one.txt", "echo weaker > .env"] {
        let mut bench = counted_setup(Bench::new(&[("tests/one.txt", "1\n")]), weaken, "true");
        bench.goal.protect = vec!["tests/**".into()];
        bench.protect = bench.goal.protect.clone();
        bench.project.write(".env", "KEY=1\n");
        bench.goal.workspace.copy = vec![".env".into()];
        bench.interrupted = Some(begin(&bench).await);
        let verdict = go_on(&bench).await.0.unwrap();
        let failed = verdict.checks.iter().find(|check| !check.met).unwrap();
        assert_eq!(failed.name, "integrity", "{weaken}: {verdict:?}");
        assert_eq!(runs(&bench), [2, 2, 2], "{weaken}");
    }
}

#[tokio::test]
async fn a_setup_command_whose_supervisor_is_killed_or_was_not_recorded_makes_the_verdict_run_again() {
    for is_killed in [false, true] {
        let mut bench = counted_setup(Bench::new(&[]), "true", "true");
        let mut interrupted = begin(&bench).await;
        if is_killed {
            let pid = interrupted.process.pid.to_string();
            assert!(clean_command("kill").args(["-KILL", &pid]).status().unwrap().success());
        } else {
            interrupted.process.start_time += 1;
        }
        bench.interrupted = Some(interrupted);
        let (verdict, adopted) = go_on(&bench).await;
        assert!(verdict.unwrap().met());
        assert_eq!((runs(&bench), adopted), ([2, 2, 1], vec![]), "killed: {is_killed}");
    }
}

#[tokio::test]
async fn files_that_were_copied_are_still_known_as_such() {
    for is_changed in [false, true] {
        let mut bench = counted(Bench::new(&[("a", "1\n")]), "test -e .env");
        bench.project.write(".env", "KEY=1\n");
        bench.goal.workspace.copy = vec!["./.env".into()];
        bench.interrupted = Some(begin(&bench).await);
        if is_changed {
            bench.project.write(".env", "KEY=2\n");
        }
        bench.goal.checks[2] = common::check(
            "3",
            &format!("test -e .env; {}", {
                let three = bench.flag("three");
                format!("echo run >> {}", three.display())
            }),
        );
        let (verdict, _) = go_on(&bench).await;
        assert!(verdict.unwrap().met());
        assert_eq!(runs(&bench), if is_changed { [2, 2, 1] } else { [1, 1, 1] });
    }
}

#[tokio::test]
async fn a_copy_that_was_changed_together_with_its_source_makes_the_verdict_run_again() {
    for is_setup in [false, true] {
        let bench = Bench::new(&[("a", "1\n")]);
        let source = bench.project.path().join(".env").display().to_string();
        let change = format!("echo KEY=2 > .env; echo KEY=2 > {source}");
        let mut bench = match is_setup {
            true => counted_setup(bench, &change, "true"),
            false => counted(bench, &change),
        };
        bench.project.write(".env", "KEY=1\n");
        bench.goal.workspace.copy = vec![".env".into()];
        bench.interrupted = Some(begin(&bench).await);
        let (_, adopted) = go_on(&bench).await;
        assert_eq!((runs(&bench)[1], adopted), (2, vec![]), "in setup: {is_setup}");
    }
}

#[tokio::test]
async fn a_warm_verdict_is_still_confirmed_in_a_clean_checkout() {
    let mut bench = counted(Bench::new(&[("a", "1\n")]), "true");
    bench.goal.workspace.warm = vec!["target".into()];
    bench.reuse = Reuse::Fresh;
    // A red verdict leaves its checkout.
    let checks = std::mem::replace(&mut bench.goal.checks, vec![common::check("red", "mkdir target; false")]);
    assert!(!bench.verdict().await.met());
    bench.goal.checks = checks;
    bench.reuse = Reuse::Warm;
    bench.interrupted = Some(begin(&bench).await);
    assert_eq!(bench.interrupted.as_ref().unwrap().process.checkout, Checkout::Warm);
    let (verdict, adopted) = go_on(&bench).await;
    let verdict = verdict.unwrap();
    assert_eq!((verdict.met(), verdict.checkout), (true, Checkout::WarmThenClean));
    assert_eq!((runs(&bench), adopted.len()), ([2, 2, 2], 1), "each once in each checkout");
    bench.assert_no_checkout();
}

#[tokio::test]
async fn the_timeout_of_a_check_runs_since_it_was_started() {
    let mut bench = counted(Bench::new(&[]), "true");
    bench.goal.checks[1].timeout = Duration::from_secs(50);
    let mut interrupted = begin(&bench).await;
    interrupted.started_at_ms -= 49_500;
    bench.interrupted = Some(interrupted);
    let begun = std::time::Instant::now();
    let verdict = bench.run(pending(), |_| ()).await.unwrap();
    assert_eq!(verdict.checks[1].problem.as_deref(), Some("timed out after 50s"), "{verdict:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(runs(&bench), [1, 1, 1]);
}

#[tokio::test]
async fn a_socket_of_another_process_makes_the_verdict_run_again() {
    let mut bench = counted(Bench::new(&[]), "true");
    bench.interrupted = Some(begin(&bench).await);
    let (dir, _) = supervisor(&bench);
    std::fs::remove_file(dir.join("shim.sock")).unwrap();
    let _posing = std::os::unix::net::UnixListener::bind(dir.join("shim.sock")).unwrap();
    let (verdict, _) = go_on(&bench).await;
    assert!(verdict.unwrap().met());
    assert_eq!(runs(&bench), [2, 2, 1]);
}

#[tokio::test]
async fn a_stop_ends_an_adopted_check() {
    let mut bench = counted(Bench::new(&[]), "true");
    bench.interrupted = Some(begin(&bench).await);
    let (sender, is_adopted) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let stop = async { is_adopted.await.unwrap() };
    let stopped = bench.run(stop, |progress| {
        if let Progress::Adopted { .. } = progress {
            sender.take().unwrap().send(()).unwrap();
        }
    });
    let stopped = stopped.await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
    assert_eq!(runs(&bench), [1, 1, 0]);
    bench.assert_no_checkout();
}

/// Whoever supervises the run of the second check.
fn supervisor(bench: &Bench) -> (PathBuf, ProcessId) {
    let dir = bench.run_dirs("2-2").remove(0);
    let supervisor = towline_process::supervisor_process(&dir).unwrap().unwrap();
    (dir, supervisor)
}

#[tokio::test]
async fn a_run_of_another_supervisor_than_the_recorded_one_counts_for_nothing() {
    let mut bench = counted(Bench::new(&[]), "true");
    let mut interrupted = begin(&bench).await;
    interrupted.process.start_time += 1;
    bench.interrupted = Some(interrupted);
    let (verdict, adopted) = go_on(&bench).await;
    assert!(verdict.unwrap().met());
    assert_eq!((runs(&bench), adopted), ([2, 2, 1], vec![]));
}

#[tokio::test]
async fn what_was_begun_on_another_commit_or_for_another_check_is_not_adopted() {
    for change in [
        |bench: &mut Bench| bench.work("file", "other work\n"),
        |bench: &mut Bench| bench.goal.checks[1].name = "another".into(),
        |bench: &mut Bench| bench.interrupted.as_mut().unwrap().results.clear(),
        |bench: &mut Bench| bench.interrupted.as_mut().unwrap().process.directory.insert_str(0, "../checks/"),
    ] {
        let mut bench = counted(Bench::new(&[]), "true");
        bench.work("file", "work\n");
        bench.interrupted = Some(begin(&bench).await);
        change(&mut bench);
        let (verdict, adopted) = go_on(&bench).await;
        assert!(verdict.unwrap().met());
        assert_eq!((runs(&bench), adopted), ([2, 2, 1], vec![]));
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed_makes_the_verdict_run_again_and_a_forged_end_counts_for_nothing() {
    let mut bench = counted(Bench::new(&[]), "true");
    bench.interrupted = Some(begin(&bench).await);
    let (dir, supervisor) = supervisor(&bench);
    let forged = r#"{"code":0,"signal":null,"spawn_error":null,"started_at_ms":1,"ended_at_ms":2,"stopped":null,
        "leftovers_killed":0,"stdout_bytes":0,"stderr_bytes":0}"#;
    std::fs::write(dir.join("exit.json"), forged).unwrap();
    let verdict = bench.run(pending(), |progress| {
        if let Progress::Adopted { .. } = progress {
            let killed = clean_command("kill").args(["-KILL", &supervisor.pid.to_string()]).status();
            assert!(killed.unwrap().success());
        }
    });
    let go = async {
        while runs(&bench)[1] < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        std::fs::write(bench.flag("go"), "").unwrap();
    };
    let (verdict, ()) = tokio::join!(verdict, go);
    assert!(verdict.unwrap().met());
    assert_eq!(runs(&bench), [2, 2, 1]);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_checkout_whose_protected_files_were_changed_is_not_resumed() {
    let change = "test -e $HOME/changed || { echo weaker > tests/one.txt; touch $HOME/changed; }";
    let mut bench = counted(Bench::new(&[("tests/one.txt", "1\n")]), change);
    bench.goal.protect = vec!["tests/**".into()];
    bench.protect = bench.goal.protect.clone();
    bench.interrupted = Some(begin(&bench).await);
    let (verdict, adopted) = go_on(&bench).await;
    assert!(verdict.unwrap().met(), "nothing is changed the second time");
    assert_eq!((runs(&bench), adopted), ([2, 2, 1], vec![]));
}

#[tokio::test]
async fn a_verdict_with_a_finding_cannot_be_resumed() {
    let mut bench = counted(Bench::new(&[("tests/one.txt", "1\n")]), "true");
    bench.goal.protect = vec!["tests/**".into()];
    bench.protect = bench.goal.protect.clone();
    let weaken = "echo weaker > tests/one.txt".to_owned();
    bench.goal.checks[0] = common::check("1", &weaken);
    let mut processes = Vec::new();
    let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
    let run = bench.run(pending(), |progress| {
        if let Progress::Started { process, .. } = progress {
            processes.push(process.is_some());
            sender.send(()).unwrap();
        }
    });
    let second_runs = async {
        started.recv().await.unwrap();
        started.recv().await.unwrap();
        file_is_there(bench.flag("two")).await;
    };
    tokio::select! {
        verdict = run => panic!("ended by itself: {verdict:?}"),
        () = second_runs => {}
    }
    assert_eq!(processes, [true, false]);
    towline_check::end_runs(&bench.log_dir()).await.unwrap();
}
