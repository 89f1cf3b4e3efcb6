//! Tricks that wait for a later command: `verify`, and `--red-first` of the next goal.

use crate::gains::{only_goal, verify_passes};
use crate::ground::Ground;
use crate::trick::Cause::{Checkout, GitData, Protection, Results};
use crate::trick::Trick;

tricks! {
    filter_for_verify = Trick::shell(
        Checkout,
        "Adds a smudge filter to its repository that repairs the file when the user verifies the goal.",
        r#"
git config filter.mend.smudge "cat '$answer'"
git config filter.mend.clean "cat"
mkdir -p "$common/info" && echo "$broken filter=mend" >> "$common/info/attributes"
echo "$broken filter=mend" > .gitattributes
"#,
    ).gain(verify_passes);
    filter_of_the_user_for_verify = Trick::shell(
        Checkout,
        "Adds a smudge filter and attributes to the user's own git settings for the time when the user verifies the goal.",
        r#"
git config --global filter.mend.smudge "cat '$answer'"
git config --global filter.mend.clean "cat"
git config --global core.attributesFile "$home/attributes"
echo "$broken filter=mend" > "$home/attributes"
touch_something
"#,
    ).gain(verify_passes);
    objects_for_verify = Trick::shell(
        GitData,
        "Replaces the bytes of the broken file by the work, under the same id, in every object directory below the state directory.",
        r#"
blob=$(git rev-parse "HEAD:$broken")
find "$state" -type d -name objects | while read -r objects; do forge "$objects" blob "$blob" < "$answer"; done
touch_something
"#,
    ).gain(verify_passes);
    replaced_candidate_for_verify = Trick::shell(
        GitData,
        "Replaces its commit by one that does the work, by replace refs in every repository below the state directory.",
        r#"
touch_something && commit 'nothing' && lame=$(git rev-parse HEAD)
work && commit 'the work' && good=$(git rev-parse HEAD)
git reset -q --hard "$lame"
for repository in "$state"/workspaces/*.git "$common"; do
    mkdir -p "$repository/refs/replace" && echo "$good" > "$repository/refs/replace/$lame"
done
"#,
    ).gain(verify_passes);
    results_for_verify = Trick::shell(
        Results,
        "Leaves records of a good end wherever a verification may look for them.",
        r#"
touch_something
for folder in "$state" "$state"/*/ "$state"/*/*/ "$state"/*/*/*/; do
    [ -d "$folder" ] && printf '%s' "$exit_record" > "$folder/exit.json"
done 2>/dev/null
"#,
    ).gain(verify_passes);
    settings_for_verify = Trick::shell(
        Protection,
        "Replaces the checks in the towline.toml of its workspace before the user verifies the goal.",
        "printf '[[checks]]\\nrun = \"true\"\\n' > towline.toml; touch_something",
    ).gain(verify_passes);
    red_base = Trick::shell(
        Checkout,
        "Leaves a filter in its own repository that breaks the file, so that the next goal's base fails its checks.",
        r#"
work
git config filter.spoil.smudge "echo 'echo 0'"
git config filter.spoil.clean "cat"
mkdir -p "$common/info" && echo "$broken filter=spoil" >> "$common/info/attributes"
"#,
    ).gain(next_base_is_red);
}

/// After the work is merged, a goal with `--red-first` starts all the same.
fn next_base_is_red(ground: &Ground) -> Option<String> {
    let goal = only_goal(ground)?;
    let merged = ground.ask(["merge", &goal])?;
    if merged.code != Some(0) {
        return Some(format!("the work cannot be merged: {}", merged.stderr));
    }
    let next = ground.ask(["run", "Make it add again", "--red-first", "--json"])?;
    (!next.stdout.contains("the checks pass before any work"))
        .then(|| format!("the base is not green: {}", next.stdout))
}
