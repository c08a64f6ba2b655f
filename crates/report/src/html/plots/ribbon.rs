//! Shares of time, stacked over time.

use linerate_model::schema::run::Unit;
use serde_json::json;

use super::{Drawing, PlotKind, lines, packed, phases};
use crate::html::reduce::{Parts, Reduced, means};
use crate::presentation::{Chart, Plot, unit_name};

pub(super) const KIND: PlotKind = PlotKind { name: "ribbon", script: include_str!("ribbon.js"), draw };

fn draw(chart: &Chart<'_>, parts: Parts) -> Option<Drawing> {
    let Plot::Ribbon(ribbon) = &chart.plot else { return None };
    let reduced: Vec<Reduced> = ribbon.series.iter().map(|series| means(series, parts)).collect();
    let mut data = packed(&ribbon.series, &reduced);
    data["unit"] = json!(unit_name(Unit::Share));
    data["phases"] = phases(&ribbon.phases);
    let note = format!(
        "Reduced: drawn is the mean of each of {} equal parts of the time. All readings are in the run's JSON document.",
        parts.count()
    );
    Some(Drawing {
        data: Some(data),
        picture: String::new(),
        note: reduced.iter().any(|reduced| reduced.has_fewer).then_some(note),
        tables: lines::tables(&ribbon.series, &ribbon.phases, Unit::Share),
    })
}
