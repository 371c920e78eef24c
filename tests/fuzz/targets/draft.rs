//! Drafts on a session: judged, composed, written.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pi_session_fuzz::draft::check(input));
