//! `towline init`: what it writes works as it is, and it never takes away what is there.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Desk, Ran, of_attempts};
use towline_testkit::agents::pytest_folder;
use towline_testkit::scratch::clean_command;

/// A desk with a script instead of Claude Code: it claims that it is done, and only then repairs the file.
fn desk_with_script(file: &str, from: &str, to: &str) -> Desk {
    let desk = Desk::new();
    let script = desk.home.path().join("agent.toml");
    let replace = json!({"path": file, "from": from, "to": to});
    let steps = format!(
        "[[turn]]\nstep = [{{ say = \"It is done.\" }}]\n\
         [[turn]]\nstep = [{{ replace = {{ path = {}, from = {}, to = {} }} }}, {{ say = \"Now it is.\" }}]\n",
        replace["path"], replace["from"], replace["to"]
    );
    std::fs::write(&script, steps).expect("a script");
    desk.configure(&format!(
        "[agents.claude]\nkind = \"script\"\ncommand = [{:?}, \"script\", {:?}]\n",
        env!("CARGO_BIN_EXE_towline"),
        script.display().to_string()
    ));
    desk
}

/// Puts a folder in front of all others in which programs are looked for.
fn prefer(desk: &mut Desk, folder: &Path) {
    let path = desk.variables().iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    desk.unset("PATH");
    desk.set("PATH", &format!("{}:{}", folder.display(), path.expect("a PATH")));
}

/// Runs a program of the project's own tools.
fn run(desk: &Desk, program: &str, args: &[&str]) {
    let mut command = clean_command(program);
    let output = command.args(args).envs(desk.variables().to_vec()).current_dir(desk.project.path()).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
}

fn init(desk: &Desk) -> Ran {
    let ran = desk.towline(["init"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran
}

/// Sets the project up and lets the goal run: the checks are red at first, red after the first attempt, and green
/// after the second.
fn init_then_run(desk: &Desk) -> Value {
    init(desk);
    desk.project.commit("all");
    let ran = desk.towline(["run", "repair it", "--red-first", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let met: Vec<bool> =
        of_attempts(&report, "verdict").iter().map(|verdict| verdict["met"] == json!(true)).collect();
    assert_eq!(
        (&report["phase"], &report["agent"], met),
        (&json!("done"), &json!("claude"), vec![false, true])
    );
    report
}

#[test]
fn a_fresh_cargo_project_works_unchanged() {
    let mut desk = desk_with_script("src/lib.rs", "left - right", "left + right");
    // The compiler itself: wrappers before it on a PATH may want a home of their own.
    let toolchain = Path::new(env!("CARGO")).parent().expect("a folder");
    prefer(&mut desk, toolchain);
    run(&desk, env!("CARGO"), &["init", "--lib", "--name", "fresh"]);
    let library = desk.project.read("src/lib.rs");
    desk.project.write("src/lib.rs", library.replace("left + right", "left - right"));
    init_then_run(&desk);
    let text = desk.project.read("towline.toml");
    assert!(text.contains("\nrun = \"cargo test\"\n"), "{text}");
}

#[test]
fn a_fresh_npm_project_works_unchanged() {
    let desk = desk_with_script("sum.js", "a - b", "a + b");
    desk.project.write(
        "package.json",
        r#"{"name": "fresh", "version": "1.0.0", "scripts": {"test": "node --test"}}"#,
    );
    desk.project.write("sum.js", "module.exports = (a, b) => a - b;\n");
    desk.project.write(
        "sum.test.js",
        "const sum = require('./sum');\nrequire('node:test')('adds', () => require('assert').equal(sum(1, 2), 3));\n",
    );
    init_then_run(&desk);
}

#[test]
fn a_fresh_pytest_project_works_unchanged() {
    let mut desk = desk_with_script("total.py", "a - b", "a + b");
    prefer(&mut desk, &pytest_folder());
    write_pytest_project(&desk, "");
    init_then_run(&desk);
    let text = desk.project.read("towline.toml");
    let protected = ["tests/**", "**/conftest.py", "pyproject.toml#tool.pytest"];
    assert!(protected.iter().all(|path| text.contains(&format!("\n    \"{path}\",\n"))), "{text}");
}

fn write_pytest_project(desk: &Desk, folder: &str) {
    desk.project.write("pyproject.toml", "[project]\nname = \"fresh\"\nversion = \"1\"\n");
    desk.project.write(format!("{folder}total.py"), "def total(a, b):\n    return a - b\n");
    let test = "from total import total\n\n\ndef test_total():\n    assert total(1, 2) == 3\n";
    desk.project.write("tests/test_total.py", test);
}

#[test]
fn a_virtual_environment_of_the_checkout_is_used_for_the_work_and_not_for_the_checkouts_own_code() {
    let desk = desk_with_script("src/total.py", "a - b", "a + b");
    write_pytest_project(&desk, "src/");
    desk.project.write(".gitignore", ".venv\n");
    let python = pytest_folder().join("python3");
    let own_code = desk.project.path().join("src");
    // As an installation in development mode has it: the user's own code is what is found by itself.
    let text = format!(
        "#!/bin/sh\nPYTHONPATH=\"$PYTHONPATH:{}\" exec {} \"$@\"\n",
        own_code.display(),
        python.display()
    );
    desk.project.write(".venv/bin/python", text);
    desk.project.write(".venv/bin/pytest", "");
    let mode = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(desk.project.path().join(".venv/bin/python"), mode).expect("executable");
    init_then_run(&desk);
}

#[test]
fn a_clean_checkout_gets_the_packages_and_the_ignored_file_that_the_tests_need() {
    let desk = desk_with_script("sum.js", "a - b", "a + b");
    desk.project.write(".gitignore", "node_modules\n.env\n");
    desk.project.write(".env", "SECRET=hush\n");
    desk.project.write("plus/package.json", r#"{"name": "plus", "version": "1.0.0", "main": "i.js"}"#);
    desk.project.write("plus/i.js", "module.exports = 3;\n");
    desk.project.write(
        "package.json",
        r#"{"name": "fresh", "scripts": {"test": "node --test"}, "dependencies": {"plus": "file:plus"}}"#,
    );
    desk.project.write("sum.js", "module.exports = (a, b) => a - b;\n");
    desk.project.write(
        "sum.test.js",
        "const [assert, sum] = [require('assert'), require('./sum')];\n\
         require('node:test')('adds', () => assert.equal(sum(1, 2), require('plus')));\n\
         require('node:test')('has its settings', () => require('fs').readFileSync('.env'));\n",
    );
    run(&desk, "npm", &["install", "--package-lock-only", "--offline", "--no-audit", "--no-fund"]);
    let report = init_then_run(&desk);
    assert_eq!(report["attempts"][1]["verdict"]["checks"][0]["name"], "tests");
    let text = desk.project.read("towline.toml");
    assert!(text.contains("\nsetup = [\"npm ci\"]\n") && text.contains("\ncopy = [\".env\"]\n"), "{text}");
}

#[test]
fn force_replaces_a_symlink_and_not_its_target() {
    let desk = Desk::new();
    let theirs = desk.home.path().join("theirs.txt");
    std::fs::write(&theirs, "precious\n").expect("written");
    let file = desk.project.path().join("towline.toml");
    std::os::unix::fs::symlink(&theirs, &file).expect("linked");
    let ran = desk.towline(["init", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&theirs).expect("still there"), "precious\n");
    assert!(file.symlink_metadata().expect("written").is_file());
    let drafts = std::fs::read_dir(desk.project.path()).expect("a folder").flatten();
    assert!(!drafts.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".new")));
}

#[test]
fn an_existing_file_stays_unless_force_is_given() {
    let desk = Desk::new();
    desk.project.write("towline.toml", "budget.turns = 7\n");
    let ran = desk.towline(["init"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("already there") && ran.stderr.contains("--force"), "{}", ran.stderr);
    let printed = desk.towline(["init", "--print"]);
    assert_eq!((printed.code, desk.project.read("towline.toml").as_str()), (Some(0), "budget.turns = 7\n"));
    assert_eq!(desk.towline(["init", "--force"]).code, Some(0));
    assert_eq!(desk.project.read("towline.toml"), printed.stdout);
    assert_eq!(desk.towline(["init", "--stdout"]).stdout, printed.stdout);
}

#[test]
fn what_was_found_is_printed_for_people_and_for_programs() {
    let desk = desk_with_script("a", "b", "c");
    desk.project.write("go.mod", "module m\n");
    desk.project.write("web/package.json", r#"{"scripts": {"test": "node --test", "lint": "eslint ."}}"#);
    desk.project.write("web/tests/a.js", "");
    let mut inside = desk.command(["init", "--print", "--json"]);
    let ran = Ran::from(inside.current_dir(desk.project.path().join("web")).output().expect("towline runs"));
    let report = ran.json();
    let path = desk.project.path().join("towline.toml").display().to_string();
    assert_eq!((ran.code, &report["path"], &report["written"]), (Some(0), &json!(path), &json!(false)));
    assert!(!Path::new(&path).exists());
    assert_eq!(
        report["checks"],
        json!([
            {"name": "go test", "run": "go test ./..."},
            {"name": "web: npm test", "run": "cd web && npm test"},
        ])
    );
    let protected = report["protect"].as_array().expect("paths");
    assert_eq!(protected[0], "web/tests/**");
    for path in ["web/package.json#scripts", "**/.npmrc", "**/*_test.go", "**/go.mod#replace"] {
        assert!(protected.contains(&json!(path)), "{path} is not in {protected:?}");
    }
    assert_eq!(report["agents"][0]["name"], "claude");

    let ran = init(&desk);
    assert_eq!(desk.project.read("towline.toml"), report["text"].as_str().expect("a text"));
    for line in [
        format!("wrote {path}").as_str(),
        "  ✓ check        cd web && npm test",
        "  · could be     go vet, web: lint (commented out in the file)",
        "  git add towline.toml && git commit -m \"Add towline.toml\"",
        "  towline run \"fix the failing test\"",
    ] {
        assert!(ran.stdout.lines().any(|printed| printed == line), "no {line:?} in {}", ran.stdout);
    }
}

#[test]
fn the_users_own_choice_of_agents_is_left_to_the_user() {
    let desk = desk_with_script("a", "b", "c");
    desk.agent_settings("[defaults]\nagents = [\"claude\"]");
    init(&desk);
    let text = desk.project.read("towline.toml");
    assert!(text.contains("# agents = [\"claude\"]   # as your own configuration has it"), "{text}");
}

#[test]
fn what_is_written_needs_no_trust_of_a_user_who_limits_an_agent() {
    let mut desk = Desk::new();
    desk.configure("[agents.claude]\ncommand = [\"true\"]\n");
    let folder = folder_with_git(&desk);
    std::fs::write(folder.join("codex"), "#!/bin/sh\n").expect("a program");
    std::fs::set_permissions(folder.join("codex"), std::fs::Permissions::from_mode(0o755)).expect("made");
    prefer(&mut desk, &folder);
    for (name, value) in [("OPENAI_API_KEY", "x"), ("ANTHROPIC_API_KEY", "x")] {
        desk.set(name, value);
    }
    let agents = |desk: &Desk| {
        let text =
            desk.towline(["init", "--force", "--json"]).json()["text"].as_str().expect("a text").to_owned();
        text.lines().find(|line| line.starts_with("agents = ")).expect("agents").to_owned()
    };
    assert!(agents(&desk).contains("\"codex\""));
    desk.agent_settings("permission = \"read-only\"");
    assert!(agents(&desk).starts_with("agents = [\"claude\"]"));
    assert_eq!(desk.towline(["trust", "--json"]).json()["state"], "not_needed");
}

/// A folder with git in it, and no agent.
fn folder_with_git(desk: &Desk) -> PathBuf {
    let folder = desk.home.path().join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = std::env::var_os("PATH").expect("a PATH");
    let git = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file());
    symlink(git.expect("git is installed"), folder.join("git")).expect("linked");
    folder
}

#[test]
fn without_an_installed_agent_it_prints_how_to_install_one_and_writes_the_file() {
    let mut desk = Desk::new();
    let folder = folder_with_git(&desk);
    desk.unset("PATH");
    desk.set("PATH", &folder.display().to_string());
    desk.project.write("Cargo.toml", "[package]\nname = \"fresh\"\n");
    let report = desk.towline(["init", "--json"]).json();
    let missing: Vec<&Value> =
        report["missing"].as_array().expect("a list").iter().map(|missing| &missing["about"]).collect();
    assert_eq!((&report["agents"], missing), (&json!([]), vec![&json!("agents"), &json!("cargo")]));
    let fix = report["missing"][0]["fix"].as_str().expect("a fix");
    assert!(
        fix.contains("npm install -g @anthropic-ai/claude-code") && fix.contains("@openai/codex"),
        "{fix}"
    );
    let doctor = desk.towline(["doctor", "--json"]).json();
    assert_eq!(doctor["configuration"]["errors"], json!([]));
    assert_eq!(doctor["configuration"]["warnings"], json!([]));
}

#[test]
fn a_folder_without_git_gets_its_file_and_a_hint() {
    let desk = desk_with_script("a", "b", "c");
    let folder = desk.home.path().join("plain");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("go.mod"), "module m\n").expect("written");
    let init = |args: &[&str]| {
        let mut command = desk.command(args);
        Ran::from(command.current_dir(&folder).output().expect("towline runs"))
    };
    let report = init(&["init", "--print", "--json"]).json();
    assert_eq!((&report["repository"], &report["missing"][0]["about"]), (&Value::Null, &json!("git")));
    let ran = init(&["init"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(folder.join("towline.toml").is_file());
    assert!(
        ran.stdout.contains("towline run --in-place") && ran.stdout.contains("  git init && "),
        "{}",
        ran.stdout
    );
}
