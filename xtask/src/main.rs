//! Development tasks of the repository, started as `cargo xtask TASK`:
//!
//! * `tidy` checks the invariants of ARCHITECTURE.md that the compiler does not check, one file each in [`tidy`];
//! * `test` runs all tests from one build, and shows how long each suite takes;
//! * `bench` measures linerate against other programs and a bare loop, interleaved, and writes BENCHMARKS.md; `bench lab`
//!   measures the speed of the lab's virtual time, and writes docs/lab-speed.md; `bench evidence` the cost of kernel events;
//! * `figures` prints figures of the code, next to those of other projects and of the past;
//! * `site` makes a site of the documents with mdBook, below target/site;
//! * `dist` makes packages: static binaries, tarballs, .deb, .rpm, a container image; `--check` installs and uses them;
//! * `schema` writes the JSON Schemas of the documents to docs/schema;
//! * `effect` tunes the hosts of every path of the library in the lab, and writes docs/tune.md;
//! * `checklist` runs the commands of the seeds' checklist, and writes docs/seeds-checked.md;
//! * `interop` runs linerate against other implementations of iperf3's protocol, and writes docs/compatibility.md;
//! * `truth --random N` measures what limits random paths in the lab by removing each cause, diagnoses them, and writes
//!   docs/truth-random.md; `truth --library` measures the labels of the library so;
//! * `simulate` simulates the statistics of `linerate tune` and `linerate history compare`, and writes docs/statistics.md;
//! * `scale` measures how costs grow with the work, and writes docs/scale.md;
//! * `shaping` measures the shapers on their test beds in the lab, and writes docs/shaping.md;
//! * the tests that take too long for each run are tasks, too: `diagnosis` diagnoses every path of the library in the lab
//!   (docs/diagnosis.md), `seeds` repeats the seeds' experiments there (docs/seeds.md), `truth` the reference table of
//!   causes (docs/truth-table.md); `library` tests every path, of which the test suite has a sample; `verification` and
//!   `sockets` measure in real time.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a development task prints to its user")]

use std::process::ExitCode;

mod bench;
mod checklist;
mod dist;
mod effect;
mod figures;
mod interop;
mod long_tests;
mod markdown;
mod newest_iperf3;
mod repository;
mod rust_file;
mod scale;
mod schema;
mod shaping;
mod simulate;
mod site;
mod test_run;
mod tidy;
mod truth;
mod workspace;

const USAGE: &str = "usage: cargo xtask tidy
       cargo xtask test [--jobs N] [--without-root] [--long] [--write] [--package NAME]... [SUITE]...
       cargo xtask bench [--quick] [--rounds N] [--seconds S] [--seed N] [--only CELL]... [--peer NAME]... [--fresh]
                         [--iperf3-newest PATH] [--linerate PATH] [--out FILE] [--date YYYY-MM-DD]
       cargo xtask bench lab [--rounds N] [--linerate PATH] [--before LINERATE]
       cargo xtask bench evidence [--rounds N] [--linerate PATH]
       cargo xtask bench rr | quic [ROUNDS] [--linerate PATH]
       cargo xtask checklist [--linerate PATH] [--only ROW]...
       cargo xtask dist [--out DIRECTORY] [--target PROCESSOR]... [--program FILE] [--revision N] [--repository URL]
                        [--tag TAG] [--twice] [--check | --check-only] [--lab-kernel]
       cargo xtask schema
       cargo xtask figures [--check] [--list] [--tree DIRECTORY]
       cargo xtask effect [--only PATH]... [--label LABEL]... [--jobs N] [--documents DIRECTORY] [--out FILE]
                          [--linerate PATH]
       cargo xtask interop [--quick] [--write] [--newest PATH] [--linerate PATH] [--jobs N] [--only TEXT]
       cargo xtask scale [--only SECTION]... [--out FILE] [--linerate PATH]
       cargo xtask shaping [--runs N] [--bed NAME]... [--back-end ID]... [--out FILE] [--linerate PATH]
       cargo xtask site
       cargo xtask simulate [--runs N] [--seed S] [--without-lab] [--out FILE] [--linerate PATH]
       cargo xtask truth --random N [--seed S] [--quick] [--only K | --show K] [--again] [--jobs N] [--out FILE]
                         [--linerate PATH]
       cargo xtask truth --library [--only PATH]... [--jobs N] [--linerate PATH]
       cargo xtask seeds | truth | diagnosis | library | verification | sockets";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((task, [])) if task == "tidy" => tidy::run(),
        Some((task, options)) if task == "test" => test_run::run(options),
        Some((task, options)) if task == "bench" => bench::run(options),
        Some((task, [])) if task == "schema" => schema::run(),
        Some((task, options)) if task == "checklist" => checklist::run(options),
        Some((task, options)) if task == "dist" => dist::run(options),
        Some((task, options)) if task == "effect" => effect::run(options),
        Some((task, options)) if task == "figures" => figures::run(options),
        Some((task, options)) if task == "interop" => interop::run(options),
        Some((task, options)) if task == "scale" => scale::run(options),
        Some((task, options)) if task == "shaping" => shaping::run(options),
        Some((task, [])) if task == "site" => site::run(),
        Some((task, options)) if task == "simulate" => simulate::run(options),
        Some((task, options @ [_, ..])) if task == "truth" => truth::run(options),
        Some((task, [])) if long_tests::is_task(task) => long_tests::run(task),
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
