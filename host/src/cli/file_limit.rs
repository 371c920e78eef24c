//! A limit on the size of files (`ulimit -f`) is to be an error of the write that exceeds it, not the end of the process in
//! the middle of it.

use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;

/// Inside a runtime. The handler stays although nobody listens.
pub(super) fn outlast() {
    let exceeded = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    if let Err(e) = signal(exceeded) {
        warn!("a limit on the size of files would end pi-graft: {e}");
    }
}

/// The same for a command that has no runtime, before it writes.
pub(super) fn outlast_without_runtime() {
    match tokio::runtime::Builder::new_current_thread().enable_io().build() {
        Ok(runtime) => runtime.block_on(async { outlast() }),
        Err(e) => warn!("a limit on the size of files would end pi-graft: {e}"),
    }
}
