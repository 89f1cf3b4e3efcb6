//! The log of the engine's decisions, for finding bugs (`--log`, `TOWLINE_LOG`). Off by default.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use towline_app::Error;
use towline_engine::{Clock, SystemClock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The name for standard error.
const STANDARD_ERROR: &str = "-";

/// Writes each decision from now on, a line for each, without secrets.
pub(crate) fn write_to(file: &Path) -> Result<(), Error> {
    let out: Box<dyn Write + Send> =
        if file.file_name().is_some_and(|name| name == STANDARD_ERROR) {
            Box::new(io::stderr())
        } else {
            let opened = towline_files::append(file);
            Box::new(opened.map_err(|error| {
                Error::usage(format!("cannot write the log to {}: {error}", file.display()))
            })?)
        };
    // Nothing else in this program sets one.
    let _ = tracing::subscriber::set_global_default(Log { out: Mutex::new(out) });
    Ok(())
}

/// Writes what Towline traces; what libraries trace is left out.
struct Log {
    out: Mutex<Box<dyn Write + Send>>,
}

impl Subscriber for Log {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.is_event() && about.target().starts_with("towline")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine::default();
        event.record(&mut line);
        let text = format!("{:.6} {}{}", SystemClock.now(), line.message, line.fields).replace('\n', " ");
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing depends on the log.
        let _ = writeln!(out, "{}", towline_terminal::mask().text(&text));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The parts of a line.
#[derive(Default)]
struct LogLine {
    message: String,
    fields: String,
}

impl Visit for LogLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.fields, " {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use towline_mask::Secrets;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("unharmed").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_decision_is_one_line_with_its_goal_attempt_and_lease_and_without_secrets() {
        let mut secrets = Secrets::default();
        secrets.add("API_TOKEN", "hidden-in-every-log-1234");
        towline_terminal::secrets().add(&secrets);
        let buffer = Buffer::default();
        let log = Log { out: Mutex::new(Box::new(buffer.clone())) };
        tracing::subscriber::with_default(log, || {
            let attempt = Some(2_u32);
            tracing::debug!(target: "towline::engine", goal = "1a2b3c4d", attempt, lease = 3_u64, "failed: hidden-in-every-log-1234\nat once");
            tracing::debug!(target: "hyper", "not ours");
        });
        let written = String::from_utf8(buffer.0.lock().expect("unharmed").clone()).expect("text");
        let line = written.strip_suffix('\n').expect("a line");
        assert!(line.ends_with(" at once goal=1a2b3c4d attempt=2 lease=3"), "{line}");
        assert!(!line.contains("hidden-in") && !line.contains('\n'), "{line}");
    }
}
