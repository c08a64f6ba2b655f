//! `linerate lab check`: what works on this host, and why the rest does not.

use std::fmt::Write as _;

use linerate_lab::check::{self, BackEndReport, Outcome};
use linerate_report::throughput_text::Style;
use serde_json::json;

use super::list::wrapped;
use crate::console;
use crate::exit::Exit;

/// Where the words of an item begin.
const COLUMN: usize = 36;

/// Looks, and says what it found. That no back end works is a finding.
pub(super) fn run(json: bool) -> Exit {
    let report = check::check();
    if json {
        console::data(&format!(
            "{:#}\n",
            json!({ "schema": 1, "user_mode_linux": report.user_mode_linux, "namespaces": report.namespaces })
        ));
    } else {
        let style = console::data_style();
        let mut text = String::new();
        section(&mut text, "A kernel as a process, in virtual time (uml)", &report.user_mode_linux, style);
        text.push('\n');
        section(&mut text, "Namespaces of this host, in real time (namespaces)", &report.namespaces, style);
        console::data(&text);
    }
    if report.user_mode_linux.works || report.namespaces.works { Exit::Success } else { Exit::Missed }
}

fn section(text: &mut String, title: &str, report: &BackEndReport, style: Style) {
    let (good, bad, plain) = if style.colour { ("\x1b[32m", "\x1b[31m", "\x1b[0m") } else { ("", "", "") };
    let (colour, verdict) = if report.works { (good, "works") } else { (bad, "does not work here") };
    let _ = writeln!(text, "{title}: {colour}{verdict}{plain}");
    let room = usize::from(style.width.get()).saturating_sub(COLUMN);
    for item in &report.items {
        let (mark, words) = match &item.outcome {
            Outcome::Works { with } => ("yes", with.clone()),
            Outcome::Missing { what, way_out } => {
                (if item.required { "NO" } else { "no" }, format!("{what}: {way_out}"))
            }
            Outcome::NotTried { because } => ("-", format!("not tried: {because}")),
        };
        let mut head = format!("  {mark:<4}{:<width$}", item.name, width = COLUMN - 6);
        for line in wrapped(&words.replace('\n', "; "), room) {
            let _ = writeln!(text, "{}", format!("{head}{line}").trim_end());
            head = " ".repeat(COLUMN);
        }
    }
}
