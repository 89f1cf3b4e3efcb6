//! Any target of crates/fuzzing, by the name in `TOWLINE_FUZZ`.

#![no_main]

use std::sync::LazyLock;

use towline_fuzzing::{Target, target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TOWLINE_FUZZ").unwrap_or_else(|_| panic!("set TOWLINE_FUZZ to the name of a target"));
    target(&name).unwrap_or_else(|| panic!("there is no target {name}"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.check(data));
