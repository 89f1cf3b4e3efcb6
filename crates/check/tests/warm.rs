//! Verdicts that reuse the build output of the one before. A green one is confirmed in a clean checkout.

mod common;

use std::future::{pending, ready};

use common::{Bench, check, timeless};
use towline_check::{CheckError, Progress};
use towline_core::{Checkout, Confirm, Reuse, Verdict};
use towline_testkit::scratch::become_ordinary_user;

/// Counts in a file of the warm directory how often the check ran with it, and prints the count.
const COUNT: &str = "mkdir -p target; echo run >> target/runs; wc -l < target/runs";

/// A goal with a warm directory, whose check passes when the file `done` is there.
fn bench() -> Bench {
    let mut bench = Bench::new(&[(".gitignore", "target\n"), ("lib", "1\n")]);
    bench.goal.workspace.warm = vec!["target".into()];
    bench.goal.checks = vec![check("count", &format!("{COUNT}; test -f done"))];
    bench.reuse = Reuse::Warm;
    bench
}

#[expect(clippy::unwrap_used, reason = "without a verdict the test has failed")]
async fn followed(bench: &Bench) -> (Verdict, Vec<Progress>) {
    let mut reported = Vec::new();
    let verdict = bench.run(pending(), |progress| reported.push(progress)).await.unwrap();
    (verdict, reported)
}

/// What each check printed, with the confirmation in its place.
fn printed(reported: Vec<Progress>) -> Vec<String> {
    let line = |progress| match progress {
        Progress::Started { .. } | Progress::Adopted { .. } => None,
        Progress::Finished { result } => Some(timeless(result).evidence.trim().to_owned()),
        Progress::Confirming => Some("confirming".to_owned()),
    };
    reported.into_iter().filter_map(line).collect()
}

#[tokio::test]
async fn red_verdicts_share_the_warm_directory_and_a_green_one_is_confirmed_in_a_clean_checkout() {
    let bench = bench();
    let (first, reported) = followed(&bench).await;
    assert_eq!(
        (first.met(), first.checkout, printed(reported)),
        (false, Checkout::Clean, vec!["1".to_owned()])
    );
    bench.work("lib", "2\n");
    let (second, reported) = followed(&bench).await;
    assert_eq!(
        (second.met(), second.checkout, printed(reported)),
        (false, Checkout::Warm, vec!["2".to_owned()])
    );

    bench.work("done", "");
    let (third, reported) = followed(&bench).await;
    assert_eq!((third.met(), third.checkout), (true, Checkout::WarmThenClean));
    assert_eq!(printed(reported), ["3", "confirming", "1"], "the confirmation saw no warm directory");
    assert_eq!(third.checks.len(), 1, "the results are those of the clean checkout");
    bench.assert_no_checkout();
}

/// `towline init` protects build output and names the same directories as warm.
#[tokio::test]
async fn untracked_files_in_a_protected_warm_directory_stay_in_clean_and_warm_verdicts() {
    let mut bench = bench();
    bench.goal.workspace.warm = vec!["target".into(), "node_modules".into()];
    bench.goal.protect = vec!["target/**".into(), "**/node_modules/**".into()];
    bench.goal.workspace.setup = vec!["mkdir -p node_modules/a; echo x > node_modules/a/index.js".into()];
    let build =
        "find target -type f 2> /dev/null | wc -l; mkdir -p target/debug; echo > target/debug/$(cat lib)";
    let sees = "ls target/debug node_modules/a; test -f done";
    bench.goal.checks = vec![check("build", build), check("sees", sees)];
    let seen = |count: &str, built: &str| {
        [String::new(), count.to_owned(), format!("node_modules/a:\nindex.js\n\ntarget/debug:\n{built}")]
    };
    let (first, reported) = followed(&bench).await;
    assert_eq!((first.checkout, printed(reported)), (Checkout::Clean, seen("0", "1").to_vec()));
    bench.work("lib", "2\n");
    let (second, reported) = followed(&bench).await;
    assert_eq!((second.checkout, printed(reported)), (Checkout::Warm, seen("1", "1\n2").to_vec()));
    bench.work("done", "");
    let (third, reported) = followed(&bench).await;
    assert_eq!((third.met(), third.checkout), (true, Checkout::WarmThenClean), "{third:?}");
    let expected = [&seen("2", "1\n2")[..], &["confirming".to_owned()], &seen("0", "2")].concat();
    assert_eq!(printed(reported), expected);
}

#[tokio::test]
async fn tracked_files_in_a_protected_warm_directory_are_compared_in_clean_and_warm_verdicts() {
    let mut bench = Bench::new(&[("target/tracked", "text\n"), ("tests/a", "")]);
    bench.goal.workspace.warm = vec!["target".into()];
    bench.goal.protect = vec!["target/**".into(), "tests/**".into()];
    bench.goal.checks = vec![
        check("changes", "ls target; echo > target/new; echo > target/tracked; echo > tests/b"),
        check("looks", "ls tests"),
    ];
    bench.reuse = Reuse::Warm;
    for (checkout, there) in [(Checkout::Clean, "tracked"), (Checkout::Warm, "new\ntracked")] {
        let (verdict, reported) = followed(&bench).await;
        assert_eq!((verdict.met(), verdict.checkout), (false, checkout));
        assert_eq!(
            printed(reported),
            [there, "a", "changed: target/tracked"],
            "what was added elsewhere is removed"
        );
    }
}

#[tokio::test]
async fn the_first_verdict_is_clean_and_needs_no_confirmation() {
    let bench = bench();
    bench.work("done", "");
    let (verdict, reported) = followed(&bench).await;
    assert_eq!((verdict.met(), verdict.checkout), (true, Checkout::Clean));
    assert_eq!(printed(reported), ["1"]);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn what_passes_only_with_the_warm_directory_is_red_with_that_reason() {
    let mut bench = bench();
    bench.goal.checks =
        vec![check("cached", "test -f target/old; found=$?; mkdir -p target; touch target/old; exit $found")];
    assert_eq!(followed(&bench).await.0.checkout, Checkout::Clean);
    let (verdict, _) = followed(&bench).await;
    assert!(verdict.passed_only_warm(), "{verdict:?}");
    assert!(!verdict.met());
}

#[tokio::test]
async fn without_confirmation_a_green_verdict_is_a_warm_one() {
    let mut bench = bench();
    bench.goal.workspace.confirm = Confirm::Never;
    followed(&bench).await;
    bench.work("done", "");
    let (verdict, reported) = followed(&bench).await;
    assert_eq!((verdict.met(), verdict.checkout), (true, Checkout::Warm));
    assert_eq!(printed(reported), ["2"]);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn nothing_is_reused_or_left_where_that_is_not_wanted() {
    let mut bench = bench();
    bench.reuse = Reuse::Never;
    for _ in 0..2 {
        let (verdict, reported) = followed(&bench).await;
        assert_eq!((verdict.checkout, printed(reported)), (Checkout::Clean, vec!["1".to_owned()]));
        bench.assert_no_checkout();
    }
    // Dropped once, and left for the next one.
    bench.reuse = Reuse::Warm;
    followed(&bench).await;
    for (reuse, expected) in [(Reuse::Fresh, "1"), (Reuse::Warm, "2"), (Reuse::Fresh, "1")] {
        bench.reuse = reuse;
        assert_eq!(printed(followed(&bench).await.1), [expected]);
    }
    // A goal without warm directories leaves nothing.
    bench.goal.workspace.warm.clear();
    bench.reuse = Reuse::Warm;
    assert_eq!(printed(followed(&bench).await.1), ["1"]);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn setup_runs_again_and_the_comparison_is_as_strict_as_in_a_clean_checkout() {
    let mut bench = bench();
    bench.goal.workspace.setup =
        vec!["mkdir -p target; echo x >> target/setups; wc -l < target/setups > count".into()];
    bench.goal.checks = vec![check("count", "cat count; false")];
    followed(&bench).await;
    let (verdict, reported) = followed(&bench).await;
    assert_eq!((verdict.checkout, printed(reported)), (Checkout::Warm, vec![String::new(), "2".to_owned()]));
    // Setup that changes a tracked file is found in either checkout.
    bench.goal.workspace.setup.push("echo changed > lib".into());
    let (verdict, _) = followed(&bench).await;
    let failed: Vec<&str> = verdict.failed().map(|check| check.name.as_str()).collect();
    assert_eq!((verdict.checkout, failed), (Checkout::Warm, vec!["count", "integrity"]));
}

#[tokio::test]
async fn a_verdict_that_was_stopped_or_killed_leaves_nothing_for_the_next() {
    let bench = bench();
    followed(&bench).await;
    let stopped = bench.run(ready(()), |_| ()).await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
    assert_eq!(printed(followed(&bench).await.1), ["2"], "nothing had begun");

    // Dropped in the middle of a check, as by the end of the engine.
    let mut bench = bench;
    let began = bench.flag("began");
    let slow = format!("touch target/half; touch '{}'; sleep 600", began.display());
    bench.goal.checks = vec![check("slow", &slow)];
    tokio::select! {
        verdict = bench.run(pending(), |_| ()) => panic!("{verdict:?}"),
        () = common::file_is_there(began.clone()) => {}
    }
    assert!(bench.verify_dir().join("target/half").exists());
    bench.goal.checks = vec![check("count", &format!("{COUNT}; false"))];
    let (verdict, reported) = followed(&bench).await;
    assert_eq!((verdict.checkout, printed(reported)), (Checkout::Clean, vec!["1".to_owned()]));
    assert!(!bench.verify_dir().join("target/half").exists());
}

/// A directory that may not be written cannot be moved into the next checkout.
#[tokio::test]
async fn a_warm_directory_that_was_made_read_only_costs_no_tracked_file() {
    become_ordinary_user();
    let mut bench = Bench::new(&[("build/sub/tracked", "text\n")]);
    bench.goal.workspace.warm = vec!["build".into()];
    bench.goal.checks = vec![check("seals", "cat build/sub/tracked; chmod 555 build; false")];
    bench.reuse = Reuse::Warm;
    for _ in 0..2 {
        let (verdict, reported) = followed(&bench).await;
        assert_eq!((verdict.checkout, printed(reported)), (Checkout::Clean, vec!["text".to_owned()]));
    }
}
