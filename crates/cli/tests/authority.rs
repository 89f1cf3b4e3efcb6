//! Only the operator steers. An agent, a check or a setup command that tries is refused, by the command line and by the
//! engine's socket, and a Towline inside of a check has a state directory of its own.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Desk, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

/// The directory of the sockets, for this test program when an agent starts it.
const SOCKETS: &str = "TEST_SOCKETS";

/// What changes something, with the goal of somebody else as `$other`.
const CHANGING: [&str; 18] = [
    "answer $TOWLINE_GOAL yes",
    "tell $TOWLINE_GOAL stop",
    "cancel $TOWLINE_GOAL",
    "cancel $other",
    "tell $other stop",
    "retry $other",
    "rm --force $other",
    "merge $other",
    "verify $other",
    "verify --proof proof.json --run",
    "proof $other",
    "keys rotate",
    "restore $other",
    "gc",
    "run another --json",
    "demo --json",
    "trust --yes",
    "trust --revoke",
];
const READING: [&str; 7] =
    ["ls", "show $other", "logs $other", "diff $other", "questions --json", "gc --dry-run", "keys"];

fn script(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// Runs the commands as somebody inside, and records each with its exit code and what it printed.
fn trying(desk: &Desk, other: &str, commands: &[&str]) -> String {
    let (towline, home) = (env!("CARGO_BIN_EXE_towline"), desk.home.towline());
    let setting = format!("other={other}; exec 3>>\"$HOME/tried\"; export TOWLINE_HOME='{}'", home.display());
    let each = commands.iter().map(|command| {
        format!("out=$('{towline}' {command} 2>&1 </dev/null); printf '%s\\t{command}\\t%s\\n' $? \"$(echo \"$out\" | head -n 1)\" >&3")
    });
    script([setting].into_iter().chain(each))
}

/// The exit code and the first line of each command.
fn tried(desk: &Desk) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(desk.home.path().join("tried")).unwrap_or_default();
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        (|| Some((parts.next()?, parts.next()?, parts.next()?)))().expect("three columns")
    };
    text.lines().map(of_line).collect()
}

fn assert_refused(tried: &[(String, String, String)], commands: &[&str]) {
    assert_eq!(tried.iter().map(|(_, command, _)| command.as_str()).collect::<Vec<_>>(), commands);
    for (code, command, printed) in tried {
        assert_eq!(code, "2", "{command}: {printed}");
        assert!(printed.contains("was started by an agent, check or setup command"), "{command}: {printed}");
    }
}

/// A goal that has failed, and everything that is recorded of it.
fn other_goal(desk: &Desk) -> (String, Vec<Value>) {
    let ran = desk.towline(["run", "the other", "--check", "false", "--budget", "attempts=1", "--json"]);
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    let events = desk.events(&goal);
    (goal, events)
}

fn agent_that(desk: &Desk, commands: &str) {
    let script = hostile::doing(&desk.home.path(), commands);
    desk.configure(&format!("[agents.claude]\ncommand = [{:?}]\n", script.display().to_string()));
}

#[test]
fn an_agent_can_read_and_is_refused_whatever_changes_something() {
    let desk = Desk::with_script(hostile::well_behaved);
    let (other, before) = other_goal(&desk);
    agent_that(&desk, &trying(&desk, &other, &[&CHANGING[..], &READING].concat()));
    let ran = desk.towline(["run", "steer", "--check", "true", "--json"]);
    assert_eq!((ran.code, ran.json()["phase"].as_str()), (Some(0), Some("done")), "{ran:?}");
    let tried = tried(&desk);
    let (changing, reading) = tried.split_at(CHANGING.len());
    assert_refused(changing, &CHANGING);
    assert!(reading.iter().all(|(code, ..)| code == "0") && reading.len() == READING.len(), "{reading:?}");
    assert_eq!(desk.events(&other), before);
    assert_eq!(desk.towline(["ls", "--json"]).json().as_array().map(Vec::len), Some(2));
}

#[test]
fn checks_setup_commands_and_orphans_are_refused_too() {
    let desk = Desk::with_script(hostile::well_behaved).without_baseline();
    let (other, before) = other_goal(&desk);
    let cancel = ["cancel $other"];
    let attempt = trying(&desk, &other, &cancel);
    std::fs::write(desk.home.path().join("try.sh"), &attempt).expect("a script");
    // The parents of the last one have ended when it begins.
    let orphan = "(setsid sh -c 'while kill -0 '$$'; do sleep 0.01; done; . \"$HOME/try.sh\"; touch \"$HOME/tried.orphan\"' >/dev/null 2>&1 &)";
    desk.project.write("towline.toml", "[workspace]\nsetup = ['. \"$HOME/try.sh\"']\n");
    desk.project.commit("a setup");
    let check =
        format!(". \"$HOME/try.sh\"; sh -c \"{}\"; true", orphan.replace('"', "\\\"").replace('$', "\\$"));
    let wait = "while ! test -e \"$HOME/tried.orphan\"; do sleep 0.02; done";
    let ran = desk.towline(["run", "work", "--check", &format!("{check}; {wait}"), "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Setup in the workspace and in the checkout, the check, and what the check left.
    assert_refused(&tried(&desk), &[cancel[0]; 4]);
    assert_eq!(desk.events(&other), before);
}

#[test]
fn what_has_lost_its_supervisor_and_its_engine_is_refused_by_its_mark() {
    let desk = Desk::with_script(hostile::well_behaved);
    let (other, before) = other_goal(&desk);
    let towline = desk.command(["cancel", other.as_str()]);
    // What an agent or a check starts has this limit, and cannot raise it.
    let mut marked = clean_command("prlimit");
    marked.arg("--msgqueue=819199:819199").arg(towline.get_program()).args(towline.get_args());
    marked.envs(towline.get_envs().filter_map(|(name, value)| Some((name, value?))));
    marked.current_dir(desk.project.path()).stdin(Stdio::null());
    let ran = marked.output().expect("prlimit runs");
    let message = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{message}");
    assert!(message.contains("agent, check or setup command"), "{message}");
    assert_eq!(desk.events(&other), before);
}

/// Where this user may make namespaces, the agent tries in one of its own, as root of it and with a `/proc` that shows only itself.
/// Everywhere else it cannot hide, and is refused by its parents.
#[test]
fn an_agent_in_a_process_namespace_of_its_own_is_refused_by_its_mark() {
    let desk = Desk::with_script(hostile::well_behaved);
    let (other, before) = other_goal(&desk);
    let commands = [
        "add x --check true",
        "cancel $other",
        "resume $other",
        "merge $other",
        "accounts open claude",
        "gc",
    ];
    std::fs::write(desk.home.path().join("try.sh"), trying(&desk, &other, &commands)).expect("a script");
    let hidden = "unshare -Urpf --mount-proc";
    agent_that(
        &desk,
        &format!(
            "if {hidden} true; then {hidden} sh \"$HOME/try.sh\"; else sh \"$HOME/try.sh\"; fi >/dev/null 2>&1"
        ),
    );
    let ran = desk.towline(["run", "steer", "--check", "true", "--json"]);
    assert_eq!((ran.code, ran.json()["phase"].as_str()), (Some(0), Some("done")), "{ran:?}");
    assert_refused(&tried(&desk), &commands);
    assert_eq!(desk.events(&other), before);
}

/// A supervisor explains one mark. One that has the mark itself, and no supervisor above it, explains nothing.
#[test]
fn a_marked_process_that_poses_as_a_supervisor_is_refused_with_what_it_starts() {
    let desk = Desk::with_script(hostile::well_behaved);
    let (other, before) = other_goal(&desk);
    let script = format!(
        "printf towline-shim > /proc/$$/comm; cat /proc/$$/comm; prlimit --msgqueue=819198:819198 '{}' cancel {other}; exit $?",
        env!("CARGO_BIN_EXE_towline")
    );
    let towline = desk.command(["ls"]);
    let mut marked = clean_command("prlimit");
    marked.args(["--msgqueue=819199:819199", "sh", "-c", &script]);
    marked.envs(towline.get_envs().filter_map(|(name, value)| Some((name, value?))));
    marked.current_dir(desk.project.path()).stdin(Stdio::null());
    let ran = marked.output().expect("prlimit runs");
    let message = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "towline-shim\n");
    assert_eq!(ran.status.code(), Some(2), "{message}");
    assert!(message.contains("agent, check or setup command"), "{message}");
    assert_eq!(desk.events(&other), before);
}

#[test]
fn a_towline_inside_a_check_works_with_a_state_directory_of_its_own() {
    let desk = Desk::with_script(hostile::well_behaved);
    let towline = env!("CARGO_BIN_EXE_towline");
    let check = format!("TOWLINE_HOME=\"$HOME/inner\" '{towline}' demo --json");
    let ran = desk.towline(["run", "work", "--check", &check, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// What every engine in the directory answers to this.
fn by_hand(sockets: &Path, request: &Value) -> Vec<Value> {
    let entries = std::fs::read_dir(sockets).expect("the sockets").map(|entry| entry.expect("one").path());
    let sockets = entries.filter(|path| path.extension().is_some_and(|extension| extension == "sock"));
    let ask = |path: std::path::PathBuf| {
        let mut stream = UnixStream::connect(path).expect("a connection");
        writeln!(stream, "{request}").expect("sent");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    };
    sockets.map(ask).collect()
}

fn request(goal: &str, command: Value) -> Value {
    json!({"request": "wish", "goal": goal, "wish": command})
}

/// Run by the test, it starts an agent that runs it again, which then speaks with the socket by hand.
#[test]
fn the_socket_refuses_an_agent_that_connects_by_hand() {
    if let Some(sockets) = std::env::var_os(SOCKETS) {
        let goal = std::env::var("TOWLINE_GOAL").expect("the goal");
        let answer = json!({"wish": "answer", "question": 1, "reply": {"reply": "allowed"}});
        let commands = [json!({"wish": "cancel"}), json!({"wish": "tell", "text": "x"}), answer];
        let steering = commands.into_iter().map(|what| request(&goal, what));
        // The log of any goal has what hidden checks print.
        let reading = [json!({"request": "follow", "goal": goal}), json!({"request": "pool_state"})];
        let replies: Vec<_> =
            steering.chain(reading).flat_map(|what| by_hand(Path::new(&sockets), &what)).collect();
        let home = std::env::var("HOME").expect("a home");
        std::fs::write(Path::new(&home).join("replies"), json!(replies).to_string()).expect("written");
        return;
    }
    let desk = Desk::new();
    let me = std::env::current_exe().expect("this program");
    let name = "the_socket_refuses_an_agent_that_connects_by_hand";
    let sockets = desk.home.towline().join("engines");
    agent_that(
        &desk,
        &format!(
            "{SOCKETS}='{}' '{}' --exact {name} > \"$HOME/test.log\" 2>&1; touch \"$HOME/tried\"; while ! test -e \"$HOME/go\"; do sleep 0.02; done",
            sockets.display(),
            me.display()
        ),
    );
    let run = desk.start(["run", "steer", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    let home = desk.home.path();
    towline_testkit::scratch::wait_for(support::LIMIT, "the agent's attempt", || home.join("tried").exists());
    let replies = std::fs::read_to_string(home.join("replies"));
    let log = std::fs::read_to_string(home.join("test.log")).unwrap_or_default();
    let replies: Vec<Value> = serde_json::from_str(&replies.expect(&log)).expect("JSON");
    let refused =
        json!({"reply": "refused", "why": "an agent, check or setup command cannot steer or follow goals"});
    assert_eq!(replies, vec![refused; 5]);
    // The same bytes from outside are obeyed.
    let answer = by_hand(&sockets, &request(&goal, json!({"wish": "tell", "text": "from outside"})));
    assert_eq!(answer, [json!({"reply": "accepted"})]);
    std::fs::write(home.join("go"), "").expect("let go");
    let ran = finish(run);
    assert_eq!((ran.code, ran.json()["phase"].as_str()), (Some(0), Some("done")), "{ran:?}");
}

#[test]
fn an_engine_serves_a_limited_number_of_clients() {
    const MOST_CLIENTS: usize = 128;
    let desk = Desk::new();
    agent_that(&desk, "while ! test -e \"$HOME/go\"; do sleep 0.02; done");
    let run = desk.start(["run", "wait", "--check", "true", "--json"]);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "running");
    let sockets = desk.home.towline().join("engines");
    let find = || {
        let entries =
            std::fs::read_dir(&sockets).expect("the sockets").map(|entry| entry.expect("one").path());
        entries.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "sock"))
    };
    let socket = find().expect("a socket");
    // The engine closes the connection of a client for whom it has no place.
    let follow = || {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        let _ = writeln!(stream, "{}", json!({"request": "follow", "goal": goal}));
        let mut line = String::new();
        let _ = BufReader::new(&stream).read_line(&mut line);
        (!line.is_empty()).then_some(stream)
    };
    let mut clients: Vec<UnixStream> = (0..MOST_CLIENTS).filter_map(|_| follow()).collect();
    assert_eq!((clients.len(), follow().is_some()), (MOST_CLIENTS, false));
    clients.clear();
    std::fs::write(desk.home.path().join("go"), "").expect("let go");
    let ran = finish(run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
