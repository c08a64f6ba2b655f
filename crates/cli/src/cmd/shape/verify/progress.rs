//! What a person sees while a shaper is proven.

use linerate_units::display;

use super::evidence::family_title;
use super::{Part, VerifyEvent, text};
use crate::cmd::load;
use crate::console;

/// Lines for the steps, and the live line of each measurement.
pub(crate) struct VerifyProgress {
    quiet: bool,
    load: Option<load::Progress>,
    is_announced: bool,
}

impl VerifyProgress {
    pub(crate) const fn new(quiet: bool) -> Self {
        Self { quiet, load: None, is_announced: false }
    }

    pub(crate) fn event(&mut self, event: &VerifyEvent<'_>) {
        if self.quiet {
            return;
        }
        match event {
            VerifyEvent::Measuring(part) => self.begin(part_words(*part)),
            VerifyEvent::OtherFamily(family) => self.begin(&format!("The same over {}", family_title(*family))),
            VerifyEvent::Load(event) => self.loaded(event),
            VerifyEvent::Standing([]) => {
                self.say("The shaper stands as planned.");
            }
            VerifyEvent::Standing(differences) => {
                self.say("The shaper stands, but not as planned:");
                for one in *differences {
                    self.say(&format!("  {}", one.words));
                }
            }
            VerifyEvent::TakenDown => self.say("The shaper is taken down."),
            VerifyEvent::Step(step) => self.say(&format!("  {}. {}", step.number, text::step_words(step))),
            VerifyEvent::Note(note) => self.say(&format!("note: {note}")),
        }
    }

    fn begin(&mut self, words: &str) {
        self.say(&format!("{words}:"));
        self.load = Some(load::Progress::new(false));
    }

    fn loaded(&mut self, event: &linerate_engine::load::LoadEvent) {
        use linerate_engine::load::LoadEvent::{Announcement, Note};
        match event {
            // What each takes is much the same; what it notes is told when it is over.
            Announcement { usual, .. } if !self.is_announced => {
                self.is_announced = true;
                self.say(&format!("each measurement fills the line and takes about {}", display::duration(*usual)));
                self.load = Some(load::Progress::new(false));
            }
            Announcement { .. } | Note(_) => {}
            other => {
                if let Some(load) = &mut self.load {
                    load.event(other);
                }
            }
        }
    }

    /// A line that stays, above what follows.
    fn say(&mut self, text: &str) {
        self.finish();
        if !self.quiet {
            console::note(text);
        }
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        if let Some(load) = self.load.take() {
            load.finish();
        }
    }
}

const fn part_words(part: Part) -> &'static str {
    match part {
        Part::Capacity => "What the line carries without a shaper",
        Part::Trial => "Trial",
        Part::Without => "Without the shaper",
        Part::With => "With the shaper",
        Part::WithoutAgain => "Without the shaper again",
    }
}
