//! Runs one program under supervision and records every byte that it prints.
//!
//! Each run has a directory and a *supervisor*: a tiny process that owns the program's process tree and its standard
//! streams, appends the raw bytes to files, serves a Unix socket, and writes the exit record once the whole tree
//! is gone. The supervisor outlives whoever started it, up to its own deadline. This crate holds the supervisor
//! ([`supervisor::main`]), its client ([`spawn`], [`connect`], [`SupervisorHandle`]), and the readers of what it wrote
//! ([`LogReader`], [`LineFramer`], [`OutputTimes`], [`merged_tail`], [`ExitRecord`]).
//!
//! It never knows what the program is or why it runs.

mod ancestry;
mod client;
mod clock;
mod connection;
mod error;
mod files;
mod framer;
mod guard;
mod identity;
mod index;
mod inspection;
mod launch;
mod limits;
mod log_reader;
mod output_times;
mod platform;
mod reaper;
mod record;
mod reported;
mod session;
mod starting;
pub mod supervisor;
mod sweep;
mod tail;
mod wire;

pub use ancestry::{is_below_supervisor, supervisors};
pub use client::{Notice, SupervisorHandle, adopt, connect, spawn};
pub use error::ProcessError;
pub use files::Stream;
pub use framer::{DEFAULT_LINE_CAP, Framed, Line, LineEnd, LineFramer};
pub use identity::{remove_dead_socket, supervisor_process};
pub use inspection::refuse_inspection;
pub use launch::{Launch, Priority, Stdio, WindowSize};
pub use limits::{LimitTooLow, prepare_limits, survive_file_size_limit};
pub use log_reader::{CHUNK_BYTES, LogReader};
pub use output_times::OutputTimes;
pub use platform::{ProcessId, ancestors, descendants, has_lost_supervisor, own_number};
pub use record::{ExitRecord, SpawnError, SpawnErrorKind, StopCause};
pub use reported::ReportedLog;
pub use session::{Session, is_in_foreground, is_in_session};
pub use starting::SupervisorProgram;
pub use sweep::{end_processes, end_strays, end_supervisor, processes_with_env, terminate};
pub use tail::merged_tail;
