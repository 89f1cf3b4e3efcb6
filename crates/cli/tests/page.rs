//! The page in a real browser: each test runs one file of `web/tests` against a server of its own, on which scripted agents work.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use support::server::{down, kill, up_with, wait_until_known};
use support::{Desk, LIMIT};
use towline_testkit::agents::page_folder;
use towline_testkit::scratch::{clean_command, wait_until_process_tree_gone};

/// How many seconds a file of tests may take, on a machine under load.
const LONGEST: &str = "280";

/// What the scripted agents do, one for each agent of the configuration.
const AGENTS: [&str; 7] = ["works", "asks", "permit", "long", "mends", "hears", "floods"];

#[test]
fn goals_are_created_answered_reviewed_and_merged() {
    Stage::open().run("goals");
}

#[test]
fn goals_are_steered_and_nothing_is_lost_while_the_server_is_away() {
    Stage::open().run("steering");
}

#[test]
fn every_view_can_be_used_with_the_keyboard_in_the_dark_and_on_a_phone() {
    Stage::open().run("views");
}

#[test]
fn what_agents_and_strangers_send_does_no_harm() {
    Stage::open().run("hostile");
}

/// A desk with a server, whose page is tested.
struct Stage {
    desk: Desk,
    /// A project with a name that people would give it.
    repository: PathBuf,
    address: String,
    server: Option<Child>,
}

impl Stage {
    fn open() -> Self {
        let desk = Desk::new().without_baseline();
        desk.configure(&configuration());
        let server = up_with(&desk, &["--slots", "8"]);
        let address = desk.towline(["open", "--json"]).json()["address"].as_str().expect("text").to_owned();
        let repository = desk.home.path().join("webshop");
        let mut copy = clean_command("cp");
        assert!(
            copy.arg("-r").args([desk.project.path(), &*repository]).status().expect("cp starts").success()
        );
        Self { desk, repository, address, server: Some(server) }
    }

    /// Runs the tests in `web/tests/NAME.e2e.ts`, and ends everything that was started for them.
    fn run(mut self, name: &str) {
        let bell = TcpListener::bind("127.0.0.1:0").expect("a port");
        bell.set_nonblocking(true).expect("a listener that does not wait");
        let output = self.desk.home.path().join("vitest.log");
        let mut tests = self.start_tests(name, &bell, &output);
        let status = loop {
            if let Some(status) = tests.try_wait().expect("a child") {
                break status;
            }
            match bell.accept() {
                Ok((stream, _)) => self.serve(stream),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let printed = fs::read_to_string(&output).unwrap_or_default();
        assert!(status.success(), "{status}\n{printed}");
        down(&self.desk, self.server.take().expect("the server runs at the end"));
        wait_until_process_tree_gone(&self.desk.home.marker(), LIMIT);
    }

    /// Both `timeout` and the tests end when the time is over, and the browser with them, even if this process is gone by then.
    fn start_tests(&self, name: &str, bell: &TcpListener, output: &Path) -> Child {
        let log = File::create(output).expect("a file");
        let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        fs::create_dir_all(&screenshots).expect("a folder for screenshots");
        let mut tests = clean_command("timeout");
        tests.args(["--kill-after=10", LONGEST]).arg(page_folder().join("vitest"));
        tests.args(["run", "--config", "vitest.e2e.config.ts", &format!("tests/{name}.e2e.ts")]);
        tests.env_clear().envs(self.desk.variables().iter().cloned()).env("NO_COLOR", "1");
        tests.env("TOWLINE_DESK", format!("http://{}", bell.local_addr().expect("an address")));
        tests.env("TOWLINE_REPOSITORY", &self.repository).env("TOWLINE_SCREENSHOTS", screenshots);
        tests.stdout(log.try_clone().expect("a handle")).stderr(log);
        tests.current_dir(web()).spawn().expect("the tests start")
    }

    /// Does what a test asks for: an address that signs in, or the end or the start of the server.
    fn serve(&mut self, mut stream: TcpStream) {
        stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(LIMIT))).expect("settings");
        let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a request");
        let mut header = String::from("-");
        while !header.trim().is_empty() {
            header.clear();
            reader.read_line(&mut header).expect("a header");
        }
        let reply = match line.split(' ').nth(1) {
            Some("/sign-in") => {
                let printed = self.desk.towline(["open"]).stdout;
                printed.lines().next().expect("an address that signs in").to_owned()
            }
            Some("/kill") => {
                kill(self.server.take().expect("the server runs"));
                String::new()
            }
            Some("/start") => {
                let server =
                    self.desk.start(["up", "--listen", &self.address, "--wait", "1s", "--slots", "8"]);
                wait_until_known(&self.desk, &server);
                self.server = Some(server);
                String::new()
            }
            other => panic!("a test asked for {other:?}"),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", reply.len());
        stream.write_all(format!("{head}{reply}").as_bytes()).expect("sent");
    }
}

/// One agent for each of the behaviours.
fn configuration() -> String {
    let script = web().join("tests/agent.mjs").display().to_string();
    let agents = AGENTS.map(|name| {
        let more = if name == "permit" { "permission = \"ask\"\n" } else { "" };
        format!("[agents.{name}]\nkind = \"claude\"\ncommand = [\"node\", {script:?}, \"{name}\"]\n{more}")
    });
    agents.concat()
}

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web").canonicalize().expect("the source of the page")
}
