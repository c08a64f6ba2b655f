//! Output that a server's sessions retain: text for a client that requests it (`--get-server-output`), and intervals for a
//! document. All sessions share its memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_model::sample::{IntervalReport, SocketSample, StreamInterval};

/// Largest text of one session: a test without an end must not fill the server's memory. This is a day of one stream's
/// intervals.
const MAX_TEXT: usize = 8 << 20;

/// Memory of all sessions.
static SHARED: RetentionBudget = RetentionBudget::new(32 << 20);

/// Memory that sessions share: each may hold as much as stays free.
#[derive(Debug)]
struct RetentionBudget {
    most: usize,
    held: AtomicUsize,
}

impl RetentionBudget {
    const fn new(most: usize) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }
}

/// Memory of one session's output; dropping it returns the memory.
#[derive(Debug)]
pub(crate) struct RetainedMemory {
    budget: &'static RetentionBudget,
    own: usize,
}

impl Default for RetainedMemory {
    fn default() -> Self {
        Self { budget: &SHARED, own: 0 }
    }
}

impl RetainedMemory {
    fn grow(&mut self, more: usize) -> bool {
        let own = self.own.saturating_add(more);
        let fits = |held: usize| {
            let total = held.checked_add(more)?;
            self.budget.most.checked_sub(total).filter(|free| own <= *free).map(|_| total)
        };
        let granted = self.budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if granted {
            self.own = own;
        }
        granted
    }

    /// Takes the memory of an interval; `false` when none is left.
    pub(crate) fn admits(&mut self, interval: &IntervalReport) -> bool {
        let of_stream = |stream: &StreamInterval| {
            size_of::<StreamInterval>() + stream.socket.as_ref().map_or(0, |_| size_of::<SocketSample>())
        };
        self.grow(size_of::<IntervalReport>() + interval.streams.iter().map(of_stream).sum::<usize>())
    }

    fn release(&mut self) {
        self.budget.held.fetch_sub(self.own, Ordering::Relaxed);
        self.own = 0;
    }
}

impl Drop for RetainedMemory {
    fn drop(&mut self) {
        self.release();
    }
}

/// Retained text.
#[derive(Debug, Default)]
pub(crate) struct RetainedOutput {
    text: String,
    memory: RetainedMemory,
    full: bool,
}

impl RetainedOutput {
    /// Adds output, up to the limit.
    pub(crate) fn push(&mut self, text: &str) {
        if self.full {
            return;
        }
        if self.text.len() + text.len() > MAX_TEXT || !self.memory.grow(text.len()) {
            self.full = true;
            self.text.push_str("(the server retains no more of its output)\n");
        } else {
            self.text.push_str(text);
        }
    }

    /// Discards the text.
    pub(crate) fn clear(&mut self) {
        self.text = String::new();
        self.memory.release();
    }

    /// Takes the text out.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIBIBYTE: usize = 1 << 10;

    #[test]
    fn the_text_of_a_session_is_bounded() {
        let mut shown = RetainedOutput::default();
        for _ in 0..10_000 {
            shown.push(&"x".repeat(KIBIBYTE));
        }
        let text = shown.take();
        assert!(text.len() <= MAX_TEXT + 64, "{}", text.len());
        assert!(text.ends_with("no more of its output)\n"));
    }

    #[test]
    fn all_sessions_share_the_memory_of_their_output() {
        static BUDGET: RetentionBudget = RetentionBudget::new(64 * KIBIBYTE);
        let new = || RetainedOutput { memory: RetainedMemory { budget: &BUDGET, own: 0 }, ..RetainedOutput::default() };
        let mut sessions: Vec<RetainedOutput> = (0..1000).map(|_| new()).collect();
        for session in &mut sessions {
            for _ in 0..100 {
                session.push(&"x".repeat(KIBIBYTE));
            }
        }
        let held: usize = sessions.iter().map(|session| session.memory.own).sum();
        assert!(held <= BUDGET.most && sessions[0].memory.own == 32 * KIBIBYTE, "half of it, then half of the rest");
        assert!(sessions[1].memory.own == 16 * KIBIBYTE && sessions[999].memory.own == 0);
        sessions[0].clear();
        assert_eq!(sessions[0].memory.own, 0);
        drop(sessions);
        assert_eq!(BUDGET.held.load(Ordering::Relaxed), 0);
    }
}
