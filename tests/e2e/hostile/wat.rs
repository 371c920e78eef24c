//! Plugins written as text, for what no SDK would let one do.

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A core module with the contract embedded, as a compiler would leave it. `items` come first (imports, then what the
/// module has beside the plain parts), `on_entry` is the body of the handler: it leaves the address of its answer, and
/// that at 3,000 is "well done".
pub fn plugin(items: &str, on_entry: &str) -> Vec<u8> {
    // What the host hands over always goes to the same place, so nothing of it is kept.
    with_parts(items, 4, "(i32.const 65536)", on_entry)
}

/// Takes what the host hands over in this way, and does nothing.
pub fn receiving(realloc: &str) -> Vec<u8> {
    with_parts("", 4, realloc, "(i32.const 3000)")
}

/// Has so many pages of memory from the start, 64 KiB each, and does nothing.
pub fn with_pages(pages: u32) -> Vec<u8> {
    with_parts("", pages, "(i32.const 65536)", "(i32.const 3000)")
}

fn with_parts(items: &str, pages: u32, realloc: &str, on_entry: &str) -> Vec<u8> {
    let handler = "pi-graft:plugin/handler@0.1.0#";
    let text = format!(
        r#"(module
            {items}
            (memory (export "memory") {pages})
            (table $table 1 funcref)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc})
            (func (export "{handler}describe") (param i32 i32) (result i32) (i32.const 1024))
            (func (export "{handler}on-entry") (param i32 i32) (result i32) {on_entry})
            (func (export "{handler}on-settled") (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (unreachable))
            ;; "well", then name, version, nothing needed, custom perhaps used, and what wakes it.
            (data (i32.const 1028) "\00\08\00\00\03\00\00\00" "\08\08\00\00\05\00\00\00" "\00\00\00\00\00\00\00\00"
                "\70\08\00\00\01\00\00\00" "\68\08\00\00\01\00\00\00")
            (data (i32.const 2048) "wat")
            (data (i32.const 2056) "0.1.0")
            (data (i32.const 2064) "message:user")
            (data (i32.const 2080) "append:custom")
            (data (i32.const 2152) "\10\08\00\00\0c\00\00\00" "\20\08\00\00\0d\00\00\00"))"#
    );
    let mut module = wat::parse_str(&text).expect("a module");
    let mut resolve = Resolve::default();
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin-api/wit");
    let (package, _) = resolve.push_path(wit).expect("the contract");
    let world = resolve.select_world(&[package], Some("plugin")).expect("its world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("embedded");
    module
}

/// A component that asks for an interface of somebody else.
pub fn importing(interface: &str) -> Vec<u8> {
    wat::parse_str(format!(r#"(component (import "{interface}" (instance)))"#)).expect("a component")
}

/// A call of `append.custom` with the type `x` and these bytes as its data; the answer is left at 3,000, unread.
pub fn proposing(data: &str) -> Vec<u8> {
    proposing_and("", data)
}

/// The same, with these items too.
pub fn proposing_and(items: &str, data: &str) -> Vec<u8> {
    let items = format!(
        r#"(import "pi-graft:plugin/append@0.1.0" "custom" (func $custom (param i32 i32 i32 i32 i32 i32)))
        {items}
        (data (i32.const 4096) "x") (data (i32.const 4100) "{data}")"#
    );
    let length = unescaped_len(data);
    let call = format!(
        "(call $custom (i32.const 4096) (i32.const 1) (i32.const 1) (i32.const 4100) (i32.const {length}) (i32.const 5000)) (i32.const 3000)"
    );
    plugin(&items, &call)
}

/// Bytes of a text in WAT, where `\22` is one.
fn unescaped_len(data: &str) -> usize {
    data.len() - 2 * data.matches('\\').count()
}
