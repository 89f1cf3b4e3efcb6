//! Clients come and go, are many, are slow, are broken: the run does not care.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use common::{Run, exit_of, output_ending_with, until, within};
use towline_process::{ExitRecord, Notice, ProcessError, Stdio, Stream, WindowSize, connect};

#[tokio::test]
async fn the_run_lives_on_without_a_client_and_a_new_one_finds_its_state() {
    let run = Run::script("echo one; read line; echo got $line; exit 3");
    let mut first = run.start().await;
    output_ending_with(&mut first, Stream::Stdout, b"one\n").await;
    drop(first);

    let mut second = run.reconnect().await;
    assert_eq!(within(second.next()).await.unwrap(), Notice::Grown { stdout: 4, stderr: 0 });
    within(second.write(b"it\n")).await.unwrap();
    let record = exit_of(&mut second).await;
    assert_eq!(record.code, Some(3));
    assert_eq!(run.stdout(), "one\ngot it\n");

    until("the supervisor is gone", || run.processes().is_empty()).await;
    let mut third = run.reconnect().await;
    assert_eq!(within(third.next()).await.unwrap(), Notice::Grown { stdout: 11, stderr: 0 });
    assert_eq!(within(third.next()).await.unwrap(), Notice::Exited(record));
    assert!(matches!(within(third.write(b"late")).await, Err(ProcessError::Ended { .. })));
    within(third.stop()).await.unwrap();
}

const ENGINE_RUN: &str = "TOWLINE_TEST_ENGINE_RUN";
const ENGINE_STDIO: &str = "TOWLINE_TEST_ENGINE_STDIO";
/// In the order of their numbers.
const STDIO: [Stdio; 3] =
    [Stdio::Pipes, Stdio::OutputFile, Stdio::Terminal(WindowSize { columns: 80, rows: 24 })];

/// Not a test of its own: the process that the next test starts and kills.
#[tokio::test]
#[ignore = "started by another test as the process that is killed"]
async fn act_as_an_engine() {
    let Ok(home) = std::env::var(ENGINE_RUN) else { return };
    let mut run = Run::script("echo one; read line; echo got $line");
    run.dir = PathBuf::from(home).join("run");
    run.launch.stdio = STDIO[std::env::var(ENGINE_STDIO).unwrap().parse::<usize>().unwrap()];
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"one\n").await;
    std::fs::write(run.dir.join("up"), b"").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_run_survives_the_kill_of_the_process_that_started_it() {
    for stdio in 0..STDIO.len() {
        assert_survives(stdio).await;
    }
}

async fn assert_survives(stdio: usize) {
    let home = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a process that this test kills")]
    let mut engine = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "act_as_an_engine", "--ignored"])
        .env(ENGINE_RUN, home.path())
        .env(ENGINE_STDIO, stdio.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let dir = home.path().join("run");
    until("the engine has its run", || dir.join("up").exists()).await;
    engine.kill().unwrap();
    engine.wait().unwrap();

    let mut supervisor = within(connect(&dir)).await.unwrap();
    within(supervisor.write(b"it\n")).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert_eq!(std::fs::read(dir.join("stdout.log")).unwrap(), b"one\ngot it\n");
}

#[tokio::test]
async fn two_clients_hear_the_same_and_their_writes_do_not_mix() {
    let run = Run::script("cat");
    let mut first = run.start().await;
    let mut second = run.reconnect().await;
    let (many, others) = (vec![b'a'; 300_000], vec![b'b'; 300_000]);
    let (one, two) = within(async { tokio::join!(first.write(&many), second.write(&others)) }).await;
    one.unwrap();
    two.unwrap();
    within(second.close_stdin()).await.unwrap();
    let record = exit_of(&mut first).await;
    assert_eq!(exit_of(&mut second).await, record);
    let mut printed = run.read("stdout.log");
    assert_eq!(printed.len(), 600_000);
    printed.dedup();
    assert!(printed == b"ab" || printed == b"ba", "the writes were mixed");
}

fn raw_client(run: &Run) -> UnixStream {
    UnixStream::connect(run.dir.join("shim.sock")).unwrap()
}

#[tokio::test]
async fn a_client_that_never_reads_does_not_stall_the_run() {
    let run = Run::script("read line; head -c 50000000 /dev/zero; echo done >&2; read line");
    let mut supervisor = run.start().await;
    let mut deaf = raw_client(&run);
    deaf.set_nonblocking(true).unwrap();
    // Requests whose replies it does not read, until the supervisor does not take any more of them.
    let request = b"{\"id\":1,\"op\":{\"extend\":1}}\n";
    let flood = request.repeat(100_000);
    let mut sent = 0;
    let mut refusals_in_a_row = 0;
    while refusals_in_a_row < 30 {
        match deaf.write(&flood[sent..]) {
            Ok(count) => {
                sent += count;
                refusals_in_a_row = 0;
            }
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "disconnected after {sent} bytes");
                refusals_in_a_row += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert!(
            sent < flood.len(),
            "the supervisor takes requests without end from a client that reads no reply"
        );
    }
    within(supervisor.write(b"go\n")).await.unwrap();
    output_ending_with(&mut supervisor, Stream::Stderr, b"done\n").await;
    within(supervisor.write(b"end\n")).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.stdout_bytes, 50_000_000);
    drop(deaf);
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let run = Run::script("exec sleep 300");
    let _supervisor = run.start().await;
    let client = raw_client(&run);
    client.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let mut sender = client.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for id in 0..20_000 {
            sender.write_all(format!("{{\"id\":{id},\"op\":{{\"extend\":1}}}}\n").as_bytes()).unwrap();
        }
    });
    let expected: String =
        (0..20_000).map(|id| format!("{{\"reply\":{{\"id\":{id},\"outcome\":\"done\"}}}}\n")).collect();
    let mut client = std::io::BufReader::new(client);
    client.skip_until(b'\n').unwrap();
    let mut replies = vec![0; expected.len()];
    client.read_exact(&mut replies).unwrap();
    assert!(replies == expected.as_bytes(), "a reply is missing or out of order");
    writing.join().unwrap();
}

#[tokio::test]
async fn a_client_that_dies_in_the_middle_of_a_write_leaves_nothing_of_it() {
    let run = Run::script("cat");
    let mut supervisor = run.start().await;
    let mut dying = raw_client(&run);
    dying.write_all(b"{\"id\":1,\"op\":{\"write\":{\"length\":100}}}\nonly a part").unwrap();
    until("the part has arrived", || run.read("stdin.log") == b"only a part").await;
    drop(dying);
    within(supervisor.write(b"whole")).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    exit_of(&mut supervisor).await;
    assert_eq!(run.read("stdin.log"), b"whole");
    assert_eq!(run.stdout(), "whole");
}

#[tokio::test]
async fn a_client_that_hangs_in_the_middle_of_a_write_holds_up_others_for_a_bounded_time() {
    let run = Run::script("cat");
    let mut supervisor = run.start().await;
    let mut hanging = raw_client(&run);
    hanging.write_all(b"{\"id\":1,\"op\":{\"write\":{\"length\":100}}}\nonly a part").unwrap();
    until("the part has arrived", || run.read("stdin.log") == b"only a part").await;
    let whole = vec![b'w'; 500_000];
    within(supervisor.write(&whole)).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    exit_of(&mut supervisor).await;
    assert!(run.read("stdout.log") == whole);
    drop(hanging);
}

#[tokio::test]
async fn nonsense_from_a_client_ends_only_its_own_connection() {
    let run = Run::script("cat");
    let mut supervisor = run.start().await;
    for nonsense in [&b"not json at all\n"[..], &b"{\"id\":1,\"op\":\"explode\"}\n"[..], &[b'x'; 100_000][..]]
    {
        let mut client = raw_client(&run);
        client.set_read_timeout(Some(common::PATIENCE)).unwrap();
        // The supervisor may hang up while this is still being sent.
        let _ = client.write_all(nonsense);
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
        assert!(!rest.windows(5).any(|window| window == b"reply"));
    }
    within(supervisor.write(b"fine")).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert_eq!(run.stdout(), "fine");
}

#[tokio::test]
async fn waits_that_are_given_up_lose_nothing() {
    let run = Run::script("cat; echo end");
    let mut supervisor = run.start().await;
    let large: Vec<u8> = (0..2_000_000u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    // Given up after one look, with most of it unsent.
    let _ = tokio::time::timeout(Duration::ZERO, supervisor.write(&large)).await;
    within(supervisor.write(b"second")).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    let record = within(async {
        loop {
            match tokio::time::timeout(Duration::from_micros(50), supervisor.next()).await {
                Ok(Ok(Notice::Exited(record))) => return record,
                Ok(Err(error)) => panic!("{error}"),
                Ok(Ok(Notice::Grown { .. })) | Err(_) => {}
            }
        }
    })
    .await;
    assert_eq!(record.code, Some(0));
    assert!(run.read("stdout.log") == [&large[..], b"second", b"end\n"].concat());
}

#[tokio::test]
async fn a_directory_without_a_run_is_distinguished_from_a_lost_one() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(matches!(within(connect(scratch.path())).await, Err(ProcessError::Io { .. })));
    assert_eq!(ExitRecord::read(scratch.path()).unwrap(), None);
}

#[tokio::test]
async fn a_slow_writer_and_the_one_that_waits_for_it_both_get_their_turn() {
    let run = Run::script("cat");
    let mut supervisor = run.start().await;
    let mut slow = raw_client(&run);
    slow.write_all(b"{\"id\":1,\"op\":{\"write\":{\"length\":60}}}\n.").unwrap();
    until("the first byte has arrived", || run.read("stdin.log") == b".").await;
    // Longer in all than a writer may be silent, but never silent for long.
    let trickle = async {
        for _ in 1..60 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            slow.write_all(b".").unwrap();
        }
    };
    let whole = vec![b'w'; 500_000];
    let (written, ()) = within(async { tokio::join!(supervisor.write(&whole), trickle) }).await;
    written.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    exit_of(&mut supervisor).await;
    assert!(run.read("stdout.log") == [&[b'.'; 60][..], &whole[..]].concat());
}

#[tokio::test]
async fn growth_is_reported_at_once_however_it_meets_with_requests() {
    let run = Run::script("cat");
    let mut supervisor = run.start().await;
    for round in 1..=500 {
        within(supervisor.write(b"x")).await.unwrap();
        within(supervisor.extend(Duration::from_secs(300))).await.unwrap();
        let reported = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                match supervisor.next().await.unwrap() {
                    Notice::Grown { stdout, .. } if stdout == round => return,
                    Notice::Grown { .. } => {}
                    Notice::Exited(record) => panic!("{record:?}"),
                }
            }
        });
        reported.await.unwrap_or_else(|_| panic!("byte {round} was not reported"));
    }
}
