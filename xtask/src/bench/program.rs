//! Programs that are compared, and their command lines for a cell.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::cell::{BenchCell, CellKind, HTTP};

/// Command line and output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// iperf3's.
    Iperf3,
    /// xfr's.
    Xfr,
    /// The bare loop of this bench.
    Bare,
    /// The web page of linerate, with an HTTP client of this bench.
    Http,
}

/// Program to measure.
#[derive(Clone, Debug)]
pub(super) struct BenchProgram {
    /// Name in the tables and for `--peer`.
    pub(super) name: &'static str,
    /// First line of its version output.
    pub(super) version: String,
    pub(super) dialect: Dialect,
    path: PathBuf,
    leading_arguments: &'static [&'static str],
    /// Text of `--help`, which names the options that it has.
    help: String,
}

/// Program with its options for a cell.
#[derive(Clone, Debug)]
pub(super) struct Contender<'a> {
    pub(super) program: &'a BenchProgram,
    /// Options in addition to the cell's; empty for its defaults.
    pub(super) best: Vec<&'static str>,
}

impl BenchProgram {
    /// Returns the program at `path`; `None` where it does not start.
    pub(super) fn find(
        name: &'static str,
        dialect: Dialect,
        path: PathBuf,
        leading_arguments: &'static [&'static str],
    ) -> Option<Self> {
        let output =
            |option| Command::new(&path).args(leading_arguments).arg(option).stdin(Stdio::null()).output().ok();
        let version = output("--version").filter(|output| output.status.success())?.stdout;
        let help = output("--help").map_or_else(Vec::new, |output| [output.stdout, output.stderr].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let version = text(&version).lines().next().unwrap_or_default().trim().to_owned();
        Some(Self { name, version, dialect, help: text(&help), path, leading_arguments })
    }

    /// Returns the bare loop: this program itself.
    pub(super) fn bare() -> Option<Self> {
        let path = std::env::current_exe().ok()?;
        let version = "loop over the system calls of linerate's data path".to_owned();
        let leading_arguments = &["bench", "bare"];
        Some(Self { name: "bare loop", version, dialect: Dialect::Bare, path, leading_arguments, help: String::new() })
    }

    /// Returns the web page of the linerate at `path`.
    pub(super) fn web(path: PathBuf) -> Option<Self> {
        Self::find("linerate --web", Dialect::Http, path, &[])
    }

    /// Returns its contenders in `cell`: with its defaults, and with the options that make it faster, if it has any.
    pub(super) fn contenders(&self, cell: &BenchCell) -> Vec<Contender<'_>> {
        if !self.can_run(cell) {
            return Vec::new();
        }
        let best = self.best_options(cell);
        let defaults = Contender { program: self, best: Vec::new() };
        if best.is_empty() { vec![defaults] } else { vec![defaults, Contender { program: self, best }] }
    }

    fn can_run(&self, cell: &BenchCell) -> bool {
        let is_http = self.dialect == Dialect::Http;
        if cell.name == HTTP || is_http {
            return cell.name == HTTP && (is_http || self.name == "linerate");
        }
        match self.dialect {
            Dialect::Iperf3 | Dialect::Http => true,
            // It has no block size, and no datagram size for a stock comparison.
            Dialect::Xfr => {
                cell.kind != CellKind::FirstByte && !["-l", "-u", "-Z"].iter().any(|option| cell.has(option))
            }
            Dialect::Bare => cell.kind == CellKind::Unlimited && !cell.has("-Z") && cell.clients == 1,
        }
    }

    fn best_options(&self, cell: &BenchCell) -> Vec<&'static str> {
        let wanted: &[&str] = match (self.dialect, cell.is_udp()) {
            _ if !cell.is_transfer() => &[],
            (Dialect::Bare, false) => return vec!["--skip-rx-copy"],
            (Dialect::Iperf3, true) => &["--gsro"],
            (Dialect::Iperf3, false) => &["--skip-rx-copy"],
            _ => &[],
        };
        wanted.iter().copied().filter(|option| self.help.contains(option)).collect()
    }

    fn line(&self, arguments: impl IntoIterator<Item = String>) -> Vec<String> {
        let leading = self.leading_arguments.iter().map(|argument| (*argument).to_owned());
        [self.path.display().to_string()].into_iter().chain(leading).chain(arguments).collect()
    }

    /// Command line that only starts the program.
    pub(super) fn version_line(&self) -> Vec<String> {
        self.line(["--version".to_owned()])
    }

    /// Command line of a server for one test.
    pub(super) fn server_line(&self, port: u16) -> Vec<String> {
        let port = port.to_string();
        let arguments: &[&str] = match self.dialect {
            Dialect::Iperf3 => &["-s", "-p", &port, "-1", "-J"],
            Dialect::Xfr => &["serve", "-p", &port, "--one-off", "--no-mdns"],
            Dialect::Bare => &["serve", &port],
            Dialect::Http => &["serve", "-p", "0", "--no-stamp", "-B", "127.0.0.1", &format!("--web={port}")],
        };
        self.line(arguments.iter().map(|argument| (*argument).to_owned()))
    }
}

impl Contender<'_> {
    /// Label in the tables: the program with its additional options.
    pub(super) fn label(&self) -> String {
        let options = self.best.join(" ");
        if options.is_empty() { self.program.name.to_owned() } else { format!("{} `{options}`", self.program.name) }
    }

    /// Command line of a client in `cell`, to `host` and `port`, for `seconds`.
    pub(super) fn client_line(&self, cell: &BenchCell, host: &str, port: u16, seconds: u64) -> Vec<String> {
        let (port, time) = (port.to_string(), seconds.to_string());
        let mut arguments: Vec<String> = match self.program.dialect {
            Dialect::Iperf3 => ["-c", host, "-p", &port, "-t", &time, "-J"].map(str::to_owned).to_vec(),
            Dialect::Xfr => {
                [host, "-p", &port, "-t", &format!("{time}s"), "--json", "--no-tui"].map(str::to_owned).to_vec()
            }
            Dialect::Bare => ["send", host, &port, &time].map(str::to_owned).to_vec(),
            Dialect::Http => {
                let own = std::env::current_exe().unwrap_or_default().display().to_string();
                return [&own, "bench", "bare", "get", host, &port, &time].map(str::to_owned).to_vec();
            }
        };
        arguments.extend(cell.options.iter().cloned());
        arguments.extend(self.best.iter().map(|option| (*option).to_owned()));
        self.program.line(arguments)
    }
}

#[cfg(test)]
impl BenchProgram {
    /// Returns a program for tests that start none.
    pub(super) fn named(name: &'static str, dialect: Dialect, help: &str) -> Self {
        let (version, path) = (name.to_owned(), PathBuf::from(name));
        Self { name, version, dialect, path, leading_arguments: &[], help: help.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cell::cells;

    fn cell(name: &str) -> BenchCell {
        cells().into_iter().find(|cell| cell.name == name).expect("it is in the list")
    }

    #[test]
    fn the_best_options_are_those_of_the_transport_that_the_program_has() {
        let old = BenchProgram::named("iperf3", Dialect::Iperf3, "-Z, --zerocopy");
        let new = BenchProgram::named("iperf3", Dialect::Iperf3, "--gsro --skip-rx-copy");
        for (program, name, best) in [
            (&old, "tcp-p8-down", vec!["iperf3"]),
            (&new, "tcp-p8-down", vec!["iperf3", "iperf3 `--skip-rx-copy`"]),
            (&new, "udp-200", vec!["iperf3", "iperf3 `--gsro`"]),
            (&new, "start-up", vec!["iperf3"]),
        ] {
            let labels: Vec<_> = program.contenders(&cell(name)).iter().map(Contender::label).collect();
            assert_eq!(labels, best, "{name}");
        }
    }

    #[test]
    fn the_client_gets_the_options_of_its_cell() {
        let new = BenchProgram::named("iperf3", Dialect::Iperf3, "--gsro --skip-rx-copy");
        let contenders = new.contenders(&cell("tcp-p4-down"));
        let line = contenders[1].client_line(&cell("tcp-p4-down"), "127.0.0.1", 5201, 2).join(" ");
        assert_eq!(line, "iperf3 -c 127.0.0.1 -p 5201 -t 2 -J -P 4 -R --skip-rx-copy");
        assert_eq!(new.server_line(5201).join(" "), "iperf3 -s -p 5201 -1 -J");
    }

    #[test]
    fn programs_without_the_options_of_a_cell_are_not_in_it() {
        let xfr = BenchProgram::named("xfr", Dialect::Xfr, "");
        assert!(xfr.contenders(&cell("udp-1448")).is_empty() && xfr.contenders(&cell("tcp-1k")).is_empty());
        assert_eq!(xfr.contenders(&cell("tcp-p1-up")).len(), 1);
        let bare = BenchProgram::named("bare loop", Dialect::Bare, "");
        assert!(bare.contenders(&cell("tcp-100M")).is_empty() && bare.contenders(&cell("clients-8")).is_empty());
        assert_eq!(bare.contenders(&cell("tcp-p1-up")).len(), 2);
    }
}
