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
fn a_later_start_in_the_same_place_finds_what_an_earlier_one_put_into_a_cache() {
    let desk = desk_doing(
        "if test -e \"$HOME/.npm/first\"; then echo again >> \"$HOME/.npm/first\" && touch done; else echo once > \"$HOME/.npm/first\"; fi",
    );
    std::fs::create_dir(desk.home.path().join(".npm")).expect("a cache");
    let first = format!("echo once > \"{CACHE}/of-check\"; test -e done");
    let second = format!("grep -x once \"{CACHE}/of-check\" && echo again >> \"{CACHE}/of-check\"");
    let ran = desk.towline(["run", "do it", "--check", &first, "--check", &second, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()["attempts"].as_array().map(Vec::len), Some(2), "{ran:?}");
}

#[test]
fn a_check_begins_with_a_home_in_which_no_agent_has_been() {
    let desk = desk_doing("echo planted > \"$HOME/.bashrc\"; echo planted > /tmp/planted; touch done");
    run_to_done(&desk, "test -e done && test ! -e \"$HOME/.bashrc\" && test ! -e /tmp/planted");
}

#[test]
fn secrets_and_hidden_directories_in_a_cache_are_nowhere_to_be_seen() {
    let look = "grep -rs hush \"$HOME/.cargo\" \"$HOME/.npm\" /run/towline";
    let mut desk = desk_doing(&format!("{look} > seen.txt; touch done"));
    let home = desk.home.path();
    std::fs::create_dir(home.join(".cargo")).expect("a cache");
    std::fs::create_dir_all(home.join(".npm/private")).expect("a cache");
    let files =
        [(".cargo/credentials.toml", "hush"), (".npm/private/token", "hush"), (".npm/package", "public")];
    for (file, text) in files {
        std::fs::write(home.join(file), text).expect("written");
    }
    desk.set("TOWLINE_SET_sandbox__hide", "[\"~/.npm/private\"]");
    run_to_done(
        &desk,
        &format!("test -e done && test ! -s seen.txt && grep -qx public \"{CACHE}/package\" && ! {look}"),
    );
}

#[test]
fn a_directory_below_a_cache_that_may_be_changed_is_the_users_own() {
    let mut desk = desk_doing("echo work > \"$HOME/.npm/shared/work\"; touch done");
    let shared = desk.home.path().join(".npm/shared");
    std::fs::create_dir_all(&shared).expect("a directory");
    desk.set("TOWLINE_SET_sandbox__write", "[\"~/.npm/shared\"]");
    run_to_done(&desk, &format!("test -e done && grep -qx work \"{CACHE}/shared/work\""));
    assert_eq!(std::fs::read_to_string(shared.join("work")).expect("written"), "work\n");
}
