//! What somebody meant who misspelt a name.

/// Most letters that may be wrong.
const MOST_ERRORS: usize = 3;

/// The name that is nearest to what was written: the one with the same last word, else the one with the fewest wrong
/// letters; `None` when none is near.
pub(super) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let judged = names.filter_map(|name| {
        let errors = distance(written, name);
        let same_word = last(written) == last(name) && last(written).len() > 3;
        (errors <= MOST_ERRORS || same_word).then_some((errors, name))
    });
    judged.min().map(|(_, name)| name)
}

/// Letters to insert, delete or replace (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
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
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("tcp_hpc", ["cubic", "htcp", "bbr"].into_iter()), None);
        assert_eq!(nearest("htpc", ["cubic", "htcp", "bbr"].into_iter()), Some("htcp"));
    }

    proptest! {
        #[test]
        fn distance_is_a_metric(one in "[a-c.]{0,8}", two in "[a-c.]{0,8}", three in "[a-c.]{0,8}") {
            prop_assert_eq!(distance(&one, &one), 0);
            prop_assert_eq!(distance(&one, &two), distance(&two, &one));
            prop_assert!(distance(&one, &three) <= distance(&one, &two) + distance(&two, &three));
            prop_assert!(distance(&one, &two) <= one.len().max(two.len()));
        }
    }
}
