//! A plugin's name, and the forms it takes in sources.

/// Whether it can be the name of a plugin, a crate and a package.
pub(super) fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(plain)
}

/// A folder's name as a plugin's: `My_Plugin` is `my-plugin`.
pub(super) fn plain(folder: &str) -> String {
    folder.to_lowercase().replace(['_', ' ', '.'], "-")
}

/// As Rust names a type: `count-turns` is `CountTurns`.
pub(super) fn type_name(name: &str) -> String {
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
    fn a_folder_names_the_plugin() {
        assert_eq!(plain("My_Plugin"), "my-plugin");
        assert!(is_plain("my-plugin2") && !is_plain("2nd") && !is_plain("ä") && !is_plain(""));
        assert_eq!(type_name("count-turns"), "CountTurns");
    }
}
