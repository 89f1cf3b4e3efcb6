//! What signs the user in: an agent has a copy, and what it refreshes goes back.

use std::fs;
use std::path::PathBuf;

use crate::desk_doing;
use crate::run_to_done;
use crate::support::Desk;

const OLD: &str = r#"{"claudeAiOauth":{"accessToken":"old","refreshToken":"r1","expiresAt":1}}"#;
const NEW: &str = r#"{"claudeAiOauth":{"accessToken":"new","refreshToken":"r2","expiresAt":2}}"#;

/// A user who is signed in with Claude Code, and has settings for it.
fn signed_in(commands: &str) -> (Desk, PathBuf) {
    let desk = desk_doing(commands);
    let folder = desk.home.path().join(".claude");
    fs::create_dir_all(folder.join("commands")).expect("a folder");
    fs::write(folder.join(".credentials.json"), OLD).expect("written");
    fs::write(folder.join("settings.json"), "{}").expect("written");
    fs::write(folder.join("commands/mine.md"), "mine").expect("written");
    fs::write(desk.home.path().join(".claude.json"), r#"{"userID":"me"}"#).expect("written");
    (desk, folder)
}

#[test]
fn a_credential_that_an_agent_refreshes_by_renaming_is_the_users_afterwards() {
    let commands = format!(
        "cp \"$HOME/.claude/.credentials.json\" had.json; cp \"$HOME/.claude.json\" notes.json
echo '{NEW}' > \"$HOME/.claude/new\"; mv \"$HOME/.claude/new\" \"$HOME/.claude/.credentials.json\""
    );
    let (desk, folder) = signed_in(&commands);
    run_to_done(&desk, "grep '\"old\"' had.json && grep '\"me\"' notes.json");
    let users = fs::read_to_string(folder.join(".credentials.json")).expect("credentials");
    assert_eq!(users.trim(), NEW);
}

#[test]
fn an_agent_reads_the_users_settings_and_commands_and_changes_none() {
    let commands = "cat \"$HOME/.claude/commands/mine.md\" > mine.txt
for file in settings.json commands/mine.md commands/other.md; do
  echo changed > \"$HOME/.claude/$file\" && echo \"$file\" >> changed.txt
  rm -f \"$HOME/.claude/$file\" && [ \"$file\" != commands/other.md ] && echo \"$file\" >> changed.txt
done; true";
    let (desk, folder) = signed_in(commands);
    run_to_done(&desk, "grep -x mine mine.txt && test ! -e changed.txt");
    assert_eq!(fs::read_to_string(folder.join("settings.json")).expect("settings"), "{}");
    assert!(!folder.join("commands/other.md").exists());
}

#[test]
fn a_credential_that_an_agent_spoils_does_not_become_the_users() {
    let (desk, folder) = signed_in(
        "rm -rf \"$HOME/.claude/.credentials.json\"; ln -s /etc/passwd \"$HOME/.claude/.credentials.json\"; touch done",
    );
    run_to_done(&desk, "test -e done");
    assert_eq!(fs::read_to_string(folder.join(".credentials.json")).expect("credentials"), OLD);
}

#[test]
fn checks_have_no_credentials() {
    let (desk, _) = signed_in("touch done");
    run_to_done(&desk, "test -e done && test ! -e \"$HOME/.claude\" && test ! -e \"$HOME/.claude.json\"");
}
