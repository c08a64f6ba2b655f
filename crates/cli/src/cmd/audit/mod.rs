//! `linerate audit`: what of this host slows transfers, without a peer and without changing anything.

mod arguments;
mod explain;
mod sarif;
mod text;

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::schema::audit::AuditDocument;
use linerate_rules::audit;
use linerate_sys::facts;

pub(crate) use arguments::AuditArguments;

use crate::cmd::measurement::print_json;
use crate::console;
use crate::exit::Exit;

/// The linerate that looks.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads, judges and shows.
pub(crate) fn run(arguments: &AuditArguments) -> Exit {
    let host = match &arguments.root {
        Some(root) if root.is_dir() => facts::read_files_below(root),
        Some(root) => {
            console::error(&format!("{} is not a directory", root.display()), None);
            return Exit::Unable;
        }
        None => facts::read(),
    };
    if let Some(key) = &arguments.explain {
        return explain::run(&host, key, arguments.json);
    }
    let least = Severity::from(arguments.min_severity);
    let mut findings = audit::audit(&host);
    let all = findings.len();
    findings.retain(|finding| finding.severity >= least);
    show(arguments, &host, &findings, all - findings.len());
    if findings.iter().any(|finding| finding.severity >= Severity::Warning) { Exit::Missed } else { Exit::Success }
}

fn show(arguments: &AuditArguments, host: &HostFacts, findings: &[Finding], left_out: usize) {
    if arguments.json {
        print_json(&AuditDocument::new(VERSION, host, findings));
    } else if arguments.sarif {
        print_json(&sarif::document(host, findings));
    } else {
        console::data(&text::audit(host, findings, left_out, console::data_style()));
    }
}
