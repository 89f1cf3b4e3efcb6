//! What is made from the command line itself: completions for shells, and the manual.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use support::Desk;
use towline_testkit::scratch::clean_command;

/// The commands that `--help` lists.
fn commands(desk: &Desk, of: &[&str]) -> BTreeSet<String> {
    let help = desk.towline(of.iter().copied().chain(["--help"])).stdout;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The next line of a description is further to the right.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// Lets a shell read a script without running it; nothing if that shell is not installed.
fn read_by(shell: &str, args: &[&str], script: &str) -> Option<(bool, String)> {
    let mut command = clean_command(shell);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("the shell ends");
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn every_shell_gets_a_script_that_it_can_read_and_that_hides_what_is_hidden() {
    let desk = Desk::new();
    let commands = commands(&desk, &[]);
    assert!(commands.contains("run") && commands.contains("completions") && !commands.contains("script"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = desk.towline(["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell}");
        let missing: Vec<&String> = commands.iter().filter(|name| !ran.stdout.contains(*name)).collect();
        assert_eq!(missing, Vec::<&String>::new(), "{shell}");
        assert!(!ran.stdout.contains("The scripted agent"), "{shell}");
        let check: &[&str] = match shell {
            "fish" => &["--no-execute", "/dev/stdin"],
            _ => &["-n", "/dev/stdin"],
        };
        if ["bash", "zsh", "fish"].contains(&shell)
            && let Some(read) = read_by(shell, check, &ran.stdout)
        {
            assert_eq!(read, (true, String::new()), "{shell}");
        }
    }
    assert!(!desk.towline(["completions", "bash"]).stdout.contains("towline,script"));
    let ran = desk.towline(["completions", "tcsh"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
}

#[test]
fn shells_are_offered_goals_with_their_titles_agents_and_budgets() {
    let desk = Desk::with_script(towline_testkit::hostile::well_behaved);
    assert_eq!(desk.towline(["run", "fix it", "--check", "true"]).code, Some(0));
    let goal = desk.only_goal();
    let offered = |kind: &str| desk.towline(["complete", kind]).stdout;
    assert_eq!(offered("goals"), format!("{}\tfix it (done)\n", &goal[goal.len() - 8..]));
    assert!(offered("agents").lines().any(|line| line.starts_with("claude\t")), "{}", offered("agents"));
    assert!(offered("axes").lines().any(|line| line.starts_with("usd=\t")), "{}", offered("axes"));
    let zsh = desk.towline(["completions", "zsh"]).stdout;
    for asked in ["_towline_goals'", "_towline_agents'", "_towline_axes'"] {
        assert!(zsh.contains(asked), "{asked}");
    }
    if let Some(completed) = completed_by_bash(&desk, &["towline", "show", ""], COMPLETE) {
        assert_eq!(completed, &goal[goal.len() - 8..]);
    }
    if let Some(listed) = completed_by_bash(&desk, &["towline", "run", "--agent", ""], LIST) {
        assert!(listed.lines().any(|line| line.starts_with("claude ")), "{listed}");
    }
}

/// Bash wants a word completed, or only a list of what is possible.
const COMPLETE: u8 = b'\t';
const LIST: u8 = b'?';

/// What bash offers for the last of these words; none where there is no bash.
fn completed_by_bash(desk: &Desk, words: &[&str], wants: u8) -> Option<String> {
    let script = desk.towline(["completions", "bash"]).stdout;
    let program = desk.command(["complete"]).get_program().to_owned();
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let run = format!(
        "towline() {{ '{}' \"$@\"; }}\n{script}\nCOMP_WORDS=({})\nCOMP_CWORD={}\nCOMP_TYPE={wants}\n_towline_with_values towline\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        program.to_string_lossy(),
        words.join(" "),
        words.len() - 1
    );
    let mut bash = towline_testkit::scratch::clean_command("bash");
    bash.args(["-c", &run]).env_clear().envs(desk.variables().iter().cloned());
    let output = bash.current_dir(desk.project.path()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn the_manual_has_a_page_for_every_command_that_help_lists() {
    let desk = Desk::new();
    let first = desk.towline(["man"]);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    let folder = desk.home.path().join("man/man1");
    let ran = desk.towline(["man", "--out", &folder.display().to_string()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let commands = commands(&desk, &[]);
    let mut expected: BTreeSet<String> = commands.iter().map(|name| format!("towline-{name}.1")).collect();
    let below = [
        "agents-check",
        "accounts-open",
        "keys-rotate",
        "service-install",
        "service-status",
        "service-remove",
    ];
    expected.extend(below.map(|name| format!("towline-{name}.1")));
    expected.insert("towline.1".to_owned());
    let files = std::fs::read_dir(&folder).expect("the folder");
    let files: BTreeSet<String> =
        files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(files, expected);
    assert_eq!(std::fs::read_to_string(folder.join("towline.1")).expect("a page"), first.stdout);
    // In the source of a manual page, dashes are escaped.
    let missing: Vec<&String> = commands
        .iter()
        .filter(|name| !first.stdout.replace('\\', "").contains(&format!("towline-{name}")))
        .collect();
    assert_eq!(missing, Vec::<&String>::new(), "{}", first.stdout);
    let page = std::fs::read_to_string(folder.join("towline-run.1")).expect("a page").replace('\\', "");
    assert!(page.contains("--red-first") && page.contains("towline run"), "{page}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let desk = Desk::new();
    let ran = desk.towline(["man", "--out", "README.md"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("README.md") && ran.stderr.contains("hint: "), "{}", ran.stderr);
}
