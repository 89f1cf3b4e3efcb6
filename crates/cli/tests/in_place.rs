//! Working in the user's own directory, with git and without.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};
use support::{Desk, LIMIT, Ran, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::wait_for;

/// Needs two attempts, and breaks what is protected in both.
const TWO_ATTEMPTS: &str = r"
echo broken > tests/t
if [ -e half ]; then echo fixed > bug; fi
touch half
";

/// Reports that it is there, and continues when it is let.
const WAITS: &str = r"
touch started
while [ ! -e go ]; do sleep 0.05; done
echo fixed > bug
";

/// A desk with a folder that is in no repository.
struct Bench {
    desk: Desk,
    folder: PathBuf,
}

impl Bench {
    fn new(agent: &str) -> Self {
        let desk = Desk::with_script(|dir| hostile::doing(dir, agent));
        let folder = desk.home.path().join("work");
        for (name, text) in [("bug", "broken\n"), ("tests/t", "whole\n"), ("deep/file", "deep\n")] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        Self { desk, folder }
    }

    fn start_in(&self, folder: &Path, args: &[&str]) -> Child {
        self.desk.command(args).current_dir(folder).spawn().expect("towline starts")
    }

    fn towline(&self, args: &[&str]) -> Ran {
        finish(self.start_in(&self.folder, args))
    }

    /// Runs the command that was printed after these words.
    #[expect(clippy::disallowed_methods, reason = "the printed command is run as a person would")]
    fn run_printed(&self, output: &str, words: &str) {
        let (_, line) = output.split_once(words).expect("a command");
        let command = line.lines().next().expect("a line");
        let ended = Command::new("sh").args(["-c", command]).current_dir("/").status().expect("it starts");
        assert!(ended.success(), "{command}");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_else(|error| error.to_string())
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    fn wait_until_started(&self) {
        wait_for(LIMIT, "the agent to be at work", || self.has("started"));
    }

    fn refused(&self, folder: &Path, args: &[&str], wanted: &[&str]) {
        let ran = finish(self.start_in(folder, args));
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        for text in wanted {
            assert!(ran.stderr.contains(text), "{args:?}: no {text:?} in {}", ran.stderr);
        }
    }
}

const RUN: [&str; 6] = ["run", "mend it", "--in-place", "--check", "grep -q fixed bug", "--json"];

fn id_of(report: &Value) -> String {
    report["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_folder_without_git_is_mended_in_place_from_red_to_green_and_comes_back_as_it_was() {
    let bench = Bench::new(TWO_ATTEMPTS);
    std::fs::write(bench.folder.join("towline.toml"), "[protect]\npaths = [\"tests/**\"]\n")
        .expect("written");
    let ran = bench.towline(&RUN);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let id = id_of(&report);
    for text in ["changes your files in", "in no git repository", "towline restore"] {
        assert!(ran.stderr.contains(text), "no {text:?} in {}", ran.stderr);
    }
    let met: Vec<Value> =
        of_attempts(&report, "verdict").iter().map(|verdict| verdict["checks"][0]["met"].clone()).collect();
    assert_eq!(met, [json!(false), json!(true)]);
    assert_eq!(report["attempts"][1]["verdict"]["restored"], json!(["tests/t"]));
    assert_eq!(
        [&report["branch"], &report["workspace"]],
        [&Value::Null, &json!(bench.folder.canonicalize().expect("a path"))]
    );
    assert_eq!(
        (bench.read("bug"), bench.read("tests/t"), bench.has(".git")),
        ("fixed\n".into(), "broken\n".into(), false)
    );

    let diff = bench.towline(&["diff", &id]).stdout;
    assert!(diff.contains("+fixed") && !diff.contains("tests/t"), "{diff}");
    let shown = bench.towline(&["show", &id]).stdout;
    for text in ["(in place)", "✓ done", "towline restore"] {
        assert!(shown.contains(text), "no {text:?} in {shown}");
    }
    assert!(!shown.contains("git merge") && !shown.contains("branch"), "{shown}");
    let log = bench.towline(&["logs", &id]).stdout;
    assert!(log.contains("stay changed in your files: tests/t"), "{log}");

    let restored = bench.towline(&["restore", &id, "tests/t"]);
    assert_eq!(
        (restored.code, bench.read("tests/t"), bench.read("bug")),
        (Some(0), "whole\n".into(), "fixed\n".into())
    );
    std::fs::write(bench.folder.join("bug"), "edited since\n").expect("a file");
    bench.run_printed(&restored.stdout, "to get them back: ");
    let now = (bench.read("tests/t"), bench.read("bug"));
    assert_eq!(now, ("broken\n".into(), "edited since\n".into()), "nothing else comes back");
    let restored = bench.towline(&["restore", &id]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert!(restored.stdout.contains("  replaced: bug"), "{restored:?}");
    assert!(restored.stdout.contains("  removed, because the goal had added them: half"), "{restored:?}");
    assert!(restored.stdout.contains("  to get them back: git -C "), "{restored:?}");
    let now = (bench.read("bug"), bench.read("tests/t"), bench.read("deep/file"), bench.has("half"));
    assert_eq!(now, ("broken\n".into(), "whole\n".into(), "deep\n".into(), false));
}

#[test]
fn what_setup_changes_on_the_base_too_does_not_fail_the_verdict() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > bug"));
    desk.project.write("bug", "broken\n");
    desk.project.write("lock", "as the user has it\n");
    desk.project.write("tests/t", "whole\n");
    let setup = "setup = ['echo rewritten > lock', 'mkdir tests/made; date +%N > tests/made/now']";
    let settings = format!("[protect]\npaths = ['tests/**']\n[workspace]\n{setup}\n");
    desk.project.write("towline.toml", &settings);
    desk.project.commit("a setup");
    let ran = desk.towline(RUN);
    assert_eq!((ran.code, ran.json()["phase"].as_str()), (Some(0), Some("done")), "{ran:?}");
    assert_eq!(desk.project.read("lock"), "as the user has it\n");
    assert!(!desk.home.towline().join("verify").join(ran.json()["id"].as_str().expect("an id")).exists());
}

#[test]
fn in_a_repository_there_is_no_clone_and_no_branch_and_what_was_dirty_is_the_base() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > bug"));
    desk.project.write("bug", "broken\n");
    desk.project.commit("a bug");
    desk.project.write("mine", "not committed\n");
    let head = desk.project.git(["rev-parse", "HEAD"]);
    let ran = desk.towline([
        "run",
        "mend it",
        "--in-place",
        "--check",
        "grep -q fixed bug && test -e mine",
        "--red-first",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("no clone, no branch and nothing to merge"), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(desk.project.read("bug"), "fixed\n");
    let base = report["base"].as_str().expect("a base");
    assert_eq!(desk.project.git(["rev-parse", &format!("{base}^")]), head);
    assert_eq!(desk.project.git(["show", &format!("{base}:mine")]), "not committed");
    assert_eq!(desk.project.git(["worktree", "list"]).lines().count(), 1);
    assert_eq!(desk.project.git(["branch", "--list"]), "* main");
    assert_eq!(desk.project.git(["status", "--porcelain"]), " M bug\n?? mine");
    let stat = desk.towline(["diff", &id_of(&report), "--stat"]).stdout;
    assert_eq!(stat, "bug +1 -1\n1 file, +1 -1\n");
    assert_eq!(desk.towline(["restore", &id_of(&report)]).code, Some(0));
    assert_eq!(desk.project.git(["status", "--porcelain"]), "?? mine");
}

#[test]
fn the_configuration_and_a_goals_file_decide_where_the_agent_works() {
    let bench = Bench::new("echo fixed > bug");
    let check = "[[checks]]\nrun = \"grep -q fixed bug\"\n";
    std::fs::write(bench.folder.join("towline.toml"), format!("{check}[workspace]\nmode = \"in-place\"\n"))
        .expect("written");
    let refused = bench.towline(&["run", "mend it"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(bench.towline(&["trust", "--yes"]).code, Some(0));
    assert_eq!(bench.towline(&["run", "mend it"]).code, Some(0));
    assert_eq!(bench.read("bug"), "fixed\n");
    std::fs::write(bench.folder.join("towline.toml"), check).expect("written");
    std::fs::write(bench.folder.join("bug"), "broken\n").expect("written");
    std::fs::write(bench.folder.join("goal.md"), "---\nworkspace: {mode: in-place}\n---\nMend it.\n")
        .expect("written");
    assert_eq!(bench.towline(&["run", "--file", "goal.md"]).code, Some(0));
    assert_eq!(bench.read("bug"), "fixed\n");
}

#[test]
fn what_would_be_too_wide_or_makes_no_sense_is_refused() {
    let bench = Bench::new("true");
    let home = bench.desk.home.path();
    bench.refused(&home, &RUN, &["too much to work on in place", "your home directory"]);
    bench.refused(Path::new("/"), &RUN, &["too much to work on in place", "the whole file system"]);
    bench.refused(&bench.folder, &["run", "x"], &["git init", "--in-place"]);
    bench.refused(&bench.folder, &["run", "x", "--in-place", "--base", "HEAD"], &["--base", "--in-place"]);
    std::fs::write(bench.folder.join("goal.md"), "---\nworkspace: {mode: in-place, base: main}\n---\nx\n")
        .expect("written");
    bench.refused(&bench.folder, &["run", "--file", "goal.md"], &["not from `main`"]);
    std::fs::write(bench.folder.join("towline.toml"), "[[checks]]\ncommitted = true\n").expect("written");
    bench.refused(&bench.folder, &["run", "x", "--in-place"], &["wants commits", "git init"]);
    std::fs::remove_file(bench.folder.join("towline.toml")).expect("removed");
    let huge = std::fs::File::create(bench.folder.join("disk.img")).expect("a file");
    huge.set_len(64 << 30).expect("a long file");
    bench.refused(&bench.folder, &RUN, &["disk.img", ".gitignore", "--allow-large"]);
    let left = std::fs::read_dir(bench.desk.home.towline().join("workspaces")).map(Iterator::count);
    assert_eq!(left.unwrap_or_default(), 0, "something was left of what was refused");
    let goals = bench.towline(&["ls", "--json"]);
    assert_eq!(goals.json(), json!([]), "{goals:?}");
}

#[test]
fn only_one_goal_at_a_time_is_at_work_in_a_folder() {
    let bench = Bench::new(WAITS);
    let first = bench.start_in(&bench.folder, &RUN);
    bench.wait_until_started();
    let id = bench.desk.only_goal();
    let short = bench.desk.towline(["ls"]).stdout;
    bench.refused(&bench.folder, &RUN, &["is at work in", "towline cancel"]);
    bench.refused(&bench.folder.join("deep"), &RUN, &["is at work in", "towline cancel"]);
    bench.refused(&bench.folder, &["restore", &id], &["is at work on these files"]);
    std::fs::write(bench.folder.join("go"), "").expect("written");
    assert_eq!(finish(first).code, Some(0), "{short}");
    assert_eq!(bench.towline(&["ls", "--json"]).json().as_array().map(Vec::len), Some(1));
    assert_eq!(bench.towline(&RUN).code, Some(0));
}

#[test]
fn nobody_works_in_a_folder_while_its_files_are_put_back() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > bug"));
    let (waits, go) = (desk.home.path().join("waits"), desk.home.path().join("go"));
    std::fs::write(&go, "").expect("written");
    let script =
        format!("touch {}; while [ ! -e {} ]; do sleep 0.05; done; cat", waits.display(), go.display());
    desk.project.git(["config", "filter.slow.smudge", &script]);
    desk.project.write(".gitattributes", "bug filter=slow\n");
    desk.project.write("bug", "broken\n");
    desk.project.commit("a bug");
    let run = ["run", "mend it", "--in-place", "--check", "false", "--budget", "attempts=1", "--json"];
    let ran = desk.towline(run);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let id = id_of(&ran.json());
    std::fs::remove_file(&go).expect("removed");
    let _ = std::fs::remove_file(&waits);
    let restore = desk.start(["restore", &id]);
    wait_for(LIMIT, "the files to be written", || waits.exists());
    for args in [&["retry", &id, "--budget", "attempts=+1"][..], &run[..], &["restore", &id], &["rm", &id]] {
        let refused = desk.towline(args);
        assert_eq!(refused.code, Some(2), "{args:?}: {refused:?}");
    }
    std::fs::write(&go, "").expect("written");
    let restored = finish(restore);
    assert_eq!((restored.code, desk.project.read("bug")), (Some(0), "broken\n".into()), "{restored:?}");
    assert!(desk.towline(["logs", &id]).stdout.contains("the files were restored"));
    let retried = desk.towline(["retry", &id, "--budget", "attempts=+1"]);
    assert_eq!(retried.code, Some(3), "{retried:?}");
}

#[test]
fn a_crash_frees_the_folder_when_the_agent_is_gone_and_the_goal_is_resumed_in_place() {
    let bench = Bench::new(WAITS);
    let mut first = bench.start_in(&bench.folder, &RUN);
    bench.wait_until_started();
    let id = bench.desk.only_goal();
    first.kill().expect("killed");
    first.wait().expect("gone");
    // Its agent lives on under its supervisor: two agents would be in one folder.
    bench.refused(&bench.folder, &RUN, &["is at work in"]);
    std::fs::write(bench.folder.join("go"), "").expect("written");
    let again = bench.towline(&["run", "--goal", &id, "--json"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let report = again.json();
    assert_eq!((of_attempts(&report, "n"), bench.read("bug")), (vec![json!(1)], "fixed\n".into()));
    assert_eq!(bench.towline(&RUN).code, Some(0));
}

#[test]
fn a_retry_goes_on_in_place() {
    let bench = Bench::new(TWO_ATTEMPTS);
    let ran = bench.towline(&[&RUN[..], &["--budget", "attempts=1"]].concat());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let id = id_of(&ran.json());
    let again =
        finish(bench.start_in(&bench.desk.home.path(), &["retry", &id, "--budget", "attempts=+1", "--json"]));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.json()["base"], ran.json()["base"]);
    assert_eq!(bench.read("bug"), "fixed\n");
}
