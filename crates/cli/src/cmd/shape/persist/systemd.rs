//! A unit of systemd that is bound to the interface: it comes and goes with it, and linerate follows it in between.

use linerate_sys::whole_file::Mode;

use super::head;
use super::managers::{Manager, PersistentFile};
use super::place::Place;
use super::unit_text::{command, escaped};
use super::wish::Wish;

pub(super) const MANAGER: Manager = Manager {
    id: "systemd",
    title: "systemd",
    choice: |place, _| {
        let is_networkds = super::networkd::owns(place);
        (!is_networkds).then(|| "systemd runs this host; the unit is bound to the interface and follows it".to_owned())
    },
    obstacle,
    files: |wish| vec![unit_file(wish, &[])],
    unit: |wish| Some(unit_name(wish)),
    notes: |_| Vec::new(),
};

/// Why no unit can be used on this host.
pub(super) fn obstacle(place: &Place) -> Option<String> {
    (!place.runs_systemd()).then(|| "systemd does not run this host (there is no /run/systemd/system)".to_owned())
}

/// The unit's name.
pub(super) fn unit_name(wish: &Wish) -> String {
    format!("linerate-shape-{}.service", escaped(&wish.device))
}

/// The unit, which starts after these others, too.
pub(super) fn unit_file(wish: &Wish, after: &[&str]) -> PersistentFile {
    PersistentFile {
        path: format!("/etc/systemd/system/{}", unit_name(wish)),
        mode: Mode::Plain,
        contents: unit(wish, after),
        needs_directory: false,
    }
}

/// Limits of what the process may do. It makes a network namespace to try out what the kernel can do (`CAP_SYS_ADMIN`),
/// changes queueing (`CAP_NET_ADMIN`) and measures (`CAP_NET_RAW`); the kernel loads modules itself. Settings in /proc
/// and files in /etc stay writable: it also takes back what an interrupted linerate has left.
const LIMITS: &str = "\
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

/// How it is started again: ever more slowly where systemd can (since 254), and not endlessly. linerate itself waits
/// while the interface is not there, so this is for what should not happen.
const RESTARTS: &str = "\
Restart=on-failure
RestartSec=10
RestartSteps=6
RestartMaxDelaySec=10min
";

fn unit(wish: &Wish, after: &[&str]) -> String {
    let device = format!("sys-subsystem-net-devices-{}.device", escaped(&wish.device));
    let order = [&[device.as_str()], after].concat().join(" ");
    format!(
        "{head}\n[Unit]\nDescription={description}\nBindsTo={device}\nAfter={order}\nStartLimitIntervalSec=1h\n\
         StartLimitBurst=30\n\n\
         [Service]\nType=simple\nExecStart={start}\nExecStopPost=-{stop}\n{RESTARTS}{LIMITS}\n\
         [Install]\nWantedBy={device}\n",
        head = head::comment(wish),
        description = quoted_description(&wish.device),
        start = command(&wish.program, &wish.set_up_and_stay()),
        stop = command(&wish.program, &wish.take_down()),
    )
}

/// Free text, in which only `%` means something; a backslash at the end of a line would continue it.
fn quoted_description(device: &str) -> String {
    format!("Shape the line behind {} (linerate)", device.replace('%', "%%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_bound_to_its_interface() {
        let words = ["br-lan", "--up", "20000000"].map(str::to_owned);
        let unit = unit(&Wish::new("br-lan", &words, "/usr/bin/linerate").expect("a wish"), &["x.service"]);
        for line in [
            r"BindsTo=sys-subsystem-net-devices-br\x2dlan.device",
            r"After=sys-subsystem-net-devices-br\x2dlan.device x.service",
            r"WantedBy=sys-subsystem-net-devices-br\x2dlan.device",
            "ExecStart=/usr/bin/linerate shape br-lan --up 20000000 --replace --follow",
            "ExecStopPost=-/usr/bin/linerate shape br-lan off --quiet",
        ] {
            assert!(unit.lines().any(|found| found == line), "{line}\n{unit}");
        }
    }
}
