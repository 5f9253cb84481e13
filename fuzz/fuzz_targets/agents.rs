//! Runs [`endmark_fuzz::agents::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::agents::check(bytes));
