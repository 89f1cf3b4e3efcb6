//! A supervised program that turns against its supervisor: it can end its own run, and nothing else.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{Run, end_of, exit_of, output_ending_with, until, within};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use towline_process::{
    ExitRecord, LogReader, OutputTimes, ProcessError, ProcessId, Stream, SupervisorHandle, connect,
    descendants, end_processes, merged_tail, supervisor_process,
};

/// More than every limit on the way to the end of a supervisor that does not answer.
const LIMITS: Duration = Duration::from_secs(40);

fn signal(process: ProcessId, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap(), signal).unwrap();
}

/// Starts a tree that left its session and its environment behind, and gives back its members.
async fn scattered_tree(run: &Run) -> (SupervisorHandle, Vec<ProcessId>) {
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    let tree = descendants(run.supervisor_process().pid).unwrap();
    assert!(tree.len() >= 4, "{tree:?}");
    (supervisor, tree)
}

const SCATTERS: &str = "env -i setsid sh -c 'setsid sleep 300 & echo > one; exec sleep 300' &
    (setsid env -i sh -c 'echo > two; exec sleep 300' &)
    while [ ! -e one ] || [ ! -e two ]; do sleep 0.02; done; echo up; exec sleep 300";

#[tokio::test]
async fn a_killed_supervisor_takes_its_whole_tree_with_it_and_is_reported_as_lost() {
    let run = Run::script(SCATTERS);
    let (mut supervisor, tree) = scattered_tree(&run).await;
    signal(run.supervisor_process(), Signal::KILL);
    assert!(matches!(end_of(&mut supervisor).await, Err(ProcessError::Lost { .. })));
    assert_eq!(tree.into_iter().filter(|process| process.is_running()).collect::<Vec<_>>(), []);
    assert!(matches!(within(supervisor.stop()).await, Err(ProcessError::Lost { .. })));
    assert!(matches!(within(connect(&run.dir)).await, Err(ProcessError::Lost { .. })));
}

#[tokio::test]
async fn what_one_lost_run_leaves_is_ended_while_another_goes_on_undisturbed() {
    let (lost, other) = (Run::script(SCATTERS), Run::script("setsid sleep 300 & echo up; read line; exit 3"));
    let mut undisturbed = other.start().await;
    output_ending_with(&mut undisturbed, Stream::Stdout, b"up\n").await;
    let theirs = descendants(other.supervisor_process().pid).unwrap();
    let (mut supervisor, tree) = scattered_tree(&lost).await;
    signal(lost.supervisor_process(), Signal::KILL);
    assert!(matches!(end_of(&mut supervisor).await, Err(ProcessError::Lost { .. })));
    assert!(!tree.into_iter().any(ProcessId::is_running));
    assert!(theirs.into_iter().all(ProcessId::is_running));
    within(undisturbed.write(b"go\n")).await.unwrap();
    assert_eq!(exit_of(&mut undisturbed).await.code, Some(3));
}

#[tokio::test]
async fn a_process_that_this_one_started_itself_is_no_orphan_of_a_lost_run() {
    #[expect(clippy::disallowed_methods, reason = "acts as git and the like, which an engine starts itself")]
    let mut own = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let run = Run::script("echo up; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    #[expect(clippy::disallowed_methods, reason = "as above, and later than the run")]
    let mut later = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    signal(run.supervisor_process(), Signal::KILL);
    assert!(matches!(end_of(&mut supervisor).await, Err(ProcessError::Lost { .. })));
    for child in [&mut own, &mut later] {
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[tokio::test]
async fn a_forged_record_is_not_believed_by_whoever_started_the_run() {
    let run = Run::script("echo up; read line; exit 7");
    let honest = Run::script("exit 0");
    let good = exit_of(&mut honest.start().await).await;
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    std::fs::write(run.dir.join("exit.json"), serde_json::to_vec(&good).unwrap()).unwrap();
    assert!(within(connect(&run.dir)).await.is_ok());
    within(supervisor.write(b"go\n")).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(7));

    let run = Run::script("echo up; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    std::fs::write(run.dir.join("exit.json"), serde_json::to_vec(&good).unwrap()).unwrap();
    signal(run.supervisor_process(), Signal::KILL);
    assert!(matches!(end_of(&mut supervisor).await, Err(ProcessError::Lost { .. })));
    assert!(matches!(end_of(&mut supervisor).await, Err(ProcessError::Lost { .. })));
}

#[tokio::test]
async fn while_the_supervisor_lives_a_forged_record_convinces_nobody_that_the_run_has_ended() {
    let run = Run::script("echo up; read line; exit 7");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    std::fs::write(run.dir.join("exit.json"), "{}").unwrap();
    let mut second = run.reconnect().await;
    within(second.write(b"go\n")).await.unwrap();
    assert_eq!(exit_of(&mut second).await.code, Some(7));
}

#[tokio::test]
async fn a_suspended_supervisor_holds_up_neither_a_stop_nor_a_kill_nor_the_wait_for_the_end() {
    for kill in [false, true] {
        let run = Run::script("(setsid env -i sleep 300 &); echo up; exec sleep 300");
        let mut supervisor = run.start().await;
        output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
        let tree = descendants(run.supervisor_process().pid).unwrap();
        signal(run.supervisor_process(), Signal::STOP);
        let began = Instant::now();
        let asked = if kill { within(supervisor.kill()).await } else { within(supervisor.stop()).await };
        asked.unwrap();
        exit_of(&mut supervisor).await;
        assert!(began.elapsed() < LIMITS, "{:?}", began.elapsed());
        assert!(!tree.into_iter().any(ProcessId::is_running));
    }
    let run = Run::script("echo up; read line; exit 4");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    within(supervisor.write(b"go\n")).await.unwrap();
    let process = run.supervisor_process();
    if process.is_running() {
        let _ = kill_process(Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap(), Signal::STOP);
    }
    assert_eq!(exit_of(&mut supervisor).await.code, Some(4));
}

#[tokio::test]
async fn a_supervisor_that_is_suspended_again_and_again_is_ended_with_its_tree() {
    let run = Run::script("(setsid env -i sleep 300 &); echo up; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    let (process, tree) = (run.supervisor_process(), descendants(run.supervisor_process().pid).unwrap());
    let began = Instant::now();
    let suspender = std::thread::spawn(move || {
        let pid = Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap();
        while process.is_running() {
            let _ = kill_process(pid, Signal::STOP);
        }
    });
    let ended = end_of(&mut supervisor).await;
    assert!(matches!(ended, Err(ProcessError::Lost { .. })), "{ended:?}");
    assert!(began.elapsed() < LIMITS, "{:?}", began.elapsed());
    suspender.join().unwrap();
    assert!(!tree.into_iter().any(ProcessId::is_running));
}

#[tokio::test]
async fn a_suspended_supervisor_that_somebody_else_started_holds_up_no_adoption() {
    let run = Run::script("echo up; read line; exit 5");
    let mut first = run.start().await;
    output_ending_with(&mut first, Stream::Stdout, b"up\n").await;
    signal(run.supervisor_process(), Signal::STOP);
    let mut second = run.reconnect().await;
    within(second.write(b"go\n")).await.unwrap();
    assert_eq!(exit_of(&mut second).await.code, Some(5));
}

#[tokio::test]
async fn a_planted_identity_never_names_one_of_the_users_processes() {
    #[expect(clippy::disallowed_methods, reason = "a process of the user's")]
    let mut users = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let named = ProcessId::of(users.id()).unwrap();
    let run = Run::script("echo up; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    assert_eq!(supervisor_process(&run.dir).unwrap(), Some(run.supervisor_process()));
    let planted = serde_json::to_vec(&named).unwrap();
    let pid_file = run.dir.join("shim.pid");
    // In the place of the file, and in the file itself, whose lock the real one holds.
    std::fs::write(&pid_file, &planted).unwrap();
    assert_eq!(supervisor_process(&run.dir).unwrap(), None);
    std::fs::remove_file(&pid_file).unwrap();
    std::fs::write(&pid_file, &planted).unwrap();
    assert_eq!(supervisor_process(&run.dir).unwrap(), None);
    assert!(matches!(within(connect(&run.dir)).await, Err(ProcessError::Lost { .. })));
    within(supervisor.kill()).await.unwrap();
    exit_of(&mut supervisor).await;
    assert_eq!(users.try_wait().unwrap(), None);
    users.kill().unwrap();
    users.wait().unwrap();
}

#[tokio::test]
async fn a_socket_of_another_process_is_not_taken_for_the_supervisors() {
    let run = Run::script("echo up; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    std::fs::remove_file(run.dir.join("shim.sock")).unwrap();
    let _ours = UnixListener::bind(run.dir.join("shim.sock")).unwrap();
    assert!(matches!(within(connect(&run.dir)).await, Err(ProcessError::Io { .. })));
    within(supervisor.kill()).await.unwrap();
    exit_of(&mut supervisor).await;
}

#[tokio::test]
async fn a_supervised_process_cannot_steer_its_supervisor_or_find_its_directory_through_it() {
    // A connection that is refused ends without a byte, or is reset.
    let asks = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
try: s.send(b'{\\\"id\\\":1,\\\"op\\\":\\\"stop\\\"}\\n'); print('heard' if s.recv(100) else 'refused')
except ConnectionError: print('refused')";
    let script = format!(
        "echo $(tr '\\0' ' ' < /proc/$PPID/cmdline); readlink /proc/$PPID/cwd || echo hidden; read line
         python3 -c \"{asks}\" \"$line\"; exit 6"
    );
    let run = Run::script(&script);
    let mut supervisor = run.start().await;
    let socket = run.dir.join("shim.sock");
    within(supervisor.write(format!("{}\n", socket.display()).as_bytes())).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(6));
    let program = run.program.path.display().to_string();
    // Whoever may trace any process, such as root, may also look.
    let expected = ["/", "hidden"].map(|directory| format!("{program} .\n{directory}\nrefused\n"));
    assert!(expected.contains(&run.stdout()), "{}", run.stdout());
}

#[tokio::test]
async fn the_record_has_the_hash_of_what_was_written_whatever_is_in_the_log_by_then() {
    let run = Run::script("echo text; echo up >&2; read line; echo more");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stderr, b"up\n").await;
    until("it is written", || run.read("stdout.log") == b"text\n").await;
    std::fs::write(run.dir.join("stdout.log"), "lies\n").unwrap();
    within(supervisor.write(b"go\n")).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    // Of `text\nmore\n`, as `sha256sum` prints it.
    let expected = "c22ec8303c483d44a86101e1b6d1535cc7a63490e4f0bf8977aa9fbf6964e76c";
    assert_eq!(record.stdout_sha256.as_deref(), Some(expected));
}

/// Puts everything that is not a file in its place, one after the other, and looks what happens.
fn in_the_place_of(path: &Path, users: &Path, mut look: impl FnMut(&str)) {
    let kinds: [(&str, &dyn Fn()); 4] = [
        ("fifo", &|| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap()),
        ("symlink", &|| symlink(users, path).unwrap()),
        ("directory", &|| std::fs::create_dir(path).unwrap()),
        ("socket", &|| drop(UnixListener::bind(path).unwrap())),
    ];
    for (kind, put) in kinds {
        let _ = std::fs::remove_file(path);
        put();
        look(kind);
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test]
async fn readers_neither_hang_on_nor_follow_what_is_not_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let users = scratch.path().join("the-users");
    std::fs::write(&users, "{}").unwrap();
    let dir = scratch.path().join("run");
    std::fs::create_dir(&dir).unwrap();
    in_the_place_of(&dir.join("exit.json"), &users, |kind| {
        assert!(ExitRecord::read(&dir).is_err(), "{kind}");
    });
    in_the_place_of(&dir.join("shim.pid"), &users, |kind| {
        assert!(supervisor_process(&dir).is_err(), "{kind}");
    });
    for name in ["stdout.log", "index"] {
        in_the_place_of(&dir.join(name), &users, |kind| {
            assert!(merged_tail(&dir, 100).is_err(), "{name} is a {kind}");
        });
    }
    in_the_place_of(&dir.join("stdout.log"), &users, |kind| {
        assert!(LogReader::output(&dir, Stream::Stdout, 0).read().is_err(), "{kind}");
    });
    in_the_place_of(&dir.join("index"), &users, |kind| {
        assert!(OutputTimes::new(&dir, Stream::Stdout).at(1).is_err(), "{kind}");
    });
    let huge = std::fs::File::create(dir.join("exit.json")).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert!(ExitRecord::read(&dir).is_err());
    let huge = std::fs::File::create(dir.join("index")).unwrap();
    huge.set_len(1 << 40).unwrap();
    std::fs::write(dir.join("stdout.log"), "text\n").unwrap();
    assert_eq!(merged_tail(&dir, 100).unwrap(), b"text\n");
}

#[tokio::test]
async fn a_run_does_not_start_where_something_else_is_in_the_place_of_its_files() {
    for name in ["launch.json", "stdin.log", "stdout.log", "stderr.log", "index", "shim.log"] {
        let run = Run::script("echo ran");
        std::fs::create_dir(&run.dir).unwrap();
        let users = run.work().join("the-users");
        std::fs::write(&users, "theirs").unwrap();
        symlink(&users, run.dir.join(name)).unwrap();
        let error = run.try_start().await.unwrap_err();
        assert!(
            error.to_string().contains(if name == "launch.json" { "already holds" } else { name }),
            "{error}"
        );
        assert_eq!(std::fs::read(&users).unwrap(), b"theirs");
        until("nothing is left", || run.processes().is_empty()).await;
    }
}

#[tokio::test]
async fn the_end_is_reported_at_once_when_the_record_cannot_be_written() {
    let run = Run::script("echo up; read line; exit 2");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    std::fs::create_dir_all(run.dir.join("exit.json/full")).unwrap();
    within(supervisor.write(b"go\n")).await.unwrap();
    let began = Instant::now();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(2));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());

    let run = Run::script("echo up; read line; exit 2");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    std::fs::remove_dir_all(&run.dir).unwrap();
    within(supervisor.write(b"go\n")).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(2));
}

#[tokio::test]
async fn a_result_waits_for_a_client_that_is_slow_to_take_it() {
    let run = Run::script("exit 9");
    let mut supervisor = run.start().await;
    until("it has ended", || ExitRecord::read(&run.dir).unwrap().is_some()).await;
    assert_eq!(exit_of(&mut supervisor).await.code, Some(9));
    until("nothing is left", || run.processes().is_empty()).await;
    end_processes(|| Ok(run.processes()), common::PATIENCE).unwrap();
}
