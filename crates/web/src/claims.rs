//! Claims of a browser about its test: round trips, and an early end. Nothing verifies them, so they are bounded.

use core::time::Duration;

use linerate_model::load::PhaseKind;
use serde::Deserialize;

/// Most round trips of a phase.
const MAX_ROUND_TRIPS: usize = 3000;

/// Longest round trip that counts.
const MAX_ROUND_TRIP_MICROSECONDS: u64 = 60_000_000;

/// Most characters of an error.
const MAX_ERROR: usize = 200;

/// Body of `POST /api/result`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowserClaims {
    /// Round trips of each phase: milliseconds since the session began, and microseconds.
    #[serde(default)]
    round_trips: PhaseRoundTrips,
    /// Error that ended the test early.
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseRoundTrips {
    #[serde(default)]
    idle: Vec<(u64, u64)>,
    #[serde(default)]
    down: Vec<(u64, u64)>,
    #[serde(default)]
    up: Vec<(u64, u64)>,
}

impl BrowserClaims {
    /// Parses the claims; the error describes what is wrong.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let claims: Self = serde_json::from_slice(text).map_err(|cause| cause.to_string())?;
        let all = [&claims.round_trips.idle, &claims.round_trips.down, &claims.round_trips.up];
        if all.iter().any(|list| list.len() > MAX_ROUND_TRIPS) {
            return Err(format!("a phase has more than {MAX_ROUND_TRIPS} round trips"));
        }
        Ok(claims)
    }

    /// Round trips of a phase, each with its time since the session began, in order.
    pub(crate) fn round_trips(&self, kind: PhaseKind) -> Vec<(Duration, Duration)> {
        let list: &[(u64, u64)] = match kind {
            PhaseKind::Idle => &self.round_trips.idle,
            PhaseKind::Down => &self.round_trips.down,
            PhaseKind::Up => &self.round_trips.up,
            PhaseKind::Both => &[],
        };
        let mut times: Vec<(Duration, Duration)> = list
            .iter()
            .filter(|(_, time)| (1..=MAX_ROUND_TRIP_MICROSECONDS).contains(time))
            .map(|(at, time)| (Duration::from_millis((*at).min(3_600_000)), Duration::from_micros(*time)))
            .collect();
        times.sort_unstable();
        times
    }

    /// Error that ended the test early, shortened.
    pub(crate) fn error(&self) -> Option<String> {
        self.error.as_deref().map(|text| shortened(text, MAX_ERROR))
    }
}

/// At most this many printable characters of a text.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(most).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn claims_are_bounded() {
        let text = br#"{"round_trips":{"idle":[[20,1500],[10,1400],[30,0],[40,99999999]],"up":[]},"error":"a\u0007b"}"#;
        let claims = BrowserClaims::parse(text).expect("valid");
        let idle = claims.round_trips(PhaseKind::Idle);
        let times = [(10, 1400), (20, 1500)].map(|(at, time)| (Duration::from_millis(at), Duration::from_micros(time)));
        assert_eq!(idle, times);
        assert_eq!(claims.round_trips(PhaseKind::Down), []);
        assert_eq!(claims.error().as_deref(), Some("ab"));
        let many = format!("{{\"round_trips\":{{\"down\":[{}[1,1]]}}}}", "[1,1],".repeat(MAX_ROUND_TRIPS));
        assert!(BrowserClaims::parse(many.as_bytes()).is_err());
        for wrong in
            ["", "[1]", "{\"x\":1}", "{\"round_trips\":{\"idle\":[[1]]}}", "{\"round_trips\":{\"idle\":[[-1,1]]}}"]
        {
            assert!(BrowserClaims::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_body_may_leave_out_all_but_its_braces() {
        let claims = BrowserClaims::parse(b"{}").expect("valid");
        assert_eq!(claims.error(), None);
        for kind in [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both] {
            assert_eq!(claims.round_trips(kind), []);
        }
    }

    #[test]
    fn each_phase_has_its_own_round_trips() {
        let claims = br#"{"round_trips":{"idle":[[1,10]],"down":[[2,20]],"up":[[3,30]]}}"#;
        let claims = BrowserClaims::parse(claims).expect("valid");
        for (kind, at, time) in [(PhaseKind::Idle, 1, 10), (PhaseKind::Down, 2, 20), (PhaseKind::Up, 3, 30)] {
            assert_eq!(claims.round_trips(kind), [(Duration::from_millis(at), Duration::from_micros(time))]);
        }
        assert_eq!(claims.round_trips(PhaseKind::Both), []);
    }

    #[test]
    fn a_phase_may_have_as_many_round_trips_as_the_limit() {
        for (count, is_valid) in [(MAX_ROUND_TRIPS, true), (MAX_ROUND_TRIPS + 1, false)] {
            for phase in ["idle", "down", "up"] {
                let list = vec!["[1,1]"; count].join(",");
                let parsed = BrowserClaims::parse(format!("{{\"round_trips\":{{\"{phase}\":[{list}]}}}}").as_bytes());
                assert_eq!(parsed.is_ok(), is_valid, "{count} {phase}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = BrowserClaims::parse(&bytes);
        }

        #[test]
        fn any_numbers_become_plausible_times_in_order(
            list in proptest::collection::vec((any::<u64>(), prop_oneof![any::<u64>(), 0..100_000_000_u64]), 0..50),
        ) {
            let body = serde_json::json!({ "round_trips": { "up": list } }).to_string();
            let times = BrowserClaims::parse(body.as_bytes()).expect("valid").round_trips(PhaseKind::Up);
            let plausible = list.iter().filter(|(_, time)| (1..=60_000_000).contains(time));
            prop_assert_eq!(times.len(), plausible.count());
            prop_assert!(times.is_sorted());
            for (at, time) in times {
                prop_assert!(at <= Duration::from_secs(3600), "no test takes an hour");
                prop_assert!(time <= Duration::from_secs(60) && !time.is_zero());
            }
        }

        #[test]
        fn any_text_is_shortened_to_printable_characters(text: String, most in 0..50_usize) {
            let shown = shortened(&text, most);
            prop_assert!(shown.chars().count() <= most && !shown.chars().any(char::is_control));
            let printable: String = text.chars().filter(|letter| !letter.is_control()).collect();
            prop_assert!(printable.starts_with(&shown));
        }
    }
}
