//! Socket buffers are built from single pages.

use linerate_model::change::Group;
use linerate_model::finding::{Finding, Severity};
use linerate_model::host::HostFacts;

use super::Rule;
use super::settings_support::{Expected, expect, host};

const ID: &str = "high-order-allocation-off";
const KEY: &str = "net.core.high_order_alloc_disable";
const CITATION: &str = "bpftune's rule: since 5.14 per-processor page lists hold compound pages; \
                        Documentation/admin-guide/sysctl/net.rst";

pub(super) const RULE: Rule = Rule {
    id: ID,
    title: "Socket buffers are built from single pages.",
    explanation: "Packets that are made of compound pages need fewer steps of the processor and of the device. The \
                  switch was meant for kernels whose allocator suffered from them.",
    citation: CITATION,
    keys: &[KEY],
    check,
    fires: || host(&[(KEY, "1")]),
    silent: || host(&[(KEY, "0")]),
};

fn check(host: &HostFacts) -> Vec<Finding> {
    let expected = Expected {
        rule: ID,
        key: KEY,
        right: |value| value == 0,
        to: "0",
        text: "Compound pages for socket buffers are switched off: each packet takes more work. Kernels since 5.14 \
               have no need of that.",
        severity: Severity::Advice,
        group: Group::Processors,
        source: CITATION,
        risk: "none known since 5.14",
    };
    expect(host, &expected)
}
