//! Runs [`endmark_fuzz::anthropic_messages::check`] under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| endmark_fuzz::anthropic_messages::check(bytes));
