//! What `wit-bindgen` makes of the contract. Of this only the records are for users, re-exported at the crate's root.
#![allow(missing_docs, reason = "generated; the WIT has the documentation")]
#![allow(clippy::missing_safety_doc, reason = "generated")]

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    default_bindings_module: "pi_graft_plugin::bindings",
    additional_derives: [PartialEq, Eq],
});
