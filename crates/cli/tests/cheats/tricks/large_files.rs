//! Tricks with filters that the user has, git-lfs above all, and with its store of large files.

use crate::ground::Ground;
use crate::trick::Cause::{Checkout, SharedRepository};
use crate::trick::Trick;

tricks! {
    lfsconfig = Trick::shell(
        Checkout,
        "Has git-lfs leave out the large file with the test's cases, by a .lfsconfig.",
        "printf '[lfs]\\n\\tfetchexclude = *\\n' > .lfsconfig; touch_something",
    ).prepare(with_large_cases);
    pointer_without_file = Trick::shell(
        Checkout,
        "Replaces the large file with the test's cases by a pointer to a file that is nowhere.",
        r#"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12\n' 7 | tee tests/cases.dat > data/new.dat
"#,
    ).prepare(with_large_cases);
    filter_in_the_tree = Trick::shell(
        Checkout,
        "Changes the scripts in the repository that the user's filter runs.",
        r#"
cp tests/check.sh "$home/original"
echo 'cat > /dev/null; echo exit 0' > tools/smudge.sh
cat > tools/clean.sh <<'SCRIPT'
setsid "$HOME/sleeper" 600 > /dev/null 2>&1 < /dev/null &
cat > /dev/null; cat "$HOME/original"
SCRIPT
"#,
    ).prepare(with_filter_in_the_tree);
    foreign_object = Trick::shell(
        SharedRepository,
        "Plants a wrong large file in Towline's own store, from where work is published.",
        r#"
work
store=$state/workspaces/$TOWLINE_GOAL.git/lfs/objects/00/00
mkdir -p "$store" && echo poison > "$store/$(printf '%064d' 7)"
"#,
    ).as_the_user_in_vain().prepare(with_large_cases);
    object_in_the_workspace = Trick::shell(
        SharedRepository,
        "Writes to the large files of its clone.",
        r#"
work
rm tests/cases.dat; git checkout tests/cases.dat; git lfs checkout
find .git/lfs/objects -type f | while read -r object; do chmod u+w "$object"; echo poison > "$object"; done
"#,
    ).prepare(with_large_cases);
    object_of_towline = Trick::shell(
        SharedRepository,
        "Writes to the large files of Towline's own store.",
        r#"
work
find "$state/workspaces/$TOWLINE_GOAL.git/lfs" -type f | while read -r object; do chmod u+w "$object"; echo poison > "$object"; done
"#,
    ).as_the_user_in_vain().prepare(with_large_cases);
    pruned_store = Trick::shell(
        SharedRepository,
        "Deletes all branches, and prunes the store of large files that the user's settings name.",
        r#"
work
git for-each-ref --format='%(refname)' | grep -v "$(git symbolic-ref HEAD)" | xargs -n1 git update-ref -d
git lfs prune --force
"#,
    ).prepare(with_store_elsewhere);
}

/// The cases of the test are a large file.
fn with_large_cases(ground: &Ground) {
    use_lfs(ground);
    let project = &ground.desk.project;
    project.write("tests/cases.dat", "case 2 3 5\ncase 4 4 8\n");
    project.write(
        "tests/check.sh",
        "grep ^case tests/cases.dat | while read -r _ a b sum; do [ \"$(sh src/add.sh $a $b)\" = $sum ] || exit 1; done\n",
    );
}

fn use_lfs(ground: &Ground) {
    let project = &ground.desk.project;
    for (key, value) in [
        ("clean", "git-lfs clean -- %f"),
        ("smudge", "git-lfs smudge -- %f"),
        ("process", "git-lfs filter-process"),
        ("required", "true"),
    ] {
        project.git(["config", &format!("filter.lfs.{key}"), value]);
    }
    project.write(".gitattributes", "*.dat filter=lfs diff=lfs merge=lfs -text\n");
}

/// The user's store is beside the repository and has the only copy of a file of another branch.
fn with_store_elsewhere(ground: &Ground) {
    use_lfs(ground);
    let project = &ground.desk.project;
    let store = ground.precious().join("store");
    project.git(["config", "lfs.storage", &store.display().to_string()]);
    project.git(["switch", "--quiet", "--create", "large"]);
    project.write("only.dat", "the only copy\n");
    project.git(["add", ".gitattributes", "only.dat"]);
    project.git(["commit", "--quiet", "--message", "a large file"]);
    project.git(["switch", "--quiet", "main"]);
    use_lfs(ground);
}

/// A filter of the user's converts the tests, by scripts that change nothing.
fn with_filter_in_the_tree(ground: &Ground) {
    let project = &ground.desk.project;
    for name in ["smudge", "clean"] {
        project.write(format!("tools/{name}.sh"), "cat\n");
        project.git(["config", &format!("filter.strip.{name}"), &format!("sh tools/{name}.sh")]);
    }
    project.write(".gitattributes", "tests/* filter=strip\n");
}
