//! What is left when a supervisor and the process that started it were killed: a mark finds it, whatever it did to its sessions and
//! its environment.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::again::{arguments, must_pass_as_ordinary_user, role, start_again, variables};
use common::{Run, exit_of, now_ms, output_ending_with, until};
use rustix::process::{Resource, getrlimit};
use towline_process::{ProcessError, ProcessId, Stream, end_processes, end_strays};

const PATIENCE: Duration = Duration::from_secs(10);

/// Two clocks differ by less.
const CLOCK_SLACK: Duration = Duration::from_millis(2_050);

/// A variable that no process has: only the mark leads to these.
const NOBODYS: (&str, &str) = ("TOWLINE_TEST_NOBODYS", "1");

/// Starts a process in a session of its own without environment, which runs `first` in Python and writes its number to `stray`.
fn leaves(directory: &Path, first: &str) -> String {
    let stray = directory.join("stray");
    let python = format!(
        "import os, resource, time; {first}; open(\"{0}.new\", \"w\").write(str(os.getpid())); \
         os.rename(\"{0}.new\", \"{0}\"); time.sleep(300)",
        stray.display()
    );
    format!(
        "setsid env -i \"$(command -v python3)\" -c '{python}' & \
         while [ ! -e {} ]; do sleep 0.02; done; echo up; exec sleep 300",
        stray.display()
    )
}

/// Has a process of its own start the script under a supervisor and kills both. Gives back what the script left.
async fn stray(test: &str, role: &str, directory: &Path) -> ProcessId {
    let mut engine = start_again(test, role, directory);
    let supervisor = directory.join("supervisor");
    until("the engine is at work", || supervisor.exists()).await;
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap().parse::<u32>().unwrap();
    let (supervisor, stray) = (read("supervisor"), ProcessId::of(read("stray")).unwrap());
    let supervisor = ProcessId::of(supervisor).unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(supervisor.pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    until("the supervisor is gone", || !supervisor.is_running()).await;
    assert!(stray.is_running());
    stray
}

/// Is the engine, until it is killed.
async fn be_engine(script: &str, directory: &Path) {
    let run = Run::script(script);
    let mut supervisor = run.start().await;
    output_ending_with(&mut supervisor, Stream::Stdout, b"up\n").await;
    let draft = directory.join("draft");
    std::fs::write(&draft, run.supervisor_process().pid.to_string()).unwrap();
    std::fs::rename(draft, directory.join("supervisor")).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn what_lost_its_supervisor_and_its_engine_is_ended_and_what_has_a_supervisor_is_not() {
    let test = "what_lost_its_supervisor_and_its_engine_is_ended_and_what_has_a_supervisor_is_not";
    if let Some((_, directory)) = role() {
        return be_engine(&leaves(&directory, "pass"), &directory).await;
    }
    let scratch = tempfile::tempdir().unwrap();
    let began = now_ms();
    let other = Run::script("setsid env -i sleep 300 & echo up; read line; exit 3");
    let mut undisturbed = other.start().await;
    output_ending_with(&mut undisturbed, Stream::Stdout, b"up\n").await;
    let stray = stray(test, "engine", scratch.path()).await;
    end_strays(NOBODYS, &[], began, PATIENCE).unwrap();
    assert!(!stray.is_running());
    undisturbed.write(b"go\n").await.unwrap();
    assert_eq!(exit_of(&mut undisturbed).await.code, Some(3));
}

#[tokio::test]
async fn what_has_a_supervisor_of_another_state_directory_is_left_although_it_has_the_same_variable() {
    let scratch = tempfile::tempdir().unwrap();
    let variable = ("TOWLINE_TEST_GOAL", scratch.path().to_str().unwrap());
    let began = now_ms();
    let [(ours, arguments), (others, _)] = ["fe01-2a", "fe01-2b"].map(|state| {
        let mut run = Run::script("setsid sleep 300 & echo up; read line; exit 3");
        run.env.insert(variable.0.to_owned(), variable.1.to_owned());
        let arguments = ["shim", state].map(str::to_owned);
        run.program.args = [&arguments[..], &["goal".to_owned()]].concat();
        (run, arguments)
    });
    let mut undisturbed = others.start().await;
    output_ending_with(&mut undisturbed, Stream::Stdout, b"up\n").await;
    output_ending_with(&mut ours.start().await, Stream::Stdout, b"up\n").await;
    let (ended, left) = (ours.processes(), others.processes());
    end_strays(variable, &arguments, began, PATIENCE).unwrap();
    assert!(ended.len() >= 3 && !ended.iter().any(|process| process.is_running()), "{ended:?}");
    assert!(left.len() >= 3 && left.iter().all(|process| process.is_running()), "{left:?}");
    undisturbed.write(b"go\n").await.unwrap();
    assert_eq!(exit_of(&mut undisturbed).await.code, Some(3));
}

#[tokio::test]
async fn a_process_with_the_mark_is_ended_however_old_it_is() {
    let test = "a_process_with_the_mark_is_ended_however_old_it_is";
    if let Some((_, directory)) = role() {
        return be_engine(&leaves(&directory, "pass"), &directory).await;
    }
    let scratch = tempfile::tempdir().unwrap();
    let stray = stray(test, "engine", scratch.path()).await;
    let written = std::fs::metadata(scratch.path().join("stray")).unwrap().modified().unwrap();
    until("it is older than two clocks may differ", || written.elapsed().is_ok_and(|age| age > CLOCK_SLACK))
        .await;
    end_strays(NOBODYS, &[], now_ms(), PATIENCE).unwrap();
    assert!(!stray.is_running());
}

#[tokio::test]
async fn what_lowered_its_limit_to_hide_is_named_and_left() {
    let test = "what_lowered_its_limit_to_hide_is_named_and_left";
    match role() {
        None => must_pass_as_ordinary_user(test, "user", tempfile::tempdir().unwrap().path()),
        Some((role, directory)) if role == "user" => {
            let began = now_ms();
            let stray = stray(test, "engine", &directory).await;
            let found = end_strays(NOBODYS, &[], began, PATIENCE).unwrap_err();
            assert!(stray.is_running());
            end_processes(
                || Ok(Some(stray).filter(|stray| stray.is_running()).into_iter().collect()),
                PATIENCE,
            )
            .unwrap();
            let ProcessError::Hiding { pid, command } = found else { panic!("{found}") };
            assert_eq!(pid, stray.pid);
            assert!(command.contains("python3 -c import os"), "{command}");
            end_strays(NOBODYS, &[], began, PATIENCE).unwrap();
        }
        Some((_, directory)) => {
            let hides = "resource.setrlimit(resource.RLIMIT_MSGQUEUE, (1000, 1000))";
            be_engine(&leaves(&directory, hides), &directory).await;
        }
    }
}

#[tokio::test]
async fn an_ordinary_process_cannot_remove_its_mark() {
    let test = "an_ordinary_process_cannot_remove_its_mark";
    if role().is_none() {
        return must_pass_as_ordinary_user(test, "user", tempfile::tempdir().unwrap().path());
    }
    let script = "import resource
soft, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
print(hard)
try: resource.setrlimit(resource.RLIMIT_MSGQUEUE, (hard + 1, hard + 1)); print('raised')
except ValueError: print('refused')";
    let run = Run::command(&["python3", "-c", script]);
    exit_of(&mut run.start().await).await;
    let own = getrlimit(Resource::Msgqueue).maximum.unwrap_or(u64::MAX).min(819_200);
    assert_eq!(run.stdout(), format!("{}\nrefused\n", own - 1));
}

#[tokio::test]
async fn a_supervisor_below_a_supervisor_has_a_mark_of_its_own() {
    let test = "a_supervisor_below_a_supervisor_has_a_mark_of_its_own";
    if let Some((_, _)) = role() {
        let began = now_ms();
        let run = Run::script(
            "python3 -c 'import resource; print(resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1])'; read line",
        );
        let mut supervisor = run.start().await;
        let own = getrlimit(Resource::Msgqueue).maximum.unwrap();
        output_ending_with(&mut supervisor, Stream::Stdout, format!("{}\n", own - 1).as_bytes()).await;
        end_strays(NOBODYS, &[], began, PATIENCE).unwrap();
        supervisor.close_stdin().await.unwrap();
        assert_eq!(exit_of(&mut supervisor).await.signal, None);
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let words = arguments(test);
    let mut run = Run::command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    run.env.extend(variables("nested", scratch.path()));
    let record = exit_of(&mut run.start().await).await;
    assert_eq!(record.code, Some(0), "{}", run.stdout());
    assert!(run.stdout().contains("1 passed"), "{}", run.stdout());
}
