//! Starting from what is in no commit.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use support::Desk;
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

/// What the user would notice: the state of every path, and the index byte for byte.
fn seen(desk: &Desk) -> (String, Vec<u8>) {
    let index = std::fs::read(desk.project.path().join(".git/index")).expect("an index");
    (
        desk.project.git([
            "--no-optional-locks",
            "status",
            "--porcelain=v2",
            "--branch",
            "--ignored",
            "-uall",
        ]),
        index,
    )
}

#[test]
fn a_goal_sees_every_uncommitted_change_and_the_user_notices_nothing() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed >> modified; echo theirs > theirs"));
    for name in ["modified", "staged", "deleted", "old-name", "unchanged"] {
        desk.project.write(name, format!("{name}\n"));
    }
    desk.project.write(".gitignore", "ignored\n");
    desk.project.commit("files");
    desk.project.write("modified", "mine\n");
    desk.project.write("staged", "mine\n");
    desk.project.git(["add", "staged"]);
    desk.project.git(["mv", "old-name", "new-name"]);
    std::fs::remove_file(desk.project.path().join("deleted")).expect("removed");
    desk.project.write("un/tracked", "mine\n");
    desk.project.write("ignored", "mine\n");
    let before = seen(&desk);

    let check = "grep -q fixed modified && grep -q mine modified staged un/tracked && test -e new-name -a ! -e old-name \
                 -a ! -e deleted -a ! -e ignored -a -e unchanged";
    let ran = desk.towline(["run", "mend it", "--include-dirty", "--check", check, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(seen(&desk), before);
    assert!(!ran.stderr.contains("not part of the work"), "{}", ran.stderr);
    let report = ran.json();
    let id = report["id"].as_str().expect("an id");
    assert_eq!(desk.towline(["diff", id, "--stat"]).stdout, "modified +1 -0\ntheirs +1 -0\n2 files, +2 -0\n");
    let (base, candidate) =
        (report["base"].as_str().expect("a base"), report["candidate"].as_str().expect("a candidate"));
    let below = desk.project.git(["rev-parse", &format!("{candidate}^"), &format!("{base}^")]);
    assert_eq!(below, format!("{base}\n{}", desk.project.git(["rev-parse", "HEAD"])));
}

#[test]
fn an_unfinished_merge_is_refused_and_nothing_is_created() {
    let desk = Desk::with_script(hostile::well_behaved);
    desk.project.write("both", "one\n");
    desk.project.commit("one");
    desk.project.git(["checkout", "-q", "-b", "other", "HEAD~1"]);
    desk.project.write("both", "two\n");
    desk.project.commit("two");
    let merged = clean_command("git").args(["merge", "main"]).current_dir(desk.project.path()).output();
    assert!(!merged.expect("git runs").status.success());
    let before = seen(&desk);
    for flag in ["--include-dirty", "--in-place"] {
        let ran = desk.towline(["run", "x", flag]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("both has conflicts; finish it and commit"), "{}", ran.stderr);
    }
    assert_eq!(seen(&desk), before);
    assert_eq!(desk.state(), Vec::<String>::new(), "something was created");
}
