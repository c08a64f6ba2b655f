//! `cargo xtask shaping`: measures the back ends of crate `shape` on the test beds of issue 6 in the lab, and writes
//! docs/shaping.md. Each run is kept under target/shaping, and measured again only when its script has changed.

mod beds;
mod classes;
mod dual_queue;
mod one_flow;
mod page;
mod run;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use self::beds::BEDS;
use self::page::CaseRow;
use self::run::ShapingRun;
use crate::{bench, workspace};

/// Parsed arguments.
#[derive(Debug, PartialEq)]
struct ShapingArguments {
    /// Number of repetitions of each case.
    runs: u32,
    /// Names of test beds; empty for all.
    beds: Vec<String>,
    /// Back ends; empty for all of a test bed.
    back_ends: Vec<String>,
    /// Output file, relative to the root of the workspace.
    out: PathBuf,
    /// Binary to run; built when not given.
    linerate: Option<PathBuf>,
    /// True to measure missing runs; otherwise the page uses the kept ones only.
    measure: bool,
}

impl ShapingArguments {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self {
            runs: 10,
            beds: vec![],
            back_ends: vec![],
            out: PathBuf::from("docs/shaping.md"),
            linerate: None,
            measure: true,
        };
        let mut remaining = arguments.iter();
        while let Some(option) = remaining.next() {
            let value =
                remaining.next().with_context(|| format!("unknown option '{option}', or its value is missing"))?;
            match option.as_str() {
                "--runs" => parsed.runs = value.parse().context("--runs takes a whole number")?,
                "--bed" => parsed.beds.push(value.clone()),
                "--back-end" => parsed.back_ends.push(value.clone()),
                "--out" => parsed.out = PathBuf::from(value),
                "--linerate" => parsed.linerate = Some(PathBuf::from(value)),
                "--measure" => parsed.measure = value != "no",
                _ => bail!("unknown option '{option}'"),
            }
        }
        ensure!((1..=1000).contains(&parsed.runs), "--runs must be 1 to 1000");
        for name in &parsed.beds {
            let is_own = [one_flow::NAME, classes::NAME, dual_queue::NAME].contains(&name.as_str());
            ensure!(is_own || BEDS.iter().any(|bed| bed.name == name), "unknown test bed '{name}'");
        }
        Ok(parsed)
    }
}

/// Section of the page with its misses, measured with a program or from the kept figures in a directory.
type Section = fn(Option<&Path>, &Path) -> (String, Vec<String>);

/// Measures the requested cases and writes the page; returns true if all bounds are met.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let arguments = ShapingArguments::parse(arguments)?;
    let linerate = match &arguments.linerate {
        _ if !arguments.measure => PathBuf::new(),
        Some(path) => path.clone(),
        None => bench::build()?,
    };
    let kept = run::kept_directory();
    fs::create_dir_all(&kept).with_context(|| format!("cannot create {}", kept.display()))?;
    let is_wanted = |wanted: &[String], name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let mut rows = Vec::new();
    for bed in BEDS.iter().filter(|bed| is_wanted(&arguments.beds, bed.name)) {
        for case in bed.cases {
            for back_end in bed.back_ends.iter().copied().filter(|id| is_wanted(&arguments.back_ends, id)) {
                let mut runs = Vec::new();
                for number in 0..arguments.runs {
                    let run = ShapingRun { bed, back_end, mode: case.mode, number };
                    let figures = if arguments.measure {
                        run.figures(&linerate, &kept).map(Some)
                    } else {
                        run.kept_figures(&kept)
                    };
                    match figures {
                        Ok(figures) => runs.extend(figures),
                        Err(error) => eprintln!("{}: {}, {}: {error:#}", bed.name, case.mode.name(), back_end),
                    }
                }
                println!("{}: {}, {back_end}: {} runs", bed.name, case.mode.name(), runs.len());
                if arguments.measure || !runs.is_empty() {
                    rows.push(CaseRow { bed, case: *case, back_end, runs });
                }
            }
        }
    }
    let program = arguments.measure.then_some(linerate.as_path());
    let (mut sections, mut too_little) = (String::new(), Vec::new());
    let own: [(&str, Section); 3] = [
        (classes::NAME, classes::section),
        (dual_queue::NAME, dual_queue::section),
        (one_flow::NAME, one_flow::section),
    ];
    for (name, section) in own {
        if is_wanted(&arguments.beds, name) {
            let (text, missed) = section(program, &kept);
            sections.push_str(&text);
            too_little.extend(missed);
        }
    }
    let out = workspace::root().join(&arguments.out);
    // Without cases of a test bed the page keeps those that it has.
    let written = fs::read_to_string(&out).ok().filter(|_| rows.is_empty());
    let text = written.map_or_else(|| page::page(&rows, &sections), |written| page::updated(&written, &sections));
    fs::write(&out, text).with_context(|| format!("cannot write {}", out.display()))?;
    println!("written: {}", out.display());
    let missed: Vec<&CaseRow> = rows.iter().filter(|row| !row.misses().is_empty()).collect();
    for row in &missed {
        println!("{}: {}, {}: {}", row.bed.name, row.case.mode.name(), row.back_end, row.misses().join("; "));
    }
    for one in &too_little {
        println!("{one}");
    }
    Ok(missed.is_empty() && too_little.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<ShapingArguments> {
        ShapingArguments::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_parsed_or_refused() {
        assert_eq!(parse("").expect("no arguments are valid").runs, 10);
        let parsed = parse("--runs 3 --bed lartc --back-end cake").expect("known");
        assert_eq!((parsed.runs, parsed.beds, parsed.back_ends), (3, vec!["lartc".into()], vec!["cake".into()]));
        for wrong in ["--runs 0", "--runs", "--bed nowhere", "--what 1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
