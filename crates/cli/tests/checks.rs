//! Checks of every kind, from the configuration to the verdict and to the prompt for the agent.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::{Desk, of_attempts};
use towline_testkit::hostile;

const CHECKS: &str = r#"
[[checks]]
name = "tests"
run = "grep -q fixed src/bug"

[[checks]]
name = "changelog"
file = "CHANGES.md"
matches = "^## 2"

[[checks]]
name = "api"
untouched = ["api/**"]

[[checks]]
name = "commits"
committed = true

[[checks]]
name = "judge"
program = ["sh", "tools/judge"]

[protect]
paths = ["tools/**"]
"#;

/// Accepts the work when the goal's title is in the changelog.
const JUDGE: &str = r#"
title=$(sed -n 's/.*"title":"\([^"]*\)".*/\1/p')
if grep -q "$title" CHANGES.md; then
  echo '{"met": true, "summary": "the goal is in the changelog"}'
else
  echo '{"met": false, "summary": "the changelog does not name the goal", "evidence": "wanted: '"$title"'"}'
fi
"#;

/// Does everything wrong first, a change of the judge included, and then everything right.
const AGENT: &str = r###"
if [ ! -e CHANGES.md ]; then
  echo '## 1' > CHANGES.md
  mv api/a api/b
  echo 'echo "{\"met\": true}"' > tools/judge
else
  echo fixed > src/bug
  printf '## 1\n## 2\nMend the bug\n' > CHANGES.md
  mv api/b api/a
  git add CHANGES.md src
  git -c user.name=Agent -c user.email=agent@example.org commit -q -m 'Mend the bug'
fi
"###;

/// Name, whether it is met, its problem and its evidence, of every check in a verdict.
fn results(verdict: &Value) -> Vec<Value> {
    let checks = verdict["checks"].as_array().expect("checks").iter();
    checks.map(|check| json!([check["name"], check["met"], check["problem"], check["evidence"]])).collect()
}

#[test]
fn checks_of_every_kind_turn_from_red_to_green() {
    let mut script = None;
    let desk = Desk::with_script(|dir| script.insert(hostile::doing(dir, AGENT)).clone());
    desk.project.write("towline.toml", CHECKS);
    desk.project.write("src/bug", "broken\n");
    desk.project.write("api/a", "the interface\n");
    desk.project.write("tools/judge", JUDGE);
    desk.project.commit("a project with checks");

    let ran = desk.towline(["run", "Mend the bug", "--red-first", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let verdicts = of_attempts(&ran.json(), "verdict");
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    let red = [
        json!(["tests", false, null, ""]),
        json!([
            "changelog",
            false,
            "the text of `CHANGES.md` does not match `^## 2`; this is its beginning",
            "## 1\n"
        ]),
        json!([
            "api",
            false,
            "2 paths are changed that must stay as in the base",
            "deleted: api/a\nadded: api/b\n"
        ]),
        json!([
            "commits",
            false,
            "there is no new commit; 3 paths are not committed",
            "CHANGES.md\napi/a\napi/b\n"
        ]),
        json!(["judge", false, "the changelog does not name the goal", "wanted: Mend the bug"]),
    ];
    assert_eq!(results(&verdicts[0]), red);
    assert_eq!(verdicts[0]["restored"], json!(["tools/judge"]));
    let green = [
        json!(["tests", true, null, ""]),
        json!(["changelog", true, null, ""]),
        json!(["api", true, null, ""]),
        json!(["commits", true, null, ""]),
        json!(["judge", true, null, "the goal is in the changelog\n"]),
    ];
    assert_eq!(results(&verdicts[1]), green);

    let prompts: Vec<String> = hostile::received(&script.expect("a script"))
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("a message"))
        .map(|message| message["message"]["content"].to_string().replace("\\n", "\n"))
        .collect();
    let [first, second] = prompts.as_slice() else { panic!("{prompts:?}") };
    let list = "\
- tests: `grep -q fixed src/bug`
- changelog: the file `CHANGES.md` exists and its text matches `^## 2`
- api: nothing is changed, added or deleted under `api/**`
- commits: all work is committed with git, in at least one new commit; nothing is left modified or untracked
- judge: the program `sh tools/judge` accepts the work";
    assert!(first.contains(list), "{first}");
    let failure = "\
## api

Wanted: nothing is changed, added or deleted under `api/**`
Result: 2 paths are changed that must stay as in the base

```
deleted: api/a
added: api/b
```";
    assert!(second.contains(failure), "{second}");
}

#[test]
fn a_check_that_cannot_be_used_is_refused_before_anything_is_made() {
    let desk = Desk::with_script(hostile::well_behaved);
    for (check, wanted) in [
        ("file = \"../a\"", "without `..`"),
        ("file = \"a\"\nmatches = \"(\"", "regular expression"),
        ("untouched = [\"a[\"]", "a pattern of paths"),
        ("committed = true\nrun = \"true\"", "has both `run` and `committed`"),
        ("timeout = \"1m\"", "does not name what to check"),
    ] {
        desk.project.write("towline.toml", format!("[[checks]]\nname = \"mine\"\n{check}\n"));
        let ran = desk.towline(["run", "x"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        for part in [wanted, "towline.toml", "the check `mine`"] {
            assert!(ran.stderr.contains(part), "no {part:?} in {}", ran.stderr);
        }
        assert_eq!(desk.state(), Vec::<String>::new());
    }
}
