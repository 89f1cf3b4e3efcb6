//! Caches: what setup fills on the base, everyone can use and nobody can spoil.

use crate::{desk_doing, run_to_done};

/// Where the test's package manager keeps what it has.
const CACHE: &str = "$HOME/.npm";

#[test]
fn a_check_has_what_setup_put_into_the_users_cache_and_not_what_the_agent_did() {
    let desk = desk_doing(
        "echo spoiled > \"$HOME/.npm/package\"; cat \"$HOME/.npm/package\" > seen.txt; touch done",
    );
    let cache = desk.home.path().join(".npm");
    std::fs::create_dir(&cache).expect("a cache");
    std::fs::write(cache.join("old"), "from the user\n").expect("written");
    // Only in the workspace, which is the base before any agent: a candidate's setup has no network to do it again.
    let setup = format!("test -e \"{CACHE}/package\" || echo fetched > \"{CACHE}/package\"");
    desk.project.write("towline.toml", format!("[workspace]\nsetup = [{setup:?}]\n"));
    desk.project.commit("settings");
    let check = format!(
        "grep -x fetched \"{CACHE}/package\" && grep -x 'from the user' \"{CACHE}/old\" && grep -x spoiled seen.txt"
    );
    run_to_done(&desk, &check);
    assert!(!cache.join("package").exists(), "the user's own cache is as it was");
}

#[test]
fn a_cache_that_the_user_does_not_have_is_filled_by_setup_as_well() {
    let desk = desk_doing("touch done");
    // It is filled once, before there is a commit of the agent's.
    let setup = format!(
        "test -e \"{CACHE}/package\" || {{ test ! -e done && mkdir -p \"{CACHE}\" && echo fetched > \"{CACHE}/package\"; }}"
    );
    desk.project.write("towline.toml", format!("[workspace]\nsetup = [{setup:?}]\n"));
    desk.project.commit("settings");
    run_to_done(&desk, &format!("test -e done && grep -x fetched \"{CACHE}/package\""));
}

#[test]
fn a_check_begins_with_a_home_in_which_no_agent_has_been() {
    let desk = desk_doing("echo planted > \"$HOME/.bashrc\"; echo planted > /tmp/planted; touch done");
    run_to_done(&desk, "test -e done && test ! -e \"$HOME/.bashrc\" && test ! -e /tmp/planted");
}
