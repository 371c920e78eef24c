//! Getting what is pending into the file, at the moment and the place where it takes effect (product.md section 5).
//!
//! [`settle`] says when, [`presence`] whether a Pi is there to be passed over, [`append`] writes. A live Pi that has a bridge
//! is handed what is pending, and appends it itself: [`bridge`]. [`rejoin`] leads back to a line that a graft passed over.

pub mod append;
pub mod bridge;
mod labelled;
pub mod presence;
pub mod process;
pub mod rejoin;
pub mod settle;
