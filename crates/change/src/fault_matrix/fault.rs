//! The faults of the matrix.

/// A fault that comes at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The process is killed.
    Kill,
    /// The power is cut; the next boot applies the setting files.
    PowerCut,
    Rename,
    Delete,
    Move,
    FullDisk,
    ReadOnlyDisk,
    /// The directory of the journals is removed.
    RemovedDirectory,
    /// A bit of each journal is altered.
    DamagedJournal,
    /// Each journal has a newer schema.
    NewerJournal,
    /// Each journal belongs to another user.
    ForeignJournal,
    /// Targets cannot be written (`/proc/sys` and `/sys` are read-only, as in a container).
    ReadOnlyHost,
    /// The kernel refuses the next write.
    Refused,
    /// The kernel refuses the next write after it has carried it out.
    WrittenAndRefused,
    /// The kernel sets another value at the next write, without an error.
    ClampedOnce,
    /// The kernel sets another value at each write, without an error.
    Clamped,
    /// The kernel accepts each write and does nothing.
    Ignored,
    /// Another program writes another value.
    OtherValue,
    /// Another program writes the value that is applied.
    SameValue,
    /// Another linerate changes the same target on trial.
    SecondTrial,
}

impl Fault {
    pub(super) const ALL: [Self; 20] = [
        Self::Kill,
        Self::PowerCut,
        Self::Rename,
        Self::Delete,
        Self::Move,
        Self::FullDisk,
        Self::ReadOnlyDisk,
        Self::RemovedDirectory,
        Self::DamagedJournal,
        Self::NewerJournal,
        Self::ForeignJournal,
        Self::ReadOnlyHost,
        Self::Refused,
        Self::WrittenAndRefused,
        Self::ClampedOnce,
        Self::Clamped,
        Self::Ignored,
        Self::OtherValue,
        Self::SameValue,
        Self::SecondTrial,
    ];

    /// True when the process ends.
    pub(super) const fn stops(self) -> bool {
        matches!(self, Self::Kill | Self::PowerCut)
    }

    pub(super) const fn is_second_writer(self) -> bool {
        matches!(self, Self::OtherValue | Self::SameValue)
    }

    /// True when the host itself prevents the rollback until it is repaired.
    pub(super) const fn is_of_host(self) -> bool {
        matches!(self, Self::ReadOnlyHost | Self::Clamped | Self::Ignored)
    }

    /// True when no journal can be used until it is repaired.
    pub(super) const fn is_of_journal(self) -> bool {
        matches!(self, Self::DamagedJournal | Self::NewerJournal | Self::ForeignJournal)
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Kill => "process killed",
            Self::PowerCut => "power cut, then a boot that applies the files",
            Self::Rename => "interface renamed",
            Self::Delete => "interface deleted",
            Self::Move => "interface moved to another network namespace",
            Self::FullDisk => "disk full",
            Self::ReadOnlyDisk => "state directory read-only",
            Self::RemovedDirectory => "state directory removed",
            Self::DamagedJournal => "journal damaged",
            Self::NewerJournal => "journal of a newer schema",
            Self::ForeignJournal => "journal of another user",
            Self::ReadOnlyHost => "kernel refuses each write",
            Self::Refused => "kernel refuses one write",
            Self::WrittenAndRefused => "kernel writes, and reports a failure",
            Self::ClampedOnce => "kernel clamps one write without an error",
            Self::Clamped => "kernel clamps each write without an error",
            Self::Ignored => "kernel ignores each write without an error",
            Self::OtherValue => "another program writes another value",
            Self::SameValue => "another program writes the same value",
            Self::SecondTrial => "another linerate changes the same target",
        }
    }
}
