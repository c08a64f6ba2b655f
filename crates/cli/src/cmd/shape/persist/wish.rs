//! What is to outlast a boot.

use super::super::error::ShapeError;

/// A shaper that is to be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The interface.
    pub(super) device: String,
    /// The words behind `linerate shape`, the interface first.
    pub(super) words: Vec<String>,
    /// Words with which the rates follow the line as long as the process runs; empty where they are fixed.
    pub(super) autorate: Vec<String>,
    /// The file of the program.
    pub(super) program: String,
}

/// Where nothing outlasts a boot, or may not be there yet when interfaces come up.
const FLEETING: [&str; 5] = ["/tmp/", "/var/tmp/", "/run/", "/dev/shm/", "/home"];

impl Wish {
    /// The interface must be a name that the kernel takes; no word may have control characters.
    pub(super) fn new(device: &str, words: &[String], program: &str) -> Result<Self, ShapeError> {
        Self::following(device, words, &[], program)
    }

    /// The same of a shaper whose rates follow the line, with these words.
    pub(super) fn following(
        device: &str,
        words: &[String],
        autorate: &[String],
        program: &str,
    ) -> Result<Self, ShapeError> {
        check_name(device)?;
        if words.first().is_none_or(|first| first != device) {
            let text =
                format!("making the shaper of {device} outlast a boot: its words are those of another interface");
            return Err(ShapeError::unable(text));
        }
        if words
            .iter()
            .chain(autorate)
            .map(String::as_str)
            .chain([program])
            .any(|word| word.chars().any(char::is_control))
        {
            let text = format!("making the shaper of {device} outlast a boot: its command has control characters");
            return Err(ShapeError::unable(text));
        }
        Ok(Self {
            device: device.to_owned(),
            words: words.to_vec(),
            autorate: autorate.to_vec(),
            program: program.to_owned(),
        })
    }

    /// Only where the files would be is of interest.
    pub(super) fn to_forget(device: &str) -> Result<Self, ShapeError> {
        Self::new(device, &[device.to_owned()], "linerate")
    }

    /// Words behind the program that set the shaper up, and these.
    pub(super) fn set_up<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let words = self.words.iter().map(String::as_str);
        ["shape"].into_iter().chain(words).chain(more.iter().copied()).collect()
    }

    /// The same for a process that stays: it follows the line, or else the interface.
    pub(super) fn set_up_and_stay(&self) -> Vec<&str> {
        let mut words = self.set_up(&["--replace"]);
        words.extend(self.autorate.iter().map(String::as_str));
        if self.autorate.is_empty() {
            words.push("--follow");
        }
        words
    }

    /// Words behind the program that take it down.
    pub(super) fn take_down(&self) -> Vec<&str> {
        vec!["shape", &self.device, "off", "--quiet"]
    }

    /// What holds for every manager.
    pub(super) fn notes(&self) -> Vec<String> {
        let place = FLEETING.iter().find(|place| self.program.starts_with(**place));
        let note = |place: &&str| {
            format!(
                "linerate lies in {place}…, which may not be there at the next boot: install it in /usr/local/bin, for \
                 example, and ask that one to persist"
            )
        };
        place.map(note).into_iter().collect()
    }

    /// The interface in names of scripts: run-parts(8) takes only letters, digits, `-` and `_`. Other bytes, and `_`,
    /// become `_` and two hexadecimal digits, so that different interfaces have different names.
    pub(super) fn script_name(&self) -> String {
        let escaped = |byte: u8| match byte {
            b'-' => "-".to_owned(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("_{byte:02x}"),
        };
        self.device.bytes().map(escaped).collect()
    }
}

/// As the kernel sees it (`dev_valid_name`).
fn check_name(device: &str) -> Result<(), ShapeError> {
    let is_right = (1..16).contains(&device.len())
        && !matches!(device, "." | "..")
        && !device
            .contains(|letter: char| letter.is_whitespace() || letter.is_control() || matches!(letter, '/' | ':'));
    if is_right {
        return Ok(());
    }
    let text = format!("{device:?} is no name of an interface: they have 1 to 15 bytes, no blanks, no slash, no colon");
    Err(ShapeError::unable(text).with_advice("`ip link` lists the interfaces"))
}
