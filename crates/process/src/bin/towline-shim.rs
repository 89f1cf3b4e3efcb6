//! The supervisor as a program of its own, for tests: `towline-shim WORDS DIR`. Users get it as `towline shim WORDS DIR`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().skip(1).last() {
        Some(dir) => towline_process::supervisor::main(&PathBuf::from(dir)),
        None => ExitCode::from(2),
    }
}
