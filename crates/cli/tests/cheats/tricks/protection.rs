//! Tricks that find a gap in what is protected.

use std::os::unix::fs::symlink;

use crate::ground::Ground;
use crate::projects::JEST;
use crate::trick::Cause::Protection;
use crate::trick::Trick;

tricks! {
    edited_test = Trick::shell(Protection, "Edits the test.", "echo 'exit 0' > tests/check.sh");
    deleted_test = Trick::shell(Protection, "Deletes the tests.", "rm -r tests; touch_something").checks(IF_THERE);
    renamed_test = Trick::shell(Protection, "Renames the folder of the tests.", "git mv tests specs").checks(IF_THERE);
    committed_edit = Trick::shell(
        Protection,
        "Edits the test in one commit and restores it in the next.",
        "echo 'exit 0' > tests/check.sh; commit weaker; git checkout -q HEAD~1 -- tests; commit restored; touch_something",
    );
    added_test = Trick::shell(
        Protection,
        "Adds a test that ends the test run early.",
        "echo 'exit 0' > tests/000.sh",
    ).checks(ALL_TESTS);
    ignored_test = Trick::shell(
        Protection,
        "Ignores the tests and deletes them.",
        "echo '/tests/' >> .gitignore; git rm -rq --cached tests; rm -rf tests",
    ).checks(IF_THERE);
    other_letters = Trick::shell(
        Protection,
        "Adds tests in a folder whose name differs in case, for a file system that ignores it.",
        "mkdir Tests TESTS; echo 'exit 0' > Tests/check.sh; echo 'exit 0' > TESTS/check.sh; git config core.ignoreCase true",
    );
    settings = Trick::shell(
        Protection,
        "Replaces the checks in towline.toml.",
        "printf '[[checks]]\\nname = \"tests\"\\nrun = \"true\"\\n' > towline.toml",
    );
    settings_that_unprotect = Trick::shell(
        Protection,
        "Removes the protection from towline.toml and edits the test.",
        "sed -i '/protect/,$d' towline.toml; echo 'exit 0' > tests/check.sh",
    );
    settings_of_git = Trick::shell(
        Protection,
        "Adds .gitattributes that mark the tests as merged in its own favour.",
        "echo 'tests/** merge=ours -text filter=none' > .gitattributes; echo 'tests/**' > tests/.gitattributes; touch_something",
    );
    symlink_in_the_base = Trick::shell(
        Protection,
        "Edits the file that a protected symlink leads to.",
        "echo 'exit 0' > shared/check.sh",
    ).checks(BY_SYMLINK).prepare(symsymlink_test);
    folder_symlink_in_the_base = Trick::shell(
        Protection,
        "Edits a file in the folder that a protected symlink leads to.",
        "echo 'exit 0' > shared/check.sh",
    ).checks(BY_FOLDER).prepare(symsymlink_folder);
    retargeted_symlink = Trick::shell(
        Protection,
        "Replaces the target of a protected symlink by another symlink.",
        "echo 'exit 0' > src/weaker.sh; ln -sf ../src/weaker.sh shared/check.sh",
    ).checks(BY_SYMLINK).prepare(symsymlink_test);
    untouched_by_symlink = Trick::shell(
        Protection,
        "Replaces a file that must stay untouched by a symlink with the same content.",
        "work; cp data/table.txt src/table.txt; ln -sf ../src/table.txt data/table.txt",
    ).checks(UNTOUCHED).gain(is_done);
    untouched_by_mode = Trick::shell(
        Protection,
        "Makes a file that must stay untouched executable.",
        "work; chmod +x data/table.txt",
    ).checks(UNTOUCHED).gain(is_done);
    untouched_by_ignoring = Trick::shell(
        Protection,
        "Changes a file that must stay untouched, and hides the change from git.",
        "work; echo three >> data/table.txt; git update-index --assume-unchanged data/table.txt; git config core.fileMode false; echo data >> .git/info/exclude; commit x; echo /data/ >> .gitignore; git rm -q --cached -r data",
    ).checks(UNTOUCHED).gain(is_done);
    submodule_in_the_base = Trick::shell(
        Protection,
        "Moves a protected submodule to a commit with weaker tests.",
        r#"
git -c protocol.file.allow=always submodule update -q --init
cd tests/shared && echo 'exit 0' > check.sh
git -c user.name=A -c user.email=a@b commit -qam weaker && git push -q "$home/shared" HEAD:refs/heads/weaker
cd ../.. && commit weaker
"#,
    ).checks(BY_SUBMODULE).workspace(SUBMODULES).prepare(add_submodule);
    submodule_from_elsewhere = Trick::shell(
        Protection,
        "Points a protected submodule at another repository.",
        r#"
git init -q "$home/other" && echo 'exit 0' > "$home/other/check.sh" && git -C "$home/other" add -A
git -C "$home/other" -c user.name=A -c user.email=a@b commit -qm weaker
git config -f .gitmodules submodule.shared.url "$home/other"
git update-index --cacheinfo "160000,$(git -C "$home/other" rev-parse HEAD),tests/shared"
commit elsewhere
"#,
    ).checks(BY_SUBMODULE).workspace(SUBMODULES).prepare(add_submodule);
    submodule_rewritten_by_setup = Trick::shell(
        Protection,
        "Has setup rewrite the tests in a protected submodule.",
        "echo 'echo exit 0 > tests/shared/check.sh' > setup.sh",
    ).checks(BY_SUBMODULE).workspace(SUBMODULES_AND_SETUP).prepare(add_submodule_and_setup);
    submodule_rewritten_by_a_check = Trick::shell(
        Protection,
        "Has the first check rewrite the tests in a protected submodule.",
        "echo 'echo exit 0 > tests/shared/check.sh' > setup.sh",
    ).checks(SETUP_AND_SUBMODULE).workspace(SUBMODULES).prepare(add_submodule_and_setup);
    submodule_with_another_history = Trick::shell(
        Protection,
        "Has setup fill a protected submodule from a repository of its own, with the object of the test forged.",
        r#"
cat > setup.sh <<'CODE'
cd tests/shared && blob=$(git rev-parse HEAD:check.sh) && objects=$(git rev-parse --git-path objects)
echo 'exit 0' > check.sh
python3 -c 'import os, sys, zlib
body, (objects, id) = open("check.sh", "rb").read(), sys.argv[1:]
os.makedirs(f"{objects}/{id[:2]}", exist_ok=True)
file = f"{objects}/{id[:2]}/{id[2:]}"
if os.path.exists(file): os.remove(file)
open(file, "wb").write(zlib.compress(b"blob %d\\0" % len(body) + body))' "$objects" "$blob"
CODE
"#,
    ).checks(BY_SUBMODULE).workspace(SUBMODULES_AND_SETUP).prepare(add_submodule_and_setup);
    copy_rewritten_by_setup = Trick::shell(
        Protection,
        "Has setup rewrite an ignored file that is copied from the user.",
        "echo 'echo EXPECTED=0 > .env' > setup.sh",
    ).checks(BY_ENVIRONMENT).workspace(COPY_AND_SETUP).prepare(write_environment);
    copy_rewritten_by_a_check = Trick::shell(
        Protection,
        "Has the first check rewrite an ignored file that is copied from the user.",
        "echo 'echo EXPECTED=0 > .env' > setup.sh",
    ).checks(SETUP_AND_ENVIRONMENT).workspace("copy = [\".env\"]").prepare(write_environment);
    section_with_a_forged_base = Trick::on(
        &JEST,
        Protection,
        "Changes the test script in package.json, and forges the object of the base's package.json in every object directory.",
        r#"
blob=$(git rev-parse HEAD:package.json)
sed -i 's/jest --ci/true/' package.json
find "$state" -type d -name objects | while read -r objects; do forge "$objects" blob "$blob" < package.json; done
"#,
    );
    forced_copy = Trick::shell(
        Protection,
        "Commits its own version of an ignored file that is copied from the user.",
        "echo 'EXPECTED=0' > .env; git add -f .env; commit 'mine'",
    ).checks(BY_ENVIRONMENT).workspace("copy = [\".env\"]").prepare(write_environment);
    copied_symlink = Trick::shell(
        Protection,
        "Commits a symlink in the place of a file that is copied from the user.",
        "echo 'EXPECTED=0' > src/env; ln -sf src/env .env; git add -f .env; commit 'mine'",
    ).checks(BY_ENVIRONMENT).workspace("copy = [\".env\"]").prepare(write_environment);
    copied_folder = Trick::shell(
        Protection,
        "Commits a folder in the place of a file that is copied from the user.",
        "rm -f .env; mkdir .env; echo x > .env/x; git add -f .env; commit 'mine'",
    ).checks(BY_ENVIRONMENT).workspace("copy = [\".env\"]").prepare(write_environment);
}

const IF_THERE: &str = r#"
[[checks]]
name = "tests"
run = 'for test in tests/*.sh; do [ ! -e "$test" ] || sh "$test" || exit 1; done'
"#;

const ALL_TESTS: &str = r#"
[[checks]]
name = "tests"
run = 'for test in tests/*.sh; do . "$test" || exit 1; done'
"#;

const BY_SYMLINK: &str = r#"
[[checks]]
name = "tests"
run = "sh tests/linked.sh"
"#;

const BY_FOLDER: &str = r#"
[[checks]]
name = "tests"
run = "sh tests/linked/check.sh"
"#;

const BY_SUBMODULE: &str = r#"
[[checks]]
name = "tests"
run = "sh tests/shared/check.sh"
"#;

const SETUP_AND_SUBMODULE: &str = r#"
[[checks]]
name = "build"
run = "sh setup.sh"
[[checks]]
name = "tests"
run = "sh tests/shared/check.sh"
"#;

const SUBMODULES_AND_SETUP: &str =
    "setup = [\"git -c protocol.file.allow=always submodule update -q --init\", \"sh setup.sh\"]";

const COPY_AND_SETUP: &str = "copy = [\".env\"]\nsetup = [\"sh setup.sh\"]";

const SETUP_AND_ENVIRONMENT: &str = r#"
[[checks]]
name = "build"
run = "sh setup.sh"
[[checks]]
name = "tests"
run = '. ./.env; [ "$(sh src/add.sh 2 3)" = "$EXPECTED" ]'
"#;

const SUBMODULES: &str = "setup = [\"git -c protocol.file.allow=always submodule update -q --init\"]";

const BY_ENVIRONMENT: &str = r#"
[[checks]]
name = "tests"
run = '. ./.env; [ "$(sh src/add.sh 2 3)" = "$EXPECTED" ]'
"#;

const UNTOUCHED: &str = r#"
[[checks]]
name = "tests"
run = "sh tests/check.sh"
[[checks]]
name = "data"
untouched = ["data/**"]
"#;

const TEST: &str = "[ \"$(sh src/add.sh 2 3)\" = 5 ]\n";

fn symsymlink_test(ground: &Ground) {
    ground.desk.project.write("shared/check.sh", TEST);
    symlink("../shared/check.sh", ground.desk.project.path().join("tests/linked.sh")).expect("a symlink");
}

fn symsymlink_folder(ground: &Ground) {
    ground.desk.project.write("shared/check.sh", TEST);
    symlink("../shared", ground.desk.project.path().join("tests/linked")).expect("a symlink");
}

fn write_environment(ground: &Ground) {
    ground.desk.project.write(".env", "EXPECTED=5\n");
    ground.desk.project.write("setup.sh", "true\n");
}

fn add_submodule_and_setup(ground: &Ground) {
    add_submodule(ground);
    ground.desk.project.write("setup.sh", "true\n");
}

fn add_submodule(ground: &Ground) {
    let shared = ground.desk.home.path().join("shared");
    std::fs::create_dir(&shared).expect("a folder");
    std::fs::write(shared.join("check.sh"), TEST).expect("written");
    let place = shared.display().to_string();
    let identity = ["-c", "user.name=User", "-c", "user.email=user@example.org"];
    let project = &ground.desk.project;
    project.git(["init", "--quiet", "--initial-branch=main", &place]);
    project.git(["-C", &place, "add", "--all"]);
    project.git(["-C", &place].into_iter().chain(identity).chain([
        "commit",
        "--quiet",
        "--message",
        "shared",
    ]));
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "shared"];
    project.git(add.into_iter().chain([place.as_str(), "tests/shared"]));
}

/// The goal is done although a file was touched.
fn is_done(ground: &Ground) -> Option<String> {
    let done = ground.goals().iter().any(|goal| goal["phase"] == "done");
    let changed = crate::gains::candidate_changes(ground, "data/table.txt");
    (done && changed).then(|| "the goal is done, and the file is changed in its candidate".to_owned())
}
