//! Manifests as tables, and the lines of their keys.

use toml::{Table, Value};

/// Returns the value at `keys`, such as `["lints", "workspace"]`; none when the text is no TOML, which cargo refuses.
pub(super) fn value(manifest: &str, keys: &[&str]) -> Option<Value> {
    let table: Table = manifest.parse().ok()?;
    keys.iter().try_fold(Value::Table(table), |value, key| value.get(key).cloned())
}

/// Returns the line of the dependency `name`; 1 when it is not found.
pub(super) fn dependency_line(manifest: &str, name: &str) -> usize {
    let is_key = |line: &str| line.strip_prefix(name).is_some_and(|after| after.starts_with(['.', ' ', '=']));
    manifest.lines().position(is_key).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "[package]\nname = \"a\" # the name\n\n[dependencies]\nb.workspace = true\nc = { path = \"c\" }\n";

    #[test]
    fn a_value_is_found_by_its_keys() {
        assert_eq!(value(MANIFEST, &["package", "name"]), Some(Value::String("a".to_owned())));
        assert_eq!(value(MANIFEST, &["dependencies", "b", "workspace"]), Some(Value::Boolean(true)));
        assert_eq!(value(MANIFEST, &["dependencies", "name"]), None);
    }

    #[test]
    fn a_dependency_is_found_in_both_notations() {
        assert_eq!(dependency_line(MANIFEST, "b"), 5);
        assert_eq!(dependency_line(MANIFEST, "c"), 6);
        assert_eq!(dependency_line(MANIFEST, "absent"), 1);
    }
}
