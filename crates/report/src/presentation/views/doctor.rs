//! A guided run: its steps, before and after, what others recommend, and everything that was measured on the way.

use linerate_model::schema::doctor::{Comparison, DoctorDocument};
use linerate_model::schema::load::{ClassName, LoadDocument, PhaseKind, ProbeClass};
use linerate_model::schema::run::Unit;
use linerate_model::schema::throughput::TimeDistribution;

use super::{add_notes, load, path, tune};
use crate::presentation::reasons::{NOT_SAID, Reasons};
use crate::presentation::{Bars, BarsRow, Cell, Chart, Plot, Presentation, Quantity, Table, comparison};

/// What of the load's own tables belongs here; the document has all of it.
const LOAD_TABLES: [&str; 4] = ["latency", "goodput", "grade", "queues"];
const NOT_TRIED: &str = "the recommendation was not tried";
const NOT_MEASURED: &str = "that phase was not measured, or no probe of this class was answered in it";

pub(super) fn complete(presentation: &mut Presentation<'_>, document: &DoctorDocument) {
    let unknown = Reasons::of(&document.unknown);
    presentation.badge = document.tune.as_ref().map(|tune| tune::badge(tune.outcome));
    presentation.charts.extend(document.comparison.as_ref().map(|other| compared(document, other)));
    let effects = tune::effects("effects", "Before and after", &document.effects, unknown);
    let other = document.comparison.as_ref().map(|other| recommendation(document, other));
    let tables = [steps(document), effects.filled(), latency(document), other];
    presentation.tables.extend(tables.into_iter().flatten());
    if let Some(tuned) = &document.tune {
        presentation.charts.extend(tune::charts(tuned));
        presentation.tables.extend(tune::tables(tuned));
    }
    presentation.tables.extend(document.path.as_deref().and_then(path::of_directions));
    loads(presentation, document);
    let paths = document.path.iter().flat_map(|path| path.notes.iter().cloned());
    presentation.notes.extend(paths);
    if let Some(tuned) = &document.tune {
        add_notes(presentation, &tuned.notes, &tuned.unknown);
    }
    add_notes(presentation, &document.notes, &document.unknown);
}

fn steps(document: &DoctorDocument) -> Option<Table> {
    let mut table = Table::new("steps", "Steps", &["Step", "What came out", "Took"]);
    for step in &document.steps {
        let earlier = if step.resumed { " (done by an earlier run)" } else { "" };
        let took = Cell::Value(Quantity::nanoseconds(step.duration_ns));
        table.row(step.name.replace('_', " "), vec![Cell::Text(format!("{}{earlier}", step.text)), took]);
    }
    table.filled()
}

/// The goodput of the run's transfer before and after.
fn goodput(document: &DoctorDocument) -> (Option<f64>, Option<f64>) {
    let effect = document.effects.iter().find(|effect| effect.name == "goodput");
    effect.map_or((None, None), |effect| (effect.before, effect.after))
}

fn recommendation(document: &DoctorDocument, other: &Comparison) -> Table {
    let unknown = Reasons::of(&document.unknown);
    let mut table = Table::new("comparison", "What others recommend", &["", "Value"]);
    table.row("Who", vec![Cell::text(&other.source)]);
    for setting in &other.settings {
        table.row("Setting", vec![Cell::text(setting)]);
    }
    table.row("Computed", vec![Cell::text(&other.arithmetic)]);
    let (before, after) = goodput(document);
    let of_capacity = |rate: f64| {
        let shown = Quantity::bits_per_second(rate).shown();
        let share = other.capacity_bits_per_second.filter(|&capacity| capacity > 0.0).map(|capacity| rate / capacity);
        let share = share.map_or_else(String::new, |share| {
            format!(" ({} of what the path carries)", Quantity::share(share).shown())
        });
        Cell::Qualified(Quantity::bits_per_second(rate), format!("{shown}{share}"))
    };
    let known = |key: &str, rate: Option<f64>, otherwise: &str| {
        let reason = unknown.said(&format!("comparison.{key}")).unwrap_or(otherwise);
        rate.map_or_else(|| Cell::Unknown(reason.to_owned()), of_capacity)
    };
    let predicted = known("predicted_bits_per_second", other.predicted_bits_per_second, NOT_SAID);
    let measured = known("measured_bits_per_second", other.measured_bits_per_second, NOT_TRIED);
    let capacity = other.capacity_bits_per_second.map(Quantity::bits_per_second);
    let rows = [
        before.map(|rate| ("Goodput before", of_capacity(rate))),
        Some(("With that, by its formula", predicted)),
        Some(("With that, measured", measured)),
        after.map(|rate| ("With what was kept", of_capacity(rate))),
        Some(("The path carries", unknown.cell("comparison.capacity_bits_per_second", capacity))),
    ];
    for (label, cell) in rows.into_iter().flatten() {
        table.row(label, vec![cell]);
    }
    table
}

fn compared<'a>(document: &DoctorDocument, other: &Comparison) -> Chart<'a> {
    let (before, after) = goodput(document);
    let all = [
        ("before", before),
        ("guide, by formula", other.predicted_bits_per_second),
        ("guide, measured", other.measured_bits_per_second),
        ("kept", after),
        ("path carries", other.capacity_bits_per_second),
    ];
    let row = |(label, value): &(&str, Option<f64>)| {
        value.map(|value| BarsRow { label: (*label).to_owned(), bars: vec![(Some(value), None)] })
    };
    let said = |(label, value): &(&str, Option<f64>)| {
        value.map(|value| format!("{label} {}", Quantity::bits_per_second(value).shown()))
    };
    let title = "Goodput with each way of tuning";
    let said: Vec<String> = all.iter().filter_map(said).collect();
    Chart {
        name: "comparison".to_owned(),
        title: title.to_owned(),
        summary: format!("{title}: {}.", said.join("; ")),
        plot: Plot::Bars(Bars {
            unit: Unit::BitsPerSecond,
            legend: vec!["goodput".to_owned()],
            rows: all.iter().filter_map(row).collect(),
        }),
    }
}

/// The class that speaks for a load: the one that the grade rests on, else the first that was answered.
fn decisive(document: &LoadDocument) -> Option<ClassName> {
    let graded = document.grade.as_ref().map(|grade| grade.class);
    let mut classes = document.phases.iter().flat_map(|phase| &phase.classes);
    graded.or_else(|| classes.find(|class| class.rtt.is_some()).map(|class| class.class))
}

fn of(document: &LoadDocument, kind: PhaseKind, name: ClassName) -> Option<&ProbeClass> {
    let phase = document.phases.iter().find(|phase| phase.kind == kind)?;
    phase.classes.iter().find(|class| class.class == name)
}

/// Round trips while the path is idle and loaded, before and after, of one class of probes.
fn latency(document: &DoctorDocument) -> Option<Table> {
    const PHASES: [PhaseKind; 4] = [PhaseKind::Idle, PhaseKind::Down, PhaseKind::Up, PhaseKind::Both];
    let before = document.load_before.as_deref()?;
    let after = document.load_after.as_deref()?;
    let name = decisive(before)?;
    let columns = ["Load", "median before", "median after", "p95 before", "p95 after"];
    let mut table = Table::new("latency_both", "Round-trip time under load, before and after", &columns);
    let cell = |class: Option<&ProbeClass>, of: fn(&TimeDistribution) -> u64| {
        let rtt = class.and_then(|class| class.rtt.as_ref());
        rtt.map_or_else(|| Cell::Unknown(NOT_MEASURED.to_owned()), |rtt| Cell::Value(Quantity::nanoseconds(of(rtt))))
    };
    for kind in PHASES {
        let (was, is) = (of(before, kind, name), of(after, kind, name));
        if was.is_none() && is.is_none() {
            continue;
        }
        let (median, p95) = (|rtt: &TimeDistribution| rtt.median_ns, |rtt: &TimeDistribution| rtt.p95_ns);
        let cells = vec![cell(was, median), cell(is, median), cell(was, p95), cell(is, p95)];
        table.row(load::phase_name(kind), cells);
    }
    table.note = Some(format!("Probes: {}.", load::class_name(name)));
    table.filled()
}

/// Latency under load as its own report shows it, before and after. Where there are both, the round trips are in
/// [`latency`] and in one picture.
fn loads(presentation: &mut Presentation<'_>, document: &DoctorDocument) {
    let (before, after) = (document.load_before.as_deref(), document.load_after.as_deref());
    let of_decisive = |load: &LoadDocument, charts: Vec<Chart<'static>>| {
        let name = decisive(load).map(load::distribution_name);
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
