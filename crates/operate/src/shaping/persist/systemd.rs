//! systemd unit bound to the interface, in which linerate follows it.

use linerate_documents::shaper_persistence::ShaperManager;
use linerate_sys::whole_file::FileMode;

use super::file_header;
use super::host::PersistenceHost;
use super::managers::{PersistenceManagerEntry, PersistentFile};
use super::request::PersistRequest;
use super::unit_escaping::{command, escaped};

pub(super) const MANAGER: PersistenceManagerEntry = PersistenceManagerEntry {
    id: ShaperManager::Systemd,
    title: "systemd",
    choice: |place, _| {
        let is_networkds = super::networkd::owns(place);
        (!is_networkds)
            .then(|| "systemd is the init of this host; the unit is bound to the interface and follows it".to_owned())
    },
    obstacle,
    files: |wish| vec![unit_file(wish, &[])],
    runs_processes: true,
    shared: None,
    unit: |wish| Some(unit_name(wish)),
    notes: |_| Vec::new(),
};

/// Obstacle to using a unit on this host.
pub(super) fn obstacle(place: &PersistenceHost) -> Option<String> {
    (!place.runs_systemd()).then(|| "systemd is not the init of this host (no /run/systemd/system)".to_owned())
}

/// Name of the unit.
pub(super) fn unit_name(wish: &PersistRequest) -> String {
    format!("linerate-shape-{}.service", escaped(&wish.device))
}

/// Unit file, ordered after these other units.
pub(super) fn unit_file(wish: &PersistRequest, after: &[&str]) -> PersistentFile {
    PersistentFile {
        path: format!("/etc/systemd/system/{}", unit_name(wish)),
        mode: FileMode::Plain,
        contents: unit(wish, after),
        needs_directory: false,
    }
}

/// Sandboxing of the process. It creates a network namespace to probe kernel features (`CAP_SYS_ADMIN`), changes
/// queueing (`CAP_NET_ADMIN`) and measures (`CAP_NET_RAW`); the kernel loads modules itself. Settings in /proc and
/// files in /etc stay writable, as it also rolls back the changes of an interrupted linerate.
const SANDBOXING: &str = "\
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_ADMIN
NoNewPrivileges=yes
ProtectSystem=yes
ProtectHome=read-only
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET AF_INET6 AF_PACKET
RestrictNamespaces=net
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
";

/// Restart policy: with back-off where systemd supports it (since 254), and not endlessly. linerate itself waits for a
/// missing interface, so this covers unexpected failures.
const RESTART_POLICY: &str = "\
Restart=on-failure
RestartSec=10
RestartSteps=6
RestartMaxDelaySec=10min
";

fn unit(wish: &PersistRequest, after: &[&str]) -> String {
    let device = format!("sys-subsystem-net-devices-{}.device", escaped(&wish.device));
    let order = [&[device.as_str()], after].concat().join(" ");
    format!(
        "{head}\n[Unit]\nDescription={description}\nBindsTo={device}\nAfter={order}\nStartLimitIntervalSec=1h\n\
         StartLimitBurst=30\n\n\
         [Service]\nType=simple\nExecStart={start}\nExecStopPost=-{stop}\n{RESTART_POLICY}{SANDBOXING}\n\
         [Install]\nWantedBy={device}\n",
        head = file_header::comment(wish),
        description = quoted_description(&wish.device),
        start = command(&wish.program, &wish.set_up_and_stay()),
        stop = command(&wish.program, &wish.take_down()),
    )
}

/// Escapes a description: only `%` is special; a trailing backslash would continue the line.
fn quoted_description(device: &str) -> String {
    format!("Shape the access link of {} (linerate)", device.replace('%', "%%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_bound_to_its_interface() {
        let words = ["br-lan", "--up", "20M"].map(str::to_owned);
        let unit =
            unit(&PersistRequest::new("br-lan", &words, "/usr/bin/linerate").expect("a request"), &["x.service"]);
        for line in [
            r"BindsTo=sys-subsystem-net-devices-br\x2dlan.device",
            r"After=sys-subsystem-net-devices-br\x2dlan.device x.service",
            r"WantedBy=sys-subsystem-net-devices-br\x2dlan.device",
            "ExecStart=/usr/bin/linerate shape br-lan --up 20M --replace --follow",
            "ExecStopPost=-/usr/bin/linerate shape br-lan off --quiet",
        ] {
            assert!(unit.lines().any(|found| found == line), "{line}\n{unit}");
        }
    }
}
