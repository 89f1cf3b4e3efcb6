//! A full disk: towline reports it, the agent keeps running, and the goal continues once there is space.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::{Desk, LIMIT, Ran, earlier, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{clean_command, wait_for, wait_until_process_tree_gone};

/// A small file system in the place of a folder, which only a mount namespace of its own sees.
struct SmallDisk {
    /// Keeps the namespace alive until its input is closed.
    keeper: Child,
    folder: PathBuf,
}

impl SmallDisk {
    fn mount_on(folder: &Path) -> Self {
        let script = "mount -t tmpfs -o size=8m,mode=0700 towline-test \"$1\" && echo mounted && read -r end";
        let mut keeper = clean_command("unshare");
        // Whoever is not root may be so in a namespace of their own.
        keeper.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(folder);
        let mut keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare starts");
        let mut line = String::new();
        let output = keeper.stdout.as_mut().expect("its output");
        let heard = BufReader::new(output).read_line(&mut line);
        assert!(
            heard.is_ok() && line == "mounted\n",
            "no file system could be mounted in a namespace of its own (the reason is above): run this test as root, \
             or allow user namespaces"
        );
        Self { keeper, folder: folder.to_owned() }
    }

    /// The command, run where the small file system is seen.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = clean_command("nsenter");
        inside.arg("--target").arg(self.keeper.id().to_string());
        inside.args(["--user", "--mount", "--preserve-credentials", "--no-fork"]);
        if let Some(directory) = command.get_current_dir() {
            inside.arg(format!("--wdns={}", directory.display()));
        }
        inside.arg("--").arg(command.get_program()).args(command.get_args()).env_clear();
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        inside
    }

    fn towline(&self, desk: &Desk, args: &[&str]) -> Ran {
        finish(self.inside(&desk.command(args)).spawn().expect("towline starts"))
    }

    /// A path on it, as it is seen from outside.
    fn path(&self, below: &str) -> PathBuf {
        let folder = self.folder.strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(self.keeper.id().to_string()).join("root").join(folder).join(below)
    }

    /// Takes all the space there is.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.path("filler")).expect("a file");
        for size in [64 * 1024, 1] {
            let piece = vec![0; size];
            while filler.write_all(&piece).is_ok() {}
        }
    }

    /// Takes all the space but this much.
    fn fill_but(&self, bytes: u64) {
        self.fill();
        let filler = std::fs::OpenOptions::new().write(true).open(self.path("filler")).expect("a file");
        let size = filler.metadata().expect("its size").len();
        filler.set_len(size - bytes).expect("shortened");
    }

    fn make_space(&self) {
        std::fs::remove_file(self.path("filler")).expect("removed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[test]
fn on_a_full_disk_towline_warns_and_the_goal_goes_on_once_there_is_space() {
    let until = |name: &str| format!("while ! test -e \"$HOME/{name}\"; do sleep 0.02; done");
    let script = format!("{}; echo working; {}; echo done > done.txt", until("go"), until("space"));
    let desk = Desk::with_script(|dir| hostile::doing(dir, &script));
    let disk = SmallDisk::mount_on(&desk.home.towline());
    let run = desk.command(["run", "fill the disk", "--check", "test -f done.txt", "--json"]);
    let mut towline = disk.inside(&run).spawn().expect("towline starts");
    let list = || disk.towline(&desk, &["ls", "--all", "--json"]).json()[0].clone();
    wait_for(LIMIT, "the agent to work", || list()["attempts"] == 1 && list()["phase"] == "running");
    let goal = list()["id"].as_str().expect("an id").to_owned();

    disk.fill();
    let signal =
        |name: &str| std::fs::write(desk.home.path().join(name), "").expect("a signal for the agent");
    signal("go");
    let stderr = BufReader::new(towline.stderr.take().expect("its errors"));
    let warning = stderr.lines().map_while(Result::ok).find(|line| line.starts_with("warning: "));
    let warning = warning.expect("a warning");
    assert!(warning.contains("no space left") && warning.contains("trying again until"), "{warning}");

    disk.make_space();
    signal("space");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["phase"], "done");
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    let log = disk.towline(&desk, &["logs", &goal, "--json"]).stdout;
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let sequence: Vec<Value> = events.map(|event| event["seq"].clone()).collect();
    assert_eq!(sequence, (1..=sequence.len()).map(|seq| json!(seq)).collect::<Vec<_>>());
    assert!(log.contains("nothing could be stored for "), "{log}");
    // What keeps the file system there has its path among its words.
    drop(disk);
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn without_space_for_the_copy_the_state_of_an_earlier_release_stays_as_it_is() {
    let desk = Desk::new();
    let disk = SmallDisk::mount_on(&desk.home.towline());
    earlier::unpack(&desk, &disk.path(""));
    disk.fill_but(200_000);
    let refused = disk.towline(&desk, &["ls"]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("no space left for"), "{}", refused.stderr);
    assert!(refused.stderr.contains("towline.db.v2"), "{}", refused.stderr);
    for left in ["towline.db.v2", "towline.db.v2.part"] {
        assert!(!disk.path(left).exists(), "{left}");
    }
    disk.make_space();
    assert_eq!(disk.towline(&desk, &["ls", "--all", "--json"]).json().as_array().map(Vec::len), Some(8));
    assert!(disk.path("towline.db.v2").exists());
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let desk = Desk::new();
    for args in [&["ls", "--json"][..], &["ls", "--help"], &["completions", "bash"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
        let ran = finish(desk.command(args).stdout(full).stderr(Stdio::piped()).spawn().expect("it starts"));
        assert_eq!(ran.code, Some(1), "{args:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: cannot write to standard output: "), "{}", ran.stderr);
    }
}
