//! `linerate shape [DEV] status`: what the shapers of this host do now.

mod figures;
pub(crate) mod sample;
#[cfg(test)]
mod tests;
mod text;

use std::io;
use std::time::Duration;

use linerate_change::{Guard, Store};
use linerate_model::schema::nanoseconds;
use linerate_model::schema::shaper_status::{SCHEMA, ShaperStatus, ShaperStatusDocument};
use linerate_sys::full_screen::FullScreen;
use linerate_sys::host_access::RealHost;
use linerate_sys::poll::{self, Interest};
use linerate_sys::signals::Interrupts;
use linerate_sys::{clock, features, terminal};
use linerate_units::{BitRate, display};

use super::arguments::HowArguments;
use super::error::ShapeError;
use super::record::{self, Standing};
use super::shaped::Shaped;
use super::shaper::Shaper;
use crate::cmd::measurement::print_json;
use crate::console;
use crate::exit::Exit;
use sample::Sample;

/// Rates are means over this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// Trees are compared with their plans this often, as that starts programs.
const COMPARED_EVERY: u32 = 5;

/// One shaper that is looked at.
struct Looked<'a> {
    shaper: Shaper<'a>,
    changes: u64,
    before: Sample,
    differences: Vec<String>,
}

/// Shows them: again and again on a terminal, else once.
pub(crate) fn run(device: Option<&str>, how: &HowArguments) -> Result<Exit, ShapeError> {
    let stop = Interrupts::install()?;
    let (store, host) = (Store::from_environment()?, RealHost);
    let all = record::all(&store, &host)?;
    let wanted: Vec<_> = all.into_iter().filter(|(name, _)| device.is_none_or(|device| device == name)).collect();
    if wanted.is_empty() {
        return Ok(none(device, how));
    }
    let mut looked = Vec::new();
    for (name, standing) in &wanted {
        looked.push(look(&store, &host, name, standing)?);
    }
    if !how.json && !how.once && terminal::is_terminal(&io::stdout()) {
        return live(&mut looked, stop);
    }
    if poll::wait_for(&stop, Interest::READ, Some(INTERVAL))? {
        return Ok(Exit::Partial);
    }
    let document = document(&mut looked, true)?;
    if how.json {
        print_json(&document);
    } else {
        console::data(&text::of(&document, console::data_style()));
    }
    let is_well = document.shapers.iter().all(|one| one.differences.is_empty() && one.warnings.is_empty());
    Ok(if is_well { Exit::Success } else { Exit::Missed })
}

fn none(device: Option<&str>, how: &HowArguments) -> Exit {
    if how.json {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let nothing =
            ShaperStatusDocument { schema: SCHEMA, linerate_version: version, interval_ns: 0, shapers: vec![] };
        print_json(&nothing);
    } else {
        let place = device.map_or_else(|| "this host".to_owned(), str::to_owned);
        console::note(&format!("no shaper of linerate stands on {place}"));
    }
    if device.is_some() { Exit::Missed } else { Exit::Success }
}

fn look<'a>(store: &'a Store, host: &'a RealHost, device: &str, standing: &Standing) -> Result<Looked<'a>, ShapeError> {
    let shaper = Shaper::of_standing((store, host, Guard::Nobody), device, standing)?;
    let before = Sample::read(shaper.plan())?;
    Ok(Looked { shaper, changes: standing.set.id.get(), before, differences: Vec::new() })
}

fn document(looked: &mut [Looked<'_>], compare: bool) -> Result<ShaperStatusDocument, ShapeError> {
    let mut shapers = Vec::new();
    let mut interval = INTERVAL;
    for one in looked {
        let after = Sample::read(one.shaper.plan())?;
        interval = after.at.since(one.before.at);
        let figures = figures::of(one.shaper.plan(), one.shaper.line(), &one.before, &after);
        one.before = after;
        if compare {
            one.differences = one.shaper.differences()?.iter().map(ToString::to_string).collect();
        }
        let mut warnings = figures.warnings;
        warnings.extend(slower_link(&one.shaper));
        shapers.push(ShaperStatus {
            device: one.shaper.device().to_owned(),
            back_end: one.shaper.plan().back_end.to_owned(),
            words: one.shaper.recorded().words(),
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
fn slower_link(shaper: &Shaper<'_>) -> Option<String> {
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

fn live(looked: &mut [Looked<'_>], stop: Interrupts) -> Result<Exit, ShapeError> {
    let mut view = FullScreen::enter()?;
    let mut next = clock::monotonic_now() + INTERVAL;
    let mut round = 0_u32;
    let mut lines = vec!["one second …".to_owned()];
    loop {
        let (width, height) = view.size();
        let shown: Vec<String> = lines.iter().take(height).map(|line| format!("{}\x1b[K", cut(line, width))).collect();
        view.write(&format!("\x1b[H{}\x1b[J", shown.join("\r\n")))?;
        let woken = view.wait(&stop, next.since(clock::monotonic_now()))?;
        if woken.ending {
            return Ok(Exit::Success);
        }
        if woken.keys {
            let keys = view.read_keys()?;
            if keys.is_empty() || keys.contains(&b'q') || keys.contains(&3) {
                return Ok(Exit::Success);
            }
        }
        if clock::monotonic_now() < next {
            continue;
        }
        next = clock::monotonic_now() + INTERVAL;
        let document = document(looked, round.is_multiple_of(COMPARED_EVERY))?;
        round += 1;
        lines = text::of(&document, console::data_style()).lines().map(str::to_owned).collect();
        lines.extend([String::new(), "q ends".to_owned()]);
    }
}

/// As much of a line as there are columns; the codes of colours are none.
fn cut(line: &str, width: usize) -> String {
    if line.contains('\x1b') { line.to_owned() } else { line.chars().take(width).collect() }
}
