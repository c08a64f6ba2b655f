//! Labels of the library's paths, verified by removing the causes that are written in their descriptions.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use super::arguments::TruthArguments;
use super::cause::RemovableCause;
use super::judge::Counterfactuals;
use super::measured::PathLab;
use super::{in_parallel, kept};
use crate::workspace;

/// Measures the paths with these names, or all; returns true if each label is the cause whose removal gains most.
pub(super) fn verify(names: &[String], arguments: &TruthArguments, linerate: &Path) -> Result<bool> {
    let library = library(names)?;
    let right = in_parallel(&library, arguments.jobs, |(name, path)| match verify_one(name, path, linerate) {
        Ok((is_right, line)) => {
            println!("{} {name}: {line}", if is_right { "✓" } else { "✗" });
            is_right
        }
        Err(error) => {
            println!("? {name}: {error:#}");
            false
        }
    });
    let wrong = right.iter().filter(|is_right| !**is_right).count();
    println!("{} of {} labels are what a removal shows", library.len() - wrong, library.len());
    Ok(wrong == 0)
}

fn library(names: &[String]) -> Result<Vec<(String, Table)>> {
    let folder = workspace::root().join("paths");
    let mut paths = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let file = entry?.path();
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let path: Table = text.parse().with_context(|| format!("{} is not TOML", file.display()))?;
        if names.is_empty() || names.contains(&name) {
            paths.push((name, path));
        }
    }
    for name in names {
        ensure!(paths.iter().any(|(known, _)| known == name), "unknown path '{name}': see the folder paths");
    }
    paths.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(paths)
}

fn verify_one(name: &str, path: &Table, linerate: &Path) -> Result<(bool, String)> {
    let label = path.get("label").and_then(Value::as_str).unwrap_or_default();
    let lab = PathLab::new(linerate, &kept("library"), name)?;
    let causes = written(path, label);
    let measured = lab.counterfactuals(path, &causes)?;
    let truth = measured.true_cause();
    let own = RemovableCause::from_name(label).map(RemovableCause::verdicts).unwrap_or_default();
    let is_path = matches!(label, "none" | "link-rate" | "bufferbloat" | "ecn-bleached");
    let is_right =
        if is_path { truth.first == "link-rate" } else { own.iter().any(|name| truth.accepted.contains(name)) };
    Ok((is_right, figures(label, truth.first, &measured)))
}

fn figures(label: &str, truth: &str, measured: &Counterfactuals) -> String {
    let gains: Vec<String> = measured
        .without
        .iter()
        .map(|(cause, rate)| format!("without {} {:.2}", cause.name(), rate / 1e6))
        .chain(measured.without_pair.map(|pair| pair.text()))
        .collect();
    let ceiling = measured.ceiling.map_or(String::new(), |rate| format!(" of {:.2}", rate / 1e6));
    format!("label {label}, measured {truth}: {:.2}{ceiling} Mbit/s; {}", measured.as_is.whole / 1e6, gains.join(", "))
}

/// Causes that a description has: those whose removal takes something out of it, and the label's own.
fn written(path: &Table, label: &str) -> Vec<RemovableCause> {
    let text = super::text::text(path);
    let has = |cause: RemovableCause| match cause {
        RemovableCause::ReceiveWindow => text.contains("tcp_rmem"),
        RemovableCause::SendBuffer => text.contains("tcp_wmem"),
        // Their removal changes every path.
        RemovableCause::CongestionControl
        | RemovableCause::BufferTooSmall
        | RemovableCause::Incast
        | RemovableCause::ShortTransfer
        | RemovableCause::SmallPackets
        | RemovableCause::LinkRate => false,
        RemovableCause::BurstyLoss => text.contains("gilbert_elliott"),
        RemovableCause::Loss => text.contains("loss = ") && !text.contains("gilbert_elliott"),
        _ => cause.removed_from(path) != *path,
    };
    let own = RemovableCause::from_name(label).filter(|cause| *cause != RemovableCause::LinkRate);
    let is_wanted = |cause: &RemovableCause| own == Some(*cause) || has(*cause);
    RemovableCause::ALL.iter().copied().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Vec<&'static str> {
        let library = library(&[path.to_owned()]).expect("in the library");
        let label = library[0].1["label"].as_str().expect("a label").to_owned();
        written(&library[0].1, &label).into_iter().map(RemovableCause::name).collect()
    }

    #[test]
    fn causes_are_those_that_are_written() {
        assert_eq!(names("300m-20ms-policer-cubic"), ["policer", "receive-window", "send-buffer"]);
        assert_eq!(names("wifi"), ["delay-variation"]);
        assert_eq!(names("300m-20ms-half-buffer-no-sack"), ["receive-window", "send-buffer", "sack-off"]);
        assert_eq!(names("lan-10g"), [""; 0]);
    }
}
