//! The supervisor as a program of its own, for tests: `towline-shim DIR`. Users get it as `towline shim DIR`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(dir) => towline_process::supervisor::main(&PathBuf::from(dir)),
        None => ExitCode::from(2),
    }
}
