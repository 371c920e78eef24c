//! From the contract's exports to the trait.
use serde::de::DeserializeOwned;

use crate::host::Imports;
use crate::{Description, Host, Level, Plugin, Result, Run, Settled};

/// Makes a component of a type that is a [`Plugin`].
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        /// Said natively too, where there is no component to check it.
        const _: fn(&str) -> ::core::result::Result<$crate::Description, ::std::string::String> =
            $crate::describe::<$plugin>;

        // The names of a component's exports are none that a native linker takes.
        #[cfg(target_family = "wasm")]
        const _: () = {
            // Aliases, since the module that this lands in may have a `Result` or `String` of its own.
            type Text = ::std::string::String;
            type Answer<T> = ::core::result::Result<T, Text>;
            struct Component;

            impl $crate::bindings::exports::pi_graft::plugin::handler::Guest for Component {
                fn describe(config: Text) -> Answer<$crate::Description> {
                    $crate::describe::<$plugin>(&config)
                }

                fn on_entry(config: Text) -> Answer<()> {
                    $crate::on_entry::<$plugin>(env!("CARGO_PKG_NAME"), &config)
                }

                fn on_settled(
                    config: Text,
                    reason: Text,
                    notes: ::std::vec::Vec<Text>,
                    instructions: ::core::option::Option<Text>,
                ) -> Answer<()> {
                    let settled = $crate::Settled { reason, notes, instructions };
                    $crate::on_settled::<$plugin>(env!("CARGO_PKG_NAME"), &config, &settled)
                }
            }

    $crate::bindings::export!(Component with_types_in $crate::bindings);
        };
    };
}

/// The export `describe`.
pub fn describe<P: Plugin>(config: &str) -> Result<Description, String> {
    say_why_on_panic();
    text(config_of(config).and_then(|config| P::describe(&config)))
}

/// The export `on-entry`.
pub fn on_entry<P: Plugin>(name: &'static str, config: &str) -> Result<(), String> {
    say_why_on_panic();
    text(config_of(config).and_then(|config| P::on_entry(&config, &Run::here(name))))
}

/// The export `on-settled`.
pub fn on_settled<P: Plugin>(name: &'static str, config: &str, settled: &Settled) -> Result<(), String> {
    say_why_on_panic();
    text(config_of(config).and_then(|config| P::on_settled(&config, &Run::here(name), settled)))
}

fn config_of<T: DeserializeOwned>(config: &str) -> Result<T> {
    serde_json::from_str(config).map_err(|error| crate::Error::new(["config: ", &error.to_string()].concat()))
}

fn text<T>(result: Result<T>) -> Result<T, String> {
    result.map_err(crate::Error::into_text)
}

/// A panic ends the instance, and without this nobody would learn where.
fn say_why_on_panic() {
    if cfg!(target_family = "wasm") {
        std::panic::set_hook(Box::new(|panic| Imports.log(Level::Error, &panic.to_string())));
    }
}
