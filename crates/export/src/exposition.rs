//! Prometheus' text format, version 0.0.4.

use core::fmt::{Display, Write as _};

/// Text under construction, family by family.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family of series: `gauge` or `counter`.
    pub fn family(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a series of the family. Labels without a value are left out: to Prometheus they are the same.
    pub fn series(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        let mut separator = '{';
        for (label, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(self.text, "{separator}{label}=\"{}\"", escape_label(value));
            separator = ',';
        }
        let end = if separator == '{' { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

/// Escapes backslashes, quotes and line ends.
fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_empty_ones_left_out() {
        let mut text = Exposition::default();
        text.family("a_bytes", "Help.", "gauge");
        text.series("a_bytes", &[("x", "1\n\"\\"), ("y", "")], 1.5);
        text.series("a_bytes", &[("y", "")], 2);
        let expected = "# HELP a_bytes Help.\n# TYPE a_bytes gauge\na_bytes{x=\"1\\n\\\"\\\\\"} 1.5\na_bytes 2\n";
        assert_eq!(text.finish(), expected);
    }
}
