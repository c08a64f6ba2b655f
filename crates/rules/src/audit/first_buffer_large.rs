//! A large buffer for every new connection.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Saying, finding, host};

const ID: &str = "first-buffer-large";
const KEYS: &[&str] = &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
const CITATION: &str = "Red Hat Enterprise Linux, Tuning TCP connections for high throughput (at most 524288); \
                        Documentation/networking/ip-sysctl.rst";
const MOST: i64 = 524_288;
const USUAL: [i64; 2] = [131_072, 16_384];

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Every connection begins with a large buffer.",
    explanation: "The second number of tcp_rmem and tcp_wmem is what a new connection gets before auto-tuning knows \
                  anything. It is no limit: the third number is. Large ones let a burst fill the memory with small \
                  packets in large buffers, which the kernel then has to copy together (TCPRcvCollapsed, \
                  PruneCalled), with jumps of the delay.",
    citation: CITATION,
    keys: KEYS,
    check,
    fires: || host(&[("net.ipv4.tcp_rmem", "4096 16777216 16777216")]),
    silent: || host(&[("net.ipv4.tcp_rmem", "4096 262144 33554432"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let of_key = |(key, usual): (&&'static str, i64)| {
        let found = host.settings.numbers(key).filter(|numbers| numbers.len() == 3 && numbers[1] > MOST)?;
        let saying = Saying {
            rule: ID,
            severity: Severity::Advice,
            text: format!(
                "Every new connection begins with a buffer of {} bytes ({key}, second number): above {MOST} bytes \
                 bursts lead to copying and jumps of the delay, and auto-tuning would grow it anyway.",
                found[1]
            ),
            to: Some(format!("{} {usual} {}", found[0].min(usual), found[2])),
            group: Group::Buffers,
            source: CITATION,
            risk: "transfers that end within few round trips on a long path may get slower",
        };
        Some(finding(host, key, saying))
    };
    KEYS.iter().zip(USUAL).filter_map(of_key).collect()
}
