//! A session: its tree, its contexts, its migration, its fork.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pi_session_fuzz::tree::check(input));
