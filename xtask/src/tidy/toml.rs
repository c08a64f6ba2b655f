//! The little of TOML that the checks read: sections, keys and the line they stand on.
//!
//! Cargo has already parsed the manifests; this only finds lines in them, for the message and for keys that
//! `cargo metadata` does not show.

/// One `key = value` line.
pub(super) struct Entry<'a> {
    /// The section it stands in, without brackets; empty before the first one.
    pub(super) section: &'a str,
    /// The key as written.
    pub(super) key: &'a str,
    /// The value as written, without a trailing comment.
    pub(super) value: &'a str,
    /// Line, the first is 1.
    pub(super) line: usize,
}

/// All `key = value` lines of a TOML text. Lines of a multi-line array belong to no key and are left out.
pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut section = "";
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = header.trim_matches(['[', ']']);
        } else if let Some((key, value)) = line.split_once('=')
            && !line.starts_with(['#', '{', '"'])
        {
            let value = value.split(" #").next().unwrap_or(value);
            found.push(Entry { section, key: key.trim(), value: value.trim(), line: index + 1 });
        }
    }
    found
}

/// The value of `key` in `section`.
pub(super) fn value<'a>(text: &'a str, section: &str, key: &str) -> Option<&'a str> {
    entries(text).into_iter().find(|entry| entry.section == section && entry.key == key).map(|entry| entry.value)
}

/// The line of the dependency `name` in a manifest; 1 when it is not found.
pub(super) fn dependency_line(manifest: &str, name: &str) -> usize {
    entries(manifest)
        .into_iter()
        .find(|entry| {
            entry.section.ends_with("dependencies") && entry.key.split('.').next().is_some_and(|key| key == name)
        })
        .map_or(1, |entry| entry.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "[package]\nname = \"a\" # the name\n\n[dependencies]\nb.workspace = true\nc = { path = \"c\" }\n";

    #[test]
    fn a_value_is_found_by_section_and_key() {
        assert_eq!(value(MANIFEST, "package", "name"), Some("\"a\""));
        assert_eq!(value(MANIFEST, "dependencies", "name"), None);
    }

    #[test]
    fn a_dependency_is_found_in_both_notations() {
        assert_eq!(dependency_line(MANIFEST, "b"), 5);
        assert_eq!(dependency_line(MANIFEST, "c"), 6);
        assert_eq!(dependency_line(MANIFEST, "absent"), 1);
    }
}
