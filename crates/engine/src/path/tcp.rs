//! TCP options agreed on over this path.

use std::net::TcpStream;

use linerate_model::path::{TcpFeature, TcpFeatures};
use linerate_model::tcp_info::TcpInfo;
use linerate_sys::tcp_info;
use linerate_units::Mss;

use super::record::PathRecord;
use crate::probe::messages::SynFacts;

/// Fills in the features that both ends report of a connection.
pub(super) fn describe(record: &mut PathRecord<'_>, connection: &TcpStream) {
    // The control connection itself restricts its segment size.
    let near = match record.plain_tcp.take().map_or_else(|| tcp_info::read(connection), Ok) {
        Ok(near) => near,
        Err(error) => return record.unknown("tcp", error.to_string()),
    };
    let far = record.far.as_ref().and_then(|far| far.control.clone());
    let syn = record.far.as_ref().and_then(|far| far.syn);
    let syn_options = syn.as_ref().map(options_of_syn).or_else(|| far.as_ref().map(arrived));
    let accepted = far.as_ref().and_then(|far| far.window_scale).map(|scale| scale.send);
    let syn_window_scale = syn.and_then(|syn| syn.window_scale).or(accepted);
    let features = TcpFeatures { syn_window_scale, ..features(&near, syn_options) };
    for removed in syn.iter().flat_map(|syn| removed(&features.missing, syn)) {
        record.note(format!(
            "The SYN requests {} and arrives without it: something between removes it.",
            removed.title()
        ));
    }
    for removed in far.iter().flat_map(|far| removed_in_reverse(&features.missing, far)) {
        record.note(format!(
            "The far end agrees to {}, and its SYN/ACK arrives without it: something between removes it in the reverse direction.",
            removed.title()
        ));
    }
    record.document.tcp = Some(features);
    explain_accurate_ecn(record, &near);
}

/// Fills in the features that this end alone reports of a connection.
pub(super) fn describe_near_end(record: &mut PathRecord<'_>, near: &TcpInfo) {
    record.document.tcp = Some(features(near, None));
    explain_accurate_ecn(record, near);
    for key in ["tcp.syn_options_arrived", "tcp.syn_window_scale"] {
        record.unknown(key, "only a linerate at the far end reports the options that arrived there");
    }
}

fn explain_accurate_ecn(record: &mut PathRecord<'_>, near: &TcpInfo) {
    if near.accurate_ecn.is_none() {
        record.unknown("tcp.accurate_ecn", "this host's kernel does not report the kind of ECN (Linux 7.0 does)");
    }
}

fn features(near: &TcpInfo, syn_options_arrived: Option<Vec<TcpFeature>>) -> TcpFeatures {
    TcpFeatures {
        send_mss_bytes: near.send_mss.map(Mss::get).map(u64::from),
        timestamps: near.timestamps,
        selective_acknowledgements: near.selective_acknowledgements,
        window_scale_peer: near.window_scale.map(|scale| scale.send),
        window_scale_own: near.window_scale.map(|scale| scale.receive),
        explicit_congestion_notification: near.explicit_congestion_notification,
        accurate_ecn: near.accurate_ecn,
        syn_options_arrived,
        syn_window_scale: None,
        missing: missing(near),
    }
}

/// Features that this end requested, and that its SYN does not have at the far end. Older servers do not report Accurate ECN.
fn removed(missing: &[TcpFeature], syn: &SynFacts) -> Vec<TcpFeature> {
    let arrived = options_of_syn(syn);
    let is_reported = |feature: TcpFeature| feature != TcpFeature::AccurateEcn || syn.asks_for_accurate_ecn.is_some();
    missing.iter().copied().filter(|feature| is_reported(*feature) && !arrived.contains(feature)).collect()
}

/// Features that this end did not get although the far end has agreed to them.
fn removed_in_reverse(missing: &[TcpFeature], far: &TcpInfo) -> Vec<TcpFeature> {
    let agreed = arrived(far);
    missing.iter().copied().filter(|feature| agreed.contains(feature)).collect()
}

/// Options of the SYN as the far kernel saved it.
fn options_of_syn(syn: &SynFacts) -> Vec<TcpFeature> {
    present([
        (TcpFeature::WindowScale, syn.window_scale.is_some()),
        (TcpFeature::SelectiveAcknowledgements, syn.selective_acknowledgements),
        (TcpFeature::Timestamps, syn.timestamps),
        (TcpFeature::ExplicitCongestionNotification, syn.asks_for_ecn),
        (TcpFeature::AccurateEcn, syn.asks_for_accurate_ecn == Some(true)),
    ])
}

/// Options of the SYN that the far kernel accepted, and which therefore arrived.
fn arrived(far: &TcpInfo) -> Vec<TcpFeature> {
    present([
        (TcpFeature::WindowScale, far.window_scale.is_some()),
        (TcpFeature::SelectiveAcknowledgements, far.selective_acknowledgements == Some(true)),
        (TcpFeature::Timestamps, far.timestamps == Some(true)),
        (TcpFeature::ExplicitCongestionNotification, far.explicit_congestion_notification == Some(true)),
        (TcpFeature::AccurateEcn, far.accurate_ecn == Some(true)),
    ])
}

fn present(features: [(TcpFeature, bool); 5]) -> Vec<TcpFeature> {
    features.into_iter().filter(|(_, is_present)| *is_present).map(|(feature, _)| feature).collect()
}

/// True when outgoing connections request ECN or `AccECN`. 2, the default, and 5 only accept it (`enum tcp_ecn_mode` of
/// `include/net/tcp_ecn.h`).
const fn requests_ecn(mode: u8) -> bool {
    matches!(mode, 1 | 3 | 4)
}

/// The one mode in which outgoing connections request `AccECN`.
const ACCURATE_ECN_MODE: u8 = 3;

/// Features that this end requests by its settings and did not get.
fn missing(near: &TcpInfo) -> Vec<TcpFeature> {
    let requested = |feature: TcpFeature| {
        let text = std::fs::read_to_string(format!("/proc/sys/{}", feature.setting().replace('.', "/"))).ok();
        let Some(value) = text.and_then(|text| text.trim().parse::<u8>().ok()) else { return false };
        match feature {
            TcpFeature::Timestamps => value > 0,
            TcpFeature::SelectiveAcknowledgements | TcpFeature::WindowScale => value == 1,
            TcpFeature::ExplicitCongestionNotification => requests_ecn(value),
            TcpFeature::AccurateEcn => value == ACCURATE_ECN_MODE,
        }
    };
    let agreed = [
        (TcpFeature::Timestamps, near.timestamps),
        (TcpFeature::SelectiveAcknowledgements, near.selective_acknowledgements),
        (TcpFeature::WindowScale, Some(near.window_scale.is_some())),
        (TcpFeature::ExplicitCongestionNotification, near.explicit_congestion_notification),
        (TcpFeature::AccurateEcn, near.accurate_ecn),
    ];
    let refused = agreed.into_iter().filter(|(_, agreed)| *agreed == Some(false));
    refused.map(|(feature, _)| feature).filter(|feature| requested(*feature)).collect()
}

#[cfg(test)]
mod tests {
    use linerate_units::TypeOfService;

    use super::super::test_support::{options, recorded};
    use super::*;

    fn syn() -> SynFacts {
        SynFacts {
            source: "192.0.2.1:1".parse().expect("an address"),
            type_of_service: TypeOfService::default(),
            hop_limit: 60,
            asks_for_ecn: false,
            asks_for_accurate_ecn: None,
            mss: Some(1460),
            window_scale: None,
            selective_acknowledgements: false,
            timestamps: false,
        }
    }

    #[test]
    fn modes_of_ecn_with_and_without_accurate_feedback() {
        let requesting: Vec<u8> = (0..=6).filter(|mode| requests_ecn(*mode)).collect();
        assert_eq!(requesting, [1, 3, 4]);
    }

    #[test]
    fn options_of_a_syn_are_listed_by_name() {
        assert!(options_of_syn(&syn()).is_empty());
        let all = SynFacts {
            asks_for_ecn: true,
            asks_for_accurate_ecn: Some(true),
            window_scale: Some(0),
            selective_acknowledgements: true,
            timestamps: true,
            ..syn()
        };
        let expected = [
            TcpFeature::WindowScale,
            TcpFeature::SelectiveAcknowledgements,
            TcpFeature::Timestamps,
            TcpFeature::ExplicitCongestionNotification,
            TcpFeature::AccurateEcn,
        ];
        assert_eq!(options_of_syn(&all), expected);
    }

    #[test]
    fn what_was_requested_and_does_not_arrive_was_removed() {
        let missing = [TcpFeature::ExplicitCongestionNotification, TcpFeature::AccurateEcn];
        let bleached = SynFacts { asks_for_accurate_ecn: Some(false), ..syn() };
        assert_eq!(removed(&missing, &bleached), missing);
        let refused = SynFacts { asks_for_ecn: true, asks_for_accurate_ecn: Some(true), ..syn() };
        assert!(removed(&missing, &refused).is_empty());
        let without_ae = SynFacts { asks_for_accurate_ecn: Some(false), ..refused };
        assert_eq!(removed(&missing, &without_ae), [TcpFeature::AccurateEcn]);
        let older_server = SynFacts { asks_for_accurate_ecn: None, ..refused };
        assert!(removed(&missing, &older_server).is_empty());
    }

    #[test]
    fn agreed_options_have_arrived() {
        assert!(arrived(&TcpInfo::default()).is_empty());
        let agreed = TcpInfo {
            timestamps: Some(true),
            selective_acknowledgements: Some(false),
            explicit_congestion_notification: Some(true),
            ..TcpInfo::default()
        };
        assert_eq!(arrived(&agreed), [TcpFeature::Timestamps, TcpFeature::ExplicitCongestionNotification]);
    }

    #[test]
    fn what_the_far_end_has_agreed_to_and_is_missing_was_removed_in_reverse() {
        let missing = [TcpFeature::ExplicitCongestionNotification, TcpFeature::AccurateEcn];
        let far = |ecn, accurate| TcpInfo {
            explicit_congestion_notification: ecn,
            accurate_ecn: accurate,
            timestamps: Some(true),
            ..TcpInfo::default()
        };
        assert_eq!(removed_in_reverse(&missing, &far(Some(true), Some(true))), missing);
        assert_eq!(removed_in_reverse(&missing, &far(Some(true), None)), [TcpFeature::ExplicitCongestionNotification]);
        assert!(removed_in_reverse(&missing, &far(Some(false), None)).is_empty(), "refused");
        assert!(removed_in_reverse(&[], &far(Some(true), Some(true))).is_empty());
    }

    #[test]
    fn this_end_alone_does_not_know_what_arrived() {
        let near = TcpInfo { send_mss: Some(Mss::new(1448)), timestamps: Some(true), ..TcpInfo::default() };
        let ((), outcome, _) = recorded(&options(), |record| describe_near_end(record, &near));
        let tcp = outcome.document.tcp.expect("known");
        assert_eq!((tcp.send_mss_bytes, tcp.timestamps), (Some(1448), Some(true)));
        assert_eq!((tcp.syn_options_arrived, tcp.window_scale_own), (None, None));
        assert!(outcome.document.unknown.iter().any(|unknown| unknown.key == "tcp.syn_options_arrived"));
    }

    #[test]
    fn an_option_that_this_host_requests_and_did_not_get_is_missing() {
        let requested = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").is_ok_and(|value| value.trim() == "1");
        for (agreed, expected) in [(Some(false), requested), (Some(true), false), (None, false)] {
            let near = TcpInfo { selective_acknowledgements: agreed, ..TcpInfo::default() };
            let found = missing(&near);
            assert_eq!(found.contains(&TcpFeature::SelectiveAcknowledgements), expected, "{agreed:?}");
        }
    }
}
