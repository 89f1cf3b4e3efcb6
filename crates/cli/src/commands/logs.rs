//! `towline logs`: what happened to a goal, as a story, as events, or as the agent's own bytes.

use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use towline_app::{Context, Error, runs_elsewhere, unreachable};
use towline_core::{Envelope, Seq};
use towline_engine::{Following, follow};
use towline_process::{LogReader, Stream};

use crate::args::{Logs, RunFormat};
use crate::commands::attach::{From, attach};
use crate::find::{self, Found};
use crate::output::{self, Layout};
use crate::view::{Detail, Paint, Story, ending};

/// Prints the log, and follows it with `--follow`.
pub(crate) async fn run(context: &Context, args: Logs) -> Result<ExitCode, Error> {
    let found = find::goal(context, &args.id).await?;
    if args.raw {
        return raw(&found, &args).await;
    }
    let is_whole = args.attempt.is_none() && !args.json;
    if args.follow && is_whole && output::is_terminal() && runs_elsewhere(&found) {
        return attach(context, found, RunFormat::default(), From::TheBeginning).await;
    }
    let only = args.attempt.map(|number| find::attempt(&found.record, number)).transpose()?;
    let mut story = Story::new(Paint::for_stdout(context), Detail::Whole);
    let mut show = |event: &Envelope| {
        // Every event counts, printed or not: questions are numbered from the goal's first on.
        let lines = if args.json { Vec::new() } else { fitted(&story.lines(event)) };
        if only.is_some() && event.attempt != only {
            return;
        }
        if args.json {
            output::print_json_or_exit(Layout::Line, event);
        }
        lines.iter().for_each(output::print_or_exit);
    };
    if is_whole {
        let goal = &found.record.goal;
        output::print_or_exit(format_args!("goal {}  {}", goal.id.short(), output::brief(&goal.title)));
    }
    if args.follow {
        let mut following = following(&found, Seq(0)).await?;
        while let Some(event) = following.next().await? {
            show(&event);
        }
    } else {
        let mut after = Seq(0);
        loop {
            let page = found.state.store.events(found.record.goal.id, after, 500).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.iter().for_each(&mut show);
        }
    }
    let record = found.state.store.load(found.record.goal.id).await?;
    if is_whole && record.state.phase.is_settled() {
        fitted(&ending(Paint::for_stdout(context), &record)).iter().for_each(output::print_or_exit);
    }
    Ok(ExitCode::SUCCESS)
}

fn fitted(lines: &[String]) -> Vec<String> {
    lines.iter().flat_map(|line| output::fitted(line)).collect()
}

async fn following(found: &Found, after: Seq) -> Result<Following, Error> {
    let following = follow(&found.state.home, found.state.store.clone(), &found.record, after).await;
    following.map_err(unreachable)
}

async fn raw(found: &Found, args: &Logs) -> Result<ExitCode, Error> {
    let mut number = match args.attempt {
        Some(number) => find::attempt(&found.record, number)?,
        None => match found.record.state.last_attempt() {
            Some(last) => last.n,
            None => {
                let setup = found.state.home.setup_logs(found.record.goal.id);
                let failure = Error::not_found("the goal has had no attempt yet");
                let hint = format!("the output of its setup commands is in {}", setup.display());
                return Err(if setup.exists() { failure.hint(hint) } else { failure });
            }
        },
    };
    let directory = |number| found.state.home.attempt(found.record.goal.id, number);
    let ended = found.record.state.attempt(number).is_some_and(|attempt| attempt.ended_at.is_some());
    if ended && !directory(number).exists() {
        let what = format!("the output of attempt {number} was removed");
        return Err(Error::not_found(what)
            .hint("`towline gc` removes it after `retention.logs`; the events are still there"));
    }
    let stream = if args.stderr { Stream::Stderr } else { Stream::Stdout };
    let mut output = RawOutput::open(directory(number), stream);
    output.copy()?;
    if args.follow {
        let mut following = following(found, found.record.last_seq).await?;
        while let Some(event) = output.copy_until_event(&mut following).await? {
            if let (None, Some(newer)) = (args.attempt, event.attempt.filter(|newer| *newer > number)) {
                number = newer;
                output = RawOutput::open(directory(number), stream);
            }
        }
        output.copy()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How long output that is no event may wait until it is printed.
const PAUSE: Duration = Duration::from_millis(200);

/// What an attempt's agent printed on one of its streams.
struct RawOutput {
    log: PathBuf,
    reader: LogReader,
}

impl RawOutput {
    fn open(directory: PathBuf, stream: Stream) -> Self {
        let reader = LogReader::output(&directory, stream, 0);
        Self { log: directory.join(stream.file_name()), reader }
    }

    /// Prints what is new.
    fn copy(&mut self) -> Result<(), Error> {
        loop {
            let chunk = self
                .reader
                .read()
                .map_err(|error| Error::internal(format!("cannot read {}: {error}", self.log.display())))?;
            if chunk.is_empty() {
                return Ok(());
            }
            output::print_bytes_or_exit(chunk);
        }
    }

    /// Prints what is new until the next event, which may be the beginning of another attempt.
    async fn copy_until_event(&mut self, following: &mut Following) -> Result<Option<Envelope>, Error> {
        let mut next = pin!(following.next());
        loop {
            tokio::select! {
                event = &mut next => {
                    self.copy()?;
                    return Ok(event?);
                }
                () = tokio::time::sleep(PAUSE) => self.copy()?,
            }
        }
    }
}
