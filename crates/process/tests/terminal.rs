//! A program in a terminal: it has one in every respect, and still gets and gives every byte.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{Run, exit_of, output_ending_with, until, within};
use towline_process::{ProcessError, Stdio, StopCause, Stream, SupervisorHandle, WindowSize};

fn in_terminal(argv: &[&str]) -> Run {
    let mut run = Run::command(argv);
    run.launch.stdio = Stdio::Terminal(WindowSize { columns: 132, rows: 43 });
    run
}

fn script(script: &str) -> Run {
    in_terminal(&["sh", "-c", script])
}

/// Gives the program all that it is to read, and an end.
async fn send_input(run: &Run, input: &[u8]) -> SupervisorHandle {
    let supervisor = run.start().await;
    within(supervisor.write(input)).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    supervisor
}

#[tokio::test]
async fn all_three_streams_are_the_controlling_terminal_of_that_size() {
    let mut run = script(
        "for n in 0 1 2; do test -t $n && echo $n; done; stty size; echo $TERM; echo err >&2; echo tty > /dev/tty; \
         ls /proc/self/fd | tr '\\n' ' '",
    );
    let record = exit_of(&mut run.start().await).await;
    assert_eq!(run.stdout(), "0\n1\n2\n43 132\nxterm-256color\nerr\ntty\n0 1 2 3 ");
    assert_eq!((record.code, record.stderr_bytes, record.stopped), (Some(0), 0, None));
    assert_eq!(record.stdout_bytes, run.stdout().len() as u64);
    assert_eq!(run.read("shim.log"), b"", "the supervisor had something to complain about");

    run = script("echo $TERM");
    run.env.insert("TERM".to_owned(), "dumb".to_owned());
    exit_of(&mut run.start().await).await;
    assert_eq!(run.stdout(), "dumb\n");
}

/// Every byte but the one that UTF-8 does not have, in lines of all lengths and in one line without end.
fn input() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=0xfe).cycle().take(40_000).collect();
    bytes.extend((0..30_000).map(|n: u32| if n % 4099 == 4098 { b'\n' } else { b'x' }));
    bytes.extend("zwei Wörter ".repeat(2500).bytes());
    bytes
}

#[tokio::test]
async fn a_hundred_kilobytes_arrive_whole_and_are_not_echoed_and_make_no_signal() {
    let slowly = "while head -c 3000 > piece && test -s piece; do cat piece >> copy; done";
    for program in [
        "cat > copy",
        "sleep 0.3; cat > copy",
        slowly,
        "python3 -c 'import sys, shutil; \
        shutil.copyfileobj(sys.stdin.buffer, open(\"copy\", \"wb\"))'",
    ] {
        let run = script(&format!("{program}; echo end"));
        let mut supervisor = send_input(&run, &input()).await;
        let record = exit_of(&mut supervisor).await;
        assert_eq!((record.code, record.signal), (Some(0), None), "{program}");
        assert_eq!(run.stdout(), "end\n", "{program}");
        assert!(std::fs::read(run.work().join("copy")).unwrap() == input(), "{program}: other bytes");
        assert!(run.read("stdin.log") == input());
    }
}

#[tokio::test]
async fn the_end_of_input_is_reported_to_whoever_reads_and_to_those_who_read_again() {
    let cases = [
        ("cat", "one\ntwo", "one\ntwo"),
        ("cat", "", ""),
        ("a=$(cat); b=$(cat); echo \"$a-$b\"", "one\n", "one-\n"),
        ("while read -r line; do echo \"<$line>\"; done; cat; echo end", "one\ntwo\n", "<one>\n<two>\nend\n"),
        ("exec sh 2>/dev/null", "echo of a script\n", "of a script\n"),
        (
            "exec python3 -c 'import sys; print(len(sys.stdin.read())); print(sys.stdin.read())'",
            "one\n",
            "4\n\n",
        ),
        (
            "exec python3 -c 'print(input())\ntry:\n    input()\nexcept EOFError:\n    print(\"end\")'",
            "a \u{3}\u{4} b\n",
            "a \u{3}\u{4} b\nend\n",
        ),
    ];
    for (program, input, wanted) in cases {
        // Those that are quicker than us wait for their input, the others find it.
        for delay in ["", "sleep 0.2; "] {
            let run = script(&format!("{delay}{program}"));
            let mut supervisor = send_input(&run, input.as_bytes()).await;
            assert_eq!(exit_of(&mut supervisor).await.code, Some(0), "{delay}{program}");
            assert_eq!(run.stdout(), wanted, "{delay}{program}");
        }
    }

    // A program that wants another character for it has its way.
    let run = script("stty sane -echo; echo set; cat");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"set\r\n").await;
    within(supervisor.write(b"one")).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert_eq!(run.stdout(), "set\r\none");
}

#[tokio::test]
async fn a_program_that_reads_keys_gets_them_at_once_and_unchanged() {
    let keys = "import os, tty; tty.setraw(0); print('ready', end='', flush=True)\n\
                got = b''\nwhile not got.endswith(b'q'): got += os.read(0, 100)\nprint(got)";
    let run = in_terminal(&["python3", "-c", keys]);
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"ready").await;
    within(supervisor.write(b"a\x03\x04\r\n")).await.unwrap();
    within(supervisor.write(&[b'x'; 3000])).await.unwrap();
    within(supervisor.write(b"q")).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert_eq!(run.stdout(), format!("readyb'a\\x03\\x04\\r\\n{}q'\n", "x".repeat(3000)));
}

#[tokio::test]
async fn a_program_that_never_reads_blocks_nothing_and_a_closed_input_is_refused_by_name() {
    let run = script("echo up; exec sleep 300");
    let mut supervisor = run.start().await;
    within(supervisor.write(&vec![b'x'; 1 << 20])).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    assert!(matches!(within(supervisor.write(b"late")).await, Err(ProcessError::StdinClosed { .. })));
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    within(supervisor.stop()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.signal, Some(2));
}

#[tokio::test]
async fn five_megabytes_of_output_are_whole() {
    let run = in_terminal(&["sh", "-c", "yes 'a line of output' | head -c 5000000"]);
    let record = exit_of(&mut run.start().await).await;
    assert_eq!((record.code, record.stdout_bytes), (Some(0), 5_000_000));
    let whole: Vec<u8> = b"a line of output\n".iter().copied().cycle().take(5_000_000).collect();
    assert!(run.read("stdout.log") == whole, "other bytes");
}

#[tokio::test]
async fn a_stop_ends_the_whole_tree_with_those_who_left_the_terminal_or_its_session() {
    let run = script(
        "trap '' INT TERM HUP; setsid sh -c 'trap \"\" TERM INT HUP; sleep 300; sleep 300' & \
         (exec 0<&- 1>&- 2>&-; sleep 300) & echo up; while :; do sleep 300; done",
    );
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    within(supervisor.stop()).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.signal, record.stopped), (Some(9), Some(StopCause::Requested)));
    until("the supervisor is gone", || run.processes().is_empty()).await;
}

#[tokio::test]
async fn code_signal_and_deadline_are_reported_as_without_a_terminal() {
    let run = script("exit 7");
    assert_eq!(exit_of(&mut run.start().await).await.code, Some(7));
    let run = script("kill -SEGV $$");
    let record = exit_of(&mut run.start().await).await;
    assert_eq!((record.code, record.signal, record.stopped), (None, Some(11), None));
    let run = in_terminal(&["no-such-program-anywhere"]);
    assert!(exit_of(&mut run.start().await).await.spawn_error.is_some());
    let mut run = script("trap '' INT TERM; while :; do sleep 300; done");
    run.launch.lifetime = Duration::from_millis(700);
    let record = exit_of(&mut run.start().await).await;
    assert_eq!((record.signal, record.stopped), (Some(9), Some(StopCause::Deadline)));
}

#[tokio::test]
async fn a_daemon_that_holds_the_terminal_is_heard_and_ended_within_the_drain() {
    let run =
        script("setsid sh -c 'trap \"\" TERM HUP; echo late; sleep 300; sleep 300' & read line; exit 5");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"late\n").await;
    within(supervisor.write(b"go\n")).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.stopped), (Some(5), None));
    assert!(record.leftovers_killed >= 1);
    until("the supervisor is gone", || run.processes().is_empty()).await;
}

#[tokio::test]
async fn a_program_that_lets_go_of_its_terminal_is_not_hung_up() {
    let run = script("exec 0<&- 1>&- 2>&-; sleep 0.3; echo still here > after; exit 4");
    let record = exit_of(&mut run.start().await).await;
    assert_eq!((record.code, record.signal), (Some(4), None));
    assert_eq!(std::fs::read_to_string(run.work().join("after")).unwrap(), "still here\n");
}

#[tokio::test]
async fn somebody_else_can_continue_it() {
    let run = script("echo up; read line; echo \"got $line\"; cat");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    drop(supervisor);
    let mut supervisor = run.reconnect().await;
    within(supervisor.write(b"word\nmore\n")).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert_eq!(run.stdout(), "up\ngot word\nmore\n");
}
