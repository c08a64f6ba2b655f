use core::time::Duration;

use linerate_model::change::{ChangeGroup, ChangeReason, ChangeTarget, DeviceAttribute, EffectTiming, LinkAttribute};
use linerate_units::WallTime;

use super::*;

fn change(target: ChangeTarget, to: &str) -> HostChange {
    let reason = ChangeReason { text: "it is\nneeded".into(), ..ChangeReason::default() };
    HostChange {
        target,
        from: None,
        to: to.into(),
        group: ChangeGroup::Device,
        takes_effect: EffectTiming::Now,
        reason,
    }
}

fn setting(key: &str, to: &str) -> HostChange {
    change(ChangeTarget::Setting { key: key.into() }, to)
}

fn plan(host: &str, changes: Vec<HostChange>) -> HostPlan {
    HostPlan { host: host.into(), plan: ChangePlan { made_at: WallTime::from_unix(Duration::ZERO), changes } }
}

/// Each kind of target with a unique value.
fn everything(host: &str) -> HostPlan {
    let interface = || "eth7".to_owned();
    let mut changes = vec![
        setting("net.ipv4.tcp_rmem", "4096 131072 67108864"),
        setting("net.core.rmem_max", "67108865"),
        setting("net.ipv4.tcp_congestion_control", "bbr"),
        change(ChangeTarget::Queueing { interface: interface() }, "qdisc replace dev eth7 root fq maxrate 285mbit"),
        change(ChangeTarget::TrafficControl { interface: interface() }, "traffic control of eth7"),
        change(ChangeTarget::Route { destination: "default".into() }, "via 192.0.2.1 congctl htcp"),
        change(ChangeTarget::File { path: "/sys/class/net/eth7/queues/rx-0/rps_cpus".into() }, "ff0f"),
        change(ChangeTarget::File { path: "/proc/irq/44/smp_affinity_list".into() }, "3-9"),
        change(ChangeTarget::Offload { interface: interface(), feature: "rx-gro".into() }, "on"),
        change(ChangeTarget::Offload { interface: interface(), feature: "rx-odd-feature".into() }, "off"),
    ];
    for (number, attribute) in LinkAttribute::ALL.iter().enumerate() {
        let target = ChangeTarget::Link { interface: interface(), attribute: *attribute };
        changes.push(change(target, &(7100 + number).to_string()));
    }
    for (number, attribute) in DeviceAttribute::ALL.iter().enumerate() {
        let target = ChangeTarget::Device { interface: interface(), attribute: *attribute };
        let to = if number < 4 { (8200 + number).to_string() } else { "off".to_owned() };
        changes.push(change(target, &to));
    }
    plan(host, changes)
}

fn heading() -> ExportHeading {
    ExportHeading { linerate_version: "0.1.0".into(), date: "2026-11-22".into(), evidence: "runs 1 and 2".into() }
}

fn exported(name: &str, plans: &[HostPlan]) -> Export {
    format(name).expect("listed").export(plans, &heading())
}

/// Comments and contents of a file; wrapped comments are joined.
fn parts(text: &str) -> (String, String) {
    let (comments, body): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
    (comments.iter().map(|line| line.trim_start_matches('#')).collect(), body.join("\n"))
}

fn names(export: &Export) -> Vec<&str> {
    export.files.iter().map(|file| file.name.as_str()).collect()
}

#[test]
fn formats_are_listed_in_order_once_and_documented() {
    assert!(FORMATS.is_sorted_by(|one, other| one.name < other.name));
    for form in FORMATS {
        assert!(
            form.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'.'),
            "{}",
            form.name
        );
        assert!(!form.title.is_empty() && !form.use_it.is_empty() && !form.source.is_empty(), "{}", form.name);
        assert_eq!(format(form.name).expect("has this name").title, form.title);
    }
    assert!(format("powerpoint").is_none());
}

#[test]
fn no_change_of_a_plan_is_lost_silently() {
    for form in FORMATS {
        let everything = everything("near");
        let export = form.export(core::slice::from_ref(&everything), &heading());
        let (comments, bodies): (Vec<String>, Vec<String>) = export.files.iter().map(|file| parts(&file.text)).unzip();
        for change in &everything.plan.changes {
            let is_omitted = export.omitted.iter().any(|omitted| omitted.change == *change);
            assert_eq!(is_omitted, (form.takes)(change).is_err(), "{}: {}", form.name, change.target);
            let note = format!("Not included: near: {} = {} (", change.target, change.to);
            assert!(comments.iter().all(|comments| comments.contains(&note) == is_omitted), "{note} {comments:?}");
            if change.to.len() > 3 {
                let is_included = bodies.iter().any(|body| body.contains(&change.to));
                assert!(is_included != is_omitted, "{}: {} in\n{bodies:?}", form.name, change.target);
            }
        }
        assert!(export.omitted.len() < everything.plan.changes.len(), "{} supports no change", form.name);
        for (file, comments) in export.files.iter().zip(&comments) {
            assert!(comments.contains(" Written by linerate 0.1.0 for near, 2026-11-22: "), "{comments}");
            assert!(comments.contains("Evidence: runs 1 and 2.") && file.text.ends_with('\n'), "{comments}");
        }
    }
}

#[test]
fn an_empty_plan_has_no_file_and_an_unsupported_one_a_list() {
    for form in FORMATS {
        assert_eq!(form.export(&[plan("near", Vec::new())], &heading()), Export { files: vec![], omitted: vec![] });
        let route = change(ChangeTarget::Route { destination: "default".into() }, "initcwnd 50");
        let export = form.export(&[plan("far", vec![route])], &heading());
        let [file] = &export.files[..] else { panic!("one file: {export:?}") };
        assert_eq!((file.name.as_str(), export.omitted.len()), ("not-included.txt", 1));
        assert!(file.text.lines().all(|line| line.starts_with('#')), "{}", file.text);
        let (comments, _) = parts(&file.text);
        assert!(comments.contains("default = initcwnd 50 ("), "{comments}");
    }
}

/// Settings of one host are in no section of the other.
#[test]
fn each_host_has_its_own_section_or_file() {
    let plans = [
        plan("near", vec![setting("net.ipv4.tcp_wmem", "4096 16384 4194305")]),
        plan("192.0.2.7", vec![setting("net.ipv4.tcp_rmem", "4096 131072 6291457")]),
    ];
    for name in ["docker", "nixos", "sysctl.d", "tuned"] {
        let export = exported(name, &plans);
        let [near, far] = &export.files[..] else { panic!("{name}: two files: {export:?}") };
        assert!(near.name.starts_with("near/") && far.name.starts_with("192.0.2.7/"), "{} {}", near.name, far.name);
        assert!(near.text.contains("4096 16384 4194305") && !near.text.contains("tcp_rmem"), "{}", near.text);
        assert!(far.text.contains("4096 131072 6291457") && !far.text.contains("tcp_wmem"), "{}", far.text);
    }
    for (name, section) in [("ansible", "- name: Configure"), ("kubernetes", "---\n")] {
        let export = exported(name, &plans);
        let [file] = &export.files[..] else { panic!("{name}: one file: {export:?}") };
        assert_eq!(file.hosts, "near, 192.0.2.7");
        let sections: Vec<&str> = file.text.split(section).collect();
        let [_, near, far] = sections[..] else { panic!("two sections: {}", file.text) };
        assert!(
            near.contains("\"near\"") && near.contains("4096 16384 4194305") && !near.contains("tcp_rmem"),
            "{near}"
        );
        assert!(far.contains("\"192.0.2.7\"") && far.contains("4096 131072 6291457"), "{far}");
    }
}

#[test]
fn of_two_changes_of_a_target_the_later_one_counts() {
    let plans = [
        plan("a", vec![setting("net.ipv4.tcp_rmem", "1 2 3"), setting("net.ipv4.tcp_rmem", "4 5 6")]),
        plan("a", vec![setting("net.ipv4.tcp_rmem", "7 8 9")]),
    ];
    for form in FORMATS.iter().filter(|form| (form.takes)(&plans[0].plan.changes[0]).is_ok()) {
        let [file] = &form.export(&plans, &heading()).files[..] else { panic!("one file") };
        assert!(file.text.contains("7 8 9") && !file.text.contains("1 2 3"), "{}", file.text);
        assert_eq!(file.text.matches("tcp_rmem").count(), 1, "{}", file.text);
    }
}

#[test]
fn files_are_at_their_locations() {
    for (name, expected) in [
        ("ansible", "linerate.yml"),
        ("docker", "near/linerate-run.sh"),
        ("kubernetes", "linerate-pods.yaml"),
        ("network-manager", "near/linerate-nmcli.sh"),
        ("nixos", "near/linerate.nix"),
        ("sysctl.d", "near/etc/sysctl.d/90-linerate.conf"),
        ("systemd-link", "near/etc/systemd/network/10-linerate-eth7.link"),
        ("tuned", "near/etc/tuned/profiles/linerate/tuned.conf"),
    ] {
        assert_eq!(names(&exported(name, &[everything("near")])), [expected]);
    }
    let mtu = |interface: &str| {
        change(ChangeTarget::Link { interface: interface.into(), attribute: LinkAttribute::Mtu }, "9000")
    };
    let export = exported("systemd-link", &[plan("../x", vec![mtu("eth0"), mtu("eth0.1")])]);
    let expected =
        ["_.-x/etc/systemd/network/10-linerate-eth0.link", "_.-x/etc/systemd/network/10-linerate-eth0.1.link"];
    assert_eq!(names(&export), expected);
}

/// Two names that become one file name, pod or host of an inventory: no host overwrites the other.
#[test]
fn similar_names_stay_apart() {
    let of = |host: &str, value: &str| plan(host, vec![setting("net.ipv4.tcp_wmem", value)]);
    let plans = [of("db 1", "4096 16384 4194305"), of("db-1", "4096 16384 4194306"), of("DB*1", "4096 16384 4194307")];
    for form in FORMATS.iter().filter(|form| (form.takes)(&plans[0].plan.changes[0]).is_ok()) {
        let export = form.export(&plans, &heading());
        let names: std::collections::BTreeSet<String> = names(&export).iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(names.len(), export.files.len(), "{}: {names:?}", form.name);
        let text: String = export.files.iter().map(|file| file.text.as_str()).collect();
        assert!((5..8).all(|end| text.contains(&format!("4096 16384 419430{end}"))), "{text}");
    }
    let playbook = &exported("ansible", &plans).files[0].text;
    for line in ["  hosts: \"host-db-1\"", "  hosts: \"db-1\"", "  hosts: \"host-DB-1-2\""] {
        assert!(playbook.lines().any(|found| found == line), "{line} is not in {playbook}");
    }
    assert!(playbook.contains("# In the inventory, host-DB-1-2 is the host \"DB*1\".\n"), "{playbook}");
    let pods = &exported("kubernetes", &plans).files[0].text;
    assert!((2..4).all(|number| pods.contains(&format!("  name: linerate-db-1-{number}\n"))), "{pods}");
}

/// Names that are patterns or options in some format are in none.
#[test]
fn names_with_a_meaning_are_omitted() {
    let mtu = |interface: &str| {
        change(ChangeTarget::Link { interface: interface.into(), attribute: LinkAttribute::Mtu }, "9000")
    };
    let odd = [
        mtu("eth*"),
        mtu("!lo"),
        mtu("-x"),
        mtu("a=b"),
        mtu("a#b"),
        setting("net.ipv4.conf.*.rp_filter", "1"),
        setting("-net.ipv4.tcp_sack", "1"),
    ];
    for form in FORMATS {
        let export = form.export(&[plan("near", odd.to_vec())], &heading());
        assert_eq!(export.omitted.len(), odd.len(), "{}: {:?}", form.name, export.files);
        assert!(export.omitted.iter().all(|change| change.reason.contains("have a meaning")), "{:?}", export.omitted);
    }
    let taken = exported("systemd-link", &[plan("near", vec![mtu("büro0.100"), mtu("wl_0-a")])]);
    assert_eq!(taken.omitted, []);
}

#[test]
fn known_lines_of_each_format() {
    let expected: [(&str, &[&str]); 8] = [
        ("sysctl.d", &["net.ipv4.tcp_rmem = 4096 131072 67108864", "# it is needed"]),
        (
            "ansible",
            &[
                "  hosts: \"near\"",
                "        dest: /etc/sysctl.d/90-linerate.conf",
                "          net.ipv4.tcp_rmem = 4096 131072 67108864",
                "      ansible.builtin.command: sysctl -p /etc/sysctl.d/90-linerate.conf",
                "        dest: /etc/systemd/network/10-linerate-eth7.link",
                "          w /sys/class/net/eth7/queues/rx-0/rps_cpus - - - - ff0f",
            ],
        ),
        ("docker", &["--sysctl 'net.ipv4.tcp_rmem=4096 131072 67108864'", "\"$@\""]),
        (
            "kubernetes",
            &[
                "apiVersion: v1",
                "    kubernetes.io/hostname: \"near\"",
                "      - name: net.ipv4.tcp_rmem",
                "        value: \"4096 131072 67108864\"",
                "  containers:",
            ],
        ),
        (
            "nixos",
            &[
                "    \"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\";",
                "    # it is needed",
                "      MTUBytes = \"7100\";",
                "    \"w /sys/class/net/eth7/queues/rx-0/rps_cpus - - - - ff0f\"",
            ],
        ),
        ("systemd-link", &["MTUBytes=7100", "RxBufferSize=8200", "GenericReceiveOffload=yes", "OriginalName=eth7"]),
        ("tuned", &["[sysctl]", "ring=rx 8200 tx 8201", "features=rx-gro on rx-odd-feature off", "mtu=7100"]),
        (
            "network-manager",
            &[
                "#!/bin/sh",
                "nmcli connection modify \"$profile\" 802-3-ethernet.mtu 7100",
                "nmcli device reapply 'eth7'",
            ],
        ),
    ];
    for (name, lines) in expected {
        let export = exported(name, &[everything("near")]);
        let [file] = &export.files[..] else { panic!("one file: {export:?}") };
        for line in lines {
            let is_there =
                file.text.lines().any(|found| found == *line || found.trim_end_matches(" \\").ends_with(line));
            assert!(is_there, "{line:?} is not in the format {name}:\n{}", file.text);
        }
    }
}

#[test]
fn formats_that_express_everything_are_named() {
    let mtu = change(ChangeTarget::Link { interface: "eth0".into(), attribute: LinkAttribute::Mtu }, "9000");
    let plans = [plan("near", vec![setting("net.core.rmem_max", "1048576")]), plan("far", vec![mtu])];
    assert_eq!(complete_formats(&plans), ["ansible", "nixos", "tuned"]);
    assert!(complete_formats(&[everything("near")]).is_empty());
}

#[test]
fn values_cannot_break_out() {
    let hostile = "a'\"\n$(reboot)${x}{{ y }}\\\u{1b}";
    let mut changes =
        vec![setting("net.ipv4.tcp_keepalive_time", hostile), setting("net.ipv4.tcp_keepalive_intvl", hostile)];
    changes.push(change(ChangeTarget::File { path: "/sys/x".into() }, "%h"));
    for form in FORMATS {
        for file in form.export(&[plan("a\n$(reboot)", changes.clone())], &heading()).files {
            assert!(file.text.lines().all(|line| !line.starts_with("$(reboot)")), "{}:\n{}", form.name, file.text);
            assert!(!file.text.contains('\u{1b}') && !file.name.contains('$'), "{}:\n{}", file.name, file.text);
        }
    }
    let text = |name: &str| exported(name, &[plan("near", changes.clone())]).files[0].text.clone();
    assert!(text("docker").contains(r"a'\''"));
    assert!(text("nixos").contains("\\\" $(reboot)\\${x}"), "{}", text("nixos"));
    assert!(text("kubernetes").contains("\"a'\\\" $(reboot)${x}{{ y }}\\\\\u{fffd}\""), "{}", text("kubernetes"));
    assert!(text("ansible").contains("content: !unsafe |") && !text("ansible").contains("%h -"), "{}", text("ansible"));
}
