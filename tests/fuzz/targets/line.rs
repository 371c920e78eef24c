//! One line: is it JSON, and what of it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pi_session_fuzz::line::check(input));
