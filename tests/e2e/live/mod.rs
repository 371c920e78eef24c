//! Beside the real Pi, in rpc mode, with a mock model: the bridge, and a Pi without it.
//!
//! Needs Pi: `tests/oracle/setup.sh DIR` installs it, `PI_DIR` and `ORACLE_NODE` say where. Without them every scene here
//! says that it was skipped.

mod fake;
mod home;
mod pi;

mod both;
mod chain;
mod compacting;
mod failing;
mod handing;
mod leaving;
mod measure;
mod pushing;
mod summaries;
mod unbridged;
mod whole;
