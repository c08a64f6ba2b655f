//! `cargo xtask scale`: measures how costs grow with the work, and writes docs/scale.md with a plot of each curve.
//!
//! A curve that must not grow faster than its work fails the task when its last decade does.

mod curve;
mod history;
mod lab;
mod plot;
mod server;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use self::curve::Section;
use crate::bench::{self, machine::TestMachine};
use crate::workspace;

/// Measures one section.
type Measure = fn(&Path, &Path) -> Result<Section>;

const SECTIONS: [(&str, Measure); 8] = [
    ("server", server::measure),
    ("watch", watch::measure),
    ("history", history::measure),
    ("lab", lab::rates),
    ("lab-round-trip", lab::round_trips),
    ("lab-hosts", lab::hosts),
    ("lab-guests", lab::guests),
    ("commands", lab::commands),
];

/// Directory of the plots, below docs.
const PLOTS: &str = "scale";

/// Parsed arguments.
struct ScaleArguments {
    only: Vec<String>,
    linerate: Option<PathBuf>,
    out: PathBuf,
}

impl ScaleArguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self { only: Vec::new(), linerate: None, out: PathBuf::from("docs/scale.md") };
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            let value = remaining.next().with_context(|| format!("{option} needs a value"))?;
            match option.as_str() {
                "--only" => parsed.only.push(value.clone()),
                "--linerate" => parsed.linerate = Some(PathBuf::from(value)),
                "--out" => parsed.out = PathBuf::from(value),
                _ => bail!("unknown option {option}"),
            }
        }
        for name in &parsed.only {
            let known: Vec<&str> = SECTIONS.iter().map(|(known, _)| *known).collect();
            ensure!(known.contains(&name.as_str()), "no section {name}: {}", known.join(", "));
        }
        Ok(parsed)
    }
}

/// Measures the sections; returns true when no curve grows faster than it may.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = ScaleArguments::parse(arguments)?;
    let linerate = arguments.linerate.clone().map_or_else(bench::build, Ok)?;
    let scratch = workspace::root().join("target/scale");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let mut sections = Vec::new();
    for (name, measure) in SECTIONS {
        if arguments.only.is_empty() || arguments.only.iter().any(|only| only == name) {
            println!("{name}");
            sections.push(measure(&linerate, &scratch).with_context(|| format!("the curves of {name}"))?);
        }
    }
    let machine = TestMachine::read(None)?;
    write_page(&workspace::root().join(&arguments.out), &machine, &sections)?;
    let excesses: Vec<String> = sections.iter().flat_map(Section::excesses).collect();
    for excess in &excesses {
        eprintln!("{excess}");
    }
    Ok(excesses.is_empty())
}

fn write_page(out: &Path, machine: &TestMachine, sections: &[Section]) -> Result<()> {
    let plots = out.parent().unwrap_or(Path::new(".")).join(PLOTS);
    fs::create_dir_all(&plots).with_context(|| format!("cannot create {}", plots.display()))?;
    let mut text = format!(
        "# Costs as work grows\n\nMeasured by `cargo xtask scale` on {} with {} processors, Linux {}, {}. The growth of a \
         figure is that of its last decade: the power of the work that it follows, 0 for a constant and 1 for a proportional \
         one. The task fails when a figure that may not grow faster than its work exceeds 1.25.\n",
        machine.processor, machine.processors, machine.kernel, machine.date
    );
    for section in sections {
        text.push_str(&section.markdown(PLOTS));
        for (name, svg) in section.plots() {
            let file = plots.join(name);
            fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    fs::write(out, text).with_context(|| format!("cannot write {}", out.display()))
}
