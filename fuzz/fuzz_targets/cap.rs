//! Runs [`endmark_fuzz::cap::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::cap::check(bytes));
