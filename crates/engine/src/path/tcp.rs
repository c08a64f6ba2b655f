//! What TCP agreed on over this path.

use std::net::TcpStream;

use linerate_model::schema::path::TcpFeatures;
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::tcp_info;
use linerate_units::Mss;

use super::record::Record;
use crate::probe::messages::SynFacts;

/// Where Linux keeps what a host asks for.
const SETTINGS: &str = "/proc/sys/net/ipv4";

/// Fills in what both ends say of a connection.
pub(super) fn describe(record: &mut Record<'_>, connection: &TcpStream) {
    // The control connection itself keeps its segments small.
    let near = match record.plain_tcp.take().map_or_else(|| tcp_info::read(connection), Ok) {
        Ok(near) => near,
        Err(error) => return record.unknown("tcp", error.to_string()),
    };
    let far = record.far.as_ref().and_then(|far| far.control.as_ref()).map(|fact| TcpInfo::from(fact.0.clone()));
    let syn = record.far.as_ref().and_then(|far| far.syn);
    let syn_options = syn.as_ref().map(options_of_syn).or_else(|| far.as_ref().map(arrived));
    record.document.tcp = Some(features(&near, syn_options));
}

/// Fills in what this end alone says of a connection.
pub(super) fn of_this_end(record: &mut Record<'_>, near: &TcpInfo) {
    record.document.tcp = Some(features(near, None));
    record.unknown("tcp.syn_options_arrived", "only a linerate at the far end tells what arrived there");
}

fn features(near: &TcpInfo, syn_options_arrived: Option<Vec<String>>) -> TcpFeatures {
    TcpFeatures {
        send_mss_bytes: near.send_mss.map(Mss::get).map(u64::from),
        timestamps: near.timestamps,
        selective_acknowledgements: near.selective_acknowledgements,
        window_scale_peer: near.window_scale.map(|scale| scale.send),
        window_scale_own: near.window_scale.map(|scale| scale.receive),
        explicit_congestion_notification: near.explicit_congestion_notification,
        syn_options_arrived,
        missing: missing(near),
    }
}

/// The options of the SYN as the far kernel saved it.
fn options_of_syn(syn: &SynFacts) -> Vec<String> {
    let mut options = Vec::new();
    options.extend(syn.window_scale.map(|scale| format!("window scale {scale}")));
    options.extend(syn.selective_acknowledgements.then(|| "selective acknowledgements".to_owned()));
    options.extend(syn.timestamps.then(|| "timestamps".to_owned()));
    options.extend(syn.asks_for_ecn.then(|| "explicit congestion notification".to_owned()));
    options
}

/// The options of the SYN that the far kernel took up: so they arrived.
fn arrived(far: &TcpInfo) -> Vec<String> {
    let options = [
        ("timestamps", far.timestamps == Some(true)),
        ("selective acknowledgements", far.selective_acknowledgements == Some(true)),
        ("window scale", far.window_scale.is_some()),
        ("explicit congestion notification", far.explicit_congestion_notification == Some(true)),
    ];
    options.into_iter().filter(|(_, there)| *there).map(|(name, _)| name.to_owned()).collect()
}

/// What this end asks for by its settings and did not get.
fn missing(near: &TcpInfo) -> Vec<String> {
    let asked = |key: &str| {
        let value = std::fs::read_to_string(format!("{SETTINGS}/{key}")).ok()?;
        value.trim().parse::<u8>().ok()
    };
    let wanted = [
        ("timestamps", "tcp_timestamps", asked("tcp_timestamps").is_some_and(|on| on > 0), near.timestamps),
        ("selective acknowledgements", "tcp_sack", asked("tcp_sack") == Some(1), near.selective_acknowledgements),
        (
            "window scale",
            "tcp_window_scaling",
            asked("tcp_window_scaling") == Some(1),
            Some(near.window_scale.is_some()),
        ),
        // 2 is the default: ECN for those who ask, and no asking.
        (
            "explicit congestion notification",
            "tcp_ecn",
            asked("tcp_ecn") == Some(1),
            near.explicit_congestion_notification,
        ),
    ];
    let lacking = wanted.into_iter().filter(|(_, _, asked, got)| *asked && *got == Some(false));
    lacking
        .map(|(name, key, ..)| {
            format!(
                "{name}: asked for and not agreed, as net.ipv4.{key} is off at the far end, or something on the way \
                 removes the option"
            )
        })
        .collect()
}
