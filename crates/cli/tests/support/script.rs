//! What shell scripts in the lab's guest say.

use serde_json::Value;

use super::Finished;

/// What a script said: lines `name: value`, and parts below lines `== name`.
pub struct Said(pub Finished);

impl Said {
    /// All of it.
    pub fn whole(&self) -> &str {
        &self.0.stdout
    }

    /// What follows `name: ` on a line.
    #[track_caller]
    pub fn value(&self, name: &str) -> &str {
        let found = self.whole().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name:?} in\n{}{}", self.whole(), self.0.stderr))
    }

    /// The part below the line `== name`.
    #[track_caller]
    pub fn part(&self, name: &str) -> &str {
        let head = format!("== {name}\n");
        let (_, after) = self.whole().split_once(&head).unwrap_or_else(|| panic!("no {name:?} in\n{}", self.whole()));
        after.split("\n== ").next().unwrap_or(after)
    }

    /// The document in a part.
    #[track_caller]
    pub fn document(&self, part: &str) -> Value {
        serde_json::from_str(self.part(part)).unwrap_or_else(|cause| panic!("not JSON ({cause}):\n{}", self.whole()))
    }
}
