//! The name that was meant.

use super::calculators;

/// The calculator whose name is nearest to this one, or that has a formula of this name; `None` when nothing is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let wanted = name.to_lowercase();
    let by_distance = nearest_of(&wanted, calculators::ALL.iter().map(|calculator| calculator.name));
    let by_subject = || {
        let speaks_of = |text: &str| wanted.len() >= 3 && text.to_lowercase().contains(&wanted);
        calculators::ALL.iter().find(|calculator| {
            speaks_of(calculator.name)
                || calculator.formulas().iter().any(|formula| speaks_of(formula.name))
                || speaks_of(calculator.about)
        })
    };
    by_distance.or_else(|| by_subject().map(|calculator| calculator.name))
}

/// The nearest of some names; `None` when more than a third of it would have to change.
pub(super) fn nearest_of(wanted: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    names
        .map(|known| (distance(wanted, known), known))
        .filter(|(distance, known)| *distance <= known.len().max(wanted.len()).div_ceil(3))
        .min()
        .map(|(_, known)| known)
}

/// Insertions, deletions, substitutions and swaps of neighbours that make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let differs = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + differs);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_and_subjects_are_found() {
        for (name, known) in [
            ("bpd", "bdp"),
            ("BDP", "bdp"),
            ("matis", "mathis"),
            ("serialization", "serialisation"),
            ("slowstart", "slow-start"),
            ("windows", "window"),
            ("efficiency", "rfc6349"),
            ("sequence", "wrap"),
            ("bandwidth-delay", "bdp"),
        ] {
            assert_eq!(nearest(name), Some(known), "{name}");
        }
        for name in ["10G", "xyzzy", "", "q"] {
            assert_eq!(nearest(name), None, "{name}");
        }
    }

    #[test]
    fn distances_count_edits() {
        for (one, other, edits) in [("", "abc", 3), ("abc", "abc", 0), ("bpd", "bdp", 1), ("kitten", "sitting", 3)] {
            assert_eq!(distance(one, other), edits);
            assert_eq!(distance(other, one), edits);
        }
    }
}
