//! Runs [`endmark_fuzz::findings::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::findings::check(bytes));
