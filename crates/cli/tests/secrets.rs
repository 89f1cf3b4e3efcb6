//! Secrets are planted in every way in, and an agent repeats them everywhere: none of them may come out again, but in the
//! raw logs, which are for their owner alone.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Child;

use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::{processes_with, wait_for};

/// Values that this machine knows by the way they came in.
const OF_ENVIRONMENT: &str = "planted-in-environment-4f1c";
const HANDED_ON: &str = "Planted-And-Handed-On-77b2";
const OF_CONFIGURATION: &str = "planted-in-configuration-1d2e";
const OF_CHECKS: &str = "planted-for-checks-99aa";
/// What nobody knows but by its shape.
const SHAPED: [&str; 4] = [
    "ghp_plantedshape0123456789abcd",
    "sk-ant-planted0123456789abcdefgh",
    "AKIAPLANTED012345678",
    "eyJwbGFudGVkIjoxfQ.eyJwbGFudGVkIjoyfQ.cGxhbnRlZHNpZw",
];
/// Secrets in messages of the operator.
const IN_PROMPT: &str = "ghp_writintheprompt0123456789";
const IN_ANSWER: &str = "glpat-saidintheanswer01234567";
const IN_MESSAGE: &str = "xoxb-sentbytheoperator0123456";

/// Prints all that it knows in every way that an agent has, asks, and then waits to be let go.
const BLABBER: &str = r#"
all="$ANTHROPIC_API_KEY $HANDED $CONFIG_TOKEN $TOWLINE_TOKEN SHAPES"
printf '%s' "$TOWLINE_TOKEN" > "$HOME/token"
await_prompt
init
message() {
  printf '{"type":"assistant","message":{"id":"msg_%s","type":"message","role":"assistant","model":"scripted","content":[%s],"stop_reason":null,"stop_sequence":null,"usage":%s},"parent_tool_use_id":null,"session_id":"%s"}\n' "$1" "$2" "$usage" "$session"
}
message 1 "{\"type\":\"thinking\",\"thinking\":\"I know $all\",\"signature\":\"s\"}"
message 2 "{\"type\":\"text\",\"text\":\"I know $all and $(printf %s "user:$ANTHROPIC_API_KEY" | base64)\"}"
message 3 "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"Bash\",\"input\":{\"command\":\"echo $all\",\"$CONFIG_TOKEN\":[\"$HANDED\"]}}"
printf '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"printed %s","is_error":false}]},"parent_tool_use_id":null,"session_id":"%s"}\n' "$all" "$session"
message 4 "{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":\"Read\",\"input\":{\"file_path\":\"/secret/$HANDED/$ANTHROPIC_API_KEY\"}}"
message 5 "{\"type\":\"tool_use\",\"id\":\"toolu_3\",\"name\":\"TodoWrite\",\"input\":{\"todos\":[{\"content\":\"keep $all\",\"status\":\"pending\",\"activeForm\":\"x\"}]}}"
printf '{"type":"unheard_of","words":"%s"}\n' "$all"
printf 'no JSON at all: %s\n' "$all"
printf '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"%s"}}\n' "$HANDED"
echo "it complains: $all" >&2
printf 'a file with %s\n' "$all" > leaked.txt
if [ ! -e "$HOME/asked" ]; then
  touch "$HOME/asked"
  printf '{"type":"control_request","request_id":"req_1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","tool_use_id":"toolu_9","input":{"questions":[{"question":"May I use %s?","header":"Use","multiSelect":false,"options":[{"label":"Yes","description":"with %s"},{"label":"No","description":"x"}]}]}}}\n' "$all" "$CONFIG_TOKEN"
  while IFS= read -r line; do case "$line" in *'"control_response"'*) break ;; esac; done
  while [ ! -e "$HOME/go" ]; do sleep 0.05; done
  assistant "It fails with $all"
  result true 500 "API Error: 500 $all"
else
  assistant "Done with $all"
  result false null "Done with $all"
fi
while IFS= read -r line; do :; done
"#;

/// Fails the first time, with all that it knows.
const CHECK: &str = "echo \"known: $CHECK_TOKEN $HANDED $ANTHROPIC_API_KEY $(cat \"$HOME/shapes\")\"; test -e \"$HOME/checked\" || { touch \"$HOME/checked\"; exit 1; }";

fn planted() -> Desk {
    let shapes = SHAPED.join(" ");
    let body = BLABBER.replace("SHAPES", &shapes);
    let mut desk = Desk::with_script(|dir| hostile::with_body(dir, "blabber", &body)).without_baseline();
    desk.agent_settings(&format!(
        "permission = \"ask\"\npass_env = [\"HANDED\"]\nenv = {{ CONFIG_TOKEN = \"{OF_CONFIGURATION}\" }}\n\
         [workspace]\npass_env = [\"CHECK_TOKEN\", \"ANTHROPIC_API_KEY\"]"
    ));
    std::fs::write(desk.home.path().join("shapes"), shapes).expect("a file");
    desk.set("ANTHROPIC_API_KEY", OF_ENVIRONMENT);
    desk.set("HANDED", HANDED_ON);
    desk.set("CHECK_TOKEN", OF_CHECKS);
    desk
}

fn run(desk: &Desk, format: &str) -> Child {
    let prompt = format!("Fix it with {IN_PROMPT}");
    desk.start(["run", &prompt, "--check", CHECK, "--budget", "attempts=4", format])
}

/// What must never be shown.
fn secrets(desk: &Desk) -> Vec<String> {
    let token = std::fs::read_to_string(desk.home.path().join("token")).expect("the attempt's token");
    let known = [OF_ENVIRONMENT, HANDED_ON, OF_CONFIGURATION, OF_CHECKS, &token];
    known.into_iter().chain(SHAPED).map(str::to_owned).collect()
}

fn assert_hidden(secrets: &[String], text: &str, place: &str) {
    for secret in secrets {
        assert!(!text.contains(secret.as_str()), "{secret} in {place}: {text}");
    }
}

/// Looks at everything that can be read about a goal.
fn look_everywhere(desk: &Desk, goal: &str, secrets: &[String]) {
    let of_people = [IN_PROMPT, IN_ANSWER, IN_MESSAGE].map(str::to_owned);
    let hidden: Vec<String> = secrets.iter().cloned().chain(of_people).collect();
    let commands: [&[&str]; 20] = [
        &["show", goal],
        &["show", goal, "--json"],
        &["logs", goal],
        &["logs", goal, "--json"],
        &["logs", goal, "--attempt", "1"],
        &["ls"],
        &["ls", "--json"],
        &["questions"],
        &["questions", "--json"],
        &["diff", goal],
        &["diff", goal, "--stat"],
        &["replay", goal, "--attempt", "1"],
        &["replay", goal, "--attempt", "1", "--json"],
        &["replay", goal, "--attempt", "1", "--check"],
        &["verify", goal],
        &["verify", goal, "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["agents"],
        &["agents", "check", "claude", "--json"],
    ];
    for args in commands {
        let ran = desk.towline(args);
        assert!(ran.code.is_some(), "{ran:?}");
        assert_hidden(&hidden, &format!("{}{}", ran.stdout, ran.stderr), &args.join(" "));
    }
    // Messages of people are stored unchanged, because they must reach the agent so; all else is in no database.
    for name in ["towline.db", "towline.db-wal"] {
        let bytes = std::fs::read(desk.home.towline().join(name)).unwrap_or_default();
        assert_hidden(secrets, &String::from_utf8_lossy(&bytes), name);
    }
}

#[test]
fn planted_secrets_come_out_nowhere_but_in_the_raw_logs() {
    for format in ["--json", "--events"] {
        let mut desk = planted();
        let towline = run(&desk, format);
        let goal = desk.only_goal();
        desk.wait_for_phase(&goal, "blocked");
        let secrets = secrets(&desk);
        for process in processes_with(&desk.home.marker()) {
            assert_hidden(&secrets, &process.command, "the list of processes");
        }
        look_everywhere(&desk, &goal, &secrets);
        let answered = desk.towline(["answer", &goal, &format!("No: take {IN_ANSWER}")]);
        assert_hidden(&[IN_ANSWER.to_owned()], &format!("{answered:?}"), "answer");
        assert_eq!(answered.code, Some(0), "{answered:?}");
        let sent = desk.towline(["tell", &goal, &format!("and {IN_MESSAGE}")]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        std::fs::write(desk.home.path().join("go"), "").expect("let go");
        let ran = finish(towline);
        let of_people = [IN_PROMPT, IN_ANSWER, IN_MESSAGE].map(str::to_owned);
        let hidden: Vec<String> = secrets.iter().cloned().chain(of_people).collect();
        assert_hidden(&hidden, &format!("{}{}", ran.stdout, ran.stderr), format);
        let report = desk.show(&goal);
        let attempts = report["attempts"].as_array().expect("attempts");
        assert!(attempts.len() >= 2, "{report}");
        assert!(report.to_string().contains("[masked ANTHROPIC_API_KEY]"), "{report}");
        assert!(report.to_string().contains("[masked token]"), "{report}");
        look_everywhere(&desk, &goal, &secrets);

        // Messages of people reached the agent unchanged, and the raw logs have it all.
        let dir = attempts[0]["dir"].as_str().expect("a directory").to_owned();
        let read = |name: &str| std::fs::read_to_string(Path::new(&dir).join(name)).expect("a log");
        for text in [IN_PROMPT, IN_ANSWER] {
            assert!(read("stdin.log").contains(text), "{text}");
        }
        assert!(read("stdout.log").contains(OF_ENVIRONMENT) && read("stderr.log").contains(HANDED_ON));

        // Whoever looks later, without these variables, sees no more.
        for name in ["ANTHROPIC_API_KEY", "HANDED", "CHECK_TOKEN"] {
            desk.unset(name);
        }
        let diff =
            std::fs::read_to_string(desk.home.towline().join("workspaces").join(&goal).join("leaked.txt"));
        assert!(diff.is_ok_and(|text| text.contains(OF_ENVIRONMENT)), "the agent leaked it into a file");
        for args in [["show", &goal], ["logs", &goal], ["replay", &goal], ["ls", "--json"]] {
            let ran = desk.towline(args);
            assert_hidden(&hidden, &format!("{}{}", ran.stdout, ran.stderr), &args.join(" "));
        }
    }
}

#[test]
fn a_diff_that_would_show_a_secret_hides_it_unless_the_bytes_are_wanted() {
    let mut desk =
        Desk::with_script(|dir| hostile::doing(dir, "echo \"key = $ANTHROPIC_API_KEY\" > config.ini"));
    desk.set("ANTHROPIC_API_KEY", OF_ENVIRONMENT);
    let ran = desk.towline(["run", "write it down", "--check", "test -e config.ini", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let goal = desk.only_goal();
    let hidden = desk.towline(["diff", &goal]);
    assert!(hidden.stdout.contains("+key = [masked ANTHROPIC_API_KEY]"), "{hidden:?}");
    assert!(hidden.stderr.contains("--raw"), "{hidden:?}");
    let raw = desk.towline(["diff", &goal, "--raw"]);
    assert!(raw.stdout.contains(&format!("+key = {OF_ENVIRONMENT}")), "{raw:?}");
    assert_eq!(raw.stderr, "");
}

#[test]
fn arguments_that_are_refused_are_not_repeated_with_their_secrets() {
    let mut desk = Desk::with_script(hostile::well_behaved);
    desk.set("MY_API_KEY", OF_ENVIRONMENT);
    let shaped = SHAPED[0];
    for args in [
        vec![format!("--{OF_ENVIRONMENT}")],
        vec![shaped.to_owned()],
        vec!["show".to_owned(), OF_ENVIRONMENT.to_owned()],
        vec!["show".to_owned(), "a".to_owned(), shaped.to_owned()],
        vec!["run".to_owned(), "x".to_owned(), "--budget".to_owned(), OF_ENVIRONMENT.to_owned()],
        vec!["run".to_owned(), "x".to_owned(), "--agent".to_owned(), shaped.to_owned()],
        vec!["run".to_owned(), "x".to_owned(), "--base".to_owned(), OF_ENVIRONMENT.to_owned()],
        vec!["run".to_owned(), "--file".to_owned(), shaped.to_owned()],
    ] {
        let ran = desk.towline(&args);
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(matches!(ran.code, Some(2 | 5)) && printed.contains("error: "), "{args:?}: {ran:?}");
        assert_hidden(&[OF_ENVIRONMENT.to_owned(), shaped.to_owned()], &printed, &args.join(" "));
    }
}

#[test]
fn what_an_attempt_leaves_is_for_its_owner_alone() {
    let desk = Desk::with_script(hostile::well_behaved);
    let ran = desk.towline(["run", "do it", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let dir = Path::new(report["attempts"][0]["dir"].as_str().expect("a directory")).to_owned();
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let mut seen = 0;
    for entry in std::fs::read_dir(&dir).expect("the directory").flatten() {
        if entry.file_type().expect("a type").is_file() {
            assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
            seen += 1;
        }
    }
    assert!(seen >= 6, "logs, index, exit record, launch and conversation");
    assert_eq!(mode(&desk.home.towline().join("towline.db")), 0o600);
    wait_for(LIMIT, "the end", || processes_with(&desk.home.marker()).is_empty());
}

#[test]
fn the_values_of_copied_files_are_hidden_and_a_fifo_is_named() {
    let all = "cat .env settings.json | tr '\\n\\\"' '  '";
    let body = BLABBER.replace("SHAPES", &format!("$({all})")).replace("$HOME/asked", "$HOME/never");
    // It asks nothing.
    let desk = Desk::with_script(|dir| {
        std::fs::write(dir.join("never"), "").expect("a file");
        hostile::with_body(dir, "blabber", &body)
    });
    desk.project.write(".gitignore", ".env\nsettings.json\npipe.env\n");
    desk.project.write("towline.toml", "[workspace]\ncopy = [\".env\", \"settings.json\", \"pipe.env\"]\n");
    desk.project.commit("settings");
    desk.project.write(".env", "SERVICE=copied-value-41d7\nNODE_ENV=development\n");
    desk.project.write("settings.json", "{\"apiKey\": \"copied-key-41d8\", \"name\": \"plain-name-41d9\"}\n");
    let fifo =
        towline_testkit::scratch::clean_command("mkfifo").arg(desk.project.path().join("pipe.env")).status();
    assert!(fifo.is_ok_and(|status| status.success()));

    let check = format!("{all}; exit 1");
    let ran = desk.towline(["run", "repeat", "--check", &check, "--budget", "attempts=1", "--events"]);
    assert!(ran.stderr.contains("pipe.env"), "{ran:?}");
    let hidden = ["copied-value-41d7", "copied-key-41d8"].map(str::to_owned);
    assert_hidden(&hidden, &format!("{}{}", ran.stdout, ran.stderr), "run");
    assert!(ran.stdout.contains("[masked SERVICE]") && ran.stdout.contains("development"), "{}", ran.stdout);
    assert!(ran.stdout.contains("plain-name-41d9"), "{}", ran.stdout);
    let goal = desk.only_goal();
    for args in [
        &["show", &goal][..],
        &["show", &goal, "--json"],
        &["logs", &goal],
        &["diff", &goal],
        &["replay", &goal],
    ] {
        let ran = desk.towline(args);
        assert_hidden(&hidden, &format!("{}{}", ran.stdout, ran.stderr), &args.join(" "));
    }
    for name in ["towline.db", "towline.db-wal"] {
        let bytes = std::fs::read(desk.home.towline().join(name)).unwrap_or_default();
        assert_hidden(&hidden, &String::from_utf8_lossy(&bytes), name);
    }
}
