//! Property tests: all rules on hosts with arbitrary files and values.

use linerate_model::fact::Fact;
use linerate_model::host::HostFacts;
use linerate_model::host::catalogue::CATALOGUE;
use linerate_model::host::settings::order::DIRECTORIES;
use linerate_model::host::settings::{KernelSetting, ReadOrder, SettingWritability, SettingsFile};
use proptest::prelude::*;

use super::audit;
use super::settings_support::host;

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..CATALOGUE.len()).prop_map(|index| CATALOGUE[index].key.to_owned()),
        1 => (0..CATALOGUE.len()).prop_map(|index| CATALOGUE[index].key.replace('_', ".")),
        1 => (0..CATALOGUE.len()).prop_map(|index| CATALOGUE[index].key.replace('.', "/")),
        1 => "net\\.[a-z*?\\[\\]./]{0,20}",
        1 => Just("net.ipv4.tcp_tw_recycle".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (-3_i64..5).prop_map(|number| number.to_string()),
        2 => any::<i64>().prop_map(|number| number.to_string()),
        3 => prop::collection::vec(-1_i64..40_000_000, 1..5)
            .prop_map(|numbers| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")),
        1 => Just("4096 87380 16777216".to_owned()),
        1 => Just("524287".to_owned()),
        1 => "[ -~é]{0,12}",
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (key(), value(), any::<bool>())
            .prop_map(|(key, value, may_fail)| format!("{}{key} = {value}", if may_fail { "-" } else { "" })),
        1 => key().prop_map(|key| format!("-{key}")),
        1 => "[ -~é\t]{0,30}",
    ]
}

fn file() -> impl Strategy<Value = SettingsFile> {
    let path = prop_oneof![
        5 => (0..DIRECTORIES.len(), "[0-9a-c]{1,2}").prop_map(|(rank, name)| format!("{}/{name}.conf", DIRECTORIES[rank])),
        1 => Just("/etc/sysctl.conf".to_owned()),
    ];
    (path, prop::collection::vec(line(), 0..8)).prop_map(|(path, lines)| SettingsFile::parsed(path, &lines.join("\n")))
}

fn any_host() -> impl Strategy<Value = HostFacts> {
    let release = prop_oneof![Just("6.12.3"), Just("6.18.1-x"), Just("5.14.0-el9"), Just("4.4.0"), Just("strange")];
    let values = prop::collection::vec(((0..CATALOGUE.len()), value()), 0..30);
    let files = prop::collection::vec(file(), 0..6);
    (release, values, files, any::<bool>(), any::<bool>()).prop_map(|(release, values, files, initial, systemd)| {
        let mut made = host(&[]);
        made.kernel.release = Fact::Known(release.to_owned());
        made.privileges.initial_network_namespace = Fact::Known(initial);
        made.settings.systemd = Fact::Known(systemd);
        made.settings.files = files;
        for (index, value) in values {
            let setting = KernelSetting { value: Fact::Known(value), writability: SettingWritability::Possible };
            made.settings.values.insert(CATALOGUE[index].key.to_owned(), setting);
        }
        made
    })
}

proptest! {
    #[test]
    fn findings_are_whole(made in any_host()) {
        for finding in audit(&made) {
            prop_assert!(!finding.text.is_empty() && !finding.evidence.is_empty(), "{:?}", finding);
            prop_assert!(!finding.remedy.is_empty() || finding.change.is_some(), "{:?}", finding);
            prop_assert!(!finding.source.is_empty() && !finding.subject.is_empty(), "{:?}", finding);
        }
    }

    /// No rule proposes what the hard rules forbid, whatever the files contain.
    #[test]
    fn nothing_harmful_is_proposed(made in any_host()) {
        let features = ["tcp_sack", "tcp_timestamps", "tcp_window_scaling", "tcp_dsack", "tcp_moderate_rcvbuf"];
        for finding in audit(&made) {
            if let Some(change) = &finding.change {
                let target = format!("{:?}", change.target);
                let off = features.iter().any(|feature| target.contains(&format!("net.ipv4.{feature}\"")));
                prop_assert!(!(off && change.to == "0"), "{:?}", finding);
                prop_assert!(Some(&change.to) != change.from.as_ref(), "{:?}", finding);
            }
        }
    }

    /// The line that decides a value is one of those that are read, and concerns the setting.
    #[test]
    fn the_deciding_line_is_among_the_lines_read(made in any_host(), index in 0..CATALOGUE.len()) {
        let key = CATALOGUE[index].key;
        for order in [ReadOrder::Systemd, ReadOrder::Procps] {
            if let Some(source) = made.settings.decides(key, order) {
                prop_assert!(source.assignment.concerns(key) && source.value().is_some());
                prop_assert!(made.settings.sources(key, order).contains(&source));
            }
        }
    }
}
