use super::detect::firewalld_steps;
use super::nftables::{self, NftTable};
use super::step::TransportProtocol;
use super::*;

fn target() -> FirewallTarget {
    FirewallTarget::new(Port::IPERF3, Duration::from_secs(3600), 1234)
}

fn lines(invocations: &[CommandInvocation]) -> Vec<String> {
    invocations.iter().map(ToString::to_string).collect()
}

fn inet_filter() -> FirewallStep {
    let table = NftTable { family: "inet".into(), name: "filter".into() };
    FirewallStep::Nftables { table, chains: vec!["input".into(), "late".into()] }
}

#[test]
fn commands_to_open_renew_close_and_probe() {
    let zone = |transport| FirewallStep::Firewalld { zone: "public".into(), transport };
    let marked = "INPUT -p tcp --dport 5201 -m comment --comment linerate-5201-1234 -j ACCEPT";
    let table: [(FirewallStep, String, Vec<&str>, String, &str); 4] = [
        (
            zone(TransportProtocol::Tcp),
            "firewall-cmd --zone=public --add-port=5201/tcp --timeout=3600".into(),
            vec![
                "firewall-cmd --zone=public --remove-port=5201/tcp",
                "firewall-cmd --zone=public --add-port=5201/tcp --timeout=3600",
            ],
            "firewall-cmd --zone=public --remove-port=5201/tcp".into(),
            "firewall-cmd --zone=public --query-port=5201/tcp",
        ),
        (
            FirewallStep::Ufw { transport: TransportProtocol::Udp },
            "ufw allow in 5201/udp comment linerate-5201-1234".into(),
            vec![],
            "ufw delete allow in 5201/udp".into(),
            "ufw show added",
        ),
        (
            FirewallStep::Iptables { program: "ip6tables", transport: TransportProtocol::Tcp },
            format!("ip6tables -w 5 -I {marked}"),
            vec![],
            format!("ip6tables -w 5 -D {marked}"),
            &format!("ip6tables -w 5 -C {marked}"),
        ),
        (
            inet_filter(),
            "nft -f -".into(),
            vec!["nft -f -"],
            "nft -f -".into(),
            "nft list set inet filter linerate_5201_1234",
        ),
    ];
    for (step, open, renew, close, probe) in table {
        assert_eq!(step.open(&target()).to_string(), open);
        assert_eq!(lines(&step.renew(&target())), renew);
        assert_eq!(step.close(&target(), "").to_string(), close);
        assert_eq!(step.probe(&target()).to_string(), probe);
    }
}

#[test]
fn nothing_is_ever_permanent_or_reloaded() {
    let steps = [
        FirewallStep::Firewalld { zone: "public".into(), transport: TransportProtocol::Tcp },
        FirewallStep::Ufw { transport: TransportProtocol::Tcp },
        FirewallStep::Iptables { program: "iptables", transport: TransportProtocol::Tcp },
        inet_filter(),
    ];
    for step in steps {
        let mut all = vec![step.open(&target()), step.close(&target(), "")];
        all.extend(step.renew(&target()));
        for invocation in all {
            for word in ["--permanent", "--reload", "--runtime-to-permanent", "reload", "--complete-reload"] {
                assert!(!invocation.arguments.iter().any(|argument| argument == word), "{invocation}");
            }
        }
    }
}

#[test]
fn scripts_for_nft() {
    assert_eq!(
        inet_filter().open(&target()).input.as_deref(),
        Some(
            "add set inet filter linerate_5201_1234 { type inet_service; flags timeout; }\n\
             add element inet filter linerate_5201_1234 { 5201 timeout 3600s }\n\
             insert rule inet filter input meta l4proto { tcp, udp } th dport @linerate_5201_1234 accept \
             comment \"linerate-5201-1234\"\n\
             insert rule inet filter late meta l4proto { tcp, udp } th dport @linerate_5201_1234 accept \
             comment \"linerate-5201-1234\"\n"
        )
    );
    assert_eq!(
        inet_filter().renew(&target())[0].input.as_deref(),
        Some(
            "flush set inet filter linerate_5201_1234\n\
             add element inet filter linerate_5201_1234 { 5201 timeout 3600s }\n"
        )
    );
    let ruleset = r#"{"nftables": [
        {"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 8, "comment": "linerate-5201-1234"}},
        {"rule": {"family": "inet", "table": "filter", "chain": "late", "handle": 9, "comment": "linerate-5201-1234"}},
        {"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 10, "comment": "linerate-5201-9"}},
        {"rule": {"family": "ip", "table": "filter", "chain": "input", "handle": 11, "comment": "linerate-5201-1234"}},
        {"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 12}}
    ]}"#;
    assert_eq!(
        inet_filter().close(&target(), ruleset).input.as_deref(),
        Some(
            "delete rule inet filter input handle 8\n\
             delete rule inet filter late handle 9\n\
             delete set inet filter linerate_5201_1234\n"
        )
    );
}

#[test]
fn answers_to_probes() {
    let firewalld = FirewallStep::Firewalld { zone: "public".into(), transport: TransportProtocol::Tcp };
    let ufw = FirewallStep::Ufw { transport: TransportProtocol::Tcp };
    let iptables = FirewallStep::Iptables { program: "iptables", transport: TransportProtocol::Tcp };
    let added = "Added user rules (see 'ufw status' for running firewall):\n";
    for (step, status, stdout, stderr, expected) in [
        (&firewalld, 0, "yes\n", "", Some(true)),
        (&firewalld, 1, "no\n", "", Some(false)),
        (&firewalld, 252, "", "FirewallD is not running", Some(false)),
        (&firewalld, 253, "", "Authorization failed.", None),
        (&ufw, 0, &format!("{added}(None)\n"), "", Some(false)),
        (&ufw, 0, &format!("{added}ufw allow 5201/tcp\n"), "", Some(true)),
        (&ufw, 0, &format!("{added}ufw allow 5201/tcp comment 'x'\n"), "", Some(true)),
        (&ufw, 0, &format!("{added}ufw allow 5201/udp\nufw deny 5201/tcp\n"), "", Some(false)),
        (&ufw, 1, "", "ERROR: You need to be root to run this script", None),
        (&iptables, 0, "", "", Some(true)),
        (&iptables, 1, "", "iptables: Bad rule (does a matching rule exist in that chain?).", Some(false)),
        (&iptables, 4, "", "Fatal: can't open lock file", None),
        (&inet_filter(), 0, "table inet filter {", "", Some(true)),
        (&inet_filter(), 1, "", "Error: No such file or directory\nlist set inet filter x", Some(false)),
        (&inet_filter(), 1, "", "Operation not permitted (you must be root)", None),
    ] {
        assert_eq!(step.parse_probe(&target(), Some(status), stdout, stderr), expected, "{step} {status} {stdout}");
    }
    assert_eq!(iptables.parse_probe(&target(), None, "", ""), None, "killed by a signal");
}

#[test]
fn zones_of_firewalld() {
    let zones =
        |active, default| -> Vec<String> { firewalld_steps(active, default).iter().map(ToString::to_string).collect() };
    assert_eq!(zones("", "public\n"), ["zone public tcp", "zone public udp"]);
    assert_eq!(
        zones("home\n  interfaces: eth1\npublic (default)\n  interfaces: eth0\n  sources: 192.0.2.0/24\n", "public\n"),
        ["zone home tcp", "zone home udp", "zone public tcp", "zone public udp"]
    );
}

fn chain(family: &str, table: &str, name: &str, hook: &str, policy: &str) -> String {
    format!(
        r#"{{"chain": {{"family": "{family}", "table": "{table}", "name": "{name}", "type": "filter", "hook": "{hook}",
        "prio": 0, "policy": "{policy}"}}}}"#
    )
}

fn rule(chain: &str, statements: &str) -> String {
    format!(r#"{{"rule": {{"family": "inet", "table": "t", "chain": "{chain}", "expr": [{statements}]}}}}"#)
}

#[test]
fn chains_that_refuse() {
    let accept = || chain("inet", "t", "in", "input", "accept");
    let places = |objects: &[String]| -> Vec<String> {
        let ruleset = format!(r#"{{"nftables": [{}]}}"#, objects.join(","));
        nftables::steps(&ruleset).expect("JSON").iter().map(ToString::to_string).collect()
    };
    let nothing: [&str; 0] = [];
    let matched = r#"{"match": {"op": "==", "left": 1, "right": 2}}"#;
    assert_eq!(places(&[]), nothing);
    assert_eq!(places(&[accept()]), nothing);
    assert_eq!(places(&[chain("inet", "t", "in", "input", "drop")]), ["inet t in"]);
    assert_eq!(places(&[chain("inet", "t", "fwd", "forward", "drop")]), nothing);
    assert_eq!(places(&[chain("bridge", "t", "in", "input", "drop")]), nothing);
    assert_eq!(places(&[accept(), rule("in", r#"{"counter": {}}, {"reject": {}}"#)]), ["inet t in"]);
    assert_eq!(places(&[accept(), rule("in", r#"{"drop": null}"#)]), ["inet t in"]);
    assert_eq!(places(&[accept(), rule("in", &format!(r#"{matched}, {{"drop": null}}"#))]), nothing);
    assert_eq!(places(&[accept(), rule("in", r#"{"drop": null}"#), rule("in", r#"{"accept": null}"#)]), nothing);
    assert_eq!(places(&[accept(), rule("other", r#"{"drop": null}"#)]), nothing);
    assert_eq!(
        places(&[chain("inet", "t", "a", "input", "drop"), chain("inet", "t", "b", "input", "drop")]),
        ["inet t a and b"]
    );
    assert_eq!(
        places(&[chain("ip", "filter", "INPUT", "input", "drop"), chain("ip6", "filter", "INPUT", "input", "drop")]),
        ["iptables INPUT tcp", "iptables INPUT udp", "ip6tables INPUT tcp", "ip6tables INPUT udp"]
    );
}

#[test]
fn rules_that_are_not_understood() {
    assert_eq!(nftables::steps("table inet filter {"), None);
    for strange in ["null", "{}", "[]", r#"{"nftables": 5}"#, r#"{"nftables": [1, {"chain": 3}, {"rule": null}]}"#] {
        assert_eq!(nftables::steps(strange), Some(vec![]), "{strange}");
        let script = inet_filter().close(&target(), strange).input;
        assert_eq!(script.as_deref(), Some("delete set inet filter linerate_5201_1234\n"));
    }
    for (name, plain) in [("filter", true), ("my-table_2", true), ("a; drop", false), ("a\nb", false), ("", false)] {
        assert_eq!(nftables::is_plain_name(name), plain, "{name:?}");
    }
}

#[test]
fn a_lifetime_is_never_for_ever() {
    let target = FirewallTarget::new(Port::IPERF3, Duration::from_millis(1), 1);
    let open = FirewallStep::Firewalld { zone: "public".into(), transport: TransportProtocol::Tcp }.open(&target);
    assert!(open.to_string().ends_with("--timeout=1"), "{open}");
}

#[test]
fn the_remedy_is_given() {
    let cause = Error::refused("asking", "no");
    let text = with_manual_commands(&target(), Some(FirewallManager::Firewalld), &cause).to_string();
    assert_eq!(
        text,
        "opening port 5201 in the firewall: asking: no; run this program as root, or open the port by hand: \
         `firewall-cmd --add-port=5201/tcp --add-port=5201/udp --timeout=3600`"
    );
    assert!(with_manual_commands(&target(), None, &cause).to_string().contains("`ufw allow 5201/tcp`"));
}

/// Runs nft in the network namespace of this test, which is none of the host's.
fn nft(script: &str) -> String {
    command::run_checked("nft", &["-f", "-"], Some(script.as_bytes()), COMMAND_TIMEOUT).expect("nft takes the script");
    command::run_checked("nft", &["list", "ruleset"], None, COMMAND_TIMEOUT).expect("nft lists").stdout_text()
}

/// Moves the calling thread, and the programs that it starts, to an empty network namespace.
fn enter_private_network() {
    crate::namespace::unshare(rustix::thread::UnshareFlags::NEWNET).expect("run this test as root");
}

const RULES: &str = "table inet filter {
    chain input {
        type filter hook input priority 0; policy drop;
        ct state established accept
        iif lo accept
    }
    chain late {
        type filter hook input priority 10; policy accept;
        tcp dport 22 accept
        counter reject
    }
}
";

#[test]
#[ignore = "needs root and nft: rules in a network namespace"]
fn a_port_is_opened_renewed_and_closed_without_a_trace() {
    enter_private_network();
    let before = nft(RULES);
    let opening = open(Port::IPERF3, Duration::from_secs(600)).expect("opened");
    assert_eq!(opening.firewall(), Some(FirewallManager::Nftables));
    assert!(opening.has_changes() && opening.expires());
    assert_eq!(opening.summary(), "port 5201 opened in nftables (inet filter input and late) for 600 s at a time");
    let open_now = nft("");
    let tag = format!("comment \"linerate-5201-{}\"", std::process::id());
    assert_eq!(open_now.matches(&tag).count(), 2, "{open_now}");
    assert!(open_now.contains("5201 timeout 10m"), "{open_now}");
    opening.renew().expect("renewed");
    opening.close().expect("closed");
    assert_eq!(nft(""), before);
}

/// True when a TCP client can connect to `address`.
fn gets_through(address: std::net::SocketAddr) -> bool {
    let mut options = crate::net::ConnectOptions::to(address);
    options.timeout = Some(Duration::from_millis(100));
    crate::net::connect_tcp(&options, None).is_ok()
}

#[test]
#[ignore = "needs root, nft and ip: rules in a network namespace"]
fn clients_get_through_while_the_port_is_open() {
    enter_private_network();
    command::run_checked("ip", &["link", "set", "lo", "up"], None, COMMAND_TIMEOUT).expect("ip sets the link up");
    let listener = std::net::TcpListener::bind("127.0.0.1:5201").expect("this namespace is empty");
    let address = listener.local_addr().expect("bound");
    assert!(gets_through(address), "no rules yet");
    nft(
        "table inet t { chain in { type filter hook input priority 0; policy drop; ct state established accept; }; }\n",
    );
    assert!(!gets_through(address), "refused");
    let opening = open(Port::IPERF3, Duration::from_secs(60)).expect("opened");
    assert!(gets_through(address), "opened");
    opening.close().expect("closed");
    assert!(!gets_through(address), "closed again");
}

#[test]
#[ignore = "needs root and nft: rules in a network namespace"]
fn a_lifetime_ends_and_others_rules_stay() {
    enter_private_network();
    nft(RULES);
    let opening = open(Port::IPERF3, Duration::from_secs(1)).expect("opened");
    std::thread::sleep(Duration::from_millis(1500));
    let expired = nft("add rule inet filter input tcp dport 80 accept comment \"linerate-5201-other\"\n");
    assert!(!expired.contains("5201 timeout"), "{expired}");
    opening.renew().expect("added again");
    assert!(nft("").contains("5201 timeout 1s"));
    drop(opening);
    let after = nft("");
    assert!(!after.contains("linerate_5201"), "{after}");
    assert!(after.contains("linerate-5201-other"), "{after}");
}

#[test]
#[ignore = "needs root and nft: rules in a network namespace"]
fn rules_that_went_away_meanwhile_are_no_error() {
    enter_private_network();
    nft(RULES);
    let opening = open(Port::IPERF3, Duration::from_secs(60)).expect("opened");
    nft("flush ruleset\n");
    assert!(opening.renew().is_err());
    opening.close().expect("nothing left to close");
    let nothing = open(Port::IPERF3, Duration::from_secs(60)).expect("nothing refuses");
    assert_eq!((nothing.firewall(), nothing.has_changes()), (None, false));
    assert_eq!(nothing.summary(), "no firewall is active, nothing to open");
}
