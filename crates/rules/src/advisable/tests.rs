//! The settings of published recipes, and arbitrary values, against every command that the audit prints.

use std::collections::BTreeMap;

use linerate_model::change::ChangeTarget;
use linerate_model::finding::AuditFinding;
use linerate_model::host::catalogue::CATALOGUE;
use linerate_model::host::settings::{KernelSetting, SettingWritability, SettingsFile};
use proptest::prelude::*;

use super::*;
use crate::audit::{audit, test_host};

/// Settings of the guide, the slides and the walkthrough, as they are printed there.
const PUBLISHED: &[(&str, &str)] = &[
    ("net.core.netdev_max_backlog", "30000"),
    ("net.core.netdev_max_backlog", "300000"),
    ("net.core.optmem_max", "524287"),
    ("net.core.rmem_default", "524287"),
    ("net.core.rmem_max", "16777216"),
    ("net.core.rmem_max", "524287"),
    ("net.core.wmem_default", "524287"),
    ("net.core.wmem_max", "16777216"),
    ("net.core.wmem_max", "524287"),
    ("net.ipv4.ip_no_pmtu_disc", "0"),
    ("net.ipv4.tcp.sack", "0"),
    ("net.ipv4.tcp_congestion_control", "bic"),
    ("net.ipv4.tcp_congestion_control", "tcp_hpc"),
    ("net.ipv4.tcp_ecn", "1"),
    ("net.ipv4.tcp_mem", "4096 87380 16777216"),
    ("net.ipv4.tcp_moderate_rcvbuf", "1"),
    ("net.ipv4.tcp_mtu_probing", "2"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_rmem", "4096 262144 21367520"),
    ("net.ipv4.tcp_rmem", "4096 87380 16777216"),
    ("net.ipv4.tcp_rmem", "10000000 10000000 10000000"),
    ("net.ipv4.tcp_sack", "0"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_timestamps", "0"),
    ("net.ipv4.tcp_window_scaling", "0"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_wmem", "4096 24576 21367520"),
    ("net.ipv4.tcp_wmem", "4096 65536 16777216"),
    ("net.ipv4.tcp_wmem", "4096 87380 16777216"),
];
/// Published values that no linerate sets, whatever the kernel and the memory.
const NEVER: &[(&str, &str)] = &[
    ("net.core.netdev_max_backlog", "30000"),
    ("net.core.netdev_max_backlog", "300000"),
    ("net.core.optmem_max", "524287"),
    ("net.core.rmem_default", "524287"),
    ("net.core.rmem_max", "524287"),
    ("net.core.wmem_max", "524287"),
    ("net.ipv4.tcp_congestion_control", "tcp_hpc"),
    ("net.ipv4.tcp_ecn", "1"),
    ("net.ipv4.tcp_mem", "289266 385688 16777216"),
    ("net.ipv4.tcp_mem", "4096 87380 16777216"),
    ("net.ipv4.tcp_mtu_probing", "2"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_rmem", "10000000 10000000 10000000"),
    ("net.ipv4.tcp_rmem", "4096 262144 21367520"),
    ("net.ipv4.tcp_sack", "0"),
    ("net.ipv4.tcp_timestamps", "0"),
    ("net.ipv4.tcp_window_scaling", "0"),
];
const RELEASES: [&str; 5] = ["4.18.0-553.el8", "5.14.0-427.el9", "6.1.0-18-amd64", "6.12.38", "6.18.1"];
const FILES: [&str; 4] = [
    "/etc/sysctl.d/10-recipe.conf",
    "/run/sysctl.d/50-recipe.conf",
    "/usr/lib/sysctl.d/50-recipe.conf",
    "/usr/lib/sysctl.d/99-recipe.conf",
];

/// Host with the kernel's defaults as running values.
fn usual_host(release: &str) -> HostFacts {
    let mut host = test_host(&[("net.ipv4.tcp_available_congestion_control", "reno cubic")]);
    host.kernel.release = Fact::Known(release.to_owned());
    let version = host.kernel.version().expect("a version");
    for knob in CATALOGUE {
        if let Some(default) = linerate_model::host::defaults::default_of(knob.key, version, &host.memory) {
            run(&mut host, knob.key, &default.value);
        }
    }
    run(&mut host, "net.ipv4.tcp_congestion_control", "cubic");
    host.settings.names = Fact::Known(CATALOGUE.iter().map(|knob| knob.key.to_owned()).collect());
    host
}

fn run(host: &mut HostFacts, key: &str, value: &str) {
    let setting = KernelSetting { value: Fact::Known(value.to_owned()), writability: SettingWritability::Possible };
    host.settings.values.insert(key.to_owned(), setting);
}

fn write(host: &mut HostFacts, file: &str, lines: &[(&str, &str)], changed: Option<bool>) {
    let lines: Vec<String> = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let mut file = SettingsFile::parsed(file, &lines.join("\n"));
    file.changed_since_boot = changed.map_or_else(|| Fact::absent("not read"), Fact::Known);
    host.settings.files.push(file);
}

/// Assignment in a command or an edit: `sysctl -w KEY='VALUE'`, `edit FILE:1: KEY = VALUE`, `write FILE: KEY = VALUE`.
fn assignments(remedy: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = remedy;
    while let Some(at) = rest.find("net.") {
        rest = &rest[at..];
        let end = rest.find([' ', '=', ':']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let trimmed = after.trim_start();
        if let Some(value) = trimmed.strip_prefix('=') {
            let value = value.trim_start();
            let value = match value.strip_prefix('\'') {
                Some(quoted) => quoted.split('\'').next().unwrap_or_default(),
                None if after.starts_with('=') => value.split(' ').next().unwrap_or_default(),
                None => value.split(" (").next().unwrap_or_default(),
            };
            found.push((key.to_owned(), value.trim().to_owned()));
        }
        rest = after;
    }
    found
}

/// Checks every command of an audit: advisable values only, one value per setting, and no edit of a foreign file.
fn faults(host: &HostFacts) -> Vec<String> {
    let context = ValueContext::from(host);
    let findings = audit(host);
    let mut faults = Vec::new();
    let mut subjects = BTreeMap::new();
    for finding in &findings {
        for line in &finding.remedy {
            for (key, value) in assignments(line) {
                faults.extend(refusal(&context, &key, &value).map(|why| format!("{}: {line}: {why}", finding.rule)));
            }
            if ["edit /usr", "delete /usr", "edit /run", "delete /run", "edit /lib"]
                .iter()
                .any(|bad| line.contains(bad))
            {
                faults.push(format!("{}: {line}: the file belongs to a package or a program", finding.rule));
            }
        }
        if let Some((ChangeTarget::Setting { key }, to)) =
            finding.change.as_ref().map(|change| (&change.target, &change.to))
        {
            faults.extend(refusal(&context, key, to).map(|why| format!("{}: {key} = {to}: {why}", finding.rule)));
        }
        if finding.subject.starts_with("net.") {
            *subjects.entry(finding.subject.as_str()).or_insert(0) += 1;
        }
        faults.extend(contradiction(finding));
    }
    faults.extend(
        subjects.into_iter().filter(|(_, count)| *count > 1).map(|(key, count)| format!("{key}: {count} findings")),
    );
    faults
}

/// Two different running values in the commands of one finding, unless they are alternatives.
fn contradiction(finding: &AuditFinding) -> Option<String> {
    let sets = finding.remedy.iter().filter(|line| line.starts_with("sysctl -w")).flat_map(|line| assignments(line));
    let values: BTreeMap<String, BTreeSet<String>> = sets.fold(BTreeMap::new(), |mut values, (key, value)| {
        values.entry(key).or_insert_with(BTreeSet::new).insert(value);
        values
    });
    values.into_iter().find(|(_, values)| values.len() > 1).map(|(key, values)| format!("{key}: {values:?}"))
}

#[test]
fn assignments_of_commands_are_read() {
    assert_eq!(assignments("sysctl -w net.a.b='1 2 3'"), [("net.a.b".to_owned(), "1 2 3".to_owned())]);
    assert_eq!(assignments("sysctl -w net.a.b=1 (value)"), [("net.a.b".to_owned(), "1".to_owned())]);
    assert_eq!(assignments("edit /etc/x.conf:2: net.a = 1 2 (x)"), [("net.a".to_owned(), "1 2".to_owned())]);
    assert_eq!(assignments("delete /etc/x.conf:2"), []);
}

#[test]
fn published_values_that_harm_are_refused_on_every_kernel() {
    for release in RELEASES {
        let context = ValueContext::from(&usual_host(release));
        for (key, value) in NEVER {
            assert!(refusal(&context, key, value).is_some(), "{release}: {key} = {value}");
        }
        for (key, value) in [("net.ipv4.tcp_sack", "1"), ("net.ipv4.tcp_congestion_control", "bbr")] {
            assert_eq!(refusal(&context, key, value), None, "{release}: {key} = {value}");
        }
    }
    let context = ValueContext::from(&usual_host("6.12.38"));
    assert_eq!(refusal(&context, "net.ipv4.tcp_rmem", "4096 131072 67108864"), None);
    let later = ValueContext::from(&usual_host("6.18.1"));
    assert!(refusal(&later, "net.ipv4.tcp_rmem", "4096 131072 16777216").is_some_and(|why| why.contains("33554432")));
}

#[test]
fn the_defaults_of_every_kernel_are_advisable() {
    for release in RELEASES {
        let host = usual_host(release);
        let context = ValueContext::from(&host);
        for (key, setting) in &host.settings.values {
            let value = setting.value.known().expect("set");
            let reason =
                refusal(&context, key, value).filter(|why| !why.contains("no effect") && !why.contains("read-only"));
            // Linux writes the threshold by default; linerate recommends not to.
            assert!(
                reason.is_none() || key.ends_with("no_ssthresh_metrics_save"),
                "{release}: {key} = {value}: {reason:?}"
            );
        }
    }
}

#[test]
fn no_published_line_is_ever_proposed() {
    for release in RELEASES {
        for (key, value) in PUBLISHED {
            for (running, file) in
                [(true, None), (false, Some(0)), (true, Some(0)), (false, Some(1)), (false, Some(2)), (true, Some(3))]
            {
                for changed in [None, Some(true), Some(false)] {
                    let mut host = usual_host(release);
                    if running && *key != "net.ipv4.tcp.sack" {
                        run(&mut host, key, value);
                    }
                    if let Some(file) = file {
                        write(&mut host, FILES[file], &[(key, value)], changed);
                    }
                    assert_eq!(
                        faults(&host),
                        Vec::<String>::new(),
                        "{release}: {key} = {value}, running {running}, {file:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_line_of_a_whole_published_block_is_proposed() {
    for release in RELEASES {
        for running in [false, true] {
            let mut host = usual_host(release);
            write(&mut host, FILES[0], PUBLISHED, Some(true));
            for (key, value) in PUBLISHED.iter().filter(|(key, _)| running && *key != "net.ipv4.tcp.sack") {
                run(&mut host, key, value);
            }
            assert_eq!(faults(&host), Vec::<String>::new(), "{release}, running {running}");
            let found = audit(&host);
            let of = |key: &str| found.iter().find(|finding| finding.subject == key);
            assert!(of("net.ipv4.tcp_mem").is_some_and(|finding| finding.rule == "tcp-memory-in-bytes"), "{release}");
        }
    }
}

#[test]
fn a_file_younger_than_the_boot_is_not_loaded_yet() {
    let text = |changed| {
        let mut host = usual_host("6.12.38");
        write(&mut host, FILES[0], &[("net.ipv4.tcp_rmem", "4096 131072 16777216")], changed);
        let found = audit(&host);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].remedy[0], "sysctl -w net.ipv4.tcp_rmem='4096 131072 16777216' (value of the file)");
        found[0].text.clone()
    };
    assert!(text(Some(true)).contains("is not loaded yet") && !text(Some(true)).contains("changed it"));
    assert!(text(Some(false)).contains("something else changed it since the boot"));
    assert!(text(None).contains("either the file is not loaded yet, or"));
}

#[test]
fn files_of_programs_are_gone_at_the_next_boot() {
    let mut host = usual_host("6.12.38");
    write(&mut host, "/run/sysctl.d/90-program.conf", &[("net.ipv4.tcp_rmem", "4096 131072 16777216")], Some(true));
    assert!(audit(&host).iter().all(|finding| !finding.text.contains("next boot will set")), "{:?}", audit(&host));
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..PUBLISHED.len()).prop_map(|index| PUBLISHED[index].1.to_owned()),
        2 => (-2_i64..10).prop_map(|number| number.to_string()),
        2 => (0_i64..5_000_000_000).prop_map(|number| number.to_string()),
        3 => prop::collection::vec(0_i64..5_000_000_000, 3..4)
            .prop_map(|numbers| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        2 => prop::collection::vec(0_i64..70_000_000, 1..4).prop_map(|mut numbers| {
            numbers.sort_unstable();
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }),
        1 => "[a-z_]{1,8}",
    ]
}

fn any_line() -> impl Strategy<Value = (usize, usize, String, bool)> {
    (0..CATALOGUE.len(), 0..FILES.len() + 1, any_value(), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_command_of_an_audit_is_refused(
        release in 0..RELEASES.len(),
        lines in prop::collection::vec(any_line(), 1..12),
        changed in prop::option::of(any::<bool>()),
    ) {
        let mut host = usual_host(RELEASES[release]);
        let mut files: BTreeMap<usize, Vec<(&str, String)>> = BTreeMap::new();
        for (index, file, value, running) in &lines {
            let key = CATALOGUE[*index].key;
            if *running {
                run(&mut host, key, value);
            }
            if *file < FILES.len() {
                files.entry(*file).or_default().push((key, value.clone()));
            }
        }
        for (file, lines) in &files {
            let lines: Vec<(&str, &str)> = lines.iter().map(|(key, value)| (*key, value.as_str())).collect();
            write(&mut host, FILES[*file], &lines, changed);
        }
        prop_assert_eq!(faults(&host), Vec::<String>::new());
    }
}
