//! A folder to begin with: a small plugin that compiles, with a test that passes.
#![expect(clippy::disallowed_methods, reason = "writes files into a folder that is new; no session is near")]

use std::path::{Path, PathBuf};

use super::MakingError;
use super::name::{is_plain, plain, type_name};
use super::sdk::{File, RUST, TYPESCRIPT, WIT};

/// The version of wit-bindgen that the SDK is built with.
pub(super) const WIT_BINDGEN: &str = "0.60";
/// The oldest Rust that it is built with.
pub(super) const RUST_VERSION: &str = "1.95";

/// The language of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// Rust: small and fast components.
    #[default]
    Rust,
    /// TypeScript: components of 12 MB, with a JavaScript engine in them.
    TypeScript,
}

macro_rules! template {
    ($file:literal) => {
        include_str!(concat!("../../../plugin-api/scaffold/", $file))
    };
}

const RUST_FILES: [File; 6] = [
    ("Cargo.toml", template!("rust/Cargo.toml.in")),
    ("README.md", template!("rust/README.md.in")),
    ("src/lib.rs", template!("rust/src/lib.rs.in")),
    ("tests/scenes.rs", template!("rust/tests/scenes.rs.in")),
    (".gitignore", template!("rust/gitignore.in")),
    ("sdk/Cargo.toml", template!("rust/sdk.toml.in")),
];

const TYPESCRIPT_FILES: [File; 5] = [
    ("package.json", template!("typescript/package.json.in")),
    ("README.md", template!("typescript/README.md.in")),
    ("src/plugin.ts", template!("typescript/src/plugin.ts.in")),
    ("test/plugin.test.ts", template!("typescript/test/plugin.test.ts.in")),
    (".gitignore", template!("typescript/gitignore.in")),
];

/// Makes the folder of a new plugin, which is called as the folder is; gives that name.
///
/// # Errors
/// [`MakingError::Taken`] if there is something in it, [`MakingError::Name`], or it cannot be written.
pub fn create(dir: &Path, lang: Lang) -> Result<String, MakingError> {
    let folder = absolute(dir)?;
    let name = plain(&folder.file_name().unwrap_or_default().to_string_lossy());
    if !is_plain(&name) {
        return Err(MakingError::Name(name));
    }
    if std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(MakingError::Taken(dir.to_owned()));
    }
    let (files, sdk): (&[File], &[File]) = match lang {
        Lang::Rust => (&RUST_FILES, RUST),
        Lang::TypeScript => (&TYPESCRIPT_FILES, TYPESCRIPT),
    };
    for (file, text) in files {
        write(&dir.join(file), &filled(text, &name))?;
    }
    for (file, text) in sdk.iter().chain([&WIT]) {
        write(&dir.join("sdk").join(file), text)?;
    }
    if lang == Lang::TypeScript {
        write(&dir.join("tsconfig.json"), sdk_file("tsconfig.json"))?;
    }
    Ok(name)
}

fn absolute(dir: &Path) -> Result<PathBuf, MakingError> {
    std::path::absolute(dir).map_err(MakingError::io(dir))
}

fn sdk_file(name: &str) -> &'static str {
    TYPESCRIPT.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| text)
}

/// A template with what is its plugin's own.
fn filled(text: &str, name: &str) -> String {
    let values = [
        ("{{name}}", name),
        ("{{Type}}", &type_name(name)),
        ("{{version}}", env!("CARGO_PKG_VERSION")),
        ("{{rust}}", RUST_VERSION),
        ("{{wit-bindgen}}", WIT_BINDGEN),
        ("{{dev}}", &dev_dependencies()),
    ];
    values.iter().fold(text.to_owned(), |text, (key, value)| text.replace(key, value))
}

/// What builds a plugin is what the SDK was tested with.
fn dev_dependencies() -> String {
    let package: serde_json::Value = serde_json::from_str(sdk_file("package.json")).unwrap_or_default();
    let text = serde_json::to_string_pretty(&package["devDependencies"]).unwrap_or_default();
    text.replace('\n', "\n  ")
}

fn write(path: &Path, text: &str) -> Result<(), MakingError> {
    let dir = path.parent().unwrap_or(path);
    std::fs::create_dir_all(dir).map_err(MakingError::io(dir))?;
    std::fs::write(path, text).map_err(MakingError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folder_has_a_plugin_of_its_name_and_the_whole_sdk() {
        let root = tempfile::tempdir().expect("a folder");
        for (lang, main) in [(Lang::Rust, "src/lib.rs"), (Lang::TypeScript, "src/plugin.ts")] {
            let dir = root.path().join(format!("Count_{lang:?}"));
            let name = create(&dir, lang).expect("made");
            assert_eq!(name, format!("count-{lang:?}").to_lowercase());
            let text = std::fs::read_to_string(dir.join(main)).expect("its source");
            assert!(text.contains(&name) && !text.contains("{{"), "{text}");
            assert!(dir.join("sdk/wit/plugin.wit").is_file());
            assert!(matches!(create(&dir, lang), Err(MakingError::Taken(_))));
        }
        let package = std::fs::read_to_string(root.path().join("Count_TypeScript/package.json")).expect("its package");
        let package: serde_json::Value = serde_json::from_str(&package).expect("JSON");
        let exact = package["devDependencies"].as_object().expect("tools").values();
        assert!(exact.into_iter().all(|v| v.as_str().is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))));
    }

    #[test]
    fn a_folder_that_names_no_plugin_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(matches!(create(&root.path().join("1st"), Lang::Rust), Err(MakingError::Name(_))));
    }
}
