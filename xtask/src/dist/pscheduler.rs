//! Executables of the plug-ins for pScheduler, one per method: each is a shell script of two lines.

use std::path::Path;

use anyhow::Result;

use super::stage;

/// Directory of the plug-ins' classes, as Debian has it; on Fedora it is below `libexec`.
pub(super) const CLASSES: &str = "lib/pscheduler/classes";

/// Plug-ins: directory below the classes, and its executables with the methods of `linerate pscheduler`.
const PLUG_INS: [(&str, &[(&str, &str)]); 2] = [
    (
        "tool/linerate",
        &[
            ("enumerate", "enumerate"),
            ("can-run", "can-run"),
            ("duration", "duration"),
            // The administrator's choice of a port.
            (
                "participant-data",
                "participant-data --port \"$(cat /etc/pscheduler/tool/linerate/port 2>/dev/null || echo 5201)\"",
            ),
            // The administrator's options of TLS, on one line.
            ("run", "run $(cat /etc/pscheduler/tool/linerate/tls 2>/dev/null)"),
            ("merged-results", "merged-results"),
        ],
    ),
    (
        "test/diagnose",
        &[
            ("enumerate", "enumerate-test"),
            ("participants", "participants"),
            ("spec-is-valid", "spec-is-valid"),
            ("cli-to-spec", "cli-to-spec"),
            ("spec-to-cli", "spec-to-cli"),
            ("spec-format", "spec-format"),
            ("result-format", "result-format"),
            ("limit-is-valid", "limit-is-valid"),
        ],
    ),
];

/// Writes the executables below `to`, which is installed at `prefix`.
pub(super) fn write(prefix: &str, to: &Path) -> Result<()> {
    for (directory, executables) in PLUG_INS {
        for (name, method) in executables {
            let file = to.join(CLASSES).join(directory).join(name);
            stage::write_file(&file, &script(prefix, method), 0o555)?;
        }
    }
    Ok(())
}

fn script(prefix: &str, method: &str) -> String {
    format!("#!/bin/sh\nexec {prefix}/bin/linerate pscheduler {method} \"$@\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_have_two_lines_and_pass_their_arguments() {
        assert_eq!(script("/usr", "can-run"), "#!/bin/sh\nexec /usr/bin/linerate pscheduler can-run \"$@\"\n");
        for (_, executables) in PLUG_INS {
            assert!(executables.iter().all(|(_, method)| script("/usr", method).lines().count() == 2));
        }
    }
}
