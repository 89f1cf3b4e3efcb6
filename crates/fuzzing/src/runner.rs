//! Runs a target over damaged seeds. The seed and the number of a case define it completely, so that it can be repeated.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::mutation;
use crate::target::Target;

/// No input, however bad, may hold a reader longer than this. Far more than any needs, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

/// How many cases there are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cases {
    Count(u64),
    /// As many as there is time for.
    For(Duration),
}

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// How many cases.
    pub cases: u64,
    /// How many bytes they had.
    pub bytes: u64,
}

/// Runs all seeds as they are, and then damaged ones. Panics at the first that does not hold, with what repeats it.
pub fn run(target: &Target, seed: u64, cases: Cases) -> Ran {
    let seeds = target.seeds();
    let mut ran = Ran { cases: 0, bytes: 0 };
    for (place, data) in seeds.iter().enumerate() {
        try_one(target, data, &format!("its seed number {place}"));
    }
    let begun = Instant::now();
    let goes_on = |ran: &Ran| match cases {
        Cases::Count(count) => ran.cases < count,
        Cases::For(time) => begun.elapsed() < time,
    };
    while goes_on(&ran) {
        let data = mutation::input(&seeds, &mut Dice::of(seed, ran.cases));
        let again = format!("cargo xtask fuzz {} --seed {seed} --case {}", target.name, ran.cases);
        try_one(target, &data, &again);
        ran.cases += 1;
        ran.bytes += data.len() as u64;
    }
    ran
}

/// The input of one case.
pub fn input(target: &Target, seed: u64, case: u64) -> Vec<u8> {
    mutation::input(&target.seeds(), &mut Dice::of(seed, case))
}

fn try_one(target: &Target, data: &[u8], again: &str) {
    let begun = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| target.check(data)));
    let took = begun.elapsed();
    assert!(outcome.is_ok(), "`{}` does not hold; to repeat it: {again}", target.name);
    assert!(
        took < LONGEST,
        "`{}` took {took:?} for {} bytes; to repeat it: {again}",
        target.name,
        data.len()
    );
}
