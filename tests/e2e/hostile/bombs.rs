//! Plugins that are too much by what they declare: each is one that would do nothing, with something added to it.

use pi_graft::sandbox::componentize;

use super::wat;

/// What begins a component, before its sections.
const PREAMBLE: [u8; 8] = *b"\0asm\x0d\0\x01\0";
/// Sections of a component.
const CUSTOM: u8 = 0;
const CORE_MODULE: u8 = 1;
const CORE_INSTANCE: u8 = 2;
const COMPONENT: u8 = 4;
const INSTANCE: u8 = 5;

/// Declares these items too, and does nothing.
pub fn declaring(items: &str) -> Vec<u8> {
    wat::plugin(items, "(i32.const 3000)")
}

/// So many functions beside its own, each of which does a little; it traps when it is called.
pub fn functions(count: usize) -> Vec<u8> {
    wat::plugin(&"(func (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))\n".repeat(count), "unreachable")
}

/// So many pieces of data; it traps when it is called.
pub fn pieces_of_data(count: usize) -> Vec<u8> {
    let data: String = (0..count).map(|n| format!("(data (i32.const {}) \"x\")\n", 70_000 + n % 1000)).collect();
    wat::plugin(&data, "unreachable")
}

/// Its code comes so many times into being.
pub fn instances(count: usize) -> Vec<u8> {
    let mut plugin = component();
    let module = definitions(&plugin, CORE_MODULE);
    section(&mut plugin, CORE_MODULE, b"\0asm\x01\0\0\0");
    section(&mut plugin, CORE_INSTANCE, &instantiated(module, count));
    plugin
}

/// So many components in it, side by side.
pub fn components(count: usize) -> Vec<u8> {
    let mut plugin = component();
    (0..count).for_each(|_| section(&mut plugin, COMPONENT, &PREAMBLE));
    plugin
}

/// A component of two, each of which is one of two, and so on: so deep, and so two to the power of that many.
pub fn doubled(depth: usize) -> Vec<u8> {
    let mut inner = PREAMBLE.to_vec();
    for _ in 0..depth {
        let mut outer = PREAMBLE.to_vec();
        section(&mut outer, COMPONENT, &inner);
        section(&mut outer, INSTANCE, &instantiated(0, 2));
        inner = outer;
    }
    let mut plugin = component();
    let at = definitions(&plugin, COMPONENT);
    section(&mut plugin, COMPONENT, &inner);
    section(&mut plugin, INSTANCE, &instantiated(at, 1));
    plugin
}

/// Blocks within blocks, so deep.
pub fn nested(depth: usize) -> Vec<u8> {
    declaring(&format!("(func {} {})", "block\n".repeat(depth), "end\n".repeat(depth)))
}

/// Loops within loops, so deep, and in the innermost each of so many variables changes: so each may have changed in each loop.
pub fn woven(depth: usize, variables: usize) -> Vec<u8> {
    let locals = "i32 ".repeat(variables);
    let changes: String =
        (0..variables).map(|n| format!("local.get {n} i32.const 1 i32.add local.set {n}\n")).collect();
    let ends = "local.get 0 br_if 0 end\n".repeat(depth);
    declaring(&format!("(func (local {locals}) {} {changes} {ends})", "loop\n".repeat(depth)))
}

/// A function with so many variables.
pub fn variables(count: usize) -> Vec<u8> {
    declaring(&format!("(func (local {}))", "i64 ".repeat(count)))
}

/// A file of so many bytes, nearly all of which mean nothing.
pub fn padded(bytes: usize) -> Vec<u8> {
    let mut plugin = component();
    section(&mut plugin, CUSTOM, &[&[4][..], b"much", &vec![0; bytes]].concat());
    plugin
}

fn component() -> Vec<u8> {
    componentize(&declaring("")).expect("a component")
}

/// Instances of a module or component, of which nothing is needed.
fn instantiated(which: usize, count: usize) -> Vec<u8> {
    let one = [&[0][..], &number(which), &[0]].concat();
    [number(count), one.repeat(count)].concat()
}

fn section(to: &mut Vec<u8>, id: u8, body: &[u8]) {
    to.push(id);
    to.extend(number(body.len()));
    to.extend(body);
}

/// How many sections of a kind a component has that define one thing each.
fn definitions(component: &[u8], id: u8) -> usize {
    let (mut rest, mut found) = (&component[PREAMBLE.len()..], 0);
    while let Some((kind, behind)) = rest.split_first() {
        found += usize::from(*kind == id);
        let digits = behind.iter().position(|byte| byte & 0x80 == 0).expect("a length") + 1;
        let length = (0..digits).rev().fold(0, |length, at| length << 7 | usize::from(behind[at] & 0x7f));
        rest = &behind[digits + length..];
    }
    found
}

/// As WebAssembly writes numbers (LEB128).
fn number(mut of: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while of >= 0x80 {
        bytes.push((of & 0x7f) as u8 | 0x80);
        of >>= 7;
    }
    bytes.push(of as u8);
    bytes
}
