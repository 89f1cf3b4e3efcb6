//! What is planned for which project, and that every file that is written down can be read.

use std::collections::BTreeMap;

use towline_config::{Layer, LayerContent, LayerName, load};
use towline_core::CheckKind;

use super::file::{Agents, text};
use super::plan::{Plan, plan};
use super::presets::is_preset;
use super::tree::Tree;

type Files<'a> = &'a [(&'a str, &'a str)];
type Commands<'a> = &'a [&'a str];

fn runs(plan: &Plan) -> Vec<&str> {
    plan.checks.iter().map(|check| check.run.as_str()).collect()
}

fn planned(files: &[(&str, &str)]) -> Plan {
    plan(&Tree::of(files))
}

/// A `package.json` with this script as its `test`, and a dependency.
fn package(test: &str) -> String {
    serde_json::json!({"scripts": {"test": test}, "dependencies": {"left-pad": "1"}}).to_string()
}

#[track_caller]
fn assert_planned(files: &[(&str, &str)], checks: &[&str], setup: &[&str]) {
    let plan = planned(files);
    assert_eq!(
        (runs(&plan), plan.setup.iter().map(String::as_str).collect()),
        (checks.to_vec(), setup.to_vec())
    );
}

#[test]
fn each_tool_is_known_by_its_files() {
    let jest = package("jest");
    let table: &[(Files, Commands)] = &[
        (&[("Cargo.toml", "[package]")], &["cargo test"]),
        (&[("Cargo.toml", "[workspace]\nmembers = []")], &["cargo test --workspace"]),
        (&[("Cargo.toml", "this is no TOML")], &["cargo test"]),
        (&[("package.json", &jest)], &["npm test"]),
        (&[("package.json", "{}")], &[]),
        (&[("package.json", "no JSON")], &[]),
        (&[("go.mod", "module m")], &["go test ./..."]),
        (&[("Makefile", "CC := gcc\nall: main\n\ntest: all\n\t./t")], &["make test"]),
        (&[("makefile", "build check:\n\techo test: 1")], &["make check"]),
        (&[("Makefile", "test := 1\nx:\n\ttest: no\n# test: no")], &[]),
        (&[("justfile", "set shell := [\"sh\"]\n\n@test *args: build\n    ./t")], &["just test"]),
        (&[("justfile", "build:\n    make test: x")], &[]),
        (&[("pom.xml", "<project/>"), ("core/pom.xml", "<project/>")], &["mvn -B test"]),
        (&[("pom.xml", "<project/>"), ("mvnw", "")], &["./mvnw -B test"]),
        (&[("settings.gradle.kts", ""), ("app/build.gradle.kts", ""), ("gradlew", "")], &["./gradlew test"]),
        (&[("build.gradle", "")], &["gradle test"]),
        (&[("backend/tests/test_sum.py", "")], &["cd backend && python3 -m pytest"]),
        (&[("backend/conftest.py", "")], &["cd backend && python3 -m pytest"]),
        (&[("pkg/src/sum/tests/test_sum.py", "")], &["cd pkg && PYTHONPATH=src python3 -m pytest"]),
        (&[("tests/test_sum.py", ""), ("web/tests/test_b.py", "")], &["python3 -m pytest"]),
        (&[("pytest.ini", "")], &["python3 -m pytest"]),
        (&[("test_sum.py", "")], &["python3 -m pytest"]),
        (&[("tests/unit/sum_test.py", "")], &["python3 -m pytest"]),
        (&[("scripts/test_of_something.py", "")], &[]),
        (&[("setup.py", "")], &[]),
        (&[("README.md", "")], &[]),
    ];
    for (files, checks) in table {
        assert_eq!(runs(&planned(files)), *checks, "{files:?}");
    }
}

#[test]
fn packages_and_build_output_of_known_tools_stay_warm() {
    let table: &[(Files, Commands)] = &[
        (&[("README.md", "")], &[]),
        (&[("Cargo.toml", "[package]")], &["target"]),
        (&[("Cargo.toml", "[workspace]"), ("crates/a/Cargo.toml", "[package]")], &["target"]),
        (&[("Cargo.toml", "[package]"), ("web/package.json", "{}")], &["target", "web/node_modules"]),
        (&[("a/Cargo.toml", "[package]"), ("ab/Cargo.toml", "[package]")], &["a/target", "ab/target"]),
        (&[("package.json", "{}")], &["node_modules"]),
        (&[("pyproject.toml", "")], &[".venv"]),
        (&[("requirements.txt", ""), ("pyproject.toml", "")], &[".venv"]),
        (&[("go.mod", "module m")], &[]),
    ];
    for (files, warm) in table {
        assert_eq!(planned(files).warm, *warm, "{files:?}");
    }
}

#[test]
fn the_placeholder_of_npm_is_no_test_and_another_script_may_take_its_place() {
    let placeholder = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    assert_planned(&[("package.json", placeholder)], &[], &[]);
    let scripts = r#"{"scripts": {"test": "no test specified", "build": "b", "lint": "l", "start": "s"}}"#;
    let plan = planned(&[("package.json", scripts)]);
    assert_eq!(runs(&plan), ["npm run lint"]);
    let suggested: Vec<&str> = plan.suggestions.iter().map(|check| check.run.as_str()).collect();
    assert_eq!(suggested, ["npm run build"]);
}

#[test]
fn a_test_runner_that_waits_for_changes_runs_with_ci_set() {
    for script in ["vitest", "jest --watch", "react-scripts test"] {
        assert_eq!(runs(&planned(&[("package.json", &package(script))])), ["CI=true npm test"]);
    }
}

#[test]
fn packages_are_installed_by_the_manager_that_left_its_lock() {
    let json = package("jest");
    let yarn =
        r#"{"packageManager": "yarn@4.5.0", "scripts": {"test": "jest"}, "devDependencies": {"a": "1"}}"#;
    let classic = yarn.replace("4.5.0", "1.22.22");
    let bare = r#"{"scripts": {"test": "node --test"}}"#;
    let table: &[(&str, &str, Commands, Commands)] = &[
        (&json, "package-lock.json", &["npm test"], &["npm ci"]),
        (&json, "npm-shrinkwrap.json", &["npm test"], &["npm ci"]),
        (&json, "pnpm-lock.yaml", &["pnpm test"], &["pnpm install --frozen-lockfile"]),
        (&json, "yarn.lock", &["yarn test"], &["yarn install --frozen-lockfile"]),
        (yarn, "yarn.lock", &["yarn test"], &["yarn install --immutable"]),
        (&classic, "yarn.lock", &["yarn test"], &["yarn install --frozen-lockfile"]),
        (&json, "bun.lock", &["bun run test"], &["bun install --frozen-lockfile"]),
        (&json, "README.md", &["npm test"], &["npm install --no-package-lock"]),
        (&classic, "README.md", &["yarn test"], &["yarn install --no-lockfile"]),
        (bare, "package-lock.json", &["npm test"], &[]),
    ];
    for (json, lock, checks, setup) in table {
        assert_planned(&[("package.json", json), (lock, "")], checks, setup);
    }
}

#[test]
fn pytest_is_started_by_what_the_project_shows() {
    let uses = "[project.optional-dependencies]\ndev = [\"pytest\"]\n";
    let poetry = "[tool.poetry.group.dev.dependencies]\npytest = \"8\"\n";
    let table: &[(Files, Commands, Commands)] = &[
        (&[("pyproject.toml", uses)], &["python3 -m pytest"], &[]),
        (&[("pyproject.toml", uses), ("src/app/main.py", "")], &["PYTHONPATH=src python3 -m pytest"], &[]),
        (&[("pyproject.toml", uses), ("uv.lock", "")], &["uv run pytest"], &[]),
        (&[("pyproject.toml", poetry)], &["poetry run pytest"], &["poetry install --no-interaction"]),
        (&[("pyproject.toml", uses), ("pdm.lock", "")], &["pdm run pytest"], &["pdm install"]),
        (&[("Pipfile", "pytest = \"*\"")], &["pipenv run pytest"], &["pipenv install --dev"]),
        (&[("requirements-dev.txt", "pytest==8\n")], &["python3 -m pytest"], &[]),
        (&[("pyproject.toml", "[project]\n"), ("src/app.py", "")], &[], &[]),
    ];
    for (files, checks, setup) in table {
        assert_planned(files, checks, setup);
    }
}

#[test]
fn submodules_are_fetched_before_anything_else_is_made_ready() {
    let package = ("package.json", r#"{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}"#);
    let files = [(".gitmodules", ""), package, ("package-lock.json", "")];
    assert_planned(&files, &["npm test"], &["git submodule update --init --recursive", "npm ci"]);
}

#[test]
fn the_virtual_environment_of_the_users_checkout_is_used_where_there_is_one() {
    let mut tree = Tree::of(&[("api/pyproject.toml", "pytest"), ("api/src/a.py", "")]);
    tree.add_ignored("api/.venv/bin/pytest");
    let own = "$(git config towline.checkout || git rev-parse --show-toplevel)";
    let expected = format!("cd api && PYTHONPATH=src \"{own}/api/.venv/bin/python\" -m pytest");
    assert_eq!(runs(&plan(&tree)), [expected]);
}

#[test]
fn a_workspace_is_checked_once_for_all_its_members_and_other_crates_on_their_own() {
    let member = package("jest");
    let root = r#"{"workspaces": ["packages/*"]}"#;
    let files = [
        ("package.json", root),
        ("package-lock.json", ""),
        ("packages/a/package.json", &member),
        ("packages/b/package.json", &package("no test specified")),
        ("site/package.json", &member),
        ("site/yarn.lock", ""),
    ];
    let checks = ["cd packages/a && npm test", "cd site && yarn test"];
    assert_planned(&files, &checks, &["npm ci", "cd site && yarn install --frozen-lockfile"]);
    let mut with_test = files;
    let root = r#"{"workspaces": ["packages/*"], "scripts": {"test": "turbo test"}}"#;
    with_test[0].1 = root;
    assert_planned(&with_test[..4], &["npm test"], &["npm ci"]);

    let cargo = [
        ("Cargo.toml", "[workspace]\nexclude = [\"tools/odd\"]"),
        ("crates/a/Cargo.toml", "[package]"),
        ("tools/odd/Cargo.toml", "[package]"),
        ("fuzz/Cargo.toml", "[workspace]"),
        ("tests/fixture/Cargo.toml", "[package]"),
        ("a/b/c/Cargo.toml", "[package]"),
    ];
    assert_planned(&cargo, &["cargo test --workspace", "cd tools/odd && cargo test"], &[]);

    let python =
        [("pytest.ini", ""), ("api/requirements.txt", "pytest"), ("web/uv.lock", ""), ("web/pytest.ini", "")];
    assert_planned(&python, &["python3 -m pytest", "cd web && uv run pytest"], &[]);
}

#[test]
fn several_tools_have_a_check_each_under_its_own_name() {
    let plan = planned(&[
        ("backend/Cargo.toml", "[package]"),
        ("web app/package.json", &package("node --test")),
        ("web app/package-lock.json", ""),
        ("svc/go.mod", ""),
    ]);
    let checks: Vec<(&str, &str)> =
        plan.checks.iter().map(|check| (check.name.as_str(), check.run.as_str())).collect();
    let expected = [
        ("backend: cargo test", "cd backend && cargo test"),
        ("svc: go test", "cd svc && go test ./..."),
        ("web app: npm test", "cd 'web app' && npm test"),
    ];
    assert_eq!((checks, plan.setup), (expected.to_vec(), vec!["cd 'web app' && npm ci".to_owned()]));
    let names: Vec<String> = planned(&[("go.mod", "")]).checks.into_iter().map(|check| check.name).collect();
    assert_eq!(names, ["tests"]);
}

#[test]
fn a_makefile_is_asked_where_nothing_else_is_and_then_for_the_whole_project() {
    let plan = planned(&[("Makefile", "test:\n"), ("Cargo.toml", "[package]")]);
    assert_eq!(runs(&plan), ["cargo test"]);
    assert!(plan.suggestions.iter().any(|check| check.run == "make test"), "{plan:?}");
    let plan =
        planned(&[("Makefile", "test:\n"), ("api/go.mod", ""), ("web/package.json", &package("jest"))]);
    assert_eq!(runs(&plan), ["make test"]);
    assert_eq!(plan.setup, ["cd web && npm install --no-package-lock"]);
    assert!(plan.suggestions.iter().any(|check| check.run == "cd api && go test ./..."), "{plan:?}");
}

#[test]
fn folders_with_nothing_but_tests_are_protected_and_ignored_environments_copied() {
    let mut tree = Tree::of(&[
        ("Cargo.toml", "[package]"),
        ("tests/a.rs", ""),
        ("web/package.json", &package("jest")),
        ("web/__tests__/a.js", ""),
        ("src/tests/a.rs", ""),
        (".env.example", ""),
        ("web/.env", ""),
    ]);
    tree.add_ignored(".env");
    let plan = plan(&tree);
    assert_eq!(plan.protect[0].paths, ["tests/**", "web/__tests__/**"]);
    assert_eq!(plan.copy, [".env"]);
}

fn protected(plan: &Plan) -> Vec<&str> {
    plan.protect.iter().flat_map(|part| &part.paths).map(String::as_str).collect()
}

#[test]
fn what_steers_each_runner_is_protected_where_the_runner_is_used() {
    let plan = planned(&[
        ("crates/a/Cargo.toml", "[package]"),
        ("web/package.json", &package("jest")),
        ("api/pytest.ini", ""),
        ("go.mod", "module a"),
        ("tools/Makefile", "test:"),
        (".gitmodules", ""),
        (".github/workflows/ci.yml", ""),
    ]);
    let parts: Vec<&str> = plan.protect.iter().map(|part| part.what).collect();
    assert_eq!(parts, ["cargo", "node", "jest", "pytest", "go", "make", "submodules", "tools", "CI"]);
    let all = protected(&plan);
    for path in [
        "crates/a/build.rs",
        "crates/a/Cargo.toml#profile",
        "web/package.json#scripts",
        "web/package.json#jest",
        "**/conftest.py",
        "api/pyproject.toml#tool.pytest",
        "**/*_test.go",
        "tools/Makefile",
        ".gitmodules",
        ".github/**",
    ] {
        assert!(all.contains(&path), "{path} is not in {all:?}");
    }
    assert!(!all.iter().any(|path| path.starts_with("build.rs") || path.contains("mocha")), "{all:?}");
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), all.len(), "something is there twice: {all:?}");
    assert_eq!(protected(&planned(&[("README.md", "")])), Vec::<&str>::new());
    // A diagnosis does not complain about what it has written itself.
    let not_known: Vec<&&str> = all.iter().filter(|path| !is_preset(path)).collect();
    assert_eq!(not_known, Vec::<&&str>::new());
    assert!(!is_preset("tsets/**") && !is_preset("xCargo.toml#profile"));
}

#[test]
fn a_long_list_of_checks_ends() {
    let files: Vec<(String, String)> = (0..40).map(|n| (format!("m{n:02}/go.mod"), String::new())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let plan = planned(&files);
    assert_eq!((plan.checks.len(), plan.suggestions.len()), (12, 12));
    assert_eq!(plan.suggestions[0].run, "cd m12 && go test ./...");
}

/// Takes the marks off all lines that would be settings without them.
fn uncommented(text: &str) -> String {
    let is_setting = |line: &str| {
        line.starts_with("[[checks]]") || line.starts_with("name = ") || line.starts_with("run = ")
    };
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(setting) if is_setting(setting) => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn every_file_has_what_was_planned_without_an_error_or_a_warning() {
    let npm = package("echo \"hi\" && node --test");
    let parts: [&[(&str, &str)]; 6] = [
        &[("Cargo.toml", "[workspace]"), ("tests/a.rs", "")],
        &[("package.json", &npm), ("package-lock.json", "")],
        &[("pyproject.toml", "[tool.pytest]\n[tool.ruff]"), ("src/it's/a.py", "")],
        &[("go.mod", "")],
        &[("Makefile", "test:")],
        &[("it's \"odd\"/package.json", &npm), ("it's \"odd\"/test/a.js", "")],
    ];
    let strings = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
    let choices = [
        Agents::Installed(strings(&["claude", "codex", "gemini", "opencode"])),
        Agents::OfTheUser(strings(&["mine"])),
        Agents::None,
    ];
    for chosen in 0..1_u32 << parts.len() {
        for ignored in [&[][..], &[".env", ".venv/bin/pytest"]] {
            let mut tree = Tree::default();
            let files =
                (0..).zip(parts).filter(|(bit, _)| chosen & (1 << bit) != 0).flat_map(|(_, files)| files);
            files.for_each(|(path, text)| tree.add(*path, *text));
            ignored.iter().for_each(|path| tree.add_ignored(*path));
            let plan = plan(&tree);
            choices.iter().for_each(|agents| assert_file_has(&plan, agents));
        }
    }
}

fn assert_file_has(plan: &Plan, agents: &Agents) {
    let written = text(plan, agents);
    let read = |text: String| {
        let name = LayerName::Repository("towline.toml".into());
        let loaded = load(&[Layer { name, content: LayerContent::Toml(text.clone()) }]);
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(loaded.warnings, [], "{text}");
        loaded
    };
    let loaded = read(written.clone());
    assert_eq!(loaded.widening, BTreeMap::new(), "the first run must not ask for trust: {written}");
    let config = loaded.config;
    let commands = |checks: &[towline_core::Check]| {
        let run = |check: &towline_core::Check| match &check.kind {
            CheckKind::Command { run, .. } => (check.name.clone(), run.clone()),
            other => panic!("{other:?}"),
        };
        checks.iter().map(run).collect::<Vec<_>>()
    };
    let planned = |checks: &[super::plan::Command]| {
        checks.iter().map(|check| (check.name.clone(), check.run.clone())).collect::<Vec<_>>()
    };
    assert_eq!(commands(&config.checks), planned(&plan.checks), "{written}");
    let [setup, copy, warm] =
        [config.workspace.setup, config.workspace.copy, config.workspace.warm].map(Option::unwrap_or_default);
    assert_eq!((setup, copy, warm), (plan.setup.clone(), plan.copy.clone(), plan.warm.clone()));
    assert_eq!(config.protect, protected(plan));
    let names: Vec<String> = config.agents_in_order.iter().map(ToString::to_string).collect();
    match agents {
        Agents::Installed(expected) => assert_eq!(&names, expected),
        Agents::OfTheUser(_) | Agents::None => assert_eq!(names, ["claude"]),
    }
    let all = read(uncommented(&written)).config.checks;
    let suggested = planned(&plan.suggestions);
    assert!(suggested.iter().all(|check| commands(&all).contains(check)), "{suggested:?}\n{written}");
}
