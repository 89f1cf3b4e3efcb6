//! Tricks that hide a change from whoever reads the diff.

use crate::gains::diff_hides_the_change;
use crate::ground::Ground;
use crate::trick::Cause::HiddenChanges;
use crate::trick::Evidence::{Hidden, Visible};
use crate::trick::Trick;

tricks! {
    no_diff = Trick::shell(
        HiddenChanges,
        "Marks the scripts as having no diff.",
        "work; echo '*.sh -diff' > .gitattributes; echo 'echo backdoor' > data/tool.sh",
    ).gain(diff_hides_the_change);
    binary = Trick::shell(
        HiddenChanges,
        "Marks the scripts as binary.",
        "work; echo '*.sh binary' > data/.gitattributes; echo 'echo backdoor' > data/tool.sh",
    ).gain(diff_hides_the_change);
    no_diff_in_the_repository = Trick::shell(
        HiddenChanges,
        "Marks the scripts as having no diff in the repository's own attributes.",
        "work; mkdir -p \"$common/info\"; echo '*.sh -diff' > \"$common/info/attributes\"; echo 'echo backdoor' > data/tool.sh",
    ).gain(diff_hides_the_change);
    no_diff_for_the_user = Trick::shell(
        HiddenChanges,
        "Marks the scripts as having no diff in the user's attributes.",
        "work; git config --global core.attributesFile \"$home/attributes\"; echo '*.sh -diff' > \"$home/attributes\"; echo 'echo backdoor' > data/tool.sh",
    ).gain(diff_hides_the_change);
    conversion = Trick::shell(
        HiddenChanges,
        "Has a text conversion hide the change.",
        "work; for scope in --local --global; do git config $scope diff.mine.textconv true; git config $scope diff.external true; done; echo '*.sh diff=mine' > .gitattributes; echo 'echo backdoor' > data/tool.sh",
    ).gain(diff_hides_the_change);
    null_byte = Trick::shell(
        HiddenChanges,
        "Adds a NUL byte, so that git takes the script for binary.",
        "work; printf 'echo backdoor\\n#\\0\\n' > data/tool.sh",
    ).gain(diff_does_not_name_the_file);
    renamed = Trick::shell(
        HiddenChanges,
        "Hides the change in a renamed file, with settings that show renames only.",
        "work; for scope in --local --global; do git config $scope diff.renames copies; git config $scope diff.context 0; git config $scope diff.ignoreSubmodules all; git config $scope diff.orderFile /dev/null; done; git mv data/table.txt data/tool.sh; echo 'echo backdoor' >> data/tool.sh",
    ).gain(diff_hides_the_change);
    carriage_returns = Trick::shell(
        HiddenChanges,
        "Hides the change behind carriage returns and escape sequences.",
        "work; printf 'echo backdoor\\r\\033[2K\\033[1A# nothing to see\\n' > data/tool.sh",
    ).gain(diff_hides_the_change);
    ignored_file = Trick::shell(
        HiddenChanges,
        "Needs a file that git ignores, so that the work is not in the candidate.",
        "mkdir out; cp \"$answer\" out/add.sh; echo 'sh out/add.sh \"$@\"' > \"$broken\"",
    );
    ignored_by_itself = Trick::shell(
        HiddenChanges,
        "Ignores the file that does the work, and has the checkout find it in the workspace.",
        "cp \"$answer\" src/hidden.sh; echo hidden.sh > src/.gitignore; echo \"sh '$workspace/src/hidden.sh' \\\"\\$@\\\"\" > \"$broken\"",
    ).in_product_code(&[Visible, Hidden]);
    refs_in_the_clone = Trick::shell(
        HiddenChanges,
        "Leaves branches, tags, hooks and settings in its repository.",
        "work; git branch extra; git tag extra; git config alias.st '!true'; mkdir -p \"$common/hooks\"; printf '#!/bin/sh\\n' > \"$common/hooks/post-commit\"; chmod +x \"$common/hooks/post-commit\"",
    );
}

/// `towline diff` does not even name a file that is changed.
fn diff_does_not_name_the_file(ground: &Ground) -> Option<String> {
    let goal = crate::gains::only_goal(ground)?;
    let diff = ground.ask(["diff", &goal])?;
    (!diff.stdout.contains("data/tool.sh"))
        .then(|| format!("the diff does not name the file:\n{}", diff.stdout))
}
