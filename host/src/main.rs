//! The `pi-graft` binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    pi_graft::cli::main()
}
