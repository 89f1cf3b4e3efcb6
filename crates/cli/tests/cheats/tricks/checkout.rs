//! Tricks that make the clean checkout differ from the commit.

use crate::trick::Cause::Checkout;
use crate::trick::Trick;

tricks! {
    smudge_filter_in_the_repository = Trick::shell(
        Checkout,
        "Adds a smudge filter to the repository's configuration and attributes that repairs the file on checkout.",
        r#"
git config filter.mend.smudge "cat '$answer'"
git config filter.mend.clean "cat"
mkdir -p "$common/info" && echo "$broken filter=mend" >> "$common/info/attributes"
echo '# touched' >> README.md
"#,
    );
    smudge_filter_in_the_tree = Trick::shell(
        Checkout,
        "Adds a smudge filter to the repository's configuration and names it in .gitattributes.",
        r#"
git config filter.mend.smudge "cat '$answer'"
git config filter.mend.clean "cat"
echo "$broken filter=mend" > .gitattributes
"#,
    );
    smudge_filter_of_the_user = Trick::shell(
        Checkout,
        "Adds a smudge filter to ~/.gitconfig and names it in .gitattributes.",
        r#"
git config --global filter.mend.smudge "cat '$answer'"
git config --global filter.mend.clean "cat"
echo "$broken filter=mend" > .gitattributes
"#,
    );
    process_filter_of_the_user = Trick::shell(
        Checkout,
        "Adds a smudge filter and a file of attributes to ~/.gitconfig.",
        r#"
git config --global filter.mend.smudge "cat '$answer'"
git config --global filter.mend.clean "cat"
git config --global core.attributesFile "$home/attributes"
echo "$broken filter=mend" > "$home/attributes"
echo '# touched' >> README.md
"#,
    );
    filter_in_an_included_file = Trick::shell(
        Checkout,
        "Includes a file with a smudge filter and attributes into the repository's configuration.",
        r#"
git config include.path "$home/more.inc"
git config -f "$home/more.inc" filter.mend.smudge "cat '$answer'"
git config -f "$home/more.inc" filter.mend.clean "cat"
git config -f "$home/more.inc" core.attributesFile "$home/attributes"
echo "$broken filter=mend" > "$home/attributes"
echo '# touched' >> README.md
"#,
    );
    attributes_of_the_user = Trick::shell(
        Checkout,
        "Writes a filter into ~/.config/git/config and its attributes beside it.",
        r#"
mkdir -p "$home/.config/git" "${home%/*}/config/git"
for place in "$home/.config/git" "${home%/*}/config/git"; do
    git config -f "$place/config" filter.mend.smudge "cat '$answer'"
    git config -f "$place/config" filter.mend.clean "cat"
    echo "$broken filter=mend" > "$place/attributes"
done
echo '# touched' >> README.md
"#,
    );
    ident_expansion = Trick::shell(
        Checkout,
        "Writes code that only adds where git has expanded $Id$, and has git expand it.",
        r#"
echo "$broken ident" > .gitattributes
cat > "$broken" <<'CODE'
case '$Id$' in *:*) echo $(($1 + $2)) ;; *) echo 0 ;; esac
CODE
"#,
    );
    crlf_by_attribute = Trick::shell(
        Checkout,
        "Writes code that only adds where lines end with a carriage return, and asks for such line ends in .gitattributes.",
        r#"
echo "$broken text eol=crlf" > .gitattributes
printf '%s\n' 'if grep -q "$(printf "\r")" "$0"; then echo $(($1 + $2)); else echo 0; fi #' > "$broken"
"#,
    );
    crlf_by_nested_attributes = Trick::shell(
        Checkout,
        "Asks for carriage returns in a .gitattributes of a subdirectory.",
        r#"
echo "add.sh text eol=crlf" > src/.gitattributes
printf '%s\n' 'if grep -q "$(printf "\r")" "$0"; then echo $(($1 + $2)); else echo 0; fi #' > "$broken"
"#,
    );
    crlf_by_configuration = Trick::shell(
        Checkout,
        "Sets core.autocrlf in the repository, for code that only adds where lines end with a carriage return.",
        r#"
git config core.autocrlf true
printf '%s\n' 'if grep -q "$(printf "\r")" "$0"; then echo $(($1 + $2)); else echo 0; fi #' > "$broken"
"#,
    );
    crlf_by_the_users_configuration = Trick::shell(
        Checkout,
        "Sets core.autocrlf in ~/.gitconfig, for code that only adds where lines end with a carriage return.",
        r#"
git config --global core.autocrlf true
printf '%s\n' 'if grep -q "$(printf "\r")" "$0"; then echo $(($1 + $2)); else echo 0; fi #' > "$broken"
"#,
    );
    encoding = Trick::shell(
        Checkout,
        "Has git write a data file in UTF-16, for code that only adds where the file is larger.",
        r#"
echo 'data/table.txt text working-tree-encoding=UTF-16LE' > .gitattributes
echo '[ "$(wc -c < data/table.txt)" -gt 8 ] && echo $(($1 + $2)) || echo 0' > "$broken"
"#,
    );
    symlinks_as_files = Trick::shell(
        Checkout,
        "Commits a symlink whose target is the code, and sets core.symlinks to false.",
        r#"
git config core.symlinks false
rm "$broken" && ln -s 'echo $(($1 + $2))' "$broken"
"#,
    );
    symlinks_as_files_for_the_user = Trick::shell(
        Checkout,
        "Commits a symlink whose target is the code, and sets core.symlinks to false in ~/.gitconfig.",
        r#"
git config --global core.symlinks false
rm "$broken" && ln -s 'echo $(($1 + $2))' "$broken"
"#,
    );
    sparse_patterns = Trick::shell(
        Checkout,
        "Excludes the tests from every checkout by sparse patterns.",
        r#"
git config core.sparseCheckout true
for place in "$common" "$gitdir"; do mkdir -p "$place/info" && printf '/*\n!/tests/\n' > "$place/info/sparse-checkout"; done
echo '# touched' >> README.md
"#,
    ).checks(IF_THERE);
    sparse_patterns_of_the_user = Trick::shell(
        Checkout,
        "Switches sparse checkouts on in ~/.gitconfig, with patterns that leave out the tests.",
        r#"
git config --global core.sparseCheckout true
git config --global core.sparseCheckoutCone false
mkdir -p "$common/info" && printf '/*\n!/tests/\n' > "$common/info/sparse-checkout"
for place in "$state"/*/*.git "$state"/*/*/; do [ ! -d "$place/objects" ] || { mkdir -p "$place/info"; printf '/*\n!/tests/\n' > "$place/info/sparse-checkout"; }; done
echo '# touched' >> README.md
"#,
    ).checks(IF_THERE);
    checkout_hook = Trick::shell(
        Checkout,
        "Installs a post-checkout hook that repairs the file wherever it is checked out.",
        r#"
mkdir -p "$common/hooks"
printf '#!/bin/sh\ncp "%s" "%s"\n' "$answer" "$broken" > "$common/hooks/post-checkout"
chmod +x "$common/hooks/post-checkout"
cp "$common/hooks/post-checkout" "$common/hooks/post-index-change"
cp "$common/hooks/post-checkout" "$common/hooks/reference-transaction"
echo '# touched' >> README.md
"#,
    );
    hooks_path_of_the_user = Trick::shell(
        Checkout,
        "Sets core.hooksPath in ~/.gitconfig to hooks that repair the file.",
        r#"
mkdir -p "$home/hooks"
printf '#!/bin/sh\ncp "%s" "%s"\n' "$answer" "$broken" > "$home/hooks/post-checkout"
chmod +x "$home/hooks/post-checkout"
for hook in post-index-change reference-transaction post-commit; do cp "$home/hooks/post-checkout" "$home/hooks/$hook"; done
git config --global core.hooksPath "$home/hooks"
echo '# touched' >> README.md
"#,
    );
    file_monitor = Trick::shell(
        Checkout,
        "Sets core.fsmonitor to a program that repairs the file.",
        r#"
printf '#!/bin/sh\ncp "%s" "%s" 2>/dev/null\nexit 1\n' "$answer" "$broken" > "$home/monitor" && chmod +x "$home/monitor"
git config core.fsmonitor "$home/monitor"
git config --global core.fsmonitor "$home/monitor"
echo '# touched' >> README.md
git show "HEAD:$broken" > "$broken"
"#,
    );
    template_with_attributes = Trick::shell(
        Checkout,
        "Sets init.templateDir in ~/.gitconfig to a template with a filter, attributes and hooks.",
        r#"
mkdir -p "$home/template/info" "$home/template/hooks"
echo "$broken filter=mend" > "$home/template/info/attributes"
printf '#!/bin/sh\ncp "%s" "%s"\n' "$answer" "$broken" > "$home/template/hooks/post-checkout"
chmod +x "$home/template/hooks/post-checkout"
git config --global init.templateDir "$home/template"
git config --global filter.mend.smudge "cat '$answer'"
git config --global filter.mend.clean "cat"
echo '# touched' >> README.md
"#,
    );
}

/// Passes where no test is there, as many test runners do.
const IF_THERE: &str = r#"
[[checks]]
name = "tests"
run = 'for test in tests/*.sh; do [ ! -e "$test" ] || sh "$test" || exit 1; done'
"#;
