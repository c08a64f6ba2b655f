//! The procedure of RFC 6349.

use linerate_documents::rfc6349::{
    LoadedDirections, ManagementVerdict, Rfc6349Baseline, Rfc6349Document, TcpTest, TrafficManagement, WindowTest,
};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult};
use linerate_model::direction::Direction;
use linerate_model::path::{PolicerDetection, UnknownValue};
use linerate_model::report::TestTermination;

use super::{SECOND, STARTED, complete, figure, run, unknown_figure, whole};

const ACHIEVABLE: f64 = 90.4e6;

fn test(direction: Direction, connections: u64, share: f64) -> TcpTest {
    TcpTest {
        flows: if direction == Direction::Up { LoadedDirections::Up } else { LoadedDirections::Down },
        direction,
        connections,
        goodput_bits_per_second: Some(ACHIEVABLE * share),
        share_of_achievable: Some(share),
        transfer_time_ratio: Some(1.0 / share),
        efficiency: Some(0.9993),
        buffer_delay: Some(0.28),
        mean_rtt_ns: Some(68_000_000),
        bytes: Some(whole(ACHIEVABLE * share / 8.0 * 10.0)),
        duration_ns: Some(10 * SECOND),
        meaning: "The path is used well; the queue adds a quarter of the round trip.".to_owned(),
        problem: None,
    }
}

fn window(direction: Direction, share: f64) -> WindowTest {
    let expected = ACHIEVABLE * share.min(1.0);
    WindowTest {
        direction,
        window_bytes: whole(618_707.0 * share),
        share_of_bdp: Some(share),
        observed_window_bytes: Some(whole(618_000.0 * share)),
        expected_bits_per_second: Some(expected),
        achieved_bits_per_second: Some(expected * 0.97),
        ratio: Some(0.97),
    }
}

fn document() -> Rfc6349Document {
    Rfc6349Document {
        schema: 1,
        linerate_version: "0.1.0".to_owned(),
        host: "fra.example.net".to_owned(),
        port: 5201,
        started_at_unix_ns: STARTED,
        duration_ns: 160 * SECOND,
        termination: complete(),
        path: super::path::document(),
        baseline: Rfc6349Baseline {
            rtt_ns: Some(52_600_000),
            bandwidth_up_bits_per_second: Some(10.1e6),
            bandwidth_down_bits_per_second: Some(94.1e6),
            mtu_up_bytes: Some(1492),
            mtu_down_bytes: Some(1492),
            bdp_up_bytes: Some(66_406),
            bdp_down_bytes: Some(618_707),
            achievable_up_bits_per_second: Some(9.7e6),
            achievable_down_bits_per_second: Some(ACHIEVABLE),
        },
        tests: vec![
            test(Direction::Down, 1, 0.93),
            test(Direction::Down, 4, 0.99),
            test(Direction::Up, 1, 0.97),
            test(Direction::Up, 4, 0.98),
        ],
        windows: [0.25, 0.5, 1.0, 2.0].into_iter().map(|share| window(Direction::Down, share)).collect(),
        traffic_management: vec![TrafficManagement {
            direction: Direction::Up,
            verdict: ManagementVerdict::Policed,
            policer: Some(PolicerDetection {
                present: true,
                bits_per_second: Some(10e6),
                burst_bytes: Some(1_250_000),
                evidence: "loss without delay".to_owned(),
            }),
            evidence: "the window never filled the bucket without loss".to_owned(),
        }],
        unknown: Vec::new(),
        notes: Vec::new(),
    }
}

/// Everything ran.
pub(crate) fn rfc6349() -> RunDocument {
    let verdict = "TCP reaches 93 % of the path capacity down with one connection and 99 % with four.";
    let result = RunResult::Rfc6349(Box::new(document()));
    let mut run = run(RunKind::Rfc6349, 160, &["rfc6349", "fra.example.net"], verdict, result);
    run.figures = vec![
        figure(
            "transfer_time_ratio_down",
            "Transfer time ratio down",
            FigureUnit::One,
            Some(1.075),
            ImprovementDirection::Lower,
        ),
        figure("efficiency_down", "TCP efficiency down", FigureUnit::Share, Some(0.9993), ImprovementDirection::Higher),
        figure("buffer_delay_down", "Buffer delay down", FigureUnit::Share, Some(0.28), ImprovementDirection::Lower),
    ];
    run
}

/// Interrupted in the first test.
pub(crate) fn rfc6349_cut_short() -> RunDocument {
    let mut document = document();
    let ended = TestTermination::Interrupted { signal: Some("Interrupt(2)".to_owned()) };
    document.termination = ended.clone();
    document.tests = vec![TcpTest {
        goodput_bits_per_second: None,
        share_of_achievable: None,
        transfer_time_ratio: None,
        efficiency: None,
        buffer_delay: None,
        mean_rtt_ns: None,
        bytes: None,
        duration_ns: None,
        problem: Some("interrupted before the transfer was over".to_owned()),
        ..test(Direction::Down, 1, 0.93)
    }];
    document.windows.clear();
    document.traffic_management.clear();
    document.baseline.achievable_up_bits_per_second = None;
    document.unknown =
        vec![UnknownValue { key: "baseline".to_owned(), reason: "interrupted before it was measured".to_owned() }];
    let verdict = "Cut short before the first transfer was over.";
    let result = RunResult::Rfc6349(Box::new(document));
    let mut run = run(RunKind::Rfc6349, 30, &["rfc6349", "fra.example.net"], verdict, result);
    run.termination = ended;
    run.figures = vec![unknown_figure(
        "efficiency_down",
        "TCP efficiency down",
        FigureUnit::Share,
        "interrupted before it was measured",
    )];
    run
}
