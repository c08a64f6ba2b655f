//! A transfer that the receive window limits.

use linerate_documents::diagnose::{DiagnoseDocument, HostKernelEvents, TransferHost};
use linerate_documents::run::{FigureUnit, ImprovementDirection, RunDocument, RunKind, RunResult};
use linerate_model::diagnosis::{BoundKind, ThroughputBound};
use linerate_model::far::{EventDelay, KernelEvents, PacketDrops, RunQueueDelay, RunQueueOccupant, SoftirqTime};
use linerate_units::BitRate;

use super::{HOSTILE, figure, run};

fn document() -> DiagnoseDocument {
    let mut document = *super::tune::document().before.expect("the tuning begins with a diagnosis");
    let bound = |kind: BoundKind, rate: f64| ThroughputBound {
        kind,
        rate: BitRate::from_bits_per_second(rate),
        arithmetic: "3.9 MB x 8 / 117 ms".to_owned(),
    };
    document.goodput_bits_per_second = Some(267e6);
    document.bounds = vec![bound(BoundKind::ReceiveWindow, 268e6), bound(BoundKind::Path, 9.41e9)];
    document
}

pub(crate) fn diagnose() -> RunDocument {
    let document = document();
    let verdict = document.verdicts.first().map_or("", |verdict| verdict.text.as_str()).to_owned();
    let result = RunResult::Diagnose(Box::new(document));
    let mut run = run(RunKind::Diagnose, 12, &["diagnose", "fra.example.net"], &verdict, result);
    run.figures =
        vec![figure("goodput", "Goodput", FigureUnit::BitsPerSecond, Some(267e6), ImprovementDirection::Higher)];
    run
}

/// The same with hostile text in all that another host could have written.
pub(crate) fn hostile_diagnose() -> RunDocument {
    let mut run = diagnose();
    let RunResult::Diagnose(document) = &mut run.result else { return run };
    for text in document.bounds.iter_mut().map(|bound| &mut bound.arithmetic) {
        HOSTILE.clone_into(text);
    }
    for verdict in &mut document.verdicts {
        HOSTILE.clone_into(&mut verdict.text);
        verdict.evidence = vec![HOSTILE.to_owned()];
        verdict.advice = vec![HOSTILE.to_owned()];
    }
    document.notes = vec![HOSTILE.to_owned()];
    document.kernel_events = vec![HostKernelEvents { host: TransferHost::Receiver, events: hostile_events() }];
    if let Some(near) = &mut run.environment.near {
        near.congestion_control = Some(HOSTILE.to_owned());
    }
    run
}

fn hostile_events() -> KernelEvents {
    let delay = EventDelay { count: 1, total_ns: 5_000_000, longest_ns: 5_000_000, histogram: vec![0; 13] };
    let occupant = RunQueueOccupant {
        task: HOSTILE.to_owned(),
        process: Some(HOSTILE.to_owned()),
        longest_ns: 5_000_000,
        ..RunQueueOccupant::default()
    };
    KernelEvents {
        run_queue: Some(RunQueueDelay { delay, occupants: vec![occupant], ..RunQueueDelay::default() }),
        softirqs: Some(vec![SoftirqTime { vector: HOSTILE.to_owned(), time_ns: 1, runs: 1, ..SoftirqTime::default() }]),
        drops: Some(vec![PacketDrops { reason: HOSTILE.to_owned(), location: Some(HOSTILE.to_owned()), packets: 1 }]),
        ..KernelEvents::default()
    }
}
