//! Runs [`endmark_fuzz::openai_responses::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::openai_responses::check(bytes));
