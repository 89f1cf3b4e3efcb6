//! Machines where bubblewrap does not work: Landlock takes its place, or nothing does. Either way it is level 1, and reported as that.
//!
//! Such a machine is made of this one: a sandbox around everything hides `bwrap`, and a filter of system calls takes Landlock away.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::{Desk, Ran};
use towline_core::Network;
use towline_sandbox::{Machine, Obstacle, Places, Private, Room, Signals};
use towline_testkit::scratch::{SANDBOX, clean_command};

const BUBBLEWRAP: &str = "/usr/bin/bwrap";

/// What a machine is without.
#[derive(Clone, Copy)]
enum Without {
    Bubblewrap,
    Both,
}

/// Runs `towline` on such a machine.
fn towline(desk: &Desk, without: Without, args: &[&str]) -> Ran {
    assert!(Path::new(BUBBLEWRAP).is_file(), "these tests need bubblewrap: cargo xtask setup");
    let filter = desk.home.path().join("filter");
    std::fs::write(&filter, without_landlock()).expect("a filter");
    let mut command = clean_command("/bin/sh");
    let script = match without {
        Without::Bubblewrap => "exec \"$@\"",
        Without::Both => "exec 9<\"$0\"; bwrap=$1; shift; exec \"$bwrap\" --seccomp 9 \"$@\"",
    };
    command.args(["-c", script]).arg(filter).arg(BUBBLEWRAP);
    command.args(["--dev-bind", "/", "/", "--ro-bind", "/dev/null", BUBBLEWRAP, "--"]);
    command.arg(env!("CARGO_BIN_EXE_towline")).args(args);
    command.env_clear().envs(desk.variables().to_vec()).current_dir(desk.project.path());
    Ran::from(command.output().expect("bubblewrap starts"))
}

/// A program for the kernel: the call that makes rules of Landlock is not there.
fn without_landlock() -> Vec<u8> {
    const CREATE_RULESET: u32 = 444;
    let number_of_call = (0x20, 0, 0, 0);
    let skip_unless_it = (0x15, 0, 1, CREATE_RULESET);
    let no_such_call = (0x06, 0, 0, 0x0005_0000 | 38);
    let allow = (0x06, 0, 0, 0x7fff_0000);
    let instructions: [(u16, u8, u8, u32); 4] = [number_of_call, skip_unless_it, no_such_call, allow];
    let bytes = instructions.into_iter().flat_map(|(code, yes, no, value)| {
        [&code.to_ne_bytes()[..], &[yes, no], &value.to_ne_bytes()].concat()
    });
    bytes.collect()
}

/// A desk whose agent runs a shell command, with the sandbox in this mode.
fn desk(mode: &str, command: &str) -> Desk {
    let mut desk = Desk::new();
    desk.unset(SANDBOX);
    desk.configure(&format!(
        "defaults.agents = [\"plain\"]\nsandbox.mode = {mode:?}\n\
         [agents.plain]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", {command:?}]\n"
    ));
    desk
}

fn has_landlock() -> bool {
    (Places::default().landlock)().is_some()
}

#[test]
fn without_bubblewrap_landlock_confines_agents_and_checks_and_the_level_stays_1() {
    // Where the kernel has no Landlock either, the same goal is of the same level.
    let expected = if has_landlock() { json!("landlock") } else { Value::Null };
    let probe = "cat \"$SECRET\" > seen 2>/dev/null; echo done > done";
    let mut desk = desk("auto", probe);
    let secret = desk.home.path().join("secret");
    std::fs::write(&secret, "hush").expect("a secret");
    desk.set("SECRET", &secret.display().to_string());
    let check = format!("test -e done && test ! -s seen && ! cat {}", secret.display());
    let ran = towline(&desk, Without::Bubblewrap, &["run", "look", "--check", &check, "--json"]);
    let report = ran.json();
    assert_eq!(report["trust"]["level"], 1, "{report:#}");
    assert_eq!(report["trust"]["sandbox"], expected, "{report:#}");
    assert_eq!(report["attempts"][0]["verdict"]["sandbox"], expected);
    assert!(ran.stderr.contains("so verdicts are of level 1"), "{ran:?}");
    assert!(ran.stderr.contains("`bwrap` is not installed"), "{ran:?}");
    if has_landlock() {
        assert_eq!(report["phase"], "done", "{ran:?}");
    }
    let line = &desk.towline(["ls", "--json"]).json()[0];
    assert_eq!(line["trust"], report["trust"]);
}

#[test]
fn without_any_sandbox_goals_run_at_level_1_and_it_is_noted_once_per_project() {
    let desk = desk("auto", "echo done > done");
    let run = || towline(&desk, Without::Both, &["run", "look", "--check", "test -e done", "--json"]);
    let (first, second) = (run(), run());
    for ran in [&first, &second] {
        let report = ran.json();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let trust = json!({"level": 1, "sandbox": null, "in_place": false, "confirmed": "clean"});
        assert_eq!((&report["trust"], &report["attempts"][0]["verdict"]["sandbox"]), (&trust, &Value::Null));
    }
    let note = "note: agents and checks run without a sandbox, so verdicts are of level 1";
    assert!(first.stderr.contains(note) && first.stderr.contains("the fix: towline doctor"), "{first:?}");
    assert!(!second.stderr.contains(note), "{second:?}");
    let shown = desk.towline(["show", first.json()["id"].as_str().expect("an id")]);
    assert!(shown.stdout.contains("trust      level 1, no sandbox"), "{shown:?}");
    let third = towline(&desk, Without::Both, &["run", "look", "--check", "test -e done"]);
    assert!(third.stdout.contains("\n  trust:                   level 1, no sandbox\n"), "{third:?}");
}

#[test]
fn what_requires_a_sandbox_is_refused_with_the_fix_of_doctor_where_none_works() {
    let desk = desk("required", "echo done > done");
    let report = towline(&desk, Without::Both, &["doctor", "--json"]).json();
    let findings = report["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|finding| finding["section"] == "sandbox").expect("a finding");
    assert_eq!((&report["ok"], &finding["level"]), (&json!(false), &json!("problem")));
    let fix = finding["fix"].as_str().expect("a fix");
    assert_eq!(fix, "install it: `apt install bubblewrap` or `dnf install bubblewrap`");
    for command in ["run", "add"] {
        let ran = towline(&desk, Without::Both, &[command, "work", "--check", "true"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("none works here: bubblewrap: `bwrap` is not installed"), "{ran:?}");
        assert!(ran.stderr.contains(fix), "{ran:?}");
    }
    assert_eq!(desk.towline(["ls", "--json"]).json(), json!([]), "nothing was created");
}

#[test]
fn doctor_reports_which_sandbox_works_what_it_lacks_and_why_there_is_no_better_one() {
    let desk = desk("auto", "true");
    let facts = |without| towline(&desk, without, &["doctor", "--json"]).json()["sandbox"].clone();
    let none = facts(Without::Both);
    assert_eq!(none["bubblewrap"], "`bwrap` is not installed");
    assert!(none["landlock"].as_str().expect("a reason").contains("the kernel has none"), "{none}");
    assert_eq!((&none["works"], &none["level"]), (&Value::Null, &json!(1)));
    let bubblewrap = desk.towline(["doctor", "--json"]).json()["sandbox"].clone();
    assert_eq!(
        (&bubblewrap["works"], &bubblewrap["level"]),
        (&json!("bubblewrap"), &json!(2)),
        "{bubblewrap}"
    );
    assert_eq!((&bubblewrap["bubblewrap"], &bubblewrap["without_towline"]), (&Value::Null, &Value::Null));
    let landlock = facts(Without::Bubblewrap);
    if has_landlock() {
        assert_eq!((&landlock["works"], &landlock["level"]), (&json!("landlock"), &json!(1)), "{landlock}");
        assert_eq!(landlock["without_towline"], Value::Null, "{landlock}");
        assert_eq!(landlock["layers_caches"], false);
    } else {
        assert_eq!(landlock, none);
    }
}

/// A room of Landlock in a scratch directory.
struct Scratch {
    root: tempfile::TempDir,
    machine: Machine,
}

impl Scratch {
    /// None if the kernel has no Landlock, which then is the reason that is reported.
    fn new() -> Option<Self> {
        let places = Places { bubblewrap: Vec::new(), ..Places::default() };
        let root = tempfile::tempdir().expect("a scratch directory");
        match Machine::look_in(&places, Path::new(env!("CARGO_BIN_EXE_towline"))) {
            Ok(machine) => {
                assert_eq!(machine.instead_of(), Some(&Obstacle::NotInstalled));
                for folder in ["home/.cargo", "home/project", "work"] {
                    std::fs::create_dir_all(root.path().join(folder)).expect("a folder");
                }
                Some(Self { root, machine })
            }
            Err(none) => {
                assert_eq!((none.landlock, has_landlock()), (Obstacle::NoLandlock, false));
                None
            }
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn run(&self, network: Network, script: &str) -> Output {
        let home = self.at("home").display().to_string();
        let environment =
            BTreeMap::from([("HOME".to_owned(), home), ("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let room = Room {
            private: Private::make(&self.at("private")).expect("private directories"),
            directory: self.at("work"),
            environment: environment.clone(),
            read: vec![self.at("home/project")],
            write: vec![self.at("work")],
            hide: Vec::new(),
            network,
            users_home: None,
            own: Vec::new(),
            filled: None,
            fills_caches: false,
            signals: Signals::AreForTheProgram,
        };
        let wrapper = self.machine.wrapper(&room);
        let mut command: Command = clean_command(&wrapper[0]);
        command.args(&wrapper[1..]).args(["/bin/sh", "-c", script]);
        command.env_clear().envs(environment).current_dir(self.at("work"));
        command.output().expect("it starts")
    }

    fn works(&self, script: &str) -> bool {
        self.run(Network::Open, script).status.success()
    }
}

#[test]
fn a_room_of_landlock_allows_what_its_rules_name_and_no_more() {
    let Some(scratch) = Scratch::new() else { return };
    for (file, text) in
        [("home/secret", "hush"), ("home/project/file", "a"), ("home/.cargo/config.toml", "b")]
    {
        std::fs::write(scratch.at(file), text).expect("written");
    }
    let at = |path: &str| scratch.at(path).display().to_string();
    for (script, wanted) in [
        ("cat /etc/passwd > /dev/null".to_owned(), true),
        (format!("cat {}", at("home/secret")), false),
        (format!("ls {}", at("home")), false),
        (format!("cat {}", at("home/project/file")), true),
        (format!("echo x > {}", at("home/project/file")), false),
        (format!("truncate -s 0 {}", at("home/project/file")), false),
        ("mkdir a b && echo x > a/x && mv a/x b/x && ln b/x a/y && rm -r a b".to_owned(), true),
        ("mkfifo pipe && rm pipe".to_owned(), true),
        ("mknod device b 1 1".to_owned(), false),
        ("echo x > \"$HOME/x\" && echo x > \"$TMPDIR/x\"".to_owned(), true),
        (format!("test \"$HOME\" != {} && ls \"$HOME\" && ls \"$TMPDIR\"", at("home")), true),
        ("cat \"$HOME/.cargo/config.toml\" && ! echo x > \"$HOME/.cargo/x\"".to_owned(), true),
        ("echo x > /tmp/towline-landlock".to_owned(), false),
        ("ls /run".to_owned(), false),
        ("echo x > /usr/towline-landlock".to_owned(), false),
    ] {
        assert_eq!(scratch.works(&script), wanted, "{script}: {:?}", scratch.run(Network::Open, &script));
    }
    assert_eq!(std::fs::read_to_string(scratch.at("private/home/x")).expect("it is there"), "x\n");
}

#[test]
fn a_room_of_landlock_keeps_signals_and_closed_networks_in_as_far_as_the_kernel_can() {
    let Some(scratch) = Scratch::new() else { return };
    let gaps = scratch.machine.gaps();
    let lacks = |gap| gaps.contains(&gap);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let connects = |network| scratch.run(network, &format!("bash -c '{connect}'")).status.success();
    assert!(connects(Network::Open));
    assert_eq!(connects(Network::Closed), lacks(towline_sandbox::Gap::Network));
    let signal = format!("kill -0 {}", std::process::id());
    assert_eq!(scratch.works(&signal), lacks(towline_sandbox::Gap::Signals));
    assert!(scratch.works("sleep 60 & kill $!"), "its own processes");
}
