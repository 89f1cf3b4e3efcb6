//! What is on the screen of a request, and what can be answered then.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::model::Act;
use crate::model::tests::acts;

fn asking(command: &str) -> Model {
    let mut asked = permission(1);
    asked.question.question = format!("Bash: {command}");
    model(&[line(1, "blocked", "x", &json!({}))], vec![asked])
}

/// Presses keys one by one; the screen is drawn after each.
fn type_on(model: &mut Model, keys: &[KeyCode], size: (u16, u16)) -> String {
    for key in keys {
        model.take(Input::Key(KeyEvent::new(*key, KeyModifiers::NONE)), at(0));
        screen(model, size, COLOURS);
    }
    text(&screen(model, size, COLOURS), false)
}

fn keys(text: &str) -> Vec<KeyCode> {
    text.chars().map(|key| if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) }).collect()
}

fn answers(model: &mut Model) -> Vec<String> {
    let answers = acts(model).into_iter().filter_map(|(act, _)| match act {
        Act::Answer { text, .. } => Some(text),
        _ => None,
    });
    answers.collect()
}

/// A command with a harmless beginning.
fn long() -> String {
    let lines = (1..=60).map(|number| format!("echo {number}\n")).collect::<String>();
    format!("{lines}rm -rf ~")
}

#[test]
fn a_permission_is_given_once_its_end_was_on_the_screen_and_refused_at_any_time() {
    for size in SIZES {
        for (answer, allowed) in
            [("yes", "yes"), ("A", "always"), ("y", "yes"), ("allow", "allow"), ("1", "1")]
        {
            let mut model = asking(&long());
            let shown = type_on(&mut model, &keys(&format!("a{answer}\n")), size);
            assert_eq!(answers(&mut model), Vec::<String>::new(), "{answer} {shown}");
            let last = shown.lines().last().unwrap_or_default();
            assert!(last.starts_with("not sent: there is more of it below; PageDown shows it"), "{shown}");
            assert!(!shown.contains("rm -rf ~"), "{shown}");
            let mut pages = 0;
            while !type_on(&mut model, &[KeyCode::PageDown], size).contains("PageUp shows the beginning") {
                pages += 1;
                assert!(pages < 20, "no end");
                if pages == 1 {
                    type_on(&mut model, &[KeyCode::Enter], size);
                }
            }
            assert_eq!(answers(&mut model), Vec::<String>::new(), "{answer}");
            let shown = type_on(&mut model, &[], size);
            assert!(shown.contains("rm -rf ~"), "{shown}");
            // Whoever has seen the end may go back.
            type_on(&mut model, &[KeyCode::PageUp, KeyCode::Enter], size);
            assert_eq!(answers(&mut model), [allowed]);
        }
        for no in ["no", "n", "no: use make clean", "deny"] {
            let mut model = asking(&long());
            type_on(&mut model, &keys(&format!("a{no}\n")), size);
            assert_eq!(answers(&mut model), [if no == "n" { "no" } else { no }]);
        }
        let mut model = asking("make");
        type_on(&mut model, &keys("ay\n"), size);
        assert_eq!(answers(&mut model), ["yes"], "all of it was there at once");
    }
}

#[test]
fn rows_that_were_skipped_by_a_smaller_screen_were_not_seen() {
    let mut model = asking(&long());
    type_on(&mut model, &keys("a"), (80, 24));
    // Other rows are above the end on a narrow screen, and on this one there is no room for any.
    for size in [(80, 4), (80, 5), (80, 6)] {
        let shown = type_on(&mut model, &keys("yes\n"), size);
        assert_eq!(answers(&mut model), Vec::<String>::new(), "{shown}");
    }
    let mut model = asking("make\nrm -rf ~");
    for size in [(80, 4), (80, 5), (80, 6)] {
        type_on(&mut model, &keys("ay"), size);
        type_on(&mut model, &[KeyCode::PageDown; 10], size);
        let shown = type_on(&mut model, &[KeyCode::Enter], size);
        assert_eq!(answers(&mut model), Vec::<String>::new(), "{shown}");
        assert!(shown.contains("not sent: "), "{shown}");
        model.take(Input::Key(KeyCode::Esc.into()), at(0));
    }
    let mut model = asking(&long());
    type_on(&mut model, &keys("a"), (80, 24));
    type_on(&mut model, &[KeyCode::PageDown; 5], (80, 24));
    model.take(Input::Resized, at(0));
    let shown = type_on(&mut model, &[], (70, 24));
    assert!(shown.contains("Bash: echo 1\n"), "at another width it begins again: {shown}");
    model.panel_scroll = 30;
    screen(&mut model, (60, 24), COLOURS);
    assert!(
        type_on(&mut model, &keys("y\n"), (60, 24)).contains("not sent: there is more of it above; PageUp")
    );
    let mut model = asking(&long());
    type_on(&mut model, &keys("a"), (80, 8));
    for _ in 0..100 {
        type_on(&mut model, &[KeyCode::PageDown], (80, 8));
    }
    type_on(&mut model, &keys("y\n"), (80, 8));
    assert_eq!(answers(&mut model), ["yes"], "each page begins where the last one ended");
}

#[test]
fn many_blank_lines_are_one_line_with_their_count() {
    for (blank, count) in
        [("", 396), (" \t", 4), ("\u{2800}", 40), ("\u{a0}\u{3000}", 5), ("\u{200b}\u{3164}", 9)]
    {
        let command = format!("make\n{}rm -rf ~", format!("{blank}\n").repeat(count));
        let shown = type_on(&mut asking(&command), &keys("a"), SIZES[0]);
        for line in
            ["  Bash: make", &format!("    … {count} blank lines …"), "  rm -rf ~", "    always: allow"]
        {
            assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line:?} {shown}");
        }
    }
    let shown = type_on(&mut asking("make\n\n\n\nrm -rf ~"), &keys("a"), SIZES[0]);
    assert!(shown.contains("  Bash: make\n\n\n\n  rm -rf ~\n"), "{shown}");
    // Blanks in one line that is broken into many.
    let command = format!("make {}rm -rf ~", "\u{a0}".repeat(10_000));
    let shown = type_on(&mut asking(&command), &keys("a"), SIZES[0]);
    assert!(shown.contains("blank lines …") && shown.contains("rm -rf ~"), "{shown}");
    // Control characters are shown.
    let shown = type_on(&mut asking(&format!("make\n{}", "\u{8}\n".repeat(5))), &keys("a"), SIZES[0]);
    assert!(!shown.contains("blank lines"), "{shown}");
}
