//! The page of reference, made from the WIT: `plugin-api/REFERENCE.md`.
use std::fmt::Write;

use crate::contract::{Contract, Func, Interface, Record};

/// The page.
#[must_use]
pub fn page(contract: &Contract) -> String {
    let mut page = format!(
        "# The contract `{}`\n\nMade from [`wit`](wit) by `cargo run -p guest-build -- contract`; do not edit.\n\n{}\n",
        contract.package, contract.docs
    );
    let sections = [("What plugins export", true), ("What plugins import", false)];
    for (title, exported) in sections {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(page, "\n## {title}");
        let of = |interface: &&Interface| interface.exported == exported && !interface.functions.is_empty();
        contract.interfaces.iter().filter(of).for_each(|interface| functions(&mut page, interface));
    }
    let _ = writeln!(page, "\n## Records");
    contract.interfaces.iter().flat_map(|interface| &interface.records).for_each(|record| fields(&mut page, record));
    page
}

fn functions(page: &mut String, interface: &Interface) {
    let _ = writeln!(page, "\n### `{}`\n\n{}\n", interface.name, interface.docs);
    for function in &interface.functions {
        let Func { docs, .. } = function;
        let _ = writeln!(page, "- `{}`\\\n  {}", function.wit(), one_line(docs));
    }
}

fn fields(page: &mut String, record: &Record) {
    let _ = writeln!(page, "\n### `{}`\n\n{}\n\n| field | type | |\n| --- | --- | --- |", record.name, record.docs);
    for field in &record.fields {
        let _ = writeln!(page, "| `{}` | `{}` | {} |", field.name, field.ty.wit(), one_line(&field.docs));
    }
}

fn one_line(docs: &str) -> String {
    docs.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
