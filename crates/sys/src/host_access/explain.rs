//! Explanations of the kernel's short answers for each kind of target, and the remedies (`sysctl(5)`, `ip-sysctl.rst`,
//! `network_namespaces(7)`).

use std::fs;
use std::io;

use linerate_model::change::ChangeTarget;

use crate::error::Error;

/// The error of an operation on `target`, with the explanation of its number.
pub(super) fn refused(operation: &str, target: &ChangeTarget, value: Option<&str>, cause: io::Error) -> Error {
    let words = match value {
        Some(value) if !value.contains('\n') => format!("{operation} {target} to \"{value}\""),
        _ => format!("{operation} {target}"),
    };
    let errno = cause.raw_os_error().unwrap_or_default();
    let error = Error::system(words, cause);
    match hint(target, value, errno) {
        Some(hint) => error.hint_on(errno, hint),
        None => error,
    }
}

const ROOT: &str = "changing a host needs root (CAP_NET_ADMIN): run it with sudo";
const MISSING_INTERFACE_HINT: &str =
    "this network namespace has no such interface (any more): `ip link` lists the existing ones";
const READ_ONLY_HINT: &str = "/proc/sys is mounted read-only, as container runtimes do: give the setting to the runtime \
                         (docker run --sysctl, securityContext.sysctls of a pod), or change it on the host";
const OTHER_NAMESPACE_HINT: &str = "this network namespace has no such setting: it belongs to the whole host, so change it outside \
                        of the container or namespace";
const NO_SUCH_SETTING_HINT: &str = "this kernel has no such setting, or its module is not loaded";
const HOST_NAMESPACE_HINT: &str =
    "in this network namespace the setting can only be read: change it in the host's own namespace";
pub(super) const UNKNOWN_ALGORITHM_HINT: &str = "this kernel has no such congestion control, and could not load a module tcp_NAME: install the distribution's \
    additional modules (kernel-modules-extra on RHEL and Fedora, linux-modules-extra on Ubuntu), or use one of \
    net.ipv4.tcp_available_congestion_control";
const ALGORITHM_NOT_ALLOWED_HINT: &str = "this algorithm is not in net.ipv4.tcp_allowed_congestion_control, which only the \
                                     host itself can change: `modprobe` and allow it there";

fn hint(target: &ChangeTarget, value: Option<&str>, errno: i32) -> Option<&'static str> {
    match (target, errno) {
        (_, libc::ENODEV | libc::ENXIO) => Some(MISSING_INTERFACE_HINT),
        (ChangeTarget::Setting { .. }, libc::EROFS) => Some(READ_ONLY_HINT),
        (ChangeTarget::Setting { key }, libc::ENOENT) if is_algorithm(key) && value.is_some() => {
            Some(UNKNOWN_ALGORITHM_HINT)
        }
        (ChangeTarget::Setting { .. }, libc::ENOENT) => {
            Some(if is_initial_namespace() { NO_SUCH_SETTING_HINT } else { OTHER_NAMESPACE_HINT })
        }
        (ChangeTarget::Setting { key }, libc::EPERM) if is_algorithm(key) && crate::process::is_root() => {
            Some(ALGORITHM_NOT_ALLOWED_HINT)
        }
        (ChangeTarget::Setting { .. }, libc::EACCES | libc::EPERM) if crate::process::is_root() => {
            Some(HOST_NAMESPACE_HINT)
        }
        (_, libc::EACCES | libc::EPERM) => Some(ROOT),
        (ChangeTarget::Setting { .. }, libc::EINVAL | libc::ERANGE) => {
            Some("the kernel rejects this value: its format is wrong, or it is out of range")
        }
        (ChangeTarget::Device { .. } | ChangeTarget::Offload { .. }, libc::EOPNOTSUPP) => {
            Some("the driver of this interface cannot change that")
        }
        (ChangeTarget::Device { .. } | ChangeTarget::Link { .. }, libc::EINVAL | libc::ERANGE) => {
            Some("the device rejects this value: `ip -d link` and `ethtool -g`, `-l` show its limits")
        }
        (ChangeTarget::Device { .. } | ChangeTarget::Offload { .. } | ChangeTarget::Link { .. }, libc::EBUSY) => {
            Some("the device accepts this only while it is down")
        }
        (ChangeTarget::File { .. }, libc::EROFS) => {
            Some("it is on a file system that is mounted read-only, as in containers")
        }
        (ChangeTarget::File { .. }, libc::ENOENT) => Some("this kernel or device has no such file"),
        _ => None,
    }
}

fn is_algorithm(key: &str) -> bool {
    key.ends_with("tcp_congestion_control")
}

/// True in the network namespace of the host itself. False where that is unknown, as process 1 belongs to another user.
pub(super) fn is_initial_namespace() -> bool {
    let first = fs::read_link("/proc/1/ns/net").ok();
    first.is_some() && first == fs::read_link(crate::namespace::own_file()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &str, value: Option<&str>, errno: i32) -> String {
        let target = ChangeTarget::Setting { key: key.to_owned() };
        refused("setting", &target, value, io::Error::from_raw_os_error(errno)).to_string()
    }

    #[test]
    fn each_answer_has_its_own_explanation() {
        let key = "net.ipv4.tcp_congestion_control";
        let cases = [
            text(key, Some("bbr"), libc::ENOENT),
            text("net.core.rmem_max", Some("1"), libc::EROFS),
            text("net.core.rmem_max", Some("1"), libc::EINVAL),
            text("net.core.nothing", None, libc::ENOENT),
            text("net.core.rmem_max", Some("1"), libc::EACCES),
        ];
        for (index, case) in cases.iter().enumerate() {
            assert!(case.starts_with("setting net.") && case.ends_with(')'), "{case}");
            assert!(cases.iter().skip(index + 1).all(|other| other != case));
        }
        assert!(
            cases[0].contains("to \"bbr\": No such file") && cases[0].contains("kernel-modules-extra"),
            "{}",
            cases[0]
        );
        assert!(cases[1].contains("docker run --sysctl"), "{}", cases[1]);
        let target = ChangeTarget::Queueing { interface: "eth0".into() };
        let gone = refused("reading", &target, None, io::Error::from_raw_os_error(libc::ENODEV));
        assert!(super::super::is_gone(&gone) && gone.to_string().contains("`ip link`"), "{gone}");
    }
}
