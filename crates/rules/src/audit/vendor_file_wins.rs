//! A settings file of the administrator that a file of the distribution overrides.

use linerate_model::finding::{AuditFinding, FindingSeverity};
use linerate_model::host::HostFacts;
use linerate_model::host::settings::{FileOwner, SettingSource};

use super::AuditRule;
use super::setting_overridden::lines_at_boot;
use super::settings_support::{about_lines, delete_line, host_with_files, is_advisable, own_file_line};

const ID: &str = "vendor-file-wins";
const CITATION: &str = "sysctl.d(5): 10 to 40 for files below /usr, 60 to 90 for those below /etc and /run";

pub(super) const RULE: AuditRule = AuditRule {
    id: ID,
    title: "A settings file of the distribution overrides one of the administrator.",
    explanation: "File names decide, not directories: /etc/sysctl.d/10-mine.conf is read before \
    /usr/lib/sysctl.d/50-default.conf and is overridden. Every file of a package overrides the names \
    with 10 that guides recommend.",
    citation: CITATION,
    keys: &[],
    check,
    fires: || {
        host_with_files(
            &[],
            &[
                ("/etc/sysctl.d/10-tcp-socket-buffers.conf", "net.ipv4.tcp_rmem = 4096 131072 8388608\n"),
                ("/usr/lib/sysctl.d/50-vendor.conf", "net.ipv4.tcp_rmem = 4 5 6\n"),
            ],
        )
    },
    silent: || {
        host_with_files(
            &[],
            &[
                ("/etc/sysctl.d/90-mine.conf", "net.ipv4.tcp_rmem = 4096 131072 8388608\n"),
                ("/usr/lib/sysctl.d/50-vendor.conf", "net.ipv4.tcp_rmem = 4 5 6\n"),
            ],
        )
    },
};

/// True when a line of a package overrides one of the administrator.
pub(super) fn is_overridden_by_vendor(line: &SettingSource, winner: &SettingSource) -> bool {
    let below = |source: &SettingSource, tops: &[&str]| {
        source.file.as_deref().is_some_and(|file| tops.iter().any(|top| file.starts_with(top)))
    };
    line.value() != winner.value() && below(line, &["/etc/", "/run/"]) && below(winner, &["/usr/", "/lib/"])
}

fn check(host: &HostFacts) -> Vec<AuditFinding> {
    let mut findings = Vec::new();
    for (key, lines) in lines_at_boot(host) {
        let Some((winner, earlier)) = lines.split_last() else { continue };
        let Some(loser) = earlier.iter().rfind(|line| is_overridden_by_vendor(line, winner)) else { continue };
        let (wanted, comes) = (loser.value().unwrap_or_default(), winner.value().unwrap_or_default());
        let text = format!(
            "{} sets {key} = {wanted}, but {} is read later and sets {comes}: file names decide, not directories.",
            loser.location(),
            winner.location()
        );
        let mut finding = about_lines(ID, FindingSeverity::Warning, &key, text, &[loser, winner]);
        CITATION.clone_into(&mut finding.source);
        "the other settings of the file are applied later, too".clone_into(&mut finding.risk);
        finding.remedy.push(remedy(host, &key, loser));
        findings.push(finding);
    }
    findings
}

/// Renames the file, unless that would put a value in effect that linerate never sets.
fn remedy(host: &HostFacts, key: &str, loser: &SettingSource) -> String {
    let wanted = loser.value().unwrap_or_default();
    if !is_advisable(host, key, wanted) {
        return delete_line(host, loser);
    }
    let mut lines = host.settings.files.iter().filter(|file| Some(&file.path) == loser.file.as_ref());
    let all_good = lines.all(|file| {
        file.sources().all(|line| line.value().is_none_or(|value| is_advisable(host, &line.assignment.key, value)))
    });
    let file = loser.leads_to.clone().or_else(|| loser.file.clone()).unwrap_or_default();
    if all_good && loser.owner() == FileOwner::Administrator {
        format!("mv {file} {}", later_name(&file))
    } else {
        own_file_line(key, wanted)
    }
}

/// Returns the same name with the prefix 90.
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
