//! Retained output of a server's session, for a client that requests it (`--get-server-output`).

/// Largest size: a test without an end must not fill the server's memory. This is a day of one stream's intervals.
const LIMIT: usize = 8 << 20;

/// Retained text.
#[derive(Debug, Default)]
pub(crate) struct RetainedOutput {
    text: String,
    full: bool,
}

impl RetainedOutput {
    /// Adds output, up to the limit.
    pub(crate) fn push(&mut self, text: &str) {
        if self.full {
            return;
        }
        if self.text.len() + text.len() > LIMIT {
            self.full = true;
            self.text.push_str("(the server retains no more of its output)\n");
        } else {
            self.text.push_str(text);
        }
    }

    /// Discards the text.
    pub(crate) fn clear(&mut self) {
        self.text = String::new();
    }

    /// Takes the text out.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut shown = RetainedOutput::default();
        for _ in 0..10_000 {
            shown.push(&"x".repeat(1024));
        }
        let text = shown.take();
        assert!(text.len() <= LIMIT + 64, "{}", text.len());
        assert!(text.ends_with("no more of its output)\n"));
    }
}
