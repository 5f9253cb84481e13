//! Runs [`endmark_fuzz::edits::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::edits::check(bytes));
