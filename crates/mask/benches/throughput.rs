//! How fast text without secrets passes. Figures mean something only with optimisation: `cargo bench -p towline-mask`.

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use towline_mask::{Mask, Secrets};

const RUNS: u32 = 7;
/// What a person's environment may well hold.
const SECRETS: usize = 12;

/// Text as agents print it: prose, code, paths, addresses.
fn text() -> String {
    let lines = [
        "I have looked at crates/engine/src/driver.rs and will change how the lease is renewed.\n",
        "    let until = now.checked_add(LEASE).unwrap_or(now); // see https://example.org/docs?page=2\n",
        "test result: ok. 214 passed; 0 failed; finished in 3.21s\n",
        "drwxr-xr-x 2 user user 4096 Jan  1 12:00 node_modules/.package-lock.json 5f4dcc3b5aa765d6\n",
    ];
    lines.concat().repeat(16 * 1024 * 1024 / lines.concat().len())
}

fn best(mut once: impl FnMut()) -> Duration {
    let timed = (0..RUNS).map(|_| {
        let begun = Instant::now();
        once();
        begun.elapsed()
    });
    timed.min().unwrap_or(Duration::MAX)
}

fn main() -> std::io::Result<()> {
    let mut secrets = Secrets::default();
    for n in 0..SECRETS {
        secrets.add(&format!("SECRET_{n}"), &format!("kJ8{n:02}-value/of+a secret{n}Qz7"));
    }
    let (mask, text) = (Mask::new(&secrets), text());
    let whole = best(|| drop(black_box(mask.text(&text))));
    let lines = best(|| text.lines().for_each(|line| drop(black_box(mask.text(line)))));
    let made = best(|| drop(black_box(Mask::new(&secrets))));
    let speed = |took: Duration| text.len() as f64 / 1e6 / took.as_secs_f64();
    let mut out = std::io::stdout();
    writeln!(out, "a whole text: {:.0} MB/s", speed(whole))?;
    writeln!(out, "line by line: {:.0} MB/s", speed(lines))?;
    writeln!(out, "to make it, with {SECRETS} secrets: {made:?}")
}
