//! Runs [`endmark_fuzz::complete::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::complete::check(bytes));
