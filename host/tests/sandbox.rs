//! Real components in the real sandbox: what a plugin sees, what it may, and what becomes of one that misbehaves.
//!
//! Most scenes use the scripted guest (tests/guests/scripted), whose config says what it does.
mod sandbox {
    mod asking;
    pub mod common;
    mod grants;
    mod kept;
    mod loading;
    mod mischief;
    mod seeing;
    mod waking;
}
