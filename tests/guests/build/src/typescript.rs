//! The contract's types for the TypeScript SDK, made from the WIT: `plugin-api/typescript/src/contract.d.ts`.
//!
//! They are as componentize-js hands values over: names in camelCase, an option as a value or `undefined`, 64 bits as
//! `bigint`, and the error of a `result` thrown, with the refusal as its `payload`.
use std::fmt::Write;

use crate::contract::{Contract, Field, Func, Interface, Ty};

/// The file.
#[must_use]
pub fn declarations(contract: &Contract) -> String {
    let mut file = format!(
        "// The contract {}, as a component sees it. Made from plugin-api/wit by\n\
         // `cargo run -p guest-build -- contract`; do not edit. Plugins use the SDK in ./index.ts instead.\n",
        contract.package
    );
    contract.interfaces.iter().for_each(|interface| module(&mut file, contract, interface));
    file
}

fn module(file: &mut String, contract: &Contract, interface: &Interface) {
    let (name, version) = contract.package.split_once('@').unwrap_or((&contract.package, ""));
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(file, "\ndeclare module \"{name}/{}@{version}\" {{", interface.name);
    let used = used(contract, interface);
    if !used.is_empty() {
        let _ = writeln!(file, "  import type {{ {} }} from \"{name}/types@{version}\";", used.join(", "));
    }
    for record in &interface.records {
        let _ = writeln!(file, "{}  export interface {} {{", docs("  ", &record.docs), pascal(&record.name));
        record.fields.iter().for_each(|of| field(file, of));
        let _ = writeln!(file, "  }}");
    }
    interface.functions.iter().for_each(|of| function(file, of));
    let _ = writeln!(file, "}}");
}

/// The records of other interfaces that its functions name.
fn used(contract: &Contract, interface: &Interface) -> Vec<String> {
    let all = contract.interfaces.iter().flat_map(|interface| &interface.records).map(|record| &record.name);
    let text: String = interface.functions.iter().map(typescript).collect();
    let named = |name: &String| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == pascal(name));
    let own = |name: &String| interface.records.iter().any(|record| record.name == *name);
    all.filter(|name| named(name) && !own(name)).map(|name| pascal(name)).collect()
}

fn field(file: &mut String, field: &Field) {
    let (optional, inner) = match &field.ty {
        Ty::Option(inner) => ("?", &**inner),
        other => ("", other),
    };
    let or_none = if optional.is_empty() { "" } else { " | undefined" };
    let (docs, name) = (docs("    ", &field.docs), camel(&field.name));
    let _ = writeln!(file, "{docs}    {name}{optional}: {}{or_none};", of(inner));
}

fn function(file: &mut String, function: &Func) {
    let _ = writeln!(file, "{}  export function {};", docs("  ", &function.docs), typescript(function));
}

fn typescript(function: &Func) -> String {
    let params: Vec<_> = function.params.iter().map(|p| format!("{}: {}", camel(&p.name), of(&p.ty))).collect();
    let result = match &function.result {
        None => "void".to_owned(),
        // A result of a function is not handed over as one: its error is thrown.
        Some(Ty::Result(ok, _)) => ok.as_ref().map_or("void".to_owned(), |ty| of(ty)),
        Some(ty) => of(ty),
    };
    format!("{}({}): {result}", camel(&function.name), params.join(", "))
}

fn of(ty: &Ty) -> String {
    let or_nothing = |ty: &Option<Box<Ty>>| ty.as_ref().map_or("undefined".to_owned(), |ty| of(ty));
    match ty {
        Ty::Name(name) => match name.as_str() {
            "bool" => "boolean".into(),
            "u32" => "number".into(),
            "u64" | "s64" => "bigint".into(),
            "string" => "string".into(),
            record => pascal(record),
        },
        Ty::Option(ty) => format!("{} | undefined", of(ty)),
        Ty::List(ty) => format!("Array<{}>", of(ty)),
        Ty::Result(ok, err) => {
            format!("{{ tag: \"ok\"; val: {} }} | {{ tag: \"err\"; val: {} }}", or_nothing(ok), or_nothing(err))
        }
    }
}

fn docs(indent: &str, docs: &str) -> String {
    if docs.is_empty() {
        String::new()
    } else {
        format!("{indent}/** {} */\n", docs.replace('\n', &format!("\n{indent} * ")))
    }
}

fn camel(name: &str) -> String {
    let pascal = pascal(name);
    let mut chars = pascal.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

fn pascal(name: &str) -> String {
    let part = |part: &str| {
        let mut chars = part.chars();
        chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
    };
    name.split('-').map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_javascript_has_them() {
        assert_eq!(
            (camel("first-kept"), pascal("first-kept"), camel("log")),
            ("firstKept".into(), "FirstKept".into(), "log".into())
        );
    }
}
