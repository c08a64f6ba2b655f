//! Changes of a route.

/// Hop of a route that answers from another address than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopChange {
    /// Distance, from 1.
    pub hop: usize,
    /// Address before.
    pub before: String,
    /// Address from then on.
    pub after: String,
}

/// Address of a hop without an answer.
const SILENT: &str = "*";

/// Hops at which two routes differ: those of which one is silent are no change. Hops that only one has, are.
#[must_use]
pub fn hop_changes(before: &[String], after: &[String]) -> Vec<HopChange> {
    let length = before.len().max(after.len());
    let at = |route: &[String], index: usize| route.get(index).map_or("none", String::as_str).to_owned();
    let pairs = (0..length).map(|index| (index + 1, at(before, index), at(after, index)));
    let changed = pairs.filter(|(_, before, after)| before != after && before != SILENT && after != SILENT);
    changed.map(|(hop, before, after)| HopChange { hop, before, after }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(before: &str, after: &str) -> Vec<(usize, String, String)> {
        let route = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let found = hop_changes(&route(before), &route(after));
        found.into_iter().map(|one| (one.hop, one.before, one.after)).collect()
    }

    #[test]
    fn only_other_answers_are_changes() {
        assert_eq!(changes("a b c", "a b c"), []);
        assert_eq!(changes("a * c", "a b c"), []);
        assert_eq!(changes("a b c", "a d c"), [(2, "b".to_owned(), "d".to_owned())]);
        assert_eq!(changes("a b", "a b c"), [(3, "none".to_owned(), "c".to_owned())]);
    }
}
