//! Footnotes: each reason is written once and referred to by its number.

/// Reasons in the order of their first reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footnotes {
    reasons: Vec<String>,
}

impl Footnotes {
    /// The number of `reason`, from 1.
    pub(crate) fn number(&mut self, reason: &str) -> usize {
        let known = self.reasons.iter().position(|known| known == reason);
        let index = known.unwrap_or_else(|| {
            self.reasons.push(reason.to_owned());
            self.reasons.len() - 1
        });
        index + 1
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// All reasons with their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &str)> {
        self.reasons.iter().enumerate().map(|(index, reason)| (index + 1, reason.as_str()))
    }
}
