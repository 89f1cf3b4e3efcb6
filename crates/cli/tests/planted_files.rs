//! Something else in the place of each of Towline's own files: no command waits for it, and what a symlink leads to stays as
//! it is. A command works, or it fails at once and names the path.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::{Desk, Ran};
use towline_testkit::hostile;

/// The longest that a command may take on a busy machine; one that waits for a FIFO takes for ever.
const AT_ONCE: Duration = Duration::from_secs(20);

/// What commands that start an engine or a goal need.
const NEEDED_TO_RUN: [&str; 14] = [
    "attempts",
    "workspaces",
    "verify",
    "engines",
    "sessions",
    "told",
    "demo",
    "towline.db",
    "towline.db-wal",
    "towline.db-shm",
    "towline.db-journal",
    "token",
    "engines/1-1-1-00000000.lock",
    "engines/1-1-1-00000000.sock",
];

/// What an ended goal has left, below `GOAL`.
const LEFT: [&str; 15] = [
    "attempts/GOAL",
    "attempts/GOAL/1",
    "attempts/GOAL/1/launch.json",
    "attempts/GOAL/1/exit.json",
    "attempts/GOAL/1/conversation.json",
    "attempts/GOAL/1/question.json",
    "attempts/GOAL/1/stdin.log",
    "attempts/GOAL/1/stdout.log",
    "attempts/GOAL/1/stderr.log",
    "attempts/GOAL/1/index",
    "attempts/GOAL/1/shim.pid",
    "attempts/GOAL/1/checks",
    "verify/GOAL",
    "workspaces/GOAL",
    "sessions/01932f6e-7c00-7abc-8def-0123456789ab.jsonl",
];

/// A machine with a goal that is done, and files of the user's that nothing may touch.
struct Planted {
    desk: Desk,
    goal: String,
}

impl Planted {
    fn new() -> Self {
        let mut desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
        desk.leaves_nothing_to_replay("its files are replaced by others");
        let ran = desk.towline(["run", "fix it", "--check", "test -e fix.txt", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let goal = ran.json()["id"].as_str().expect("an id").to_owned();
        let precious = desk.home.path().join("precious");
        fs::create_dir_all(precious.join(&goal).join("1")).expect("a directory");
        for file in ["file".to_owned(), format!("{goal}/file"), format!("{goal}/1/file")] {
            fs::write(precious.join(file), "the user's").expect("written");
        }
        Self { desk, goal }
    }

    fn precious(&self) -> PathBuf {
        self.desk.home.path().join("precious")
    }

    /// Replaces each of Towline's files in turn, and runs commands meanwhile.
    fn try_everywhere(&self, plant: impl Fn(&Path)) {
        for path in NEEDED_TO_RUN {
            self.try_at(
                &self.desk.home.towline().join(path),
                &plant,
                &[&["run", "again", "--check", "true"]],
            );
        }
        for path in LEFT {
            self.try_at(&self.desk.home.towline().join(path.replace("GOAL", &self.goal)), &plant, &[]);
        }
        let run: &[&str] = &["run", "again", "--check", "true"];
        self.try_at(&self.desk.home.config().join("towline/config.toml"), &plant, &[run, &["doctor"]]);
        self.try_at(&self.desk.project.path().join("towline.toml"), &plant, &[run, &["doctor"]]);
        self.try_at(&self.desk.project.path().join("goal.md"), &plant, &[&["run", "--file", "goal.md"]]);
        self.try_at(&self.desk.project.path().join("package.json"), &plant, &[&["init", "--print"]]);
    }

    fn try_at(&self, path: &Path, plant: &impl Fn(&Path), more: &[&[&str]]) {
        let aside = self.desk.home.path().join("aside");
        fs::create_dir_all(path.parent().expect("a directory")).expect("its directory");
        let was_there = fs::rename(path, &aside).is_ok();
        plant(path);
        let goal = self.goal.as_str();
        let commands: [&[&str]; 3] = [&["ls"], &["show", goal], &["gc"]];
        // All of a log is printed, however long it is.
        let is_long = fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() > 0);
        for command in commands.iter().chain(more).filter(|command| !is_long || command[0] != "logs") {
            self.assert_at_once(command, path);
        }
        towline_files::remove_tree(path).expect("removed");
        if was_there {
            fs::rename(&aside, path).expect("put back");
        }
    }

    fn assert_at_once(&self, command: &[&str], planted: &Path) {
        let started = Instant::now();
        let ran: Ran = self.desk.towline(command);
        let took = started.elapsed();
        assert!(took < AT_ONCE, "{command:?} took {took:?} with {}: {ran:?}", planted.display());
        // Logs that are not there are gone, whatever is in their place.
        let works = matches!(ran.code, Some(0 | 5));
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        let name = planted.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(works || shown.contains(name), "{command:?} does not name {}: {ran:?}", planted.display());
        for file in ["file".to_owned(), format!("{}/file", self.goal), format!("{}/1/file", self.goal)] {
            let text = fs::read_to_string(self.precious().join(&file)).ok();
            assert_eq!(text.as_deref(), Some("the user's"), "{command:?} with {}", planted.display());
        }
        let entries = fs::read_dir(self.precious()).expect("the directory").count();
        assert_eq!(entries, 2, "{command:?} wrote to where {} leads", planted.display());
    }
}

#[test]
fn a_fifo_makes_no_command_wait() {
    Planted::new().try_everywhere(|path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
    });
}

#[test]
fn a_symlink_to_a_directory_of_the_users_is_not_followed() {
    let planted = Planted::new();
    planted.try_everywhere(|path| symlink(planted.precious(), path).expect("a symlink"));
}

#[test]
fn a_symlink_to_a_file_of_the_users_is_not_followed() {
    let planted = Planted::new();
    planted.try_everywhere(|path| symlink(planted.precious().join("file"), path).expect("a symlink"));
}

#[test]
fn a_symlink_to_a_device_is_not_read() {
    Planted::new().try_everywhere(|path| symlink("/dev/zero", path).expect("a symlink"));
}

#[test]
fn a_directory_makes_no_command_wait() {
    Planted::new().try_everywhere(|path| fs::create_dir(path).expect("a directory"));
}

#[test]
fn a_socket_makes_no_command_wait() {
    Planted::new().try_everywhere(|path| {
        // Addresses are short, paths are not.
        let short = tempfile::tempdir().expect("a directory");
        drop(UnixListener::bind(short.path().join("s")).expect("a socket"));
        fs::rename(short.path().join("s"), path).expect("moved");
    });
}

#[test]
fn a_huge_file_is_not_read() {
    Planted::new().try_everywhere(|path| {
        File::create(path).and_then(|file| file.set_len(10 << 30)).expect("a sparse file");
    });
}

#[test]
fn removal_leaves_alone_what_a_symlink_leads_to() {
    let places = [
        "attempts",
        "verify",
        "workspaces",
        "attempts/GOAL",
        "attempts/GOAL/1",
        "verify/GOAL",
        "workspaces/GOAL",
    ];
    let mut planted = Planted::new();
    for place in places {
        let ran = planted.desk.towline(["run", "fix it", "--check", "test -e fix.txt", "--json"]);
        planted.goal = ran.json()["id"].as_str().expect("an id").to_owned();
        let goal = planted.goal.clone();
        fs::create_dir_all(planted.precious().join(&goal)).expect("a directory");
        fs::write(planted.precious().join(&goal).join("file"), "the user's").expect("written");
        let path = planted.desk.home.towline().join(place.replace("GOAL", &goal));
        let aside = planted.desk.home.path().join("aside");
        fs::create_dir_all(path.parent().expect("a directory")).expect("its directory");
        let was_there = fs::rename(&path, &aside).is_ok();
        symlink(planted.precious(), &path).expect("a symlink");
        for command in [vec!["gc", "--older-than", "0s"], vec!["rm", "--force", &goal]] {
            let ran = planted.desk.towline(&command);
            let is_named = ran.stderr.contains(&path.display().to_string());
            assert!(ran.code == Some(0) || is_named, "{command:?} with {}: {ran:?}", path.display());
            for file in ["file".to_owned(), format!("{goal}/file")] {
                let text = fs::read_to_string(planted.precious().join(file)).ok();
                assert_eq!(text.as_deref(), Some("the user's"), "{command:?} with {}", path.display());
            }
        }
        towline_files::remove_tree(&path).expect("removed");
        if was_there && fs::rename(&aside, &path).is_err() {
            fs::remove_dir_all(&aside).expect("removed");
        }
    }
}
