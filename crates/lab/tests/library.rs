//! The library of paths: every description can be parsed, becomes a plan, and has its texts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use linerate_lab::compile::compile;
use linerate_lab::description::{PathDescription, PathLabel};
use linerate_lab::library::{self, LibraryEntry};

/// Labels that no path of the library carries: causes that its kernel, Linux 7.2, does not show on the paths made for them.
const UNUSED_LABELS: [PathLabel; 2] = [PathLabel::Incast, PathLabel::SlowStartExit];

/// The longest story that fits a line of `linerate lab list`.
const LONGEST_STORY: usize = 100;

fn described() -> impl Iterator<Item = (&'static LibraryEntry, PathDescription)> {
    library::all().iter().map(|entry| match entry.description() {
        Ok(path) => (entry, path),
        Err(error) => panic!("{error}"),
    })
}

fn repository(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

#[test]
fn the_library_is_the_folder() {
    let files: BTreeSet<String> = fs::read_dir(repository("paths"))
        .expect("the folder of paths")
        .map(|entry| entry.expect("an entry of it").file_name().into_string().expect("a name in UTF-8"))
        .collect();
    let built_in: BTreeSet<String> = library::all().iter().map(|entry| format!("{}.toml", entry.name())).collect();
    assert_eq!(built_in, files);
    assert!(built_in.len() >= 40, "{} paths", built_in.len());
    assert_eq!(built_in.len(), library::all().len(), "a name comes twice");
}

#[test]
fn every_path_can_be_read_and_becomes_the_same_plan_each_time() {
    for (entry, path) in described() {
        assert_eq!(path.name, entry.name());
        let plan = compile(&path);
        assert_eq!(plan.path, entry.name());
        assert_eq!(plan, compile(&path), "{}", entry.name());
        assert_eq!(plan.namespaces.len(), path.hosts.len() + 1, "{}: the hosts and the wire", entry.name());
        assert_eq!(plan.traffic.len(), path.traffic.len(), "{}", entry.name());
    }
}

#[test]
fn every_path_has_its_story_and_its_source_in_a_line() {
    let mut stories = BTreeSet::new();
    for (entry, path) in described() {
        let name = entry.name();
        assert!(path.story.chars().count() <= LONGEST_STORY, "{name}: {}", path.story);
        assert!(path.story.ends_with('.'), "{name}: {}", path.story);
        assert!(!path.source.trim().is_empty(), "{name}");
        assert!(stories.insert(path.story.clone()), "{name} has another path's story");
        assert!(entry.text().starts_with('#'), "{name}: no comment shows where its figures come from");
    }
}

#[test]
fn every_label_is_on_a_path_or_known_to_be_unused() {
    let used: BTreeSet<PathLabel> = described().map(|(_, path)| path.label).collect();
    for label in PathLabel::ALL {
        assert_ne!(used.contains(label), UNUSED_LABELS.contains(label), "{label}");
    }
}

/// A scenario with the default or another congestion control would not demonstrate the path.
#[test]
fn every_scenario_is_a_test_to_far_with_the_hosts_congestion_control() {
    for (entry, path) in described() {
        let name = entry.name();
        let words: Vec<&str> = path.scenario.iter().map(String::as_str).collect();
        assert!(words.starts_with(&["iperf3", "-c", "far"]), "{name}: {words:?}");
        let chosen = words.windows(2).find(|pair| pair[0] == "-C").map(|pair| pair[1]);
        for host in path.hosts.iter().filter(|host| ["near", "far"].contains(&host.name.as_str())) {
            assert_eq!(chosen, Some(host.congestion_control.as_str()), "{name}: {}", host.name);
        }
    }
}

#[test]
fn the_document_has_a_row_for_every_path_and_for_no_other() {
    let document = fs::read_to_string(repository("docs/library.md")).expect("docs/library.md");
    for (entry, path) in described() {
        let row = format!("| `{}` | {} | {} |", entry.name(), path.story, path.label);
        assert!(document.contains(&row), "docs/library.md lacks: {row}");
    }
    let rows = document.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, library::all().len());
}
