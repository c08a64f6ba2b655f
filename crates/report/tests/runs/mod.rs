//! Sample runs for tests, one of each kind, full and with many unknown values. Deterministic: noise comes from a seed.

// Each test that uses this module uses a part of it.
#![allow(dead_code, unused_imports)]

mod diagnose;
mod doctor;
mod environment;
mod load;
mod path;
mod rfc6349;
mod rr;
mod throughput;
mod tune;
mod web;

pub(crate) use diagnose::{diagnose, hostile_diagnose};
pub(crate) use doctor::{doctor, doctor_without_change};
pub(crate) use load::{load, load_of_connections, load_ungraded};
pub(crate) use path::{path, path_to_bare_host};
pub(crate) use rfc6349::{rfc6349, rfc6349_cut_short};
pub(crate) use rr::{rr, rr_without_response};
pub(crate) use throughput::{big, throughput, throughput_from_stock_server};
pub(crate) use tune::{tune, tune_broken_off, tune_planned};
pub(crate) use web::web;

use core::time::Duration;

use linerate_documents::run::{
    FigureUnit, ImprovementDirection, PhaseSpan, RunDocument, RunFigure, RunKind, RunResult,
};
use linerate_model::report::TestTermination;
use linerate_model::summary::DurationDistribution;

/// 2026-11-20 07:54:39 UTC.
pub(crate) const STARTED: u64 = 1_795_161_279_000_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// A host name that tries to break out of every form of the report.
pub(crate) const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&|`[a](b)\u{1b}[31m\u{202e}";

/// All samples with their names.
pub(crate) fn all() -> Vec<(&'static str, RunDocument)> {
    vec![
        ("throughput", throughput()),
        ("throughput_from_stock_server", throughput_from_stock_server()),
        ("path", path()),
        ("path_to_bare_host", path_to_bare_host()),
        ("load", load(1)),
        ("load_of_connections", load_of_connections()),
        ("load_ungraded", load_ungraded()),
        ("rfc6349", rfc6349()),
        ("rfc6349_cut_short", rfc6349_cut_short()),
        ("rr", rr()),
        ("rr_without_response", rr_without_response()),
        ("diagnose", diagnose()),
        ("tune", tune()),
        ("tune_planned", tune_planned()),
        ("tune_broken_off", tune_broken_off()),
        ("doctor", doctor()),
        ("doctor_without_change", doctor_without_change()),
        ("web", web()),
    ]
}

/// Pseudo-random numbers from 0 to 1 (a linear congruential generator, Knuth's constants).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 32).expect("32 bits")) / f64::from(u32::MAX)
    }

    /// Between `low` and `high`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
}

pub(crate) fn complete() -> TestTermination {
    TestTermination::Complete
}

/// A distribution around `median`, in milliseconds.
pub(crate) fn times(min: f64, median: f64, p95: f64, max: f64) -> DurationDistribution {
    let time = |milliseconds: f64| Duration::from_nanos(whole(milliseconds * 1e6));
    DurationDistribution {
        count: 200,
        min: time(min),
        median: time(median),
        mean: time(median * 0.98 + p95 * 0.02),
        p95: time(p95),
        p99: time(p95 * 0.4 + max * 0.6),
        max: time(max),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
pub(crate) fn whole(number: f64) -> u64 {
    number.round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "small")]
pub(crate) fn real(number: u64) -> f64 {
    number as f64
}

pub(crate) fn figure(
    name: &str,
    title: &str,
    unit: FigureUnit,
    value: Option<f64>,
    better: ImprovementDirection,
) -> RunFigure {
    RunFigure {
        name: name.to_owned(),
        title: title.to_owned(),
        unit,
        value,
        low: value.map(|value| value * 0.97),
        high: value.map(|value| value * 1.03),
        count: value.map(|_| 40),
        better,
        note: None,
    }
}

pub(crate) fn unknown_figure(name: &str, title: &str, unit: FigureUnit, reason: &str) -> RunFigure {
    RunFigure { note: Some(reason.to_owned()), ..figure(name, title, unit, None, ImprovementDirection::Neither) }
}

pub(crate) fn span(name: &str, start: u64, end: u64) -> PhaseSpan {
    PhaseSpan { name: name.to_owned(), start_ns: start * SECOND, end_ns: end * SECOND }
}

/// A run of `kind` without figures and samples.
pub(crate) fn run(kind: RunKind, seconds: u64, arguments: &[&str], verdict: &str, result: RunResult) -> RunDocument {
    RunDocument {
        schema: linerate_documents::run::SCHEMA,
        linerate_version: "0.1.0".to_owned(),
        kind,
        started_at_unix_ns: STARTED,
        duration_ns: seconds * SECOND,
        host: "fra.example.net".to_owned(),
        port: 5201,
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        termination: complete(),
        verdict: verdict.to_owned(),
        figures: Vec::new(),
        environment: environment::both(),
        series: Vec::new(),
        phases: Vec::new(),
        result,
    }
}
