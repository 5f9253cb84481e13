//! Runs [`endmark_fuzz::http1::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::http1::check(bytes));
