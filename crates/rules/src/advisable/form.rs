//! Values that the kernel refuses, or reads as something else.

use linerate_model::host::catalogue;
use linerate_model::host::settings::numbers;

/// Settings of three increasing numbers.
pub(crate) const TRIPLES: &[&str] = &["net.ipv4.tcp_mem", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.udp_mem"];
/// Largest buffer: sizes are signed 32-bit numbers.
pub(crate) const MAX_BUFFER_BYTES: i64 = 2_147_483_647;
/// Settings of text, or of a mask of processors.
const TEXTS: &[&str] = &[
    "net.core.default_qdisc",
    "net.core.flow_limit_cpu_bitmap",
    "net.core.rps_default_mask",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
];
const PORT_RANGE: &str = "net.ipv4.ip_local_port_range";

/// Reason why the kernel refuses a value of a setting of the catalogue, or misinterprets it.
pub(super) fn malformed(key: &str, value: &str) -> Option<String> {
    let known = catalogue::find(key).is_some() && (key.starts_with("net.core.") || key.starts_with("net.ipv4."));
    if !known || TEXTS.contains(&key) {
        return value.is_empty().then(|| "the value is empty".to_owned());
    }
    let Some(found) = numbers(value).filter(|found| !found.is_empty()) else {
        return Some("the kernel takes whole numbers without units".to_owned());
    };
    let expected = match key {
        PORT_RANGE => 2,
        _ if TRIPLES.contains(&key) => 3,
        _ => 1,
    };
    if found.len() != expected {
        return Some(format!("it has {} of {expected} numbers", found.len()));
    }
    let least = if TRIPLES.contains(&key) || key == PORT_RANGE { 1 } else { lowest(key) };
    let most = if key.ends_with("_mem") { i64::MAX } else { highest(key) };
    if let Some(number) = found.iter().find(|number| !(least..=most).contains(*number)) {
        return Some(format!("{number} is outside of what the kernel takes ({least} to {most})"));
    }
    (!found.is_sorted()).then(|| "the numbers decrease".to_owned())
}

fn lowest(key: &str) -> i64 {
    match key {
        "net.ipv4.tcp_adv_win_scale" => -31,
        "net.core.rmem_max" | "net.core.rmem_default" | "net.core.wmem_max" | "net.core.wmem_default" => 2048,
        _ => 0,
    }
}

fn highest(key: &str) -> i64 {
    match key {
        "net.ipv4.tcp_notsent_lowat" => i64::from(u32::MAX),
        PORT_RANGE => i64::from(u16::MAX),
        _ => MAX_BUFFER_BYTES,
    }
}
