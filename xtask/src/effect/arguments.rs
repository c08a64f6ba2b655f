//! Command line of `cargo xtask effect`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::tuned::LabelledPath;

/// Parsed arguments.
#[derive(Debug, PartialEq)]
pub(super) struct EffectArguments {
    /// Names of paths; empty for all.
    only: Vec<String>,
    /// Labels of paths; empty for all.
    labels: Vec<String>,
    /// Number of paths tuned in parallel.
    pub(super) jobs: usize,
    /// Output file, relative to the root of the workspace.
    pub(super) out: PathBuf,
    /// Directory in which documents are kept, and read from.
    pub(super) documents: Option<PathBuf>,
    /// Binary to run; built when not given.
    pub(super) linerate: Option<PathBuf>,
}

impl Default for EffectArguments {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            labels: Vec::new(),
            jobs: 2,
            out: PathBuf::from("docs/tune.md"),
            documents: None,
            linerate: None,
        }
    }
}

impl EffectArguments {
    /// Parses the arguments after `effect`.
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            let value =
                remaining.next().with_context(|| format!("unknown option '{option}', or its value is missing"))?;
            match option.as_str() {
                "--only" => parsed.only.push(value.clone()),
                "--label" => parsed.labels.push(value.clone()),
                "--jobs" => parsed.jobs = value.parse().context("--jobs takes a whole number")?,
                "--out" => parsed.out = PathBuf::from(value),
                "--documents" => parsed.documents = Some(PathBuf::from(value)),
                "--linerate" => parsed.linerate = Some(PathBuf::from(value)),
                _ => bail!("unknown option '{option}'"),
            }
        }
        ensure!((1..=64).contains(&parsed.jobs), "--jobs must be 1 to 64");
        Ok(parsed)
    }

    /// Returns the requested paths: those named, and those with one of the labels.
    pub(super) fn select(&self, library: &[LabelledPath]) -> Result<Vec<LabelledPath>> {
        for name in &self.only {
            ensure!(
                library.iter().any(|path| path.name == *name),
                "unknown path '{name}': `linerate lab list` shows the library"
            );
        }
        for label in &self.labels {
            ensure!(
                library.iter().any(|path| path.label == *label),
                "unknown label '{label}': `linerate lab list` shows the library"
            );
        }
        let is_wanted = |path: &&LabelledPath| {
            let of_all = self.only.is_empty() && self.labels.is_empty();
            of_all || self.only.contains(&path.name) || self.labels.contains(&path.label)
        };
        Ok(library.iter().filter(is_wanted).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<EffectArguments> {
        EffectArguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn library() -> Vec<LabelledPath> {
        [("a", "loss", "network"), ("b", "receive-window", "receiver"), ("c", "receive-window", "receiver")]
            .map(|(name, label, place)| LabelledPath { name: name.into(), label: label.into(), location: place.into() })
            .into()
    }

    fn selected(line: &str) -> Result<Vec<String>> {
        Ok(parse(line)?.select(&library())?.into_iter().map(|path| path.name).collect())
    }

    #[test]
    fn all_paths_or_those_named_or_labelled() {
        assert_eq!(parse("").expect("no arguments are valid"), EffectArguments::default());
        assert_eq!(selected("").expect("all"), ["a", "b", "c"]);
        assert_eq!(selected("--only a --only c").expect("two"), ["a", "c"]);
        assert_eq!(selected("--label receive-window").expect("two"), ["b", "c"]);
        assert_eq!(selected("--label loss --only b").expect("two"), ["a", "b"]);
        assert!(selected("--only x").is_err() && selected("--label x").is_err());
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for wrong in ["--jobs 0", "--jobs many", "--jobs", "--out", "--what 1", "300m-20ms"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
