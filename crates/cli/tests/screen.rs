//! What people see of a goal: nothing that gives orders to their terminal, nothing twice, nothing without measure, and
//! the right way on.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use support::{Desk, Ran, finish};
use towline_core::EndKind;
use towline_testkit::hostile;

/// Asks by its file, sleeps by its last message, begs for a tool, and works, one after the other.
fn asks_sleeps_begs_and_works(dir: &Path) -> PathBuf {
    let body = r#"
finish() {
  assistant "$1"
  result false null "$1"
  while IFS= read -r line; do :; done
  exit 0
}
await_prompt
init
echo >> "$HOME/attempts"
case $(wc -l < "$HOME/attempts") in
  1)
    printf '%s' '{"question": "Which \u001b[2Jcolour?", "options": ["R\u001b[2Jed", "Blue"]}' > "$TOWLINE_QUESTION_FILE"
    finish 'I have \u001b[2Jasked.' ;;
  2)
    finish '{\"towline\": \"sleep\", \"seconds\": 0.1, \"reason\": \"a nap \\u001b[2J\\u202e\"}' ;;
  3)
    printf '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Ev\\u001b[2Jil","input":{"command":"x\\u001b[2J"},"tool_use_id":"t"}}\n'
    IFS= read -r answer
    finish 'I may not.' ;;
  *)
    echo "$(wc -l < "$HOME/attempts")" > "$(printf 'a\033[2J')"
    finish 'Done.' ;;
esac
"#;
    hostile::with_body(dir, "asks-sleeps-begs-and-works", body)
}

fn assert_harmless(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        let gives_orders = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(gives_orders), "{text:?}");
    }
}

#[test]
fn no_words_of_an_agent_a_check_or_a_goal_give_orders_to_the_terminal() {
    let desk = Desk::with_script(asks_sleeps_begs_and_works);
    desk.agent_settings("permission = \"deny\"");
    let run = ["run", "Paint \u{1b}[2Jit", "--check", "false \u{1b}[2J", "--budget", "attempts=4"];
    let towline = desk.start(run);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    let asked = desk.towline(["questions"]);
    assert_harmless(&asked);
    assert!(asked.stdout.contains("? Which colour?"), "{asked:?}");
    assert_harmless(&desk.towline(["show", &goal]));
    let answered = desk.towline(["answer", &goal, "gr\u{1b}[2Jeen"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_harmless(&answered);
    let denied = finish(towline);
    assert_harmless(&denied);
    assert_eq!(denied.code, Some(4), "{denied:?}");
    for shown in [
        "Paint \u{fffd}[2Jit",
        "1  Red",
        "I have asked.",
        "answered question 1: gr\u{fffd}[2Jeen",
        "asked to sleep: 0.1s: a nap \u{fffd}",
        "Ev\u{fffd}[2Jil was not permitted",
        "tool not permitted: Ev\u{fffd}[2Jil",
    ] {
        assert!(denied.stdout.contains(shown), "{shown:?}: {}", denied.stdout);
    }
    let failed = desk.towline(["retry", &goal]);
    assert_harmless(&failed);
    assert!(failed.stdout.contains("✗ false \u{fffd}[2J exit code 1"), "{failed:?}");
    for command in [vec!["logs", &goal], vec!["show", &goal], vec!["ls"], vec!["show", &goal, "--json"]] {
        assert_harmless(&desk.towline(command));
    }
    assert_eq!(desk.show(&goal)["title"], "Paint \u{1b}[2Jit");
}

#[test]
fn a_request_of_an_agent_to_towline_is_printed_once_and_in_words() {
    let desk = Desk::with_script(asks_sleeps_begs_and_works);
    let towline = desk.start(["run", "Paint it", "--check", "true", "--budget", "attempts=2"]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    assert_eq!(desk.towline(["answer", &goal, "2"]).code, Some(0));
    let ran = finish(towline);
    let id = &goal[goal.len() - 8..];
    assert!(!ran.stdout.contains("\"towline\""), "{}", ran.stdout);
    assert!(ran.stdout.contains("  asked to sleep: 0.1s: a nap"), "{}", ran.stdout);
    let hint = format!("waiting; answer with: towline answer {id} …");
    assert_eq!(ran.stdout.matches(&hint).count(), 1, "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("Which").count(), 1, "{}", ran.stdout);
    let shown = desk.towline(["show", &goal]).stdout;
    assert!(shown.contains("asked to sleep: ") && !shown.contains("\"towline\""), "{shown}");
}

#[test]
fn a_bad_end_is_printed_everywhere_in_the_words_of_the_one_table() {
    let desk = Desk::with_script(hostile::exits_at_once);
    let ran = desk.towline(["run", "Paint it", "--check", "true", "--budget", "errors=1"]);
    let crashed = EndKind::Crashed.class();
    let goal = desk.only_goal();
    // The placeholders of the table are filled in, so that the command can be typed as it is.
    let filled = [
        (" ID ", format!(" {} ", &goal[28..])),
        ("--attempt N", "--attempt 1".into()),
        ("check NAME", "check claude".into()),
    ];
    let hint = filled.iter().fold(crashed.hint.to_owned(), |hint, (from, to)| hint.replace(from, to));
    assert_ne!(hint, crashed.hint);
    let (title, hint) = (format!("  {}: ", crashed.title), format!("    hint: {hint}"));
    for line in [&title, &hint] {
        assert_eq!(ran.stdout.matches(line.as_str()).count(), 1, "{line}: {}", ran.stdout);
    }
    // What Towline does in general is not what it does here, where the budget for errors is spent.
    assert!(!ran.stdout.contains(crashed.follows.words()), "{}", ran.stdout);
    let shown = desk.towline(["show", &goal]).stdout;
    for part in [&format!(": {}: ", crashed.title), &hint] {
        assert!(shown.contains(part.as_str()), "{part}: {shown}");
    }
}

/// Asks by its file, with this in it.
fn asks(dir: &Path, question: &str) -> PathBuf {
    let body = format!(
        r#"
await_prompt
init
case "$line" in
  *Which*) assistant 'Done.'; result false null 'Done.' ;;
  *) printf '%s' '{question}' > "$TOWLINE_QUESTION_FILE"; result false null 'I have asked.' ;;
esac
while IFS= read -r line; do :; done
"#
    );
    hostile::with_body(dir, "asks", &body)
}

#[test]
fn after_a_question_that_nobody_answered_the_way_on_is_the_answer_and_then_the_run() {
    let desk = Desk::with_script(|dir| asks(dir, r#"{"question": "Which?", "deadline": 0.1}"#));
    let escalated = desk.towline(["run", "Paint it", "--check", "true"]);
    assert_eq!(escalated.code, Some(4), "{escalated:?}");
    let goal = desk.only_goal();
    let id = &goal[goal.len() - 8..];
    let steps: Vec<&str> = escalated.stdout.lines().skip_while(|line| !line.starts_with("! ")).collect();
    assert_eq!(
        steps[1..4],
        [
            "  ? Which?".to_owned(),
            format!("  answer it:               towline answer {id} …"),
            format!("  then continue it:        towline run --goal {id}"),
        ]
    );
    assert_eq!(desk.towline(["answer", &goal, "this"]).code, Some(0));
    let ran = desk.towline(["run", "--goal", &goal]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with(&format!("goal {id}  Paint it\n")), "{}", ran.stdout);
}

fn with_input(desk: &Desk, args: &[&str], input: &str) -> Ran {
    let mut command = desk.command(args);
    let mut child: Child = command.stdin(Stdio::piped()).spawn().expect("towline starts");
    let mut stdin = child.stdin.take().expect("an input");
    // Whoever has read enough need not read the rest.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    finish(child)
}

#[test]
fn an_answer_comes_from_standard_input_or_after_two_dashes_and_has_a_limit() {
    let desk = Desk::with_script(|dir| asks(dir, r#"{"question": "Which?"}"#));
    let towline = desk.start(["run", "Paint it", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    let too_long = with_input(&desk, &["answer", &goal, "-"], &"x".repeat(300 * 1024));
    assert_eq!(too_long.code, Some(2), "{too_long:?}");
    assert!(too_long.stderr.contains("the answer has 307200 bytes; 262144 are the most"), "{too_long:?}");
    let dashes = desk.towline(["answer", &goal, "--release"]);
    assert_eq!(dashes.code, Some(2), "{dashes:?}");
    assert!(dashes.stderr.contains("-- --release"), "{}", dashes.stderr);
    let other = desk.towline(["answer", &goal, "yes", "--question", "2", "--", "--release"]);
    assert!(other.stderr.contains("has no open question 2"), "{other:?}");
    let answered = with_input(&desk, &["answer", &goal, "-"], "as you like\n");
    assert_eq!(answered.stdout, "answered question 1: Which?\n  as you like\n", "{answered:?}");
    assert_eq!(finish(towline).code, Some(0));
}

#[test]
fn a_message_during_the_checks_reaches_the_agent_if_it_continues_and_long_ones_are_cut() {
    let desk = Desk::with_script(hostile::well_behaved).without_baseline();
    let check = format!("until [ -e {:?}/go ]; do sleep 0.05; done", desk.home.path().display().to_string());
    let towline = desk.start(["run", "Paint it", "--check", &check]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "checking");
    let sent = with_input(&desk, &["tell", &goal, "-"], &"x".repeat(120_000));
    assert_eq!(sent.stdout, "sent: the agent gets the message if it continues\n", "{sent:?}");
    std::fs::write(desk.home.path().join("go"), "").expect("the signal to go on");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("… (119600 more characters)"), "{}", ran.stdout);
    let longest = ran.stdout.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(600), "{longest:?}");
}
