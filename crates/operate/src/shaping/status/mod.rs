//! State and figures of the shapers of this host.

mod figures;
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use std::time::Duration;

use linerate_change::{ChangeStore, RollbackGuard};
use linerate_documents::shaper_status::{SCHEMA, ShaperStatus, ShaperStatusDocument};
use linerate_shape::back_ends::BackEndId;
use linerate_shape::plan::ShaperPlan;
use linerate_sys::features;
use linerate_sys::host_access::RealHost;
use linerate_sys::interface::{self, NetworkInterface};
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, display};

use super::error::ShapeError;
use super::line::RecordedShaper;
use super::record::{self, ActiveShaper};
use super::shaped::ShaperControl;
use super::shaper::Shaper;
use figures::ShaperFigures;
use sample::ShaperSample;

/// Rates are means over this time.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// One shaper that is looked at.
pub struct ObservedShaper<'a> {
    device: String,
    changes: u64,
    back_end: Option<BackEndId>,
    arguments: Vec<String>,
    differences: Vec<String>,
    readings: Result<ShaperReadings<'a>, ShapeError>,
}

struct ShaperReadings<'a> {
    shaper: Shaper<'a>,
    before: ShaperSample,
}

/// Begins to look at the shapers of this host, or of one interface.
pub fn begin<'a>(
    store: &'a ChangeStore,
    host: &'a RealHost,
    device: Option<&str>,
) -> Result<Vec<ObservedShaper<'a>>, ShapeError> {
    let all = record::all(store, host)?;
    let is_wanted =
        |shaper: &&ActiveShaper| device.is_none_or(|device| device == shaper.device || device == shaper.device_then);
    Ok(all.iter().filter(is_wanted).map(|standing| ObservedShaper::new(store, host, standing)).collect())
}

impl<'a> ObservedShaper<'a> {
    /// One that cannot be read, as its interface is gone, hides no other.
    fn new(store: &'a ChangeStore, host: &'a RealHost, standing: &ActiveShaper) -> Self {
        let shaper = Shaper::open_active((store, host, RollbackGuard::Unguarded), standing);
        let readings =
            shaper.and_then(|shaper| Ok(ShaperReadings { before: ShaperSample::read(shaper.plan())?, shaper }));
        Self {
            device: standing.device.clone(),
            changes: standing.set.id.get(),
            back_end: standing.back_end,
            arguments: standing.recorded.as_ref().map(RecordedShaper::arguments).unwrap_or_default(),
            differences: Vec::new(),
            readings,
        }
    }

    /// Figures since the last time, and the time since then; differences from the plan if they are to be compared.
    fn read(&mut self, compare: bool) -> Result<(ShaperFigures, Duration), ShapeError> {
        let ShaperReadings { shaper, before } = self.readings.as_mut().map_err(|error| error.clone())?;
        let after = ShaperSample::read(shaper.plan())?;
        let interval = after.at.since(before.at);
        let mut figures = figures::of((shaper.plan(), shaper.traffic_classes()), shaper.line(), before, &after);
        figures.warnings.extend(slow_link_warning(shaper));
        figures.warnings.extend(intermediate_device_warning(shaper.plan()));
        *before = after;
        if compare {
            self.differences = shaper.differences()?.iter().map(ToString::to_string).collect();
        }
        Ok((figures, interval))
    }

    fn status(&self, figures: ShaperFigures) -> ShaperStatus {
        ShaperStatus {
            device: self.device.clone(),
            back_end: self.back_end,
            arguments: self.arguments.clone(),
            changes: self.changes,
            directions: figures.directions,
            busiest_processor: figures.busiest.map(linerate_units::Ratio::get),
            differences: self.differences.clone(),
            warnings: figures.warnings,
        }
    }
}

/// Figures since the last time; differences from the plans where they are to be compared.
pub fn document(looked: &mut [ObservedShaper<'_>], compare: bool) -> ShaperStatusDocument {
    let mut interval = SAMPLE_INTERVAL;
    let shapers = looked.iter_mut().map(|one| match one.read(compare) {
        Ok((figures, elapsed)) => {
            interval = elapsed;
            one.status(figures)
        }
        Err(error) => {
            let warning = format!("{}; `linerate shape {} off` removes what is left", error.text, one.device);
            one.status(ShaperFigures { warnings: vec![warning], ..ShaperFigures::default() })
        }
    });
    let shapers = shapers.collect();
    let linerate_version = env!("CARGO_PKG_VERSION").to_owned();
    ShaperStatusDocument { schema: SCHEMA, linerate_version, interval_ns: nanoseconds(interval), shapers }
}

/// A redirect to a device that is gone or down drops all received packets.
fn intermediate_device_warning(plan: &ShaperPlan) -> Option<String> {
    let (device, intermediate) = (&plan.device, plan.intermediate.as_ref()?);
    if NetworkInterface::by_name(intermediate).is_err() {
        return Some(format!(
            "{intermediate} is gone or renamed, and packets that {device} receives may be lost: run `linerate shape {device} off`, \
             then set the shaper up again"
        ));
    }
    let is_down = interface::is_up(intermediate).is_ok_and(|is_up| !is_up);
    is_down.then(|| {
        format!(
            "{intermediate} is down, and all packets that {device} receives are lost: run `ip link set {intermediate} up`"
        )
    })
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
