#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(target) = towline_fuzzing::target("goals") {
        (target.check)(data);
    }
});
