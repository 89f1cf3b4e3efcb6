//! The checks that are no shell commands: files, paths left alone, committed work, programs that judge.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use common::{Bench, PATIENCE, file_is_there, result};
use towline_check::{CheckError, EVIDENCE_BYTES};
use towline_core::{Check, CheckKind, CheckResult};
use towline_testkit::scratch::processes_with;

fn file(path: &str, matches: Option<&str>) -> CheckKind {
    CheckKind::File { path: path.into(), matches: matches.map(str::to_owned) }
}

fn untouched(paths: &[&str]) -> CheckKind {
    CheckKind::Untouched { paths: paths.iter().map(|path| (*path).to_owned()).collect() }
}

fn program(script: &str) -> CheckKind {
    CheckKind::Program { argv: ["sh", "-c", script].map(str::to_owned).to_vec() }
}

/// The goal's checks are of these kinds, named `1`, `2`, ….
fn with_kinds(mut bench: Bench, kinds: Vec<CheckKind>) -> Bench {
    let named = kinds.into_iter().zip(1..);
    let check = |(kind, number): (_, i32)| Check::new(number.to_string(), kind, PATIENCE);
    bench.goal.checks = named.map(check).collect();
    bench
}

fn met(name: &str) -> CheckResult {
    CheckResult { exit_code: None, ..result(name, 0, "") }
}

fn not_met(name: &str, problem: &str, evidence: &str) -> CheckResult {
    CheckResult { met: false, problem: Some(problem.into()), evidence: evidence.into(), ..met(name) }
}

#[tokio::test]
async fn a_file_is_looked_for_in_the_candidate() {
    let bench = Bench::new(&[(".gitignore", "ignored\n"), ("gone", "here\n")]);
    let kinds = vec![
        file("new.md", Some("^## 1")),
        file("ignored", None),
        file("gone", None),
        file("out", None),
        file("made", Some("by the setup")),
    ];
    let mut bench = with_kinds(bench, kinds);
    bench.goal.workspace.setup = vec!["echo by the setup > made".into()];
    bench.work("new.md", "# Changes\n## 2\n");
    bench.work("ignored", "");
    fs::remove_file(bench.workspace().join("gone")).unwrap();
    symlink(bench.project.path().join("README.md"), bench.workspace().join("out")).unwrap();
    let expected = [
        not_met(
            "1",
            "the text of `new.md` does not match `^## 1`; this is its beginning",
            "# Changes\n## 2\n",
        ),
        not_met("2", "`ignored` does not exist", ""),
        not_met("3", "`gone` does not exist", ""),
        not_met("4", "`out` leads out of the repository by a symlink", ""),
        met("5"),
    ];
    assert_eq!(bench.results().await, expected);
    bench.assert_no_checkout();
}

#[tokio::test]
async fn paths_are_untouched_when_the_candidate_has_them_as_the_base() {
    let files = [("src/a", "a\n"), ("src/b", "b\n"), ("src/c", "c\n"), ("docs/d", "d\n")];
    let kinds = vec![untouched(&["src"]), untouched(&["docs/**", "*.toml"])];
    let bench = with_kinds(Bench::new(&files), kinds);
    assert_eq!(bench.results().await, [met("1"), met("2")], "the base itself");

    bench.work("src/a", "other\n");
    fs::rename(bench.workspace().join("src/b"), bench.workspace().join("moved")).unwrap();
    fs::remove_file(bench.workspace().join("src/c")).unwrap();
    bench.work("src/new", "new\n");
    let list = "changed: src/a\ndeleted: src/b\ndeleted: src/c\nadded: src/new\n";
    let touched = not_met("1", "4 paths are changed that must stay as in the base", list);
    assert_eq!(bench.results().await, [touched.clone(), met("2")], "uncommitted");
    bench.commit();
    assert_eq!(bench.results().await, [touched, met("2")], "committed");
}

#[tokio::test]
async fn a_change_of_a_protected_path_is_undone_before_anything_is_judged() {
    let files = [("src/a", "a\n"), ("src/b", "b\n")];
    let mut bench = with_kinds(Bench::new(&files), vec![untouched(&["src"]), CheckKind::Committed]);
    bench.protect = vec!["src/a".into()];
    bench.work("docs", "work\n");
    bench.work("src/a", "weaker\n");
    bench.commit();
    bench.work("src/a", "weaker still\n");
    let verdict = bench.verdict().await;
    assert_eq!(verdict.restored, ["src/a"]);
    assert!(verdict.met(), "{verdict:?}");

    fs::rename(bench.workspace().join("src/a"), bench.workspace().join("src/z")).unwrap();
    let added = not_met("1", "1 path is changed that must stay as in the base", "added: src/z\n");
    let uncommitted = not_met("2", "1 path is not committed", "src/z\n");
    assert_eq!(bench.results().await, [added, uncommitted]);
}

#[tokio::test]
async fn work_is_committed_when_there_is_a_commit_and_nothing_besides() {
    let bench = Bench::new(&[(".gitignore", "ignored\n"), ("a", "a\n")]);
    let bench = with_kinds(bench, vec![CheckKind::Committed]);
    assert_eq!(bench.results().await, [not_met("1", "there is no new commit", "")]);

    bench.work("a", "other\n");
    bench.work("new", "new\n");
    let both = "there is no new commit; 2 paths are not committed";
    assert_eq!(bench.results().await, [not_met("1", both, "a\nnew\n")]);

    bench.commit();
    bench.work("ignored", "of no matter");
    assert_eq!(bench.results().await, [met("1")]);

    bench.work("later", "");
    assert_eq!(bench.results().await, [not_met("1", "1 path is not committed", "later\n")]);
}

#[tokio::test]
async fn commits_beside_the_base_are_none_on_top_of_it() {
    let bench = with_kinds(Bench::new(&[("a", "a\n")]), vec![CheckKind::Committed]);
    let workspace = bench.workspace().to_str().unwrap().to_owned();
    bench.project.git(["-C", &workspace, "checkout", "-q", "--orphan", "elsewhere"]);
    bench.commit();
    let candidate = bench.candidate();
    assert_eq!(candidate.head, bench.goal.workspace.base);
    let warning = "the agent's commits are not on top of the base; its files are put on the base";
    assert_eq!(candidate.warnings[0], warning);
    assert_eq!(bench.results().await, [not_met("1", "there is no new commit", "")]);
}

#[tokio::test]
async fn lists_of_paths_are_bounded() {
    let bench = with_kinds(Bench::new(&[("a", "a\n")]), vec![untouched(&["**"]), CheckKind::Committed]);
    for number in 0..600 {
        bench.work(&format!("a-file-with-a-name-{number:03}"), "");
    }
    for result in bench.results().await {
        assert!(result.problem.unwrap().contains("600 paths are"));
        assert!(result.evidence.len() <= EVIDENCE_BYTES, "{}", result.evidence.len());
        assert!(result.evidence.ends_with(" more\n"), "{}", result.evidence);
    }
}

#[tokio::test]
async fn a_program_gets_what_it_judges_and_judges_in_the_checkout() {
    let judge = "#!/bin/sh\ncat > \"$HOME/question\"; cat work\nexit 0\n";
    let mut bench = Bench::new(&[("tools/judge", judge), ("guarded", "guarded\n")]);
    fs::set_permissions(bench.workspace().join("tools/judge"), fs::Permissions::from_mode(0o755)).unwrap();
    bench.protect = vec!["guarded".into()];
    bench.work("guarded", "changed\n");
    bench.work("work", "{\"met\": true}");
    let bench = with_kinds(bench, vec![CheckKind::Program { argv: vec!["tools/judge".into()] }]);
    assert_eq!(bench.results().await, [result("1", 0, "")]);

    let question: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(bench.flag("question")).unwrap()).unwrap();
    let expected = serde_json::json!({
        "goal": {"id": bench.goal.id.to_string(), "title": "Goal", "prompt": "Do it."},
        "check": "1",
        "base": bench.goal.workspace.base.as_str(),
        "candidate": bench.candidate().commit.as_str(),
        "directory": bench.verify_dir(),
        "restored": ["guarded"],
    });
    assert_eq!(question, expected);
}

#[tokio::test]
async fn a_program_reports_whether_it_is_met_and_why() {
    let bench = with_kinds(
        Bench::new(&[]),
        vec![
            program("echo '{\"met\": true}'; echo fine >&2"),
            program("echo '{\"met\": true, \"summary\": \"all 3 hold\", \"evidence\": \"a b c\"}'"),
            program(
                "printf '%s' '{\"met\": false, \"summary\": \"2 of 3\\nhold\", \"evidence\": \"c\\n\"}'; echo no >&2",
            ),
            program("echo '{\"met\": false}'; echo look here >&2"),
        ],
    );
    let no = |name: &str, problem: &str, evidence: &str| CheckResult {
        exit_code: Some(0),
        ..not_met(name, problem, evidence)
    };
    let expected = [
        result("1", 0, "fine\n"),
        result("2", 0, "all 3 hold\na b c"),
        no("3", "2 of 3 hold", "c\n"),
        no("4", "the program does not accept it", "look here\n"),
    ];
    assert_eq!(bench.results().await, expected);
}

#[tokio::test]
async fn a_program_without_a_clear_answer_has_accepted_nothing() {
    let mut bench = with_kinds(
        Bench::new(&[]),
        vec![
            program("echo '{\"met\": true}'; exit 3"),
            program("true"),
            program("echo it works"),
            program("echo '{\"met\": true}'; sleep 600"),
            program("kill -9 $$"),
            program("head -c 3000000 /dev/zero | tr '\\0' ' '; echo '{\"met\": true}'"),
            CheckKind::Program { argv: vec!["no-such-program".into()] },
        ],
    );
    bench.goal.checks[3].timeout = Duration::from_millis(500);
    let results = bench.results().await;
    assert!(results.iter().all(|result| !result.met), "{results:?}");
    let problems: Vec<&str> = results.iter().map(|result| result.problem.as_deref().unwrap()).collect();
    let begin_with = [
        "the program failed with exit code 3",
        "the program printed no verdict",
        "the program's output is no JSON object",
        "timed out after 0.5s",
        "killed by signal 9",
        "the program printed more than 1024 KiB",
        "could not be started: ",
    ];
    for (problem, beginning) in problems.iter().zip(begin_with) {
        assert!(problem.starts_with(beginning), "{problem}");
    }
    let codes: Vec<_> = results.iter().map(|result| result.exit_code).collect();
    assert_eq!(codes, [Some(3), Some(0), Some(0), None, None, Some(0), None]);
    assert_eq!(results[2].evidence, "it works\n");
}

#[tokio::test]
async fn a_program_that_reads_nothing_of_a_long_question_is_judged_by_its_answer() {
    let mut bench = with_kinds(Bench::new(&[]), vec![program("echo '{\"met\": true}'")]);
    bench.goal.prompt = "long ".repeat(1_000_000);
    assert_eq!(bench.results().await, [result("1", 0, "")]);
}

#[tokio::test]
async fn a_stop_ends_a_program_and_all_it_started() {
    let bench = Bench::new(&[]);
    let name = bench.project.path().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let marker = format!("judge-of-{name}");
    let hangs = format!("STUBBORN={marker} setsid sleep 600 & touch $HOME/up; wait");
    let bench = with_kinds(bench, vec![program(&hangs), file("README.md", None)]);
    let stopped = bench.run(file_is_there(bench.flag("up")), |_| ()).await;
    assert!(matches!(stopped, Err(CheckError::Stopped)), "{stopped:?}");
    assert_eq!(processes_with(&marker), []);
    bench.assert_no_checkout();
}
