//! Real components in the real sandbox: what a plugin sees, what it may, and what becomes of one that misbehaves.
//!
//! Most scenes use the scripted guest (tests/guests/scripted), whose config says what it does.
#[path = "../../tests/e2e/hostile/bombs.rs"]
#[expect(dead_code, reason = "some are for the daemon's scene")]
mod bombs;
#[path = "../../tests/e2e/hostile/wat.rs"]
#[expect(dead_code, reason = "some are for the daemon's scene")]
mod wat;

mod sandbox {
    mod asking;
    pub mod common;
    mod compiling;
    mod grants;
    mod kept;
    mod loading;
    mod mischief;
    mod seeing;
    mod waking;
}
