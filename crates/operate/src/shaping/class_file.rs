//! Traffic classes of the command line: options and files.

use core::fmt;
use core::str::FromStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use linerate_shape::traffic_classes::{
    ClassFileReader, MAX_LINE_LENGTH, TrafficClass, TrafficClasses, parse_class, parse_class_file,
};

/// A class with its original text.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOption {
    text: String,
    class: TrafficClass,
}

impl ClassOption {
    /// The class.
    pub(crate) const fn class(&self) -> &TrafficClass {
        &self.class
    }
}

impl fmt::Display for ClassOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for ClassOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), class: parse_class(text)? })
    }
}

/// A file of classes, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassFile {
    path: PathBuf,
    text: String,
    classes: TrafficClasses,
}

impl ClassFile {
    /// Reads a file, up to its last useful line. The file is recorded by its absolute name.
    pub fn read(path: &str) -> Result<Self, String> {
        let failed = |cause: io::Error| format!("cannot read {path}: {}", linerate_sys::describe_os_error(&cause));
        let absolute = std::path::absolute(path).map_err(failed)?;
        let mut input = BufReader::new(File::open(path).map_err(failed)?);
        let (mut reader, mut text) = (ClassFileReader::default(), String::new());
        loop {
            let mut line = Vec::new();
            // A line that is too long is refused by its beginning.
            let limit = u64::try_from(MAX_LINE_LENGTH).unwrap_or(u64::MAX) + 2;
            let length = input.by_ref().take(limit).read_until(b'\n', &mut line).map_err(failed)?;
            if length == 0 {
                break;
            }
            let line = String::from_utf8(line).map_err(|_| format!("{path} is not a text file (UTF-8)"))?;
            if !reader.line(&line) {
                break;
            }
            text.push_str(&line);
        }
        let classes =
            reader.finish().map_err(|errors| format!("{path}: {}", errors.replace('\n', &format!("\n{path}: "))))?;
        Ok(Self { path: absolute, text, classes })
    }

    /// Parses a text that a file had.
    pub(crate) fn parse(path: PathBuf, text: &str) -> Result<Self, String> {
        Ok(Self { path, text: text.to_owned(), classes: parse_class_file(text)? })
    }

    /// Absolute name of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Text that was read.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Classes of the file.
    pub(crate) const fn classes(&self) -> &TrafficClasses {
        &self.classes
    }
}
