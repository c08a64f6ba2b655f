//! Output of shell scripts in the lab's guest.

use serde_json::Value;

use super::FinishedChild;

/// Output of a script: lines `name: value`, and parts below lines `== name`.
pub(crate) struct ScriptOutput(pub FinishedChild);

impl ScriptOutput {
    /// Complete output.
    pub(crate) fn whole(&self) -> &str {
        &self.0.stdout
    }

    /// Value after `name: ` on a line.
    #[track_caller]
    pub(crate) fn value(&self, name: &str) -> &str {
        let found = self.whole().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name:?} in\n{}{}", self.whole(), self.0.stderr))
    }

    /// Part below the line `== name`.
    #[track_caller]
    pub(crate) fn part(&self, name: &str) -> &str {
        let head = format!("== {name}\n");
        let (_, after) = self.whole().split_once(&head).unwrap_or_else(|| panic!("no {name:?} in\n{}", self.whole()));
        after.split("\n== ").next().unwrap_or(after)
    }

    /// JSON document in a part.
    #[track_caller]
    pub(crate) fn document(&self, part: &str) -> Value {
        super::process::result(
            serde_json::from_str(self.part(part))
                .unwrap_or_else(|cause| panic!("not JSON ({cause}):\n{}", self.whole())),
        )
    }
}
