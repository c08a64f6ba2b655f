//! `linerate shape [DEV] status`: current figures of this host's shapers.

mod text;

use std::io;
use std::os::fd::AsFd;

use linerate_change::ChangeStore;
use linerate_documents::shaper_status::{SCHEMA, ShaperStatusDocument};
use linerate_operate::shaping::error::ShapeError;
use linerate_operate::shaping::status::{self, ObservedShaper, SAMPLE_INTERVAL, document};
use linerate_sys::full_screen::{ControlKeys, FullScreen};
use linerate_sys::host_access::RealHost;
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::{clock, terminal};

use super::arguments::ShapeOptions;
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;

/// Intervals between comparisons with the plan, which start programs.
const COMPARISON_PERIOD: u32 = 5;

/// Shows them: again and again on a terminal, else once.
pub(crate) fn run(device: Option<&str>, how: &ShapeOptions) -> Result<ExitStatus, ShapeError> {
    let (store, host) = (ChangeStore::from_environment()?, RealHost);
    let looked = status::begin(&store, &host, device)?;
    if looked.is_empty() {
        // One that cannot be read may be a shaper.
        store.check_readable()?;
        return Ok(report_no_shaper(device, how));
    }
    let exit = show(looked, how)?;
    store.check_readable()?;
    Ok(exit)
}

fn show(mut looked: Vec<ObservedShaper<'_>>, how: &ShapeOptions) -> Result<ExitStatus, ShapeError> {
    let stop = InterruptSignals::install()?;
    if !how.json && !how.once && terminal::is_terminal(&io::stdout()) {
        return show_live(&mut looked, how.verbose, stop);
    }
    if poll::wait_for(&stop, PollInterest::READ, Some(SAMPLE_INTERVAL))? {
        return Ok(ExitStatus::Partial);
    }
    let document = document(&mut looked, true);
    if how.json {
        print_json(DocumentKind::ShaperStatus, &document);
    } else {
        console::data(&text::of(&document, console::data_style(), how.verbose));
    }
    let is_well = document.shapers.iter().all(|one| one.differences.is_empty() && one.warnings.is_empty());
    Ok(if is_well { ExitStatus::Success } else { ExitStatus::Missed })
}

fn report_no_shaper(device: Option<&str>, how: &ShapeOptions) -> ExitStatus {
    if how.json {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let nothing =
            ShaperStatusDocument { schema: SCHEMA, linerate_version: version, interval_ns: 0, shapers: vec![] };
        print_json(DocumentKind::ShaperStatus, &nothing);
    } else {
        let place = device.map_or_else(|| "this host".to_owned(), str::to_owned);
        console::note(&format!("{place} has no shaper of linerate"));
    }
    if device.is_some() { ExitStatus::Missed } else { ExitStatus::Success }
}

fn show_live(
    looked: &mut [ObservedShaper<'_>],
    verbose: bool,
    stop: InterruptSignals,
) -> Result<ExitStatus, ShapeError> {
    let mut view = FullScreen::enter(ControlKeys::Keys)?;
    let mut next = clock::monotonic_now() + SAMPLE_INTERVAL;
    let mut round = 0_u32;
    let mut lines = vec!["one second …".to_owned()];
    loop {
        let (width, height) = view.size();
        let shown: Vec<String> =
            lines.iter().take(height).map(|line| format!("{}\x1b[K", cut_to_width(line, width))).collect();
        view.write(&format!("\x1b[H{}\x1b[J", shown.join("\r\n")))?;
        let woken = view.wait(&[stop.as_fd()], next.since(clock::monotonic_now()))?;
        if woken.ending {
            return Ok(ExitStatus::Success);
        }
        if woken.keys {
            let keys = view.read_keys()?;
            if keys.is_empty() || keys.contains(&b'q') || keys.contains(&3) {
                return Ok(ExitStatus::Success);
            }
        }
        if clock::monotonic_now() < next {
            continue;
        }
        next = clock::monotonic_now() + SAMPLE_INTERVAL;
        let document = document(looked, round.is_multiple_of(COMPARISON_PERIOD));
        round += 1;
        lines = text::of(&document, console::data_style(), verbose).lines().map(str::to_owned).collect();
        lines.extend([String::new(), "q quits".to_owned()]);
    }
}

/// Cuts a line to this many columns; colour codes count as none.
fn cut_to_width(line: &str, width: usize) -> String {
    if line.contains('\x1b') { line.to_owned() } else { line.chars().take(width).collect() }
}
