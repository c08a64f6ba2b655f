//! `linerate audit`: settings of this host that slow transfers, found without a peer and without changing anything.

mod arguments;
mod explain;
mod sarif;
mod text;

use linerate_documents::audit::AuditDocument;
use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_rules::audit;
use linerate_sys::facts;

pub(crate) use arguments::AuditArguments;

use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Version of the linerate that audits.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads the host, evaluates the rules and prints the findings.
pub(crate) fn run(arguments: &AuditArguments) -> ExitStatus {
    let host = match &arguments.root {
        Some(root) if root.is_dir() => facts::read_files_below(root),
        Some(root) => {
            console::error(&format!("{} is not a directory", root.display()), None);
            return ExitStatus::Unable;
        }
        None => facts::read(),
    };
    if let Some(key) = &arguments.explain {
        return explain::run(&host, key, arguments.json);
    }
    let least = FindingSeverity::from(arguments.min_severity);
    let mut findings = audit::audit(&host);
    let all = findings.len();
    findings.retain(|finding| finding.severity >= least);
    show(arguments, &host, &findings, all - findings.len());
    if findings.iter().any(|finding| finding.severity >= FindingSeverity::Warning) {
        ExitStatus::Missed
    } else {
        ExitStatus::Success
    }
}

fn show(arguments: &AuditArguments, host: &HostFacts, findings: &[AuditFinding], left_out: usize) {
    if arguments.json {
        print_json(DocumentKind::Audit, &AuditDocument::new(VERSION, host, findings));
    } else if arguments.sarif {
        console::data(&format!("{:#}\n", sarif::document(host, findings)));
    } else if arguments.brief {
        console::data(&format!("{}\n", text::counts(findings)));
    } else if arguments.verbose {
        console::data(&text::audit(host, findings, left_out, console::data_style()));
    } else {
        console::data(&text::summary(host, findings, left_out, console::data_style()));
    }
}
