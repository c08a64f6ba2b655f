//! Values that linerate sets or proposes: the source of truth for audit, tuning and export.
//!
//! [`refusal`] judges one value of one setting on one host. Every command that `linerate audit` prints, and every change
//! that `linerate tune` plans or exports, passes it; a test walks over all rules with the values of published recipes.

mod buffers;
mod form;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use linerate_model::fact::Fact;
use linerate_model::host::HostFacts;
use linerate_model::host::catalogue;
use linerate_model::host::kernel::KernelVersion;
use linerate_model::host::memory::HostMemory;
use linerate_model::host::settings::numbers;
use linerate_units::ByteCount;

pub(crate) use buffers::{MAX_INITIAL_BUFFER, in_bytes, is_below};
pub(crate) use form::{MAX_BUFFER_BYTES, TRIPLES};

use crate::audit::{dead_setting_reason, expected_value_of, recipe_of};
use crate::tuning::TuningHost;

/// Largest proposed receive backlog, in packets: a longer one adds delay (10 000 packets are 0.12 s at 1 Gbit/s).
pub(crate) const MAX_BACKLOG_PACKETS: u64 = 10_000;
/// Time of one round of the receive softirq in microseconds: the kernel's shortest default, and the largest proposal.
const BUDGET_MICROSECONDS: core::ops::RangeInclusive<i64> = 2000..=50_000;
/// Congestion controls in the kernel's sources; available modules show only when one is requested.
pub(crate) const KERNEL_CONGESTION_CONTROLS: &[&str] = &[
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];
/// Queueing disciplines of the kernel that work as a default.
const DEFAULT_QDISCS: [&str; 8] = ["cake", "codel", "fq", "fq_codel", "fq_pie", "pfifo_fast", "pie", "sfq"];

/// Facts of a host on which the judgement depends; unknown ones are not counted against a value.
#[derive(Clone, Debug, Default)]
pub struct ValueContext {
    /// Kernel version.
    pub version: Option<KernelVersion>,
    /// Memory.
    pub memory: HostMemory,
    /// TCP memory of all sockets at which pressure begins.
    pub pressure: Option<ByteCount>,
    /// Present limit of the memory of all TCP sockets, if it is plausible: it may stay.
    pub limit: Option<ByteCount>,
    /// True where a measurement shows what a path needs: a buffer may then stay below the kernel's default.
    pub is_measured: bool,
    /// Loaded congestion controls.
    pub congestion_controls: Vec<String>,
    /// Names of the settings of this kernel.
    pub names: Option<BTreeSet<String>>,
}

impl From<&HostFacts> for ValueContext {
    fn from(host: &HostFacts) -> Self {
        let controls = host.settings.value("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
        let initial = host.privileges.initial_network_namespace.known() == Some(&true);
        Self {
            version: host.kernel.version(),
            memory: host.memory.clone(),
            pressure: buffers::plausible_pressure(host),
            limit: host
                .settings
                .numbers("net.ipv4.tcp_mem")
                .and_then(|found| buffers::plausible_limit(&host.memory, &found)),
            is_measured: false,
            congestion_controls: controls.split_ascii_whitespace().map(str::to_owned).collect(),
            names: host.settings.names.known().filter(|_| initial).cloned(),
        }
    }
}

impl From<&TuningHost> for ValueContext {
    fn from(host: &TuningHost) -> Self {
        let known = |value: Option<ByteCount>| {
            value.map_or_else(HostMemory::default, |total| HostMemory {
                total: Fact::Known(total),
                ..HostMemory::default()
            })
        };
        let memory = HostMemory { page_size: Fact::Known(host.page_size()), ..known(host.memory) };
        let controls = host.settings.get("net.ipv4.tcp_available_congestion_control").map_or("", String::as_str);
        let total = host.settings.get("net.ipv4.tcp_mem").and_then(|value| numbers(value));
        Self {
            version: host.kernel,
            limit: total.and_then(|found| buffers::plausible_limit(&memory, &found)),
            memory,
            pressure: None,
            is_measured: true,
            congestion_controls: controls.split_ascii_whitespace().map(str::to_owned).collect(),
            names: None,
        }
    }
}

/// Reason why linerate never sets a setting to a value; `None` for values that it may set, and for settings of which it
/// has no opinion.
#[must_use]
pub fn refusal(context: &ValueContext, key: &str, value: &str) -> Option<String> {
    let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    dead_setting_reason(context.version, key)
        .or_else(|| form::malformed(key, &value))
        .or_else(|| unexpected(key, &value))
        .or_else(|| unknown_name(context, key, &value))
        .or_else(|| buffers::unsuitable(context, key, &value))
        .or_else(|| recipe_of(key, &value).map(|reason| format!("{reason}.")))
        .or_else(|| out_of_range(context, key, &value))
        .map(|reason| reason.trim_end_matches('.').to_owned())
}

/// Reason against a value that switches off a required feature.
fn unexpected(key: &str, value: &str) -> Option<String> {
    let number: i64 = value.parse().ok()?;
    if key == "net.ipv4.tcp_ecn" && number == 1 {
        return Some("requests need a path that lets marks through: measure with `linerate path` first".to_owned());
    }
    expected_value_of(key).filter(|expected| !(expected.is_correct)(number)).map(|expected| {
        let text = expected.text.replace("{}", value);
        let mut letters = text.chars();
        letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
    })
}

/// Reason against a setting, congestion control or queueing discipline that the kernel does not have.
fn unknown_name(context: &ValueContext, key: &str, value: &str) -> Option<String> {
    let is_control = |name: &str| {
        KERNEL_CONGESTION_CONTROLS.contains(&name) || context.congestion_controls.iter().any(|own| own == name)
    };
    match key {
        "net.ipv4.tcp_congestion_control" | "net.ipv4.tcp_allowed_congestion_control" => value
            .split(' ')
            .find(|name| !is_control(name))
            .map(|name| format!("the kernel has no congestion control '{name}'")),
        "net.core.default_qdisc" => (!DEFAULT_QDISCS.contains(&value))
            .then(|| format!("'{value}' is no queueing discipline that serves as a default")),
        "net.ipv4.tcp_available_congestion_control" => Some("it is read-only".to_owned()),
        _ => {
            let names = context.names.as_ref()?;
            let of_stack = key.starts_with("net.core.") || key.starts_with("net.ipv4.tcp_");
            (of_stack && catalogue::find(key).is_none() && !names.contains(key))
                .then(|| "the kernel has no such setting".to_owned())
        }
    }
}

/// Reason against a number outside of the range that linerate uses.
fn out_of_range(context: &ValueContext, key: &str, value: &str) -> Option<String> {
    let number = *numbers(value)?.first()?;
    match key {
        "net.core.netdev_max_backlog" => {
            let most = i64::try_from(MAX_BACKLOG_PACKETS).unwrap_or(i64::MAX);
            (!(1000..=most).contains(&number)).then(|| {
                format!("{number} packets are outside of 1000 to {most}: fewer drop bursts, more only add delay")
            })
        }
        "net.core.netdev_budget_usecs" => (!BUDGET_MICROSECONDS.contains(&number)).then(|| {
            let (least, most) = (BUDGET_MICROSECONDS.start(), BUDGET_MICROSECONDS.end());
            format!("{number} µs are outside of {least} to {most}")
        }),
        "net.ipv4.tcp_adv_win_scale" if context.version.is_some_and(|version| version < KernelVersion::new(6, 6)) => {
            (number < -1).then(|| "most of each receive buffer would not be available for the window".to_owned())
        }
        "net.ipv4.tcp_tw_recycle" => (number != 0).then(|| "it refuses clients that share an address".to_owned()),
        _ => None,
    }
}
