//! A file of the administrator's whose name sorts before one of the distribution's.

use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::Source;

use super::Rule;
use super::setting_overridden::lines_at_boot;
use super::settings_support::{about_lines, host_with_files};

const ID: &str = "vendor-file-wins";
const CITATION: &str = "sysctl.d(5): 10 to 40 for files below /usr, 60 to 90 for those below /etc and /run";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "A file of the distribution's overrides one of the administrator's.",
    explanation: "Directories do not decide, names do: /etc/sysctl.d/10-mine.conf is read before \
                  /usr/lib/sysctl.d/50-default.conf and loses. Guides that recommend a name with 10 lose against \
                  every file of a package.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || {
        host_with_files(
            &[],
            &[
                ("/etc/sysctl.d/10-tcp-socket-buffers.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
                ("/usr/lib/sysctl.d/50-vendor.conf", "net.ipv4.tcp_rmem = 4 5 6\n"),
            ],
        )
    },
    silent: || {
        host_with_files(
            &[],
            &[
                ("/etc/sysctl.d/90-mine.conf", "net.ipv4.tcp_rmem = 1 2 3\n"),
                ("/usr/lib/sysctl.d/50-vendor.conf", "net.ipv4.tcp_rmem = 4 5 6\n"),
            ],
        )
    },
};

/// Whether a line of the administrator's loses to one of a package.
pub(super) fn is_beaten_by_vendor(line: &Source, winner: &Source) -> bool {
    let below = |source: &Source, tops: &[&str]| {
        source.file.as_deref().is_some_and(|file| tops.iter().any(|top| file.starts_with(top)))
    };
    line.value() != winner.value() && below(line, &["/etc/", "/run/"]) && below(winner, &["/usr/", "/lib/"])
}

fn check(host: &HostFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (key, lines) in lines_at_boot(host) {
        let Some((winner, earlier)) = lines.split_last() else { continue };
        let Some(loser) = earlier.iter().rfind(|line| is_beaten_by_vendor(line, winner)) else { continue };
        let (wanted, comes) = (loser.value().unwrap_or_default(), winner.value().unwrap_or_default());
        let text = format!(
            "{} wants {key} = {wanted}, but {} is read later and sets {comes}: names decide, not directories.",
            loser.place(),
            winner.place()
        );
        let mut finding = about_lines(ID, Severity::Warning, &key, text, &[loser, winner]);
        CITATION.clone_into(&mut finding.source);
        "the other settings of the file come later, too".clone_into(&mut finding.risk);
        let file = loser.leads_to.clone().or_else(|| loser.file.clone()).unwrap_or_default();
        finding.remedy.push(format!("mv {file} {}", later_name(&file)));
        findings.push(finding);
    }
    findings
}

/// The same name with 90 in front.
fn later_name(file: &str) -> String {
    let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
    let rest = name.trim_start_matches(|character: char| character.is_ascii_digit()).trim_start_matches('-');
    format!("{directory}/90-{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_gets_a_later_name() {
        let found = check(&(RULE.fires)());
        assert_eq!(
            found[0].remedy,
            ["mv /etc/sysctl.d/10-tcp-socket-buffers.conf /etc/sysctl.d/90-tcp-socket-buffers.conf"]
        );
    }
}
