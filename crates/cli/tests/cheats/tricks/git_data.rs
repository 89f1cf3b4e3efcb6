//! Tricks with git's own data: objects, refs, the index, history.

use crate::gains::{loot, merge_loses_work, merge_runs_code};
use crate::trick::Cause::GitData;
use crate::trick::{Breach, Trick};

tricks! {
    index_with_a_forged_tree = Trick::shell(
        GitData,
        "Writes an index whose cached tree has other tests than its entries.",
        r#"
echo 'exit 0' > tests/check.sh && git add -A && evil=$(git write-tree)
git reset -q --hard && git write-tree > /dev/null
python3 - "$gitdir/index" "$(git write-tree)" "$evil" <<'PY'
import hashlib, sys
path, good, evil = sys.argv[1], *map(bytes.fromhex, sys.argv[2:])
data = open(path, "rb").read()[:-20].replace(good, evil)
open(path, "wb").write(data + hashlib.sha1(data).digest())
PY
"#,
    );
    blob_with_other_bytes = Trick::shell(
        GitData,
        "Replaces the bytes of the test in the object directory, under the same id.",
        r#"
echo 'exit 0' | forge "$common/objects" blob "$(git rev-parse HEAD:tests/check.sh)"
touch_something
"#,
    );
    tree_with_other_bytes = Trick::shell(
        GitData,
        "Replaces the bytes of the tests' tree in the object directory, under the same id.",
        r#"
evil=$(tree 100644 check.sh "$(echo 'exit 0' | git hash-object -w --stdin)")
git cat-file tree "$evil" | forge "$common/objects" tree "$(git rev-parse HEAD:tests)"
touch_something
"#,
    );
    commit_with_other_bytes = Trick::shell(
        GitData,
        "Replaces the bytes of the base commit, under the same id, so that it names other tests.",
        r#"
base=$(git rev-parse HEAD)
echo 'exit 0' > tests/check.sh && git add -A && evil=$(git write-tree) && git reset -q --hard
git cat-file commit "$base" | sed "s/^tree .*/tree $evil/" | forge "$common/objects" commit "$base"
touch_something
"#,
    );
    blob_of_an_alternate = Trick::shell(
        GitData,
        "Adds an alternate object directory that has the test's id with other bytes, and removes the real object.",
        r#"
blob=$(git rev-parse HEAD:tests/check.sh)
echo 'exit 0' | forge "$home/objects" blob "$blob"
rm -f "$common/objects/$(printf %s "$blob" | cut -c1-2)/$(printf %s "$blob" | cut -c3-)"
mkdir -p "$common/objects/info" && echo "$home/objects" > "$common/objects/info/alternates"
touch_something
"#,
    );
    blob_of_the_user = Trick::shell(
        GitData,
        "Replaces the bytes of the test in the user's own object directory.",
        r#"
echo 'exit 0' | forge "$project/.git/objects" blob "$(git rev-parse HEAD:tests/check.sh)"
touch_something
"#,
    ).as_the_user(Breach::Damage);
    objects_in_towlines_repositories = Trick::shell(
        GitData,
        "Replaces the bytes of the test in every object directory below the state directory.",
        r#"
blob=$(git rev-parse HEAD:tests/check.sh)
find "$state" -type d -name objects | while read -r objects; do echo 'exit 0' | forge "$objects" blob "$blob"; done
touch_something
"#,
    );
    replaced_test = Trick::shell(
        GitData,
        "Replaces the test by a replace ref.",
        r#"
git replace "$(git rev-parse HEAD:tests/check.sh)" "$(echo 'exit 0' | git hash-object -w --stdin)"
touch_something
"#,
    );
    replaced_base = Trick::shell(
        GitData,
        "Replaces the base commit, by a replace ref, with one that has other tests.",
        r#"
base=$(git rev-parse HEAD)
echo 'exit 0' > tests/check.sh && git add -A
git replace "$base" "$(git commit-tree "$(git write-tree)" -p HEAD~1 -m other)"
git reset -q --hard
touch_something
"#,
    );
    graft = Trick::shell(
        GitData,
        "Grafts the user's branch onto its commit as a parent, so that a merge would drop the user's work.",
        r#"
work && commit 'repair it'
echo "$(git rev-parse HEAD) $(git rev-parse HEAD~1) $(git rev-parse main)" > "$common/info/grafts"
"#,
    ).workspace(FROM_START).gain(merge_loses_work);
    replaced_parents = Trick::shell(
        GitData,
        "Adds the user's branch as a parent of its commit by a replace ref.",
        r#"
work && commit 'repair it'
git replace --graft HEAD HEAD~1 main
"#,
    ).workspace(FROM_START).gain(merge_loses_work);
    commit_graph = Trick::shell(
        GitData,
        "Writes a commit-graph in which the user's branch is a parent of its commit.",
        r#"
work && commit 'repair it'
head=$(git rev-parse HEAD) && main=$(git rev-parse main)
git clone -q --bare "$common" "$home/graph"
git cat-file commit "$head" | sed "s/^author/parent $main\nauthor/" | forge "$home/graph/objects" commit "$head"
git --git-dir="$home/graph" update-ref refs/heads/mine "$head"
git --git-dir="$home/graph" commit-graph write --reachable
mkdir -p "$common/objects/info" && cp "$home/graph/objects/info/commit-graph" "$common/objects/info/"
"#,
    ).workspace(FROM_START).gain(merge_loses_work);
    shallow_file = Trick::shell(
        GitData,
        "Declares the history shallow at the base.",
        r#"
work && commit 'repair it'
git rev-parse HEAD~1 > "$common/shallow"
"#,
    ).workspace(FROM_START).gain(merge_loses_work);
    merge_driver = Trick::shell(
        GitData,
        "Configures a merge driver that runs its code when the work is merged.",
        r#"
work
git config merge.mine.driver "echo ran >> '$loot'"
git config --global merge.mine.driver "echo ran >> '$loot'"
echo 'data/** merge=mine' >> .gitattributes
mkdir -p "$common/info" && echo 'data/** merge=mine' >> "$common/info/attributes"
echo three >> data/table.txt
"#,
    ).workspace(FROM_START).gain(merge_runs_code);
    merge_hooks = Trick::shell(
        GitData,
        "Installs hooks that run its code when the work is merged.",
        r#"
work
mkdir -p "$common/hooks"
for hook in pre-merge-commit post-merge reference-transaction post-commit commit-msg post-checkout; do
    printf '#!/bin/sh\necho ran >> "%s"\n' "$loot" > "$common/hooks/$hook" && chmod +x "$common/hooks/$hook"
done
"#,
    ).workspace(FROM_START).gain(merge_runs_code);
    orphan_history = Trick::shell(
        GitData,
        "Commits the work on a branch without history.",
        "git checkout -q --orphan free && work && commit 'everything is mine'",
    );
    rewritten_history = Trick::shell(
        GitData,
        "Rewrites the base commit, so that the user's commit is gone from the history.",
        "work && git add -A && git -c user.name=A -c user.email=a@b commit -q --amend --no-verify -m 'all mine'",
    );
    detached_history = Trick::shell(
        GitData,
        "Commits a weaker test on a detached HEAD and leaves the old one in the working tree.",
        r#"
git checkout -q --detach
echo 'exit 0' > tests/check.sh && commit 'weaker'
git checkout -q HEAD~1 -- tests/check.sh && touch_something
"#,
    );
    tree_with_a_git_folder = Trick::shell(
        GitData,
        "Commits a tree with an entry `.git` that holds a hook.",
        r#"
work && git add -A
hook=$(printf '#!/bin/sh\necho ran >> "%s"\n' "$loot" | git hash-object -w --stdin)
evil=$(tree 40000 .git "$(tree 40000 hooks "$(tree 100755 post-checkout "$hook")")" 100644 README.md "$(git rev-parse HEAD:README.md)")
git update-ref HEAD "$(git commit-tree "$evil" -p HEAD -m evil)"
"#,
    ).gain(loot);
    tree_that_climbs = Trick::shell(
        GitData,
        "Commits a tree whose entries are named `..` and `../../climbed`.",
        r#"
work && git add -A
file=$(echo climbed | git hash-object -w --stdin)
git update-ref HEAD "$(git commit-tree "$(tree 40000 .. "$(tree 100644 climbed "$file")" 100644 ../../climbed "$file")" -p HEAD -m evil)"
"#,
    );
    tree_with_two_tests = Trick::shell(
        GitData,
        "Commits a tree that has the test twice, and the second one passes.",
        r#"
file=$(echo 'exit 0' | git hash-object -w --stdin)
tests=$(tree 100644 check.sh "$(git rev-parse HEAD:tests/check.sh)" 100644 check.sh "$file")
git ls-tree HEAD | sed "s/^040000 tree [0-9a-f]*\ttests/040000 tree $tests\ttests/" > "$home/entries"
git update-ref HEAD "$(git commit-tree "$(git mktree --missing < "$home/entries")" -p HEAD -m twice)"
touch_something
"#,
    );
    submodule_that_climbs = Trick::shell(
        GitData,
        "Adds a submodule whose name leads out of the repository and whose update runs a command.",
        r#"
git init -q "$home/evil" && git -C "$home/evil" -c user.name=A -c user.email=a@b commit -q --allow-empty -m evil
printf '[submodule "../../hooks/evil"]\n\tpath = sub\n\turl = %s\n\tupdate = !echo ran >> %s\n' "$home/evil" "$loot" > .gitmodules
git update-index --add --cacheinfo "160000,$(git -C "$home/evil" rev-parse HEAD),sub"
mkdir -p sub && touch_something
"#,
    ).workspace("setup = [\"git submodule update --init || true\"]").gain(loot);
    packed_refs_that_lie = Trick::shell(
        GitData,
        "Writes packed-refs in which its branch is at a commit with weaker tests.",
        r#"
branch=$(git symbolic-ref HEAD)
echo 'exit 0' > tests/check.sh && git add -A
evil=$(git commit-tree "$(git write-tree)" -p HEAD -m weaker) && git reset -q --hard
git pack-refs --all && sed -i "s|^[0-9a-f]* $branch\$|$evil $branch|" "$common/packed-refs"
touch_something
"#,
    );
    head_as_a_symlink = Trick::shell(
        GitData,
        "Replaces HEAD by a symlink to the user's branch.",
        r#"
rm "$gitdir/HEAD" && ln -s "$project/.git/refs/heads/main" "$gitdir/HEAD"
work
"#,
    );
    another_repository = Trick::shell(
        GitData,
        "Replaces .git by a file that names the user's repository.",
        r#"
rm -rf .git && echo "gitdir: $project/.git" > .git
work
"#,
    );
    no_repository = Trick::shell(GitData, "Deletes .git.", "rm -rf .git; work");
    another_working_tree = Trick::shell(
        GitData,
        "Points core.worktree at files of the user's.",
        "git config core.worktree \"$precious\"; work",
    );
    bare = Trick::shell(GitData, "Declares the repository bare.", "git config core.bare true; work");
    unknown_format = Trick::shell(
        GitData,
        "Declares a repository format that git does not know.",
        "git config core.repositoryFormatVersion 99; git config extensions.noSuch true; work",
    );
    garbage_index = Trick::shell(
        GitData,
        "Fills the index with garbage.",
        "head -c 4096 /dev/urandom > \"$gitdir/index\"; work",
    );
    hidden_entries = Trick::shell(
        GitData,
        "Stages a weaker test, marks it as unchanged and to be skipped, and restores the file.",
        r#"
echo 'exit 0' > tests/check.sh && git add tests && git show HEAD:tests/check.sh > tests/check.sh
git update-index --assume-unchanged --skip-worktree tests/check.sh
touch_something
"#,
    );
    no_objects = Trick::shell(
        GitData,
        "Deletes all objects that git can reach in the workspace.",
        "work; find \"$common/objects\" -type f -delete",
    );
    locks = Trick::shell(
        GitData,
        "Leaves lock files for the index, HEAD, the configuration and the refs.",
        r#"
work
for lock in index HEAD config packed-refs shallow; do : > "$gitdir/$lock.lock"; : > "$common/$lock.lock"; done
find "$common/refs" -type f | while read -r ref; do : > "$ref.lock"; done
"#,
    );
    far_future = Trick::shell(
        GitData,
        "Commits the work in the year 2099, by an author whose name has control characters.",
        r#"
work && git add -A
GIT_AUTHOR_DATE='4086600000 +0000' GIT_COMMITTER_DATE='4086600000 +0000' git -c user.name="$(printf 'A\033[2J\rB')" \
    -c user.email=a@b commit -q --no-verify -m "$(printf 'x\033]0;y\007')"
"#,
    );
    too_many_refs = Trick::shell(
        GitData,
        "Creates three thousand branches.",
        r#"
work
head=$(git rev-parse HEAD)
seq 3000 | sed "s|.*|create refs/heads/many/& $head|" | git update-ref --stdin && git pack-refs --all
"#,
    );
}

/// The goal starts behind the user's branch, which has later work.
const FROM_START: &str = "base = \"start\"";
