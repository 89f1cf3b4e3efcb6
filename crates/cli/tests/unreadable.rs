//! A goal that cannot be read is one bad row: every command works for the other goals, and the bad one can be given up.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use support::Desk;
use towline_testkit::hostile;

fn run_a_goal(desk: &Desk) -> String {
    let ran = desk.towline(["run", "fix it", "--check", "test -e fix.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_goal_that_cannot_be_read_is_listed_as_such_and_the_others_work() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let (good, bad) = (run_a_goal(&desk), run_a_goal(&desk));
    let database = rusqlite::Connection::open(desk.home.towline().join("towline.db")).expect("the database");
    let damage = "UPDATE parts SET body = substr(body, 1, 100) WHERE goal = ?1 AND path = '.'";
    database.execute(damage, [&bad]).expect("somebody changes it");
    drop(database);

    let listed = desk.towline(["ls"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let (short, mend) = (&bad[28..], format!("towline rm --force {}", &bad[28..]));
    let line = listed.stdout.lines().find(|line| line.starts_with(short)).unwrap_or_default();
    assert!(line.contains("  unreadable  "), "{}", listed.stdout);
    assert!(listed.stdout.contains(&mend), "{}", listed.stdout);
    let phases: Vec<_> =
        desk.towline(["ls", "--json"]).json().as_array().expect("rows").iter().map(phase).collect();
    assert_eq!(phases, [(bad.clone(), "unreadable".to_owned()), (good.clone(), "done".to_owned())]);
    let newest = desk.towline(["ls", "-n", "1", "--json"]).json();
    assert_eq!(newest.as_array().expect("rows").iter().map(phase).collect::<Vec<_>>(), phases[..1]);

    for command in [
        vec!["show", &good],
        vec!["logs", &good],
        vec!["diff", &good],
        vec!["questions"],
        vec!["gc", "--dry-run"],
        vec!["merge", &good],
        vec!["rm", &good],
    ] {
        let ran = desk.towline(&command);
        assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
    }
    for command in [vec!["cancel", "ffff"], vec!["tell", "ffff", "hello"]] {
        let ran = desk.towline(&command);
        assert_eq!(ran.code, Some(5), "{command:?}: {ran:?}");
    }
    let found = desk.towline(["gc", "--dry-run"]);
    assert!(found.stdout.contains(&format!("left {short}: ")), "{}", found.stdout);
    for command in [vec!["show", short], vec!["cancel", short], vec!["rm", short]] {
        let ran = desk.towline(&command);
        assert_eq!(ran.code, Some(1), "{command:?}: {ran:?}");
        assert!(ran.stderr.contains(&format!("the state of goal {bad} cannot be read")), "{}", ran.stderr);
        assert!(ran.stderr.contains(&mend), "{}", ran.stderr);
    }
    let removed = desk.towline(["rm", "--force", short]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!(desk.towline(["ls", "--json"]).json(), serde_json::json!([]));
    assert!(desk.home.towline().join("workspaces").join(&bad).exists(), "its files stay");
}

fn phase(row: &serde_json::Value) -> (String, String) {
    let text = |name: &str| row[name].as_str().expect("a text").to_owned();
    (text("id"), text("phase"))
}
