//! A run as it should go: every byte on disk, exact endings, nothing inherited, nothing leaked.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use common::{Run, exit_of, now_ms, output_ending_with, until, within};
use towline_process::{
    ExitRecord, Notice, OutputTimes, Priority, ProcessError, SpawnErrorKind, Stream, SupervisorProgram,
    merged_tail,
};

#[tokio::test]
async fn the_logs_hold_exactly_the_bytes_that_were_written() {
    let run = Run::script(r"printf 'a\377\376b\000c\n\303'; printf 'err\200 half' >&2; printf '\251 half'");
    let mut supervisor = run.start().await;
    let record = exit_of(&mut supervisor).await;
    assert_eq!(run.read("stdout.log"), b"a\xff\xfeb\0c\n\xc3\xa9 half");
    assert_eq!(run.read("stderr.log"), b"err\x80 half");
    assert_eq!((record.stdout_bytes, record.stderr_bytes), (14, 9));
}

const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[tokio::test]
async fn the_record_shows_how_the_program_ended_and_is_also_on_disk() {
    let before = now_ms();
    let run = Run::script("exit 7");
    let record = exit_of(&mut run.start().await).await;
    assert_eq!(
        record,
        ExitRecord {
            code: Some(7),
            signal: None,
            spawn_error: None,
            started_at_ms: record.started_at_ms,
            ended_at_ms: record.ended_at_ms,
            stopped: None,
            leftovers_killed: 0,
            stdout_bytes: 0,
            stderr_bytes: 0,
            stdout_sha256: Some(SHA256_OF_NOTHING.to_owned()),
            stderr_sha256: Some(SHA256_OF_NOTHING.to_owned()),
        }
    );
    assert!(before <= record.started_at_ms && record.started_at_ms <= record.ended_at_ms);
    assert!(record.ended_at_ms <= now_ms());
    assert_eq!(ExitRecord::read(&run.dir).unwrap(), Some(record));
    until("the supervisor is gone", || run.processes().is_empty()).await;

    let run = Run::script("kill -SEGV $$");
    let record = exit_of(&mut run.start().await).await;
    assert_eq!((record.code, record.signal, record.stopped), (None, Some(11), None));
}

#[tokio::test]
async fn the_last_sign_of_life_has_its_time_while_the_program_is_silent() {
    let before = now_ms();
    let run = Run::script("echo early; read line; echo late; read line");
    let mut times = OutputTimes::new(&run.dir, Stream::Stdout);
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"early\n").await;
    until("early has a time", || times.at(6).unwrap().is_some()).await;
    let early = times.at(6).unwrap().unwrap();
    assert!(before <= early && early <= now_ms(), "{before} {early}");
    assert_eq!(times.at(7).unwrap(), None);

    let between = now_ms();
    within(supervisor.write(b"go\n")).await.unwrap();
    until("late has a time", || times.at(11).unwrap().is_some()).await;
    let late = times.at(11).unwrap().unwrap();
    assert!(between <= late && late <= now_ms(), "{between} {late}");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_end_with_its_kind() {
    let not_executable = tempfile::NamedTempFile::new().unwrap();
    let no_interpreter = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(no_interpreter.path(), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(no_interpreter.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // A file that is open for writing cannot be executed.
    let no_interpreter = no_interpreter.into_temp_path();
    let cases = [
        ("no-such-program-anywhere", SpawnErrorKind::ProgramNotFound, "in the PATH"),
        ("/no/such/program", SpawnErrorKind::ProgramNotFound, "there is no program /no/such/program"),
        (no_interpreter.to_str().unwrap(), SpawnErrorKind::ProgramNotFound, "interpreter"),
        (not_executable.path().to_str().unwrap(), SpawnErrorKind::NotExecutable, "cannot be executed"),
        ("/", SpawnErrorKind::NotExecutable, "cannot be executed"),
    ];
    for (program, kind, words) in cases {
        let run = Run::command(&[program]);
        let error = exit_of(&mut run.start().await).await.spawn_error.unwrap();
        assert_eq!(error.kind, kind, "{program}");
        assert!(error.message.contains(words), "{}", error.message);
    }

    let mut run = Run::command(&["true"]);
    run.launch.cwd = run.work().join("missing");
    let record = exit_of(&mut run.start().await).await;
    assert_eq!(record.spawn_error.as_ref().unwrap().kind, SpawnErrorKind::DirectoryMissing);
    assert_eq!((record.code, record.signal), (None, None));
    assert_eq!(ExitRecord::read(&run.dir).unwrap(), Some(record));

    let run = Run::command(&[]);
    let error = exit_of(&mut run.start().await).await.spawn_error.unwrap();
    assert_eq!(error.kind, SpawnErrorKind::Other);
}

fn megabyte() -> Vec<u8> {
    (0..1 << 20).map(|n: u32| u8::try_from((n ^ (n >> 8)) & 0xff).unwrap()).collect()
}

#[tokio::test]
async fn a_megabyte_reaches_a_slow_reader_whole() {
    let run = Run::script(
        "touch copy; while [ $(wc -c < copy) -lt 1048576 ]; do head -c 30000 >> copy; sleep 0.005; done; cat >> copy",
    );
    let mut supervisor = run.start().await;
    let sent = megabyte();
    within(supervisor.write(&sent)).await.unwrap();
    assert_eq!(run.read("stdin.log"), sent, "acknowledged means that it is in the log");
    within(supervisor.close_stdin()).await.unwrap();
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert!(std::fs::read(run.work().join("copy")).unwrap() == sent, "the program got other bytes");
}

#[tokio::test]
async fn a_megabyte_to_a_program_that_never_reads_blocks_nothing() {
    let run = Run::script("echo up; exec sleep 300");
    let mut supervisor = run.start().await;
    within(supervisor.write(&megabyte())).await.unwrap();
    within(supervisor.write(b"more")).await.unwrap();
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    within(supervisor.stop()).await.unwrap();
    let record = exit_of(&mut supervisor).await;
    assert_eq!((record.code, record.signal), (None, Some(2)));
    assert_eq!(run.read("stdin.log").len(), (1 << 20) + 4);
}

#[tokio::test]
async fn writing_to_a_closed_stdin_is_refused_by_name() {
    let run = Run::script("exec 0<&-; echo closed; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"closed\n").await;
    assert!(matches!(within(supervisor.write(b"hello")).await, Err(ProcessError::StdinClosed { .. })));

    let run = Run::script("cat; echo end");
    let mut supervisor = run.start().await;
    within(supervisor.write(b"hello\n")).await.unwrap();
    within(supervisor.close_stdin()).await.unwrap();
    assert!(matches!(
        within(supervisor.write(b"late")).await,
        Err(ProcessError::StdinClosed { .. } | ProcessError::Ended { .. })
    ));
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    assert_eq!(run.stdout(), "hello\nend\n");
    assert_eq!(run.read("stdin.log"), b"hello\n");
    assert!(matches!(within(supervisor.write(b"later")).await, Err(ProcessError::Ended { .. })));
}

#[tokio::test]
async fn the_environment_reaches_the_program_and_no_file() {
    let secret = "s3cr3t-value-of-the-test";
    let mut run = Run::script("echo ${#THE_SECRET} $(env | cut -d= -f1 | sort | tr '\\n' ' ')");
    run.env.insert("THE_SECRET".to_owned(), secret.to_owned());
    assert_eq!(exit_of(&mut run.start().await).await.code, Some(0));
    assert_eq!(run.stdout(), format!("{} PATH PWD THE_SECRET TOWLINE_TEST_RUN\n", secret.len()));
    for entry in std::fs::read_dir(&run.dir).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(secret), "{} holds the secret", path.display());
    }
}

#[tokio::test]
async fn the_files_of_a_run_are_for_their_owner_only() {
    let run = Run::script("echo out; echo err >&2; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stderr, b"err\n").await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&run.dir), 0o700);
    let mut names: Vec<_> = std::fs::read_dir(&run.dir)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            path.file_name().unwrap().to_str().unwrap().to_owned()
        })
        .collect();
    names.sort();
    let expected = [
        "index",
        "launch.json",
        "shim.log",
        "shim.pid",
        "shim.sock",
        "stderr.log",
        "stdin.log",
        "stdout.log",
    ];
    assert_eq!(names, expected);
    assert_eq!(run.read("shim.log"), b"", "the supervisor had something to complain about");
}

#[tokio::test]
async fn nothing_of_the_starter_stays_open_in_the_supervisor_or_the_program() {
    // Inheritable on purpose, as a careless part of the starter would have it.
    let (read_end, write_end) = rustix::pipe::pipe().unwrap();
    let run = Run::script("ls /proc/self/fd | tr '\\n' ' '; echo; exec sleep 300");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"\n").await;
    assert_eq!(run.stdout(), "0 1 2 3 \n", "3 is the directory that ls reads");
    drop(read_end);
    assert_eq!(rustix::io::write(&write_end, b"x"), Err(rustix::io::Errno::PIPE), "somebody has it open");
}

#[tokio::test]
async fn the_program_gets_default_signals_its_own_session_and_the_starters_umask() {
    let mut run = Run::script("cut -d' ' -f6 /proc/$$/stat; echo $$; umask; grep SigIgn /proc/$$/status");
    run.program = SupervisorProgram {
        path: "/bin/sh".into(),
        args: vec![
            "-c".to_owned(),
            "umask 027; trap '' INT HUP QUIT TERM PIPE; exec \"$0\" \"$1\"".to_owned(),
            common::supervisor_program().path.to_str().unwrap().to_owned(),
        ],
        shown: None,
    };
    let mut supervisor = run.start().await;
    assert_eq!(exit_of(&mut supervisor).await.code, Some(0));
    let printed = run.stdout();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], lines[1], "the program must lead its own session");
    assert_eq!(lines[2], "0027");
    let ignored = u64::from_str_radix(lines[3].rsplit('\t').next().unwrap(), 16).unwrap();
    let [hup, int, quit, pipe, term] = [1, 2, 3, 13, 15].map(|signal| 1 << (signal - 1));
    assert_eq!(ignored & (hup | int | quit | pipe | term), 0, "{ignored:x}");
}

#[tokio::test]
async fn the_supervisor_leaves_the_session_of_its_starter() {
    let run = Run::script("exec sleep 300");
    let _supervisor = run.start().await;
    let pid = run.supervisor_process().pid;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap();
    assert_eq!(session, pid.to_string());
}

#[tokio::test]
async fn a_deep_directory_works_as_well() {
    let mut run = Run::script("cat");
    for _ in 0..12 {
        run.dir = run.dir.join("a-directory-with-a-long-name");
    }
    assert!(run.dir.as_os_str().len() > 300);
    let mut first = run.start().await;
    let second = run.reconnect().await;
    within(second.write(b"hello")).await.unwrap();
    within(second.close_stdin()).await.unwrap();
    assert_eq!(exit_of(&mut first).await.code, Some(0));
    assert_eq!(run.stdout(), "hello");
}

#[tokio::test]
async fn a_directory_is_used_for_one_run_only() {
    let run = Run::script("exit 0");
    exit_of(&mut run.start().await).await;
    assert!(matches!(run.try_start().await, Err(ProcessError::DirectoryInUse { .. })));
}

#[tokio::test]
async fn a_supervisor_that_cannot_start_reports_why() {
    let mut run = Run::script("exit 0");
    run.program.path = "/no/such/supervisor".into();
    assert!(matches!(run.try_start().await, Err(ProcessError::SupervisorNotStarted { .. })));
    run.program = common::supervisor_program();
    assert_eq!(
        exit_of(&mut run.start().await).await.code,
        Some(0),
        "nothing ran, so the directory is still free"
    );

    let mut run = Run::script("exit 0");
    run.program = SupervisorProgram {
        path: "/bin/sh".into(),
        args: vec!["-c".to_owned(), "echo out of order >&2; exit 1".to_owned()],
        shown: None,
    };
    match run.try_start().await {
        Err(ProcessError::SupervisorFailed { log, .. }) => assert_eq!(log, "out of order"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_merged_tail_follows_the_order_of_writing() {
    let run = Run::script("echo one; read x; echo two >&2; read x; echo three; read x; printf four >&2");
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"one\n").await;
    within(supervisor.write(b"\n")).await.unwrap();
    output_ending_with(&mut supervisor, Stream::Stderr, b"two\n").await;
    assert_eq!(merged_tail(&run.dir, 100).unwrap(), b"one\ntwo\n", "also while it runs");
    within(supervisor.write(b"\n")).await.unwrap();
    output_ending_with(&mut supervisor, Stream::Stdout, b"three\n").await;
    within(supervisor.write(b"\n")).await.unwrap();
    exit_of(&mut supervisor).await;
    assert_eq!(merged_tail(&run.dir, 100).unwrap(), b"one\ntwo\nthree\nfour");
    assert_eq!(merged_tail(&run.dir, 12).unwrap(), b"three\nfour");
}

#[tokio::test]
async fn a_quick_program_is_reported_in_full() {
    let run = Run::script("echo quick");
    let mut supervisor = run.start().await;
    let mut last = None;
    let record = within(async {
        loop {
            match supervisor.next().await.unwrap() {
                Notice::Grown { stdout, stderr } => last = Some((stdout, stderr)),
                Notice::Exited(record) => return record,
            }
        }
    })
    .await;
    assert_eq!(last, Some((6, 0)), "the last lengths come before the record");
    assert_eq!(within(supervisor.next()).await.unwrap(), Notice::Exited(record));
    tokio::time::timeout(Duration::from_secs(5), supervisor.stop()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_program_of_low_priority_gives_way_to_others() {
    let mut run = Run::script("nice");
    run.launch.priority = Priority::Low;
    exit_of(&mut run.start().await).await;
    assert_eq!(run.read("stdout.log"), b"19\n");
}
