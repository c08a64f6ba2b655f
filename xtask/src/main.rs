//! The repository's own chores, started as `cargo xtask CHORE`:
//!
//! * `tidy` checks the invariants of ARCHITECTURE.md that the compiler does not see, one file each in [`tidy`];
//! * `bench` measures linerate against the iperf3 on this machine, interleaved, and writes BENCHMARKS.md; `bench lab`
//!   measures how fast the lab's time passes, and writes docs/lab-speed.md;
//! * `schema` writes the JSON Schemas of the documents to docs/schema;
//! * `diagnosis` diagnoses every path of the library in the lab, and writes docs/diagnosis.md;
//! * `effect` tunes the hosts of every path of the library in the lab, and writes docs/tune.md;
//! * `shaping` measures the shapers on their beds in the lab, and writes docs/shaping.md;
//! * `truth` measures the reference table of causes anew, and writes docs/truth-table.md;
//! * `seeds` reproduces the seeds' experiments in the lab, and writes docs/seeds.md.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who started it")]

use std::process::ExitCode;

mod bench;
mod diagnosis;
mod effect;
mod schema;
mod seeds;
mod shaping;
mod tidy;
mod truth;
mod workspace;

const USAGE: &str = "usage: cargo xtask tidy
       cargo xtask bench [--rounds N] [--seconds S] [--only CELL]... [--mixed] [--out FILE] [--linerate PATH]
                         [--date YYYY-MM-DD]
       cargo xtask bench lab [--rounds N]
       cargo xtask schema
       cargo xtask seeds
       cargo xtask diagnosis
       cargo xtask effect [--only PATH]... [--label LABEL]... [--jobs N] [--documents DIRECTORY] [--out FILE]
                          [--linerate PATH]
       cargo xtask shaping [--runs N] [--bed NAME]... [--back-end ID]... [--out FILE] [--linerate PATH]
       cargo xtask truth";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((chore, [])) if chore == "tidy" => tidy::run(),
        Some((chore, rest)) if chore == "bench" => bench::run(rest),
        Some((chore, [])) if chore == "schema" => schema::run(),
        Some((chore, [])) if chore == "seeds" => seeds::run(),
        Some((chore, [])) if chore == "diagnosis" => diagnosis::run(),
        Some((chore, rest)) if chore == "effect" => effect::run(rest),
        Some((chore, rest)) if chore == "shaping" => shaping::run(rest),
        Some((chore, [])) if chore == "truth" => truth::run(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
