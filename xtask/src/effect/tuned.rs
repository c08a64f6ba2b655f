//! Result of a run of `linerate tune` on a path, and its comparison with the path's label.

use std::time::Duration;

use anyhow::{Context, Result};
use linerate_analysis::formulas::slow_start_time;
use linerate_rules::tuning::TuningGoal;
use linerate_units::{BitRate, ByteCount, Mss};
use serde_json::Value;

/// Least share of the reachable rate of a repaired path.
const MIN_REACHED_SHARE: f64 = 0.95;

/// Least growth factor of a program's goodput that justifies a setting raised for it.
const MIN_PROGRAM_GAIN: f64 = 1.05;

/// Largest growth factor of the loaded round trip.
const MAX_RTT_GROWTH: f64 = 1.2;

/// Largest growth factor where goodput grows more (the queue that the goal `wan-bulk` allows).
const MAX_JUSTIFIED_RTT_GROWTH: f64 = 2.0;

/// Causes on a host that a program chose: no setting is to be changed.
const PROGRAM_CAUSES: &[&str] = &["slow-reader", "socket-pacing"];

/// Names of bounds that no host setting removes.
const FIXED_BOUNDS: &[&str] = &["the loss rate", "the application"];

/// Path of the library with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelledPath {
    /// Name of the path.
    pub(super) name: String,
    /// Built-in cause.
    pub(super) label: String,
    /// Location of the cause: `sender`, `receiver`, `hosts`, `network`, `application`, `nowhere`.
    pub(super) location: String,
}

impl LabelledPath {
    /// Parses an entry of `linerate lab list --json`.
    pub(super) fn read(entry: &Value) -> Result<Self> {
        let text = |key: &str| {
            entry[key].as_str().map(str::to_owned).with_context(|| format!("a path of the list has no {key}"))
        };
        Ok(Self { name: text("name")?, label: text("label")?, location: text("location")? })
    }

    /// True when a host setting is the cause.
    pub(super) fn is_limited_by_a_host(&self) -> bool {
        ["sender", "receiver", "hosts"].contains(&self.location.as_str())
            && !PROGRAM_CAUSES.contains(&self.label.as_str())
    }
}

/// Path before and after tuning. Rates are payload in bit/s, round trips in seconds; `None` where not observed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TunedPath {
    pub(super) path: LabelledPath,
    /// Outcome in the document; `failed` without a document.
    pub(super) outcome: String,
    pub(super) before: Option<f64>,
    pub(super) after: Option<f64>,
    /// Payload capacity of the path.
    pub(super) capacity: Option<f64>,
    /// Reachable rate: the capacity, or a lower bound that no setting removes.
    pub(super) reachable: Option<f64>,
    pub(super) round_trip_before: Option<f64>,
    pub(super) round_trip_after: Option<f64>,
    /// Changes in effect at the end.
    pub(super) changes: Vec<String>,
    /// Those of them that lower a ceiling of the whole host.
    pub(super) lowered: Vec<String>,
    /// Groups that were tried and rolled back.
    pub(super) rolled_back: Vec<String>,
    /// True when the changes in effect work around a cause on the path.
    pub(super) works_around_path: bool,
    /// Outcome as a sentence, or the error.
    pub(super) sentence: String,
    /// Reasons of the refusals.
    pub(super) refusals: Vec<String>,
}

impl TunedPath {
    /// Parses the document of `linerate tune --json`.
    pub(super) fn read(path: &LabelledPath, document: &Value) -> Self {
        let (before, after) = (&document["before"], &document["after"]);
        let capacity = capacity(after).or_else(|| capacity(before));
        let rounds = items(&document["rounds"]);
        let tried_in_vain = if document["outcome"] == "rolled_back" { without_and_with(rounds) } else { None };
        let bound = tried_in_vain.map(|(_, best)| best).or_else(|| fixed_bound(after));
        Self {
            path: path.clone(),
            outcome: text(&document["outcome"]),
            before: tried_in_vain
                .map(|(without, _)| without)
                .or_else(|| effect(document, "goodput", "before"))
                .or_else(|| goodput(before)),
            // The mean of all transfers of the trials: a single one varies where packets are lost by chance.
            after: effect(document, "goodput", "after").or_else(|| goodput(after)),
            capacity,
            reachable: [capacity, bound].into_iter().flatten().reduce(f64::min),
            round_trip_before: round_trip(before)
                .or_else(|| effect(document, "round_trip_p95", "before").map(from_nanoseconds)),
            round_trip_after: round_trip(after)
                .or_else(|| effect(document, "round_trip_p95", "after").map(from_nanoseconds)),
            changes: rounds.iter().flat_map(changes_kept).collect(),
            lowered: rounds.iter().flat_map(lowered).collect(),
            rolled_back: rounds.iter().flat_map(|round| groups_tried(round, false)).collect(),
            works_around_path: rounds.iter().any(|round| {
                round["lives_with_the_path"].as_bool() == Some(true) && !groups_tried(round, true).is_empty()
            }),
            sentence: text(&document["sentence"]),
            refusals: rounds
                .iter()
                .flat_map(|round| items(&round["refusals"]).iter().map(|refusal| text(&refusal["text"])))
                .collect(),
        }
    }

    /// Replaces the reachable rate by the measured goodput of the path without the causes in its hosts, at most the
    /// capacity.
    pub(super) fn with_measured_reach(self, without_causes: f64) -> Self {
        let reachable = self.capacity.map_or(without_causes, |capacity| capacity.min(without_causes));
        Self { reachable: Some(reachable), ..self }
    }

    /// Returns a path without a document.
    pub(super) fn failed(path: &LabelledPath, error: &str) -> Self {
        Self {
            path: path.clone(),
            outcome: "failed".to_owned(),
            before: None,
            after: None,
            capacity: None,
            reachable: None,
            round_trip_before: None,
            round_trip_after: None,
            changes: Vec::new(),
            lowered: Vec::new(),
            rolled_back: Vec::new(),
            works_around_path: false,
            sentence: error.to_owned(),
            refusals: Vec::new(),
        }
    }

    /// Returns the final goodput as a share of the reachable rate.
    pub(super) fn share(&self) -> Option<f64> {
        let reachable = self.reachable.filter(|rate| *rate > 0.0)?;
        Some(self.after.or(self.before)? / reachable)
    }

    /// True when the transfer reaches the reachable rate without a longer round trip. Where no change was kept, the
    /// result equals the initial state.
    pub(super) fn is_repaired(&self) -> bool {
        let changed = self.outcome == "kept";
        let after = if changed { self.round_trip_after } else { self.round_trip_before };
        let waits = self.round_trip_before.zip(after);
        (!changed || self.after.is_some())
            && self.share().is_some_and(|share| share >= MIN_REACHED_SHARE)
            && waits.is_some_and(|(before, after)| after <= self.allowed_rtt_growth() * before)
    }

    /// True when a change is in effect that costs more than the goal allows: a longer round trip, or goodput.
    pub(super) fn is_harmful(&self) -> bool {
        let grew = |before: Option<f64>, after: Option<f64>, most: f64| {
            before.zip(after).is_some_and(|(before, after)| after > most * before)
        };
        self.outcome == "kept"
            && (grew(self.round_trip_before, self.round_trip_after, self.allowed_rtt_growth())
                || grew(self.after, self.before, MIN_REACHED_SHARE.recip()))
    }

    /// Returns the allowed growth factor of the loaded round trip: the goal of `tune` does not notice a few milliseconds.
    fn allowed_rtt_growth(&self) -> f64 {
        let gain = self.before.zip(self.after).map_or(1.0, |(before, after)| after / before.max(1.0));
        let unnoticed = TuningGoal::WanBulk.objective().unnoticed.as_secs_f64();
        let unnoticed = self.round_trip_before.map_or(1.0, |before| 1.0 + unnoticed / before.max(1e-6));
        gain.clamp(MAX_RTT_GROWTH, MAX_JUSTIFIED_RTT_GROWTH).max(unnoticed)
    }

    /// True when nothing was changed or tried.
    pub(super) fn is_untouched(&self) -> bool {
        self.outcome == "nothing_to_change"
    }

    /// True when a host setting that cuts what a program asked for was raised, and the transfer gained.
    pub(super) fn helps_a_program(&self) -> bool {
        let gains = self.before.zip(self.after).is_some_and(|(before, after)| after >= MIN_PROGRAM_GAIN * before);
        self.path.label == "socket-buffer" && self.outcome == "kept" && gains && !self.is_harmful()
    }

    /// True when the result matches the label.
    pub(super) fn is_as_expected(&self) -> bool {
        if self.path.is_limited_by_a_host() {
            self.is_repaired()
        } else {
            self.is_untouched() || self.helps_a_program()
        }
    }

    /// Describes how the result differs from the label.
    pub(super) fn complaint(&self) -> String {
        let mut parts = vec![match self.path.is_limited_by_a_host() {
            _ if self.outcome == "failed" => "no result".to_owned(),
            true if self.outcome != "kept" => {
                format!("{} where a setting is the cause, {}", self.title(), self.shortcoming())
            }
            true => self.shortcoming(),
            false => format!("{} where no setting is the cause", self.title()),
        }];
        parts.push(self.sentence.clone());
        parts.extend(self.refusals.iter().take(2).cloned());
        parts.retain(|part| !part.is_empty());
        parts.join(": ")
    }

    /// Describes the missing rate or excess delay of a path.
    fn shortcoming(&self) -> String {
        let mut lacks = Vec::new();
        match self.share() {
            None => lacks.push("the reachable rate was not observed".to_owned()),
            Some(share) if share < MIN_REACHED_SHARE => {
                lacks.push(format!("{:.1} % of the reachable rate", share * 100.0));
            }
            Some(_) => {}
        }
        match self.round_trip_before.zip(self.round_trip_after.or(self.round_trip_before)) {
            None => lacks.push("round trips were not observed".to_owned()),
            Some((before, after)) if after > self.allowed_rtt_growth() * before => {
                lacks.push(format!("round trips {:.2} times as long", after / before));
            }
            Some(_) => {}
        }
        lacks.join(", ")
    }

    /// Returns the outcome as text.
    pub(super) fn title(&self) -> String {
        match self.outcome.as_str() {
            "rolled_back" => "rolled back".to_owned(),
            "planned" => "planned only".to_owned(),
            other => other.replace('_', " "),
        }
    }

    /// Returns one line for the terminal.
    pub(super) fn line(&self) -> String {
        let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{:.1}", rate / 1e6));
        let mark = if self.is_as_expected() { "" } else { " ✗" };
        let (before, after) = (rate(self.before), rate(self.after));
        format!("{}{mark}: {}, {before} -> {after} Mbit/s", self.path.name, self.title())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the seconds that the transfers of a trial omit: those of two slow starts, as `linerate tune` computes them.
pub(super) fn omitted_seconds(document: &Value) -> u64 {
    let number = |name: &str| figure(&document["before"], name);
    let start = || {
        let capacity = BitRate::from_bits_per_second(number("capacity_payload_bits_per_second")?);
        let round_trip = Duration::try_from_secs_f64(number("round_trip_least_seconds")?).ok()?;
        let segment = Mss::new(u32::try_from(ByteCount::from_f64(number("segment_bytes")?).get()).ok()?);
        slow_start_time(capacity, round_trip, segment)
    };
    let twice = start().unwrap_or_default() * 2;
    twice.as_secs() + u64::from(twice.subsec_nanos() > 0)
}

fn figure(diagnosis: &Value, name: &str) -> Option<f64> {
    diagnosis["figures"][name].as_f64()
}

/// Returns the goodput after slow start, or of the whole transfer where that was not observed.
fn goodput(diagnosis: &Value) -> Option<f64> {
    figure(diagnosis, "steady_bits_per_second").or_else(|| diagnosis["goodput_bits_per_second"].as_f64())
}

fn capacity(diagnosis: &Value) -> Option<f64> {
    figure(diagnosis, "capacity_payload_bits_per_second")
}

fn round_trip(diagnosis: &Value) -> Option<f64> {
    figure(diagnosis, "round_trip_loaded_p95_seconds")
}

/// Returns the lowest final bound that no setting removes.
fn fixed_bound(diagnosis: &Value) -> Option<f64> {
    let bounds = items(&diagnosis["bounds"]).iter();
    let staying = bounds.filter(|bound| bound["name"].as_str().is_some_and(|name| FIXED_BOUNDS.contains(&name)));
    staying.filter_map(|bound| bound["bits_per_second"].as_f64()).reduce(f64::min)
}

fn effect(document: &Value, name: &str, when: &str) -> Option<f64> {
    items(&document["effects"]).iter().find(|effect| effect["name"] == name)?[when].as_f64()
}

fn from_nanoseconds(time: f64) -> f64 {
    time / 1e9
}

/// Returns the goodput without the tried changes, and the best with any of them: where all were rolled back, the cause
/// was removed temporarily, and the reachable rate was measured.
fn without_and_with(rounds: &[Value]) -> Option<(f64, f64)> {
    let trials = || rounds.iter().flat_map(|round| items(&round["trials"]));
    let goodput = |trial: &Value, when: &str| {
        items(&trial["effects"]).iter().find(|effect| effect["name"] == "goodput")?[when].as_f64()
    };
    let without = trials().find_map(|trial| goodput(trial, "before"))?;
    let best = trials().filter_map(|trial| goodput(trial, "after")).fold(without, f64::max);
    Some((without, best))
}

/// Returns the groups of a round that were kept, or those that were not.
fn groups_tried(round: &Value, kept: bool) -> Vec<String> {
    let trials = items(&round["trials"]).iter();
    trials.filter(|trial| (trial["decision"] == "keep") == kept).map(|trial| text(&trial["group"])).collect()
}

/// Returns the changes of a round's kept groups: `far net.ipv4.tcp_rmem = 4096 131072 8388608`.
fn changes_kept(round: &Value) -> Vec<String> {
    let kept = items(&round["trials"]).iter().filter(|trial| trial["decision"] == "keep");
    kept.flat_map(|trial| text(&trial["name"]).split("; ").map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Returns the kept changes of a round that lower the last number of a setting, which serves all paths of its host.
fn lowered(round: &Value) -> Vec<String> {
    let last = |value: &str| value.split_ascii_whitespace().last()?.parse::<u64>().ok();
    let former = |end_and_key: &str| {
        let is_it = |one: &&Value| {
            let key = one["change"]["target"]["key"].as_str();
            key.is_some_and(|key| end_and_key == format!("{} {key}", text(&one["end"])))
        };
        last(items(&round["changes"]).iter().find(is_it)?["change"]["from"].as_str()?)
    };
    let is_lower = |change: &String| {
        let parts = change.split_once(" = ");
        parts.is_some_and(|(place, value)| former(place).zip(last(value)).is_some_and(|(from, to)| to < from))
    };
    changes_kept(round).into_iter().filter(is_lower).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in super::super) fn path(name: &str, label: &str, place: &str) -> LabelledPath {
        LabelledPath { name: name.into(), label: label.into(), location: place.into() }
    }

    fn diagnosis(steady: f64, round_trip: f64) -> Value {
        json!({
            "goodput_bits_per_second": steady * 0.9,
            "figures": {
                "steady_bits_per_second": steady,
                "capacity_payload_bits_per_second": 100e6,
                "round_trip_loaded_p95_seconds": round_trip,
            },
            "bounds": [{ "name": "the path", "bits_per_second": 100e6, "arithmetic": "" }],
        })
    }

    fn change(end: &str, key: &str, to: &str, group: &str) -> Value {
        let target = json!({ "kind": "setting", "key": key });
        json!({ "end": end, "change": { "target": target, "from": "4096 131072 375000", "to": to, "group": group }, "alternatives": [] })
    }

    /// Document of a receive window that was too small, repaired in the second of two trials.
    pub(in super::super) fn kept(steady: f64, round_trip: f64) -> Value {
        json!({
            "schema": 1,
            "outcome": "kept",
            "sentence": "Four times as fast.",
            "before": diagnosis(25e6, 0.020),
            "after": diagnosis(steady, round_trip),
            "rounds": [{
                "cause": "receive-window",
                "changes": [
                    change("far", "net.ipv4.tcp_rmem", "4096 131072 999424", "buffers"),
                    change("near", "net.ipv4.tcp_congestion_control", "bbr", "congestion_control"),
                ],
                "refusals": [],
                "lives_with_the_path": false,
                "trials": [
                    { "group": "congestion_control", "decision": "roll_back", "name": "near congctl = bbr" },
                    { "group": "buffers", "decision": "keep", "name": "far net.ipv4.tcp_rmem = 4096 131072 999424" },
                ],
            }],
        })
    }

    pub(in super::super) fn nothing() -> Value {
        json!({
            "schema": 1, "outcome": "nothing_to_change", "sentence": "Nothing to change.",
            "before": diagnosis(99e6, 0.030), "rounds": [], "after": null,
        })
    }

    #[test]
    fn a_repaired_path_names_its_change_and_its_figures() {
        let tuned = TunedPath::read(&path("a", "receive-window", "receiver"), &kept(96e6, 0.0239));
        assert!(tuned.is_repaired() && tuned.is_as_expected() && !tuned.is_untouched());
        assert_eq!((tuned.before, tuned.after, tuned.capacity), (Some(25e6), Some(96e6), Some(100e6)));
        assert_eq!(tuned.changes, ["far net.ipv4.tcp_rmem = 4096 131072 999424"]);
        assert_eq!(tuned.rolled_back, ["congestion_control"]);
        assert_eq!(tuned.line(), "a: kept, 25.0 -> 96.0 Mbit/s");
    }

    #[test]
    fn a_lower_ceiling_of_the_whole_host_is_counted() {
        let host = path("a", "receive-window", "receiver");
        let mut document = kept(96e6, 0.0239);
        assert!(TunedPath::read(&host, &document).lowered.is_empty());
        document["rounds"][0]["changes"][0]["change"]["from"] = json!("4096 131072 6291456");
        assert_eq!(TunedPath::read(&host, &document).lowered, ["far net.ipv4.tcp_rmem = 4096 131072 999424"]);
        document["rounds"][0]["trials"][1]["decision"] = json!("roll_back");
        assert!(TunedPath::read(&host, &document).lowered.is_empty());
    }

    #[test]
    fn the_goodput_without_the_causes_is_reachable() {
        let tuned = TunedPath::read(&path("a", "sack-off", "hosts"), &kept(80e6, 0.0239));
        assert!(!tuned.is_repaired() && !tuned.is_harmful());
        assert!(tuned.clone().with_measured_reach(84e6).is_repaired());
        assert_eq!(tuned.with_measured_reach(120e6).reachable, Some(100e6));
        let late = TunedPath::read(&path("a", "sack-off", "hosts"), &kept(80e6, 0.0402));
        let slower = TunedPath::read(&path("a", "sack-off", "hosts"), &kept(20e6, 0.02));
        assert!(late.is_harmful() && slower.is_harmful());
    }

    #[test]
    fn the_rate_of_the_best_trial_is_reachable() {
        let effects = |before: f64, after: f64| json!([{ "name": "goodput", "before": before, "after": after }]);
        let mut document = kept(96e6, 0.02);
        document["outcome"] = json!("rolled_back");
        document["after"] = Value::Null;
        document["rounds"][0]["trials"] = json!([
            { "group": "features", "decision": "roll_back", "name": "a", "effects": effects(20e6, 20.5e6) },
            { "group": "features", "decision": "roll_back", "name": "b", "effects": effects(20e6, 19e6) },
        ]);
        let tuned = TunedPath::read(&path("a", "sack-off", "hosts"), &document);
        assert_eq!((tuned.before, tuned.reachable), (Some(20e6), Some(20.5e6)));
        assert!(tuned.is_as_expected(), "the cause was removed, and nothing was gained");
        document["rounds"][0]["trials"][0]["effects"] = effects(20e6, 90e6);
        assert!(
            !TunedPath::read(&path("a", "sack-off", "hosts"), &document).is_as_expected(),
            "it gained, and was lost"
        );
    }

    #[test]
    fn too_slow_or_too_late_is_no_repair() {
        let host = path("a", "receive-window", "receiver");
        let slow = TunedPath::read(&host, &kept(94.9e6, 0.020));
        assert!(!slow.is_as_expected());
        assert_eq!(slow.complaint(), "94.9 % of the reachable rate: Four times as fast.");
        // Four times as fast: a queue is allowed, up to twice the round trip.
        assert!(TunedPath::read(&host, &kept(99e6, 0.0241)).is_as_expected());
        let late = TunedPath::read(&host, &kept(99e6, 0.0402));
        assert!(!late.is_as_expected());
        assert!(late.complaint().starts_with("round trips 2.01 times as long"), "{}", late.complaint());
        let mut little = kept(99e6, 0.0482);
        little["before"] = diagnosis(90e6, 0.040);
        let little = TunedPath::read(&host, &little);
        assert!(little.complaint().starts_with("round trips 1.21 times as long"), "{}", little.complaint());
        // Less than 5 ms longer: the goal does not notice.
        let mut short = kept(99e6, 0.0044);
        short["before"] = diagnosis(25e6, 0.0019);
        assert!(TunedPath::read(&host, &short).is_as_expected());
    }

    #[test]
    fn a_path_that_is_full_before_needs_no_change() {
        let host = path("a", "timestamps-off", "hosts");
        assert!(TunedPath::read(&host, &nothing()).is_as_expected());
        let mut slow = nothing();
        slow["before"] = diagnosis(50e6, 0.030);
        let slow = TunedPath::read(&host, &slow);
        assert!(!slow.is_as_expected());
        let complaint = slow.complaint();
        assert!(
            complaint.starts_with("nothing to change where a setting is the cause, 50.0 % of the reachable rate: "),
            "{complaint}"
        );
    }

    #[test]
    fn a_bound_that_no_setting_removes_is_the_reachable_rate() {
        let mut document = kept(40e6, 0.020);
        document["after"]["bounds"] = json!([
            { "name": "the receive window", "bits_per_second": 1e6 },
            { "name": "the loss rate", "bits_per_second": 41e6 },
        ]);
        let tuned = TunedPath::read(&path("a", "sack-off", "hosts"), &document);
        assert_eq!(tuned.reachable, Some(41e6));
        assert!(tuned.is_repaired());
    }

    #[test]
    fn other_paths_are_to_be_left_alone() {
        for (label, place) in [
            ("loss", "network"),
            ("link-rate", "nowhere"),
            ("application", "application"),
            ("socket-pacing", "sender"),
            ("slow-reader", "receiver"),
        ] {
            assert!(TunedPath::read(&path("a", label, place), &nothing()).is_as_expected(), "{label}");
            let touched = TunedPath::read(&path("a", label, place), &kept(99e6, 0.020));
            assert!(!touched.is_as_expected(), "{label}");
            assert!(touched.complaint().starts_with("kept where no setting is the cause"), "{}", touched.complaint());
        }
    }

    #[test]
    fn a_limit_of_the_host_on_a_programs_buffer_may_be_raised_for_a_gain() {
        let own = path("a", "socket-buffer", "application");
        assert!(TunedPath::read(&own, &kept(99e6, 0.020)).is_as_expected());
        assert!(!TunedPath::read(&own, &kept(26e6, 0.020)).is_as_expected(), "no gain");
        assert!(!TunedPath::read(&own, &kept(99e6, 0.041)).is_as_expected(), "too long a queue");
    }

    #[test]
    fn trials_omit_two_slow_starts() {
        let with = |capacity: f64, round_trip: f64| {
            json!({ "before": { "figures": {
                "capacity_payload_bits_per_second": capacity, "round_trip_least_seconds": round_trip, "segment_bytes": 1448,
            }}})
        };
        assert_eq!(omitted_seconds(&with(200e6, 0.024)), 1);
        // 12.9 doublings of 117 ms each.
        assert_eq!(omitted_seconds(&with(9.5e9, 0.117)), 4);
        assert_eq!(omitted_seconds(&json!({ "before": {} })), 0);
    }

    #[test]
    fn without_a_document_or_its_figures_nothing_is_as_expected() {
        let host = path("a", "receive-window", "receiver");
        let failed = TunedPath::failed(&host, "no kernel");
        assert!(!failed.is_as_expected());
        assert_eq!(failed.complaint(), "no result: no kernel");
        let empty = TunedPath::read(&host, &json!({ "outcome": "kept" }));
        assert!(!empty.is_as_expected());
        assert_eq!(empty.complaint(), "the reachable rate was not observed, round trips were not observed");
        assert!(!TunedPath::failed(&path("a", "loss", "network"), "no kernel").is_as_expected());
    }

    #[test]
    fn figures_of_the_transfer_replace_those_of_a_diagnosis() {
        let document = json!({
            "outcome": "kept", "before": null, "after": null, "rounds": [],
            "effects": [
                { "name": "goodput", "before": 10e6, "after": 20e6 },
                { "name": "round_trip_p95", "before": 20e6, "after": 21e6 },
            ],
        });
        let tuned = TunedPath::read(&path("a", "receive-window", "receiver"), &document);
        assert_eq!((tuned.before, tuned.after), (Some(10e6), Some(20e6)));
        assert_eq!((tuned.round_trip_before, tuned.round_trip_after), (Some(0.020), Some(0.021)));
    }
}
