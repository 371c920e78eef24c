//! The contract as data: what a folder of WIT says, its documentation included, in the order in which it stands there.
use std::path::Path;

use wit_parser::{Docs, Function, InterfaceId, Resolve, Type, TypeDefKind, TypeId, WorldItem, WorldKey};

/// A contract.
#[derive(Debug, PartialEq, Eq)]
pub struct Contract {
    /// The package with its version, such as `pi-graft:plugin@0.1.0`.
    pub package: String,
    /// What is said of it all.
    pub docs: String,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
}

/// An interface.
#[derive(Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `session`.
    pub name: String,
    /// What is said of it.
    pub docs: String,
    /// Whether plugins export it; else they import it.
    pub exported: bool,
    /// The types that it defines, those that it uses from others apart.
    pub records: Vec<Record>,
    /// Its functions.
    pub functions: Vec<Func>,
}

/// A record. The contract has no other types of its own (product.md 4.1).
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// What is said of it.
    pub docs: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A field of a record, or a parameter.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// What is said of it.
    pub docs: String,
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct Func {
    /// Its name.
    pub name: String,
    /// What is said of it.
    pub docs: String,
    /// Its parameters.
    pub params: Vec<Field>,
    /// What it gives.
    pub result: Option<Ty>,
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ty {
    /// One of WIT's own, such as `u32`, or a record.
    Name(String),
    /// `option<T>`
    Option(Box<Ty>),
    /// `list<T>`
    List(Box<Ty>),
    /// `result<T, E>`; none where there is nothing to give.
    Result(Option<Box<Ty>>, Option<Box<Ty>>),
}

impl Ty {
    /// As WIT writes it.
    #[must_use]
    pub fn wit(&self) -> String {
        let or_nothing = |ty: &Option<Box<Ty>>| ty.as_ref().map_or("_".to_owned(), |ty| ty.wit());
        match self {
            Self::Name(name) => name.clone(),
            Self::Option(ty) => format!("option<{}>", ty.wit()),
            Self::List(ty) => format!("list<{}>", ty.wit()),
            Self::Result(ok, err) => format!("result<{}, {}>", or_nothing(ok), or_nothing(err)),
        }
    }
}

impl Func {
    /// As WIT writes it.
    #[must_use]
    pub fn wit(&self) -> String {
        let params: Vec<_> = self.params.iter().map(|param| format!("{}: {}", param.name, param.ty.wit())).collect();
        let result = self.result.as_ref().map_or(String::new(), |ty| format!(" -> {}", ty.wit()));
        format!("{}: func({}){result}", self.name, params.join(", "))
    }
}

/// Reads the contract in a folder.
///
/// # Errors
/// Says what is no WIT, or not of the few kinds of type that the contract keeps to.
pub fn read(dir: &Path) -> Result<Contract, String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(dir).map_err(|error| format!("{}: {error:#}", dir.display()))?;
    let package = &resolve.packages[package];
    let of = |(_, id): (&String, &InterfaceId)| interface(&resolve, *id);
    Ok(Contract {
        package: package.name.to_string(),
        docs: text(&package.docs),
        interfaces: package.interfaces.iter().map(of).collect::<Result<_, _>>()?,
    })
}

fn interface(resolve: &Resolve, id: InterfaceId) -> Result<Interface, String> {
    let interface = &resolve.interfaces[id];
    let own = interface.types.values().filter_map(|id| record(resolve, *id).transpose());
    Ok(Interface {
        name: interface.name.clone().unwrap_or_default(),
        docs: text(&interface.docs),
        exported: resolve.worlds.iter().any(|(_, world)| exports(world.exports.iter(), id)),
        records: own.collect::<Result<_, _>>()?,
        functions: interface.functions.values().map(|of| function(resolve, of)).collect::<Result<_, _>>()?,
    })
}

fn exports<'a>(mut items: impl Iterator<Item = (&'a WorldKey, &'a WorldItem)>, wanted: InterfaceId) -> bool {
    items.any(|(_, item)| matches!(item, WorldItem::Interface { id, .. } if *id == wanted))
}

/// A type that is defined here; none for one that is used from elsewhere.
fn record(resolve: &Resolve, id: TypeId) -> Result<Option<Record>, String> {
    let def = &resolve.types[id];
    let name = def.name.clone().unwrap_or_default();
    match &def.kind {
        TypeDefKind::Type(_) => Ok(None),
        TypeDefKind::Record(record) => {
            let field = |field: &wit_parser::Field| {
                Ok(Field { name: field.name.clone(), ty: ty(resolve, field.ty)?, docs: text(&field.docs) })
            };
            let fields = record.fields.iter().map(field).collect::<Result<_, String>>()?;
            Ok(Some(Record { name, docs: text(&def.docs), fields }))
        }
        other => Err(format!("{name} is a {}: whatever may grow is text in the contract", other.as_str())),
    }
}

fn function(resolve: &Resolve, function: &Function) -> Result<Func, String> {
    let param = |param: &wit_parser::Param| {
        Ok(Field { name: param.name.clone(), ty: ty(resolve, param.ty)?, docs: String::new() })
    };
    Ok(Func {
        name: function.name.clone(),
        docs: text(&function.docs),
        params: function.params.iter().map(param).collect::<Result<_, String>>()?,
        result: function.result.map(|result| ty(resolve, result)).transpose()?,
    })
}

fn ty(resolve: &Resolve, of: Type) -> Result<Ty, String> {
    let boxed = |of: Type| ty(resolve, of).map(Box::new);
    let Type::Id(id) = of else { return Ok(Ty::Name(primitive(of)?.into())) };
    let def = &resolve.types[id];
    match (&def.name, &def.kind) {
        (Some(name), _) => Ok(Ty::Name(name.clone())),
        (None, TypeDefKind::Option(of)) => boxed(*of).map(Ty::Option),
        (None, TypeDefKind::List(of)) => boxed(*of).map(Ty::List),
        (None, TypeDefKind::Result(of)) => {
            Ok(Ty::Result(of.ok.map(boxed).transpose()?, of.err.map(boxed).transpose()?))
        }
        (None, other) => Err(format!("the contract keeps to records, options, lists and results: {}", other.as_str())),
    }
}

fn primitive(ty: Type) -> Result<&'static str, String> {
    match ty {
        Type::Bool => Ok("bool"),
        Type::U32 => Ok("u32"),
        Type::U64 => Ok("u64"),
        Type::S64 => Ok("s64"),
        Type::String => Ok("string"),
        other => Err(format!("the contract has no {other:?} so far; teach it to the SDKs first")),
    }
}

fn text(docs: &Docs) -> String {
    docs.contents.as_deref().unwrap_or_default().trim().to_owned()
}
