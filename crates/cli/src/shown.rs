//! What a server has shown of one session, kept for a client that asks for it (`--get-server-output`).

/// A test without an end must not fill the server's memory: this is a day of one stream's intervals.
const LIMIT: usize = 8 << 20;

/// The text so far.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    text: String,
    full: bool,
}

impl Shown {
    /// Adds what has just been shown, as long as there is room.
    pub(crate) fn push(&mut self, text: &str) {
        if self.full {
            return;
        }
        if self.text.len() + text.len() > LIMIT {
            self.full = true;
            self.text.push_str("(the server keeps no more of its output)\n");
        } else {
            self.text.push_str(text);
        }
    }

    /// Nobody wants it.
    pub(crate) fn clear(&mut self) {
        self.text = String::new();
    }

    /// Gives it away.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut shown = Shown::default();
        for _ in 0..10_000 {
            shown.push(&"x".repeat(1024));
        }
        let text = shown.take();
        assert!(text.len() <= LIMIT + 64, "{}", text.len());
        assert!(text.ends_with("no more of its output)\n"));
    }
}
