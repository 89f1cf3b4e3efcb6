//! `towline ls`, `show` and `@`: which goals are listed, and what is shown of them.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;

use serde_json::json;
use support::terminal::Terminal;
use support::{Desk, Ran, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::Project;

fn towline_in(desk: &Desk, folder: &Path, args: &[&str]) -> Ran {
    let mut command = desk.command(args);
    finish(command.current_dir(folder).spawn().expect("towline starts"))
}

fn titles(listed: &Ran) -> Vec<String> {
    let goals = listed.json();
    let titles = goals.as_array().expect("goals").iter().map(|goal| goal["title"].clone());
    titles.map(|title| title.as_str().expect("a title").to_owned()).collect()
}

#[test]
fn goals_of_this_repository_are_listed_and_those_of_all_on_request() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let other = Project::new();
    let limit = ["--budget", "attempts=1"];
    let fails = desk.towline([&["run", "fix it", "--check", "false"][..], &limit].concat());
    assert_eq!(fails.code, Some(3), "{fails:?}");
    let done = towline_in(&desk, other.path(), &["run", "and that", "--check", "test -e fix.txt"]);
    assert_eq!(done.code, Some(0), "{done:?}");

    assert_eq!(titles(&desk.towline(["ls", "--json"])), ["fix it"]);
    assert_eq!(titles(&towline_in(&desk, other.path(), &["ls", "--json"])), ["and that"]);
    assert_eq!(titles(&desk.towline(["ls", "--all", "--json"])), ["and that", "fix it"]);
    assert_eq!(titles(&desk.towline(["ls", "--all", "--phase", "failed", "--json"])), ["fix it"]);
    assert_eq!(titles(&desk.towline(["ls", "--all", "-n", "1", "--json"])), ["and that"]);
    assert_eq!(titles(&towline_in(&desk, &desk.home.path(), &["ls", "--json"])), ["and that", "fix it"]);

    let goal = &desk.towline(["ls", "--json"]).json()[0];
    let folder = desk.project.path().canonicalize().expect("a project").display().to_string();
    assert_eq!((&goal["repository"], &goal["prompt"]), (&json!(folder), &json!("fix it")));
    let table = desk.towline(["ls", "--all"]).stdout;
    let name = Path::new(&folder).file_name().expect("a name").to_string_lossy().into_owned();
    let row = table.lines().find(|line| line.contains("fix it")).expect("a row");
    assert!(row.contains(&name) && row.contains("failed: budget of 1 attempt spent"), "{table}");
    let unknown = desk.towline(["ls", "--phase", "sleepy"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");

    let newest = towline_in(&desk, other.path(), &["show", "@", "--json"]).json();
    assert_eq!(newest["title"], "and that");
    assert_eq!(desk.towline(["show", "@", "--json"]).json()["title"], "fix it");
    let merged = towline_in(&desk, other.path(), &["merge", "@"]).stdout;
    let place = format!("into `main` of {}", other.path().canonicalize().expect("a project").display());
    assert!(merged.contains(&place), "{merged}");
}

#[test]
fn show_has_the_evidence_of_failed_checks_and_restored_paths() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo cheat > test.sh"));
    desk.project.write("test.sh", "echo 'expected 3, found 4'; exit 7\n");
    desk.project.write("towline.toml", "[protect]\npaths = [\"test.sh\"]\n");
    desk.project.git(["add", "."]);
    desk.project.git(["commit", "--quiet", "--message", "a test"]);
    let ran = desk.towline(["run", "fix it", "--check", "sh test.sh", "--budget", "attempts=1"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let shown = desk.towline(["show", "@"]).stdout;
    for wanted in ["exit code 7", "expected 3, found 4", "restored as in the base: test.sh"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}

#[test]
fn a_diff_on_a_terminal_has_colours_and_goes_through_the_pager() {
    let mut desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    desk.set("PAGER", "sed s/^/paged:/");
    assert_eq!(desk.towline(["run", "fix it", "--check", "test -e fix.txt"]).code, Some(0));
    let mut terminal = Terminal::new();
    let shown = finish(terminal.start(&desk.command(["diff", "@"])));
    terminal.wait_for_the_end();
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(terminal.shown().contains("paged:\u{1b}[32m+fixed\u{1b}[0m"), "{}", terminal.shown());
    assert!(desk.towline(["diff", "@"]).stdout.contains("\n+fixed\n"), "nothing of both in a pipe");
}
