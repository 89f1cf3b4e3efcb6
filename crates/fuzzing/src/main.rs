//! `towline-fuzz [TARGET] [--seconds N] [--seed S] [--case K] [--corpus DIR]`: what `cargo xtask fuzz` starts.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use towline_fuzzing::{Cases, Target, input, run, target, targets};

/// What is to be run.
struct Order {
    targets: Vec<Target>,
    seconds: u64,
    seed: u64,
    case: Option<u64>,
    corpus: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Order::read(&arguments).and_then(|order| order.carry_out()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Order {
    fn read(arguments: &[String]) -> Result<Self> {
        let mut order =
            Self { targets: targets(), seconds: 60, seed: fresh_seed(), case: None, corpus: None };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word == "--corpus" {
                order.corpus = Some(words.next().context("`--corpus` needs a folder")?.into());
                continue;
            }
            let mut number = || {
                let value = words.next().with_context(|| format!("`{word}` needs a number"))?;
                value.parse::<u64>().with_context(|| format!("`{value}` is no number for `{word}`"))
            };
            match word.as_str() {
                "--seconds" => order.seconds = number()?,
                "--seed" => order.seed = number()?,
                "--case" => order.case = Some(number()?),
                name => match target(name) {
                    Some(target) => order.targets = vec![target],
                    None => {
                        let names: Vec<&str> = targets().iter().map(|target| target.name).collect();
                        bail!("there is no target `{name}`; there are: {}", names.join(", "));
                    }
                },
            }
        }
        if order.case.is_some() && order.targets.len() != 1 {
            bail!("a single case belongs to a single target; name it");
        }
        Ok(order)
    }

    fn carry_out(&self) -> Result<()> {
        let mut out = std::io::stdout();
        for target in &self.targets {
            if let Some(corpus) = &self.corpus {
                write_seeds(target, &corpus.join(target.name))?;
                continue;
            }
            if let Some(case) = self.case {
                let data = input(target, self.seed, case);
                // First, because whoever repeats a case that fails wants to see it.
                out.write_all(&data)?;
                target.check(&data);
                continue;
            }
            writeln!(out, "{}: {} s with --seed {}", target.name, self.seconds, self.seed)?;
            let ran = run(target, self.seed, Cases::For(Duration::from_secs(self.seconds)));
            writeln!(out, "{}: {} cases, {} bytes, all hold", target.name, ran.cases, ran.bytes)?;
        }
        Ok(())
    }
}

/// One file for each seed, for libFuzzer to begin with.
fn write_seeds(target: &Target, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (place, seed) in target.seeds().iter().enumerate() {
        let file = folder.join(format!("seed-{place:03}"));
        fs::write(&file, seed).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a seed that no run before had; it is printed")]
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos()) ^ (since.as_secs() << 20)
}
