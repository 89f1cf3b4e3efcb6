//! The recipes of the documentation print what they promise.

use std::path::Path;

use serde_json::Value;
use towline_testkit::scratch::clean_command;

use crate::support::Ran;
use crate::workshop::Workshop;

/// The agent of the first goal asks something and ends; that of the second one waits.
const WORK: &str = r#"
if [ $n = 1 ]; then echo '{"question": "Which colour?"}' > "$TOWLINE_QUESTION_FILE"; exit 0; fi
"#;

/// Where the pages have the server.
const ADDRESS: &str = "127.0.0.1:8689";

/// The blocks of a page in this language, from a heading on.
fn blocks(page: &str, heading: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(path).expect("a page");
    let (_, rest) = text.split_once(heading).expect("a heading");
    let fence = format!("```{language}\n");
    let blocks = rest.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.map(str::to_owned).collect()
}

/// Types lines in a shell that has `towline` on its path, with these variables.
fn type_in(workshop: &Workshop, lines: &str, variables: &[(String, String)]) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_towline")).parent().expect("a folder").display();
    let mut shell = clean_command("bash");
    shell.args(["--norc", "-eu", "-o", "pipefail", "-c", &lines.replace(ADDRESS, &workshop.address)]);
    shell.env_clear().envs(workshop.desk.variables().to_vec()).envs(variables.iter().cloned());
    let path = std::env::var("PATH").expect("a path");
    let ran = Ran::from(shell.env("PATH", format!("{programs}:{path}")).output().expect("bash starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout
}

#[test]
fn recipes_with_curl_and_jq_show_goals_questions_and_events() {
    let workshop = Workshop::open(WORK);
    let asking = workshop.add(&[]);
    workshop.desk.wait_for_phase(&asking, "blocked");
    let running = workshop.add(&[]);
    workshop.given(2);
    let waiting = workshop.add(&["--after", &running]);
    let recipes = blocks("http.md", "## Recipes", "sh").remove(0);
    // The server runs, and is stopped below. Following ends after a moment, and not in success.
    let lines = recipes.lines().filter(|line| !line.starts_with("towline "));
    let lines = lines.map(|line| match line.strip_prefix("curl -sN ") {
        Some(rest) => format!("curl -sN --max-time 3 {rest} || true\n"),
        None => format!("{line}\n"),
    });
    let printed = type_in(&workshop, &lines.collect::<String>(), &[]);
    let (listed, rest) = printed.split_once("{\n").expect("the report of a goal");
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        [
            format!("{running}  Work"),
            format!("{waiting}  Work: waits for {} (running)", &running[running.len() - 8..]),
            format!("{asking}  question 1: Which colour?"),
            asking.clone(),
        ],
        "{printed}"
    );
    let (report, rest) = rest.split_once("\n}\n").expect("the end of the report");
    let report: Value = serde_json::from_str(&format!("{{{report}}}")).expect("JSON");
    assert_eq!((&report["phase"], &report["title"]), (&Value::from("queued"), &Value::from("Work")));
    let ids: Vec<&str> = rest.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(ids[..3], [&waiting, &running, &asking], "newest first: {rest}");
    for line in ["1 created".to_owned(), format!("{asking} created"), format!("{running} created")] {
        assert!(rest.lines().any(|printed| printed == line), "{line}: {rest}");
    }
    // Answered above.
    workshop.given(3);
    for goal in [&waiting, &running, &asking] {
        assert_eq!(workshop.desk.towline(["cancel", goal]).code, Some(0));
    }
    workshop.close();
}

#[test]
fn the_tools_answer_as_the_page_about_them_shows() {
    let workshop = Workshop::open("");
    let goal = workshop.add(&[]);
    let given: Vec<(String, String)> = workshop.given(1).into_iter().collect();
    let examples = blocks("mcp.md", "# Tools", "bash");
    assert_eq!(examples.len(), 2);
    for example in &examples {
        let answer: Value = serde_json::from_str(&type_in(&workshop, example, &given)).expect("JSON");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let log = Value::from(workshop.desk.events(&goal)).to_string();
    assert!(log.contains("half way") && log.contains("Which colour?"), "{log}");
    assert_eq!(workshop.desk.towline(["cancel", &goal]).code, Some(0));
    workshop.close();
}
