//! Request to persist a shaper.

use super::super::error::ShapeError;

/// A shaper to set up at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PersistRequest {
    /// Interface.
    pub(super) device: String,
    /// Arguments after `linerate shape`, the interface first.
    pub(super) words: Vec<String>,
    /// Arguments of automatic rates; empty for fixed rates.
    pub(super) autorate: Vec<String>,
    /// Path of the program.
    pub(super) program: String,
}

/// Directories that do not survive a boot, or may not be mounted yet when interfaces come up.
const FLEETING: [&str; 5] = ["/tmp/", "/var/tmp/", "/run/", "/dev/shm/", "/home"];

impl PersistRequest {
    /// Checks the interface name; no argument may have control characters.
    pub(super) fn new(device: &str, words: &[String], program: &str) -> Result<Self, ShapeError> {
        Self::following(device, words, &[], program)
    }

    /// Request for a shaper with automatic rates and these arguments.
    pub(super) fn following(
        device: &str,
        words: &[String],
        autorate: &[String],
        program: &str,
    ) -> Result<Self, ShapeError> {
        check_name(device)?;
        if words.first().is_none_or(|first| first != device) {
            let text = format!("cannot persist the shaper of {device}: its arguments name another interface");
            return Err(ShapeError::impossible(text));
        }
        if words
            .iter()
            .chain(autorate)
            .map(String::as_str)
            .chain([program])
            .any(|word| word.chars().any(char::is_control))
        {
            let text = format!("cannot persist the shaper of {device}: its command has control characters");
            return Err(ShapeError::impossible(text));
        }
        Ok(Self {
            device: device.to_owned(),
            words: words.to_vec(),
            autorate: autorate.to_vec(),
            program: program.to_owned(),
        })
    }

    /// Request to remove files, whose names alone matter.
    pub(super) fn to_forget(device: &str) -> Result<Self, ShapeError> {
        Self::new(device, &[device.to_owned()], "linerate")
    }

    /// Arguments that set the shaper up, followed by these.
    pub(super) fn set_up<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let words = self.words.iter().map(String::as_str);
        ["shape"].into_iter().chain(words).chain(more.iter().copied()).collect()
    }

    /// Arguments of a long-running process with --autorate, else --follow.
    pub(super) fn set_up_and_stay(&self) -> Vec<&str> {
        let mut words = self.set_up(&["--replace"]);
        words.extend(self.autorate.iter().map(String::as_str));
        if self.autorate.is_empty() {
            words.push("--follow");
        }
        words
    }

    /// Arguments that remove the shaper.
    pub(super) fn take_down(&self) -> Vec<&str> {
        vec!["shape", &self.device, "off", "--quiet"]
    }

    /// Notes that apply to every manager.
    pub(super) fn notes(&self) -> Vec<String> {
        let place = FLEETING.iter().find(|place| self.program.starts_with(**place));
        let note = |place: &&str| {
            format!(
                "linerate is installed in {place}…, which may not be available at boot: install it elsewhere, for \
                 example in /usr/local/bin, and run `persist` with that one"
            )
        };
        place.map(note).into_iter().collect()
    }

    /// Interface as part of a script name: run-parts(8) accepts only letters, digits, `-` and `_`. Other bytes, and
    /// `_`,
    /// become `_` and two hexadecimal digits, so that names are unique.
    pub(super) fn script_name(&self) -> String {
        let escaped = |byte: u8| match byte {
            b'-' => "-".to_owned(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("_{byte:02x}"),
        };
        self.device.bytes().map(escaped).collect()
    }
}

/// Checks an interface name as the kernel does (`dev_valid_name`).
fn check_name(device: &str) -> Result<(), ShapeError> {
    let is_right = (1..16).contains(&device.len())
        && !matches!(device, "." | "..")
        && !device
            .contains(|letter: char| letter.is_whitespace() || letter.is_control() || matches!(letter, '/' | ':'));
    if is_right {
        return Ok(());
    }
    let text = format!("invalid interface name {device:?} (1 to 15 bytes without blank, slash or colon)");
    Err(ShapeError::impossible(text).with_advice("`ip link` lists the interfaces"))
}
