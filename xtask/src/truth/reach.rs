//! Goodput of a path of the library without the causes in its hosts: the rate that tuning can reach.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::Table;

use super::cause::{self, RemovableCause};
use super::measured::PathLab;
use crate::workspace;

/// Causes that are settings of a host.
const HOST_CAUSES: [RemovableCause; 8] = [
    RemovableCause::ReceiveWindow,
    RemovableCause::SendBuffer,
    RemovableCause::SackOff,
    RemovableCause::TimestampsOff,
    RemovableCause::WindowScalingOff,
    RemovableCause::AutotuningOff,
    RemovableCause::KernelMemory,
    RemovableCause::SenderQueue,
];

/// Measures the path `name` without the causes in its hosts; returns the mean goodput after these first seconds of the
/// transfer. It is kept in `folder`, and measured once.
pub(crate) fn without_host_causes(
    linerate: &Path,
    folder: &Path,
    (name, label): (&str, &str),
    omitted_seconds: u64,
) -> Result<f64> {
    let kept = folder.join(format!("{name}-reachable.txt"));
    if let Ok(text) = fs::read_to_string(&kept) {
        return text.trim().parse().with_context(|| format!("{} has no rate", kept.display()));
    }
    let file = workspace::root().join("paths").join(format!("{name}.toml"));
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let path: Table = text.parse().with_context(|| format!("{} is not TOML", file.display()))?;
    let mut path = without(&path, label);
    cause::set_option(&mut path, "-O", Some(&omitted_seconds.to_string()));
    let lab = PathLab::new(linerate, folder, name)?;
    let mean = lab.goodput(&path, "host-causes")?.whole;
    fs::write(&kept, format!("{mean}\n")).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(mean)
}

/// The description without the settings that limit it, and without the label's own cause.
fn without(path: &Table, label: &str) -> Table {
    let own = match label {
        // The congestion control's test for delay, which another one does not have.
        "slow-start-exit" => Some(RemovableCause::CongestionControl),
        _ => RemovableCause::from_name(label),
    };
    HOST_CAUSES.iter().copied().chain(own).fold(path.clone(), |path, cause| cause.removed_from(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_removed_and_the_path_stays() {
        let path: Table = r#"
scenario = "iperf3 -c far -t 4 -C reno"
[host.near]
congestion_control = "reno"
[host.near.sysctl]
"net.ipv4.tcp_sack" = 0
"net.ipv4.tcp_ecn" = 1
[[link]]
loss = "0.001 %"
"#
        .parse()
        .expect("TOML");
        let text_of = |label| super::super::text::text(&without(&path, label));
        let text = text_of("sack-off");
        assert!(!text.contains("tcp_sack") && text.contains("1073741824") && text.contains("tcp_ecn"), "{text}");
        assert!(text.contains("0.001 %") && text.contains("-C reno"), "{text}");
        assert!(text_of("congestion-control").contains("-C cubic"));
    }
}
