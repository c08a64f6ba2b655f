//! `linerate lab check`: back ends that work on this host, and reasons for the others.

use std::fmt::Write as _;

use linerate_documents::lab_check::{self, LabCheckDocument};
use linerate_lab::check;
use linerate_model::lab_check::{BackEndReport, CheckOutcome};
use linerate_report::throughput_text::TextStyle;

use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;
use linerate_report::text::wrap_text;

/// Column at which the text of an item begins.
const TEXT_COLUMN: usize = 36;

/// Checks the back ends and prints the result; a host without any is a result, not an error.
pub(super) fn run(json: bool) -> ExitStatus {
    let check::HostCheck { user_mode_linux, namespaces } = check::check();
    let is_usable = user_mode_linux.works || namespaces.works;
    if json {
        let document = LabCheckDocument { schema: lab_check::SCHEMA, user_mode_linux, namespaces };
        print_json(DocumentKind::LabCheck, &document);
    } else {
        let style = console::data_style();
        let mut text = String::new();
        section(&mut text, "A kernel as a process, in virtual time (uml)", &user_mode_linux, style);
        text.push('\n');
        section(&mut text, "Namespaces of this host, in real time (namespaces)", &namespaces, style);
        console::data(&text);
    }
    if is_usable { ExitStatus::Success } else { ExitStatus::Missed }
}

fn section(text: &mut String, title: &str, report: &BackEndReport, style: TextStyle) {
    let (good, bad, plain) = if style.colour { ("\x1b[32m", "\x1b[31m", "\x1b[0m") } else { ("", "", "") };
    let (colour, verdict) = if report.works { (good, "works") } else { (bad, "does not work here") };
    let _ = writeln!(text, "{title}: {colour}{verdict}{plain}");
    let width = usize::from(style.width.get()).saturating_sub(TEXT_COLUMN);
    for item in &report.items {
        let (mark, detail) = match &item.outcome {
            CheckOutcome::Works { with } => ("yes", with.clone()),
            CheckOutcome::Missing { what, way_out } => {
                (if item.required { "NO" } else { "no" }, format!("{what}: {way_out}"))
            }
            CheckOutcome::NotTried { because } => ("-", format!("not tried: {because}")),
        };
        let mut head = format!("  {mark:<4}{:<width$}", item.name, width = TEXT_COLUMN - 6);
        for line in wrap_text(&detail.replace('\n', "; "), width) {
            let _ = writeln!(text, "{}", format!("{head}{line}").trim_end());
            head = " ".repeat(TEXT_COLUMN);
        }
    }
}
