//! Suggestions for misspelt names.

/// Largest edit distance of a suggestion.
const MAX_EDIT_DISTANCE: usize = 3;

/// Returns the name with the smallest edit distance, among those within the limit or with the same last component; `None`
/// without one.
pub(super) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let judged = names.filter_map(|name| {
        let errors = edit_distance(written, name);
        let same_word = last(written) == last(name) && last(written).len() > 3;
        (errors <= MAX_EDIT_DISTANCE || same_word).then_some((errors, name))
    });
    judged.min().map(|(_, name)| name)
}

/// Edit distance: characters to insert, delete or replace (Levenshtein).
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, wanted) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *wanted);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_distances() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(nearest("tcp_hpc", ["cubic", "htcp", "bbr"].into_iter()), None);
        assert_eq!(nearest("htpc", ["cubic", "htcp", "bbr"].into_iter()), Some("htcp"));
    }

    proptest! {
        #[test]
        fn distance_is_a_metric(one in "[a-c.]{0,8}", two in "[a-c.]{0,8}", three in "[a-c.]{0,8}") {
            prop_assert_eq!(edit_distance(&one, &one), 0);
            prop_assert_eq!(edit_distance(&one, &two), edit_distance(&two, &one));
            prop_assert!(edit_distance(&one, &three) <= edit_distance(&one, &two) + edit_distance(&two, &three));
            prop_assert!(edit_distance(&one, &two) <= one.len().max(two.len()));
        }
    }
}
