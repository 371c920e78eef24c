//! Getting what is pending into the file, at the moment and the place where it takes effect (product.md section 5).
//!
//! [`settle`] says when, [`presence`] whether a Pi is there to be passed over, [`append`] writes. A live Pi will be served
//! over a bridge, the second way beside [`append`].

pub mod append;
pub mod presence;
pub mod settle;
