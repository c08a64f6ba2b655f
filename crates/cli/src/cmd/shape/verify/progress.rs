//! Progress display of a verification.

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_operate::shaping::verify::{MeasurementPart, VerifyEvent, family_title};
use linerate_units::display;

use super::text;
use crate::cmd::load;
use crate::console;
use crate::progress;

/// Lines for the steps, and a live line per measurement.
pub(crate) struct VerifyProgress {
    quiet: bool,
    load: Option<load::LoadProgressDisplay>,
    is_announced: bool,
}

impl VerifyProgress {
    pub(crate) const fn new(quiet: bool) -> Self {
        Self { quiet, load: None, is_announced: false }
    }

    pub(crate) fn event(&mut self, event: &VerifyEvent<'_>) {
        match event {
            VerifyEvent::Measuring(part) => self.begin(part_label(*part)),
            VerifyEvent::OtherFamily(family) => self.begin(&format!("The same over {}", family_title(*family))),
            VerifyEvent::Load(event) => self.loaded(event),
            VerifyEvent::ReadBack([]) => {
                self.print("The shaper is active and matches the plan.");
            }
            VerifyEvent::ReadBack(differences) => {
                self.print("The shaper is active, but does not match the plan:");
                for one in *differences {
                    self.print(&format!("  {}", one.text));
                }
            }
            VerifyEvent::Removed => self.print("The shaper is removed."),
            VerifyEvent::Trial(step) => self.print(&format!("  {}. {}", step.number, text::trial_text(step))),
            VerifyEvent::Note(note) => self.print(&format!("note: {note}")),
        }
    }

    fn begin(&mut self, words: &str) {
        self.print(&format!("{words}:"));
        self.load = Some(load::LoadProgressDisplay::new(self.quiet));
    }

    fn loaded(&mut self, event: &linerate_engine::load::LoadEvent) {
        use linerate_engine::load::LoadEvent::{Announcement, Note};
        match event {
            // Durations are similar; notes are shown at the end.
            Announcement { usual, .. } if !self.is_announced => {
                self.is_announced = true;
                self.print(&format!("each measurement fills the link and takes about {}", display::duration(*usual)));
                self.load = Some(load::LoadProgressDisplay::new(self.quiet));
            }
            Announcement { .. } | Note(_) => {}
            other => {
                if let Some(load) = &mut self.load {
                    load.event(other);
                }
            }
        }
    }

    /// Prints a permanent line above the live one.
    fn print(&mut self, text: &str) {
        self.finish();
        progress::publish(ProgressEvent::with_text(EventKind::Note, text));
        if !self.quiet {
            console::note(text);
        }
    }

    /// Ends the display.
    pub(crate) fn finish(&mut self) {
        if let Some(load) = self.load.take() {
            load.finish();
        }
    }
}

const fn part_label(part: MeasurementPart) -> &'static str {
    match part {
        MeasurementPart::Capacity => "Capacity of the link without a shaper",
        MeasurementPart::Trial => "Trial",
        MeasurementPart::Without => "Without the shaper",
        MeasurementPart::With => "With the shaper",
        MeasurementPart::WithoutAgain => "Without the shaper again",
    }
}
