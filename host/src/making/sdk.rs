//! The SDKs, as they go into a new plugin's folder. A test compares the lists with what there is.

/// A file: its path, and its text.
pub(super) type File = (&'static str, &'static str);

/// The contract.
pub(super) const WIT: File = ("wit/plugin.wit", include_str!("../../../plugin-api/wit/plugin.wit"));

macro_rules! files {
    ($root:literal: $($file:literal)*) => {
        &[$(($file, include_str!(concat!("../../../plugin-api/", $root, $file)))),*]
    };
}

/// The SDK for Rust, its manifest apart.
pub(super) const RUST: &[File] = files!("":
    "src/bindings.rs"
    "src/config.rs"
    "src/describe.rs"
    "src/draft.rs"
    "src/entry.rs"
    "src/error.rs"
    "src/export.rs"
    "src/host.rs"
    "src/json.rs"
    "src/lib.rs"
    "src/pages.rs"
    "src/random.rs"
    "src/run.rs"
    "src/scene.rs"
    "src/testing.rs"
);

/// The SDK for TypeScript.
pub(super) const TYPESCRIPT: &[File] = files!("typescript/":
    "package.json"
    "tool.mjs"
    "tsconfig.json"
    "src/component.ts"
    "src/contract.d.ts"
    "src/entry.ts"
    "src/guest.ts"
    "src/host.ts"
    "src/index.ts"
    "src/run.ts"
    "src/scene.ts"
    "src/testing.ts"
);

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The files below a part of `plugin-api`, by their path in it.
    fn there(part: &str) -> Vec<String> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api").join(part);
        let files = std::fs::read_dir(dir).expect("the SDK").map(|entry| entry.expect("an entry").file_name());
        let mut files: Vec<_> = files.map(|name| format!("src/{}", name.to_string_lossy())).collect();
        files.sort();
        files
    }

    fn given(files: &[File]) -> Vec<&'static str> {
        files.iter().map(|(name, _)| *name).filter(|name| name.starts_with("src/")).collect()
    }

    #[test]
    fn every_file_of_the_sdks_is_given() {
        assert_eq!(given(RUST), there("src"));
        assert_eq!(given(TYPESCRIPT), there("typescript/src"));
    }

    #[test]
    fn the_manifest_asks_for_what_the_sdk_is_built_with() {
        let root = include_str!("../../../Cargo.toml");
        let wanted = format!("wit-bindgen = {{ version = \"{}\"", super::super::new::WIT_BINDGEN);
        assert!(root.contains(&wanted), "{wanted}");
        assert!(root.contains(&format!("rust-version = \"{}\"", super::super::new::RUST_VERSION)));
    }
}
