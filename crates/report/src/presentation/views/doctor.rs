//! Guided run: its steps, before and after, a published recommendation, and all measurements.

use core::time::Duration;

use linerate_documents::doctor::{DoctorDocument, RecommendationComparison};
use linerate_documents::tune::EffectFigure;
use linerate_model::load::{LatencyClass, LoadDocument, PhaseKind, ProbeClass};
use linerate_model::summary::DurationDistribution;

use super::{add_notes, load, path, rates_chart, tune};
use crate::presentation::reasons::{NO_REASON_RECORDED, UnknownReasons};
use crate::presentation::{Chart, Presentation, Quantity, ReportTable, TableCell, comparison};

/// Tables of a load measurement that belong here; the document has all of them.
const LOAD_TABLES: [&str; 4] = ["latency", "goodput", "grade", "queues"];
const NOT_TRIED: &str = "the recommendation was not tried";
const NOT_MEASURED: &str = "that phase was not measured, or no probe of this class was answered in it";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &DoctorDocument) {
    let unknown = UnknownReasons::of(&document.unknown);
    presentation.badge = document.tune.as_ref().map(|tune| tune::badge(tune.outcome));
    presentation.lead(methods_chart(document));
    let effects = tune::effects("effects", "Before and after", &document.effects, unknown);
    let other = document.comparison.as_ref().map(|other| recommendation(document, other));
    let tables = [steps(document), effects.non_empty(), latency(document), other];
    presentation.tables.extend(tables.into_iter().flatten());
    if let Some(tuned) = &document.tune {
        presentation.charts.extend(tune::charts(tuned));
        presentation.tables.extend(tune::tables(tuned));
    }
    presentation.tables.extend(document.path.as_deref().and_then(path::direction_table));
    add_loads(presentation, document);
    let paths = document.path.iter().flat_map(|path| path.notes.iter().cloned());
    presentation.notes.extend(paths);
    if let Some(tuned) = &document.tune {
        add_notes(presentation, &tuned.notes, &tuned.unknown);
    }
    add_notes(presentation, &document.notes, &document.unknown);
}

fn steps(document: &DoctorDocument) -> Option<ReportTable> {
    let mut table = ReportTable::new("steps", "Steps", &["Step", "Result", "Duration"]);
    for step in &document.steps {
        let earlier = if step.resumed { " (done by an earlier run)" } else { "" };
        let took = TableCell::Value(Quantity::nanoseconds(step.duration_ns));
        table.push_row(step.name.name(), vec![TableCell::Text(format!("{}{earlier}", step.text)), took]);
    }
    table.non_empty()
}

/// The goodput of the run's transfer before and after.
fn goodput(document: &DoctorDocument) -> (Option<f64>, Option<f64>) {
    let effect = document.effects.iter().find(|effect| effect.name == EffectFigure::Goodput);
    effect.map_or((None, None), |effect| (effect.before, effect.after))
}

fn recommendation(document: &DoctorDocument, other: &RecommendationComparison) -> ReportTable {
    let unknown = UnknownReasons::of(&document.unknown);
    let mut table = ReportTable::new("comparison", "Published recommendation", &["", "Value"]);
    table.push_row("Source", vec![TableCell::text(&other.source)]);
    for setting in &other.settings {
        table.push_row("Setting", vec![TableCell::text(setting)]);
    }
    table.push_row("Computed", vec![TableCell::text(&other.arithmetic)]);
    let (before, after) = goodput(document);
    let of_capacity = |rate: f64| {
        let shown = Quantity::bits_per_second(rate).display_text();
        let share = other.capacity_bits_per_second.filter(|&capacity| capacity > 0.0).map(|capacity| rate / capacity);
        let share = share.map_or_else(String::new, |share| {
            format!(" ({} of the path capacity)", Quantity::share(share).display_text())
        });
        TableCell::Qualified(Quantity::bits_per_second(rate), format!("{shown}{share}"))
    };
    let known = |key: &str, rate: Option<f64>, otherwise: &str| {
        let reason = unknown.recorded(&format!("comparison.{key}")).unwrap_or(otherwise);
        rate.map_or_else(|| TableCell::Unknown(reason.to_owned()), of_capacity)
    };
    let predicted = known("predicted_bits_per_second", other.predicted_bits_per_second, NO_REASON_RECORDED);
    let measured = known("measured_bits_per_second", other.measured_bits_per_second, NOT_TRIED);
    let capacity = other.capacity_bits_per_second.map(Quantity::bits_per_second);
    let rows = [
        before.map(|rate| ("Goodput before", of_capacity(rate))),
        Some(("Recommendation, by its formula", predicted)),
        Some(("Recommendation, measured", measured)),
        after.map(|rate| ("Goodput with the kept changes", of_capacity(rate))),
        Some(("Path capacity", unknown.cell("comparison.capacity_bits_per_second", capacity))),
    ];
    for (label, cell) in rows.into_iter().flatten() {
        table.push_row(label, vec![cell]);
    }
    table
}

/// Goodput before, by the published recommendation, after, and the path's capacity.
fn methods_chart<'a>(document: &DoctorDocument) -> Option<Chart<'a>> {
    let (before, after) = goodput(document);
    let other = document.comparison.as_ref();
    let diagnosed = || document.tune.as_ref()?.before.as_ref()?.goodput_bits_per_second;
    rates_chart(
        "Goodput by tuning method",
        &[
            ("before", before.or_else(diagnosed)),
            ("published, formula", other.and_then(|other| other.predicted_bits_per_second)),
            ("published, measured", other.and_then(|other| other.measured_bits_per_second)),
            ("after", after),
            ("path capacity", other.and_then(|other| other.capacity_bits_per_second)),
        ],
    )
}

fn class_in_phase(document: &LoadDocument, kind: PhaseKind, name: LatencyClass) -> Option<&ProbeClass> {
    let phase = document.phases.iter().find(|phase| phase.kind == kind)?;
    phase.classes.iter().find(|class| class.class == name)
}

/// Round trips while the path is idle and loaded, before and after, of one class of probes.
fn latency(document: &DoctorDocument) -> Option<ReportTable> {
    const PHASES: [PhaseKind; 4] = [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];
    let before = document.load_before.as_deref()?;
    let after = document.load_after.as_deref()?;
    let name = load::decisive_class(before)?;
    let columns = ["Load", "median before", "median after", "p95 before", "p95 after"];
    let mut table = ReportTable::new("latency_both", "Round-trip time under load, before and after", &columns);
    let cell = |class: Option<&ProbeClass>, of: fn(&DurationDistribution) -> Duration| {
        let rtt = class.and_then(|class| class.rtt.as_ref());
        rtt.map_or_else(
            || TableCell::Unknown(NOT_MEASURED.to_owned()),
            |rtt| TableCell::Value(Quantity::duration(of(rtt))),
        )
    };
    for kind in PHASES {
        let (was, is) = (class_in_phase(before, kind, name), class_in_phase(after, kind, name));
        if was.is_none() && is.is_none() {
            continue;
        }
        let (median, p95) = (|rtt: &DurationDistribution| rtt.median, |rtt: &DurationDistribution| rtt.p95);
        let cells = vec![cell(was, median), cell(is, median), cell(was, p95), cell(is, p95)];
        table.push_row(load::phase_name(kind), cells);
    }
    table.note = Some(format!("Probes: {}.", load::class_name(name)));
    table.non_empty()
}

/// Latency under load as in its own report, before and after. With both, the round trips are in [`latency`] and in one
/// chart.
fn add_loads(presentation: &mut Presentation<'_>, document: &DoctorDocument) {
    let (before, after) = (document.load_before.as_deref(), document.load_after.as_deref());
    let of_decisive = |load: &LoadDocument, charts: Vec<Chart<'static>>| {
        let name = load::decisive_class(load).map(load::distribution_name);
        charts.into_iter().filter(|chart| Some(&chart.name) == name.as_ref()).collect::<Vec<_>>()
    };
    presentation.charts.extend(match (before, after) {
        (Some(before), Some(after)) => of_decisive(before, comparison::overlaid(before, after)),
        (Some(one), None) | (None, Some(one)) => of_decisive(one, load::distributions(one)),
        (None, None) => Vec::new(),
    });
    let both = before.is_some() && after.is_some();
    for (when, document) in [("before", before), ("after", after)] {
        let Some(document) = document else { continue };
        for mut table in load::tables(document) {
            if LOAD_TABLES.contains(&table.name.as_str()) && !(both && table.name == "latency") {
                table.name = format!("{}_{when}", table.name);
                table.title = format!("{}, {when}", table.title);
                presentation.tables.push(table);
            }
        }
        let notes: Vec<String> = document.notes.iter().map(|note| format!("Load, {when}: {note}")).collect();
        add_notes(presentation, &notes, &[]);
    }
}
