//! State and figures of the shapers of this host.

mod figures;
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use std::time::Duration;

use linerate_change::{ChangeStore, RollbackGuard};
use linerate_documents::shaper_status::{SCHEMA, ShaperStatus, ShaperStatusDocument};
use linerate_sys::features;
use linerate_sys::host_access::RealHost;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, display};

use super::error::ShapeError;
use super::record::{self, ActiveShaper};
use super::shaped::ShaperControl;
use super::shaper::Shaper;
use sample::ShaperSample;

/// Rates are means over this time.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// One shaper that is looked at.
pub struct ObservedShaper<'a> {
    shaper: Shaper<'a>,
    changes: u64,
    before: ShaperSample,
    differences: Vec<String>,
}

/// Begins to look at the shapers of this host, or of one interface.
pub fn begin<'a>(
    store: &'a ChangeStore,
    host: &'a RealHost,
    device: Option<&str>,
) -> Result<Vec<ObservedShaper<'a>>, ShapeError> {
    let all = record::all(store, host)?;
    let wanted = all.iter().filter(|(name, _)| device.is_none_or(|device| device == name));
    wanted.map(|(name, standing)| observe(store, host, name, standing)).collect()
}

fn observe<'a>(
    store: &'a ChangeStore,
    host: &'a RealHost,
    device: &str,
    standing: &ActiveShaper,
) -> Result<ObservedShaper<'a>, ShapeError> {
    let shaper = Shaper::open_active((store, host, RollbackGuard::Unguarded), device, standing)?;
    let before = ShaperSample::read(shaper.plan())?;
    Ok(ObservedShaper { shaper, changes: standing.set.id.get(), before, differences: Vec::new() })
}

/// Figures since the last time; differences from the plans where they are to be compared.
pub fn document(looked: &mut [ObservedShaper<'_>], compare: bool) -> Result<ShaperStatusDocument, ShapeError> {
    let mut shapers = Vec::new();
    let mut interval = SAMPLE_INTERVAL;
    for one in looked {
        let after = ShaperSample::read(one.shaper.plan())?;
        interval = after.at.since(one.before.at);
        let figures = figures::of(one.shaper.plan(), one.shaper.line(), &one.before, &after);
        one.before = after;
        if compare {
            one.differences = one.shaper.differences()?.iter().map(ToString::to_string).collect();
        }
        let mut warnings = figures.warnings;
        warnings.extend(slow_link_warning(&one.shaper));
        shapers.push(ShaperStatus {
            device: one.shaper.device().to_owned(),
            back_end: one.shaper.plan().back_end.to_owned(),
            arguments: one.shaper.recorded().arguments(),
            changes: one.changes,
            directions: figures.directions,
            busiest_processor: figures.busiest.map(linerate_units::Ratio::get),
            differences: one.differences.clone(),
            warnings,
        });
    }
    let linerate_version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(ShaperStatusDocument { schema: SCHEMA, linerate_version, interval_ns: nanoseconds(interval), shapers })
}

/// A link that runs below the rate that is set has a queue of its own again.
fn slow_link_warning(shaper: &Shaper<'_>) -> Option<String> {
    let speed = features::link_speed(shaper.device()).ok().flatten()?;
    let fastest = [shaper.line().up, shaper.line().down].into_iter().flatten().map(BitRate::bits_per_second);
    let set = fastest.fold(0.0, f64::max);
    (speed.bits_per_second() < set).then(|| {
        format!(
            "the link runs at {} now, below the {} that is set: its own queue fills again",
            display::rate(speed),
            display::rate(BitRate::from_bits_per_second(set))
        )
    })
}
