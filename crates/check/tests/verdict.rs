//! The results in a verdict, and what they depend on.

mod common;

use std::future::pending;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use common::{Bench, check, result, timeless};
use towline_check::{CheckError, EVIDENCE_BYTES, Progress};
use towline_core::{CheckKind, CheckResult, Visibility};
use towline_testkit::scratch::Project;

#[tokio::test]
async fn every_check_runs_and_the_verdict_names_the_candidate() {
    let bench =
        Bench::new(&[]).with_checks(&["echo red; exit 3", "echo green", "echo out; echo err >&2; exit 1"]);
    bench.work("new.txt", "work");
    let verdict = bench.verdict().await;
    let candidate = bench.candidate();
    assert_eq!((&verdict.candidate, &verdict.tree), (&candidate.commit, &candidate.tree));
    assert!(!verdict.met());
    assert_eq!(verdict.restored, Vec::<String>::new());
    let results: Vec<_> = verdict.checks.into_iter().map(timeless).collect();
    let mut last = result("3", 1, "out\nerr\n");
    if results[2].evidence.starts_with("err") {
        // Two pipes that are written at the same moment have no order.
        last.evidence = "err\nout\n".into();
    }
    assert_eq!(results, [result("1", 3, "red\n"), result("2", 0, "green\n"), last]);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_verdict_is_met_when_all_checks_are() {
    let bench = Bench::new(&[]).with_checks(&["true", "test -f README.md"]);
    let verdict = bench.verdict().await;
    assert!(verdict.met(), "{verdict:?}");
}

#[tokio::test]
async fn a_goal_without_checks_is_never_met() {
    assert!(!Bench::new(&[]).verdict().await.met());
}

#[tokio::test]
async fn progress_is_reported_check_by_check() {
    let mut bench = Bench::new(&[]).with_checks(&["exit 1", "true"]);
    bench.goal.workspace.setup = vec!["true".into()];
    let mut reported = Vec::new();
    let verdict = bench.run(pending(), |progress| reported.push(progress)).await.unwrap();
    let reported: Vec<_> = reported
        .into_iter()
        .map(|progress| match progress {
            Progress::Finished { result } => Progress::Finished { result: timeless(result) },
            Progress::Started { name, .. } => Progress::Started { name, process: None },
            other => other,
        })
        .collect();
    let started = |name: &str| Progress::Started { name: name.into(), process: None };
    let finished = |name: &str, code| Progress::Finished { result: result(name, code, "") };
    let expected = [
        started("setup"),
        finished("setup", 0),
        started("1"),
        finished("1", 1),
        started("2"),
        finished("2", 0),
    ];
    assert_eq!(reported, expected);
    assert_eq!(verdict.checks.len(), 2, "the setup is no check");
}

#[tokio::test]
async fn a_pattern_must_be_found_on_standard_output() {
    let mut bench = Bench::new(&[]);
    let with_pattern = |name: &str, run: &str, pattern: &str| {
        let kind = CheckKind::Command { run: run.into(), stdout: Some(pattern.into()) };
        towline_core::Check { kind, ..check(name, run) }
    };
    bench.goal.checks = vec![
        with_pattern("found", "echo noise; echo 12 passed", "^[0-9]+ passed$"),
        with_pattern("missing", "echo none passed", "^[0-9]+ passed$"),
        with_pattern("elsewhere", "echo 12 passed >&2", "^[0-9]+ passed$"),
        with_pattern("red", "echo 12 passed; exit 1", "^[0-9]+ passed$"),
    ];
    let unmatched = |name: &str, evidence: &str| CheckResult {
        met: false,
        problem: Some("its output does not match `^[0-9]+ passed$`".into()),
        ..result(name, 0, evidence)
    };
    let expected = [
        result("found", 0, "noise\n12 passed\n"),
        unmatched("missing", "none passed\n"),
        unmatched("elsewhere", "12 passed\n"),
        result("red", 1, "12 passed\n"),
    ];
    assert_eq!(bench.results().await, expected);
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_anything_runs() {
    let mut bench = Bench::new(&[]).with_checks(&["touch $HOME/ran"]);
    let kind = CheckKind::Command { run: "true".into(), stdout: Some("(".into()) };
    bench.goal.checks.push(towline_core::Check { kind, ..check("bad", "true") });
    let refused = bench.run(pending(), |_| ()).await;
    assert!(matches!(refused, Err(CheckError::BadPattern { .. })), "{refused:?}");
    assert!(!bench.flag("ran").exists());
}

#[tokio::test]
async fn an_end_that_is_no_exit_is_named() {
    let mut bench = Bench::new(&[]).with_checks(&["kill -9 $$"]);
    let killed = CheckResult {
        met: false,
        exit_code: None,
        problem: Some("killed by signal 9".into()),
        ..result("1", 0, "")
    };
    assert_eq!(bench.results().await, [killed]);

    bench.goal.checks[0].kind = CheckKind::Program { argv: vec!["no-such-program".into()] };
    let results = bench.results().await;
    let problem = results[0].problem.clone().unwrap();
    assert!(problem.starts_with("could not be started: "), "{problem}");
    assert_eq!((results[0].met, results[0].exit_code), (false, None));
}

#[tokio::test]
async fn evidence_is_the_end_of_the_output_from_the_start_of_a_line() {
    let bench = Bench::new(&[]).with_checks(&[
        "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done; printf '\\033[31mred\\033[0m\\0\\n'; exit 1",
    ]);
    let results = bench.results().await;
    let all: String = (1..=2000).map(|number| format!("line {number}\n")).chain(["red\n".into()]).collect();
    let start = all.len() - EVIDENCE_BYTES;
    let start = start + all[start - 1..].find('\n').unwrap();
    assert_eq!(results, [result("1", 1, &all[start..])]);
    assert!(all.len() - start > EVIDENCE_BYTES - 20, "nearly all of the room is used");
}

#[tokio::test]
async fn only_what_would_be_committed_reaches_the_check() {
    let bench = Bench::new(&[(".gitignore", "ignored\n"), ("gone", "")])
        .with_checks(&["ls -A; cat untracked README.md; git status --porcelain"]);
    bench.work("ignored", "not for the check");
    bench.work("untracked", "untracked\n");
    bench.work("README.md", "changed\n");
    std::fs::remove_file(bench.workspace().join("gone")).unwrap();
    let seen = ".git\n.gitignore\nREADME.md\nuntracked\nuntracked\nchanged\n";
    assert_eq!(bench.results().await, [result("1", 0, seen)]);
}

#[tokio::test]
async fn protected_paths_are_judged_as_in_the_base_and_named() {
    let mut bench = Bench::new(&[("test.sh", "exit 1\n")]).with_checks(&["sh test.sh"]);
    bench.protect = vec!["test.sh".into()];
    bench.work("test.sh", "exit 0\n");
    let verdict = bench.verdict().await;
    assert_eq!((verdict.met(), verdict.restored), (false, vec!["test.sh".to_owned()]));
}

#[tokio::test]
async fn what_one_verdict_leaves_does_not_reach_the_next() {
    let bench = Bench::new(&[(".gitignore", "cache\n")]).with_checks(&[
        "test ! -e cache && test ! -e junk && echo x > cache && echo x > junk && rm README.md",
    ]);
    for _ in 0..2 {
        assert_eq!(bench.results().await, [result("1", 0, "")]);
        bench.assert_no_checkout();
    }
    assert!(!bench.workspace().join("junk").exists(), "the agent's workspace is not touched");
}

#[tokio::test]
async fn a_checkout_is_removed_however_a_check_left_it() {
    let bench = Bench::new(&[]).with_checks(&["mkdir -p a/b && touch a/b/c && chmod 000 a/b && chmod 500 a"]);
    assert_eq!(bench.results().await, [result("1", 0, "")]);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn a_check_that_fails_without_a_variable_names_it_and_passing_it_lets_the_check_pass() {
    let secret = "value-of-a-secret-5417";
    let mut bench = Bench::new(&[]).with_checks(&[&format!("test \"$NPM_TOKEN\" = {secret}"), "true"]);
    bench.goal.workspace.setup = vec!["test -z \"$NPM_TOKEN\" || touch \"$HOME/setup-had-it\"".into()];
    bench.environment.insert("NPM_TOKEN".into(), secret.into());
    let untouched = CheckKind::Untouched { paths: vec!["README.md".into()] };
    bench.goal.checks.push(towline_core::Check { kind: untouched, ..check("untouched", "") });
    bench.work("README.md", "changed");

    let verdict = bench.verdict().await;
    let note = "variables that setup and checks do not get: NPM_TOKEN (`pass_env` in [workspace] passes one)";
    assert_eq!(verdict.notes, [note]);
    let evidence: Vec<_> = verdict.checks.iter().map(|check| (check.met, check.evidence.as_str())).collect();
    assert_eq!(evidence[..2], [(false, format!("note: {note}\n").as_str()), (true, "")]);
    assert!(!evidence[2].0 && !evidence[2].1.contains("NPM_TOKEN"), "{evidence:?}");
    assert!(!bench.flag("setup-had-it").exists());
    assert!(!format!("{verdict:?}").contains("5417"));

    bench.goal.workspace.pass_env = vec!["NPM_TOKEN".into()];
    let verdict = bench.verdict().await;
    assert_eq!((verdict.checks[0].met, verdict.notes), (true, Vec::new()));
    assert!(bench.flag("setup-had-it").exists());
}

#[tokio::test]
async fn a_setup_command_that_fails_names_what_it_did_not_get() {
    let mut bench = Bench::new(&[]).with_checks(&["true"]);
    bench.goal.workspace.setup = vec!["echo no access; exit 7".into()];
    bench.environment.insert("DEPLOY_PASSWORD".into(), "hunter2".into());
    let verdict = bench.verdict().await;
    let note =
        "variables that setup and checks do not get: DEPLOY_PASSWORD (`pass_env` in [workspace] passes one)";
    assert_eq!(verdict.notes, [note]);
    assert_eq!(verdict.checks[0].evidence, format!("no access\n\nnote: {note}\n"));
}

#[tokio::test]
async fn commands_get_the_environment_without_what_is_towlines_own() {
    let mut bench = Bench::new(&[]).with_checks(&[
        "env | grep -E '^(TOWLINE_|CI=|GIT_DIR=|INHERITED=)'; git rev-parse --show-toplevel | sed 's|.*/||'",
    ]);
    for (name, value) in
        [("TOWLINE_GOAL", "x"), ("TOWLINE_TOKEN", "x"), ("GIT_DIR", "/nonexistent"), ("INHERITED", "yes")]
    {
        bench.environment.insert(name.into(), value.into());
    }
    assert_eq!(bench.results().await, [result("1", 0, "INHERITED=yes\ngoal\n")]);
}

#[tokio::test]
async fn a_check_that_reads_gets_the_end_of_input() {
    let bench = Bench::new(&[]).with_checks(&["cat; echo read"]);
    assert_eq!(bench.results().await, [result("1", 0, "read\n")]);
}

#[tokio::test]
async fn a_pointer_to_a_large_file_that_is_nowhere_makes_the_verdict_red() {
    let project = Project::new();
    for (key, value) in [("process", "git-lfs filter-process"), ("required", "true")] {
        project.git(["config", &format!("filter.lfs.{key}"), value]);
    }
    project.write(".gitattributes", "*.bin filter=lfs -text\n");
    project.commit("attributes");
    let bench = Bench::on(project).with_checks(&["true"]);
    assert!(bench.verdict().await.met());
    let id = "07".repeat(32);
    bench.work("new.bin", &format!("version https://git-lfs.github.com/spec/v1\noid sha256:{id}\nsize 12\n"));
    let results = bench.results().await;
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!((results[0].name.as_str(), results[0].met), ("integrity", false));
    assert!(results[0].evidence.contains("new.bin") && results[0].evidence.contains(&id), "{results:?}");
    bench.assert_no_checkout();
}

#[tokio::test]
async fn setup_runs_in_the_checkout_before_the_checks() {
    let mut bench = Bench::new(&[(".gitignore", "built\n.env\n")]).with_checks(&["cat built"]);
    bench.goal.workspace.setup = vec!["cat .env > built".into(), "echo two >> built".into()];
    bench.goal.workspace.copy = vec![".env".into()];
    bench.project.write(".env", "copied\n");
    assert_eq!(bench.results().await, [result("1", 0, "copied\ntwo\n")]);
}

#[tokio::test]
async fn a_setup_that_fails_in_the_checkout_is_the_verdict() {
    let mut bench = Bench::new(&[]).with_checks(&["touch $HOME/ran"]);
    bench.goal.workspace.setup =
        vec!["true".into(), "echo broken >&2; exit 2".into(), "touch $HOME/ran".into()];
    let problem = "the setup command `echo broken >&2; exit 2` failed (exit code 2), so no check was run";
    let failed = CheckResult { problem: Some(problem.into()), ..result("setup", 2, "broken\n") };
    assert_eq!(bench.results().await, [failed]);
    assert!(!bench.flag("ran").exists());
    bench.assert_no_checkout();
}

#[tokio::test]
async fn setup_in_a_workspace_runs_there_and_a_failure_is_an_error() {
    let bench = Bench::new(&[]);
    let set_up = async |commands: &[&str]| {
        let commands: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
        let (logs, supervisor) = (bench.home.towline().join("setup"), bench.supervisor());
        towline_check::setup(&commands, bench.workspace(), &logs, &supervisor, &bench.given(), pending())
            .await
    };
    set_up(&["echo one > made", "echo two >> made"]).await.unwrap();
    assert_eq!(std::fs::read_to_string(bench.workspace().join("made")).unwrap(), "one\ntwo\n");

    let error = set_up(&["echo no such thing; exit 4", "touch later"]).await.unwrap_err();
    let CheckError::Setup { command, problem, evidence } = &error else { panic!("{error:?}") };
    assert_eq!(
        (command.as_str(), problem.as_str(), evidence.as_str()),
        ("echo no such thing; exit 4", "exit code 4", "no such thing\n")
    );
    assert!(error.to_string().ends_with("The end of what it printed:\nno such thing"), "{error}");
    assert!(!bench.workspace().join("later").exists());
}

#[tokio::test]
async fn logs_are_stored_in_private_directories_named_after_the_checks() {
    let mut bench = Bench::new(&[]);
    bench.goal.workspace.setup = vec!["true".into()];
    bench.goal.checks = vec![check("tests", "echo hi"), check("../odd name", "true")];
    bench.verdict().await;
    assert_eq!(std::fs::read_dir(bench.log_dir()).unwrap().count(), 3);
    let [tests, odd, setup] = ["1-tests", "2----odd-name", "setup-1"].map(|name| bench.run_dirs(name));
    assert_eq!((tests.len(), odd.len(), setup.len()), (1, 1, 1));
    for dir in [&bench.log_dir(), &tests[0]] {
        let mode = std::fs::metadata(dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", dir.display());
    }
    assert_eq!(std::fs::read_to_string(tests[0].join("stdout.log")).unwrap(), "hi\n");
    bench.verdict().await;
    assert_ne!(bench.run_dirs("1-tests"), tests, "those of an earlier verdict are removed");
    assert_eq!(std::fs::read_dir(bench.log_dir()).unwrap().count(), 3);
}

#[tokio::test]
async fn the_time_a_check_took_is_reported() {
    let bench = Bench::new(&[]).with_checks(&["sleep 0.3"]);
    let took = bench.verdict().await.checks[0].took;
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

/// A verdict with this setup, a check that leaves a file, and a hidden one.
async fn beside_a_hidden_check(setup: &str, hidden: &str) -> Vec<CheckResult> {
    let mut bench = Bench::new(&[]).with_checks(&["echo left > file", hidden]);
    bench.goal.checks[1].hidden = Visibility::BestEffort;
    bench.goal.workspace.setup = vec![setup.into()];
    let results = bench.results().await;
    bench.assert_no_checkout();
    results
}

#[tokio::test]
async fn hidden_checks_have_a_clean_checkout_with_setup_of_its_own() {
    let results = beside_a_hidden_check("echo ready > ready", "cat ready; test ! -e file").await;
    assert_eq!(results, [result("1", 0, ""), result("2", 0, "ready\n")]);
}

#[tokio::test]
async fn setup_that_fails_before_hidden_checks_makes_the_verdict_red() {
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once").display().to_string();
    let results = beside_a_hidden_check(&format!("mkdir {once}"), "true").await;
    let met: Vec<_> = results.iter().map(|result| (result.name.as_str(), result.met)).collect();
    assert_eq!(met, [("1", true), ("setup", false)]);
}

#[tokio::test]
async fn hidden_checks_alone_run_once_in_one_checkout() {
    let mut bench = Bench::new(&[]).with_checks(&["echo left > file", "cat file"]);
    for check in &mut bench.goal.checks {
        check.hidden = Visibility::BestEffort;
    }
    assert_eq!(bench.results().await, [result("1", 0, ""), result("2", 0, "left\n")]);
}
