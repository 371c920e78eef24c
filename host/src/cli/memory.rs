//! What the daemon's allocator keeps.
//!
//! glibc gives threads heaps of their own, and each keeps what it once took: a daemon that runs for days, whose workers come and
//! go, then holds several times what it uses. One heap is shared here; its threads wait for disks and plugins, not for it.

#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "a setting of the C library; why it is safe stands there")
)]

/// From now on, all threads share the heaps that are there; so it comes before there are any.
#[cfg(target_env = "gnu")]
pub(super) fn share_heaps() {
    // SAFETY: it takes two numbers, changes one of the allocator's under the allocator's own lock, and touches no memory of ours.
    // Where it is refused, all goes on as before.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Other C libraries have no such heaps.
#[cfg(not(target_env = "gnu"))]
pub(super) fn share_heaps() {}
