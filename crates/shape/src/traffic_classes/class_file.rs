//! Files of traffic classes: comma-separated values with a header line.
//!
//! ```text
//! match,name,group,down,up
//! group,ACME,,100M:200M,20M
//! 192.0.2.7 2001:db8:7::/64,office,ACME,40M:200M,10M:20M
//! mark/0x10,voice,,2M,2M
//! ```

use super::rates::parse_both;
use super::{ClassSelector, TrafficClass, TrafficClasses, parse_rates};
use crate::verify::PerDirection;

/// Number of errors that are listed.
pub const MAX_FILE_ERRORS: usize = 10;

/// Length of the longest line, in bytes.
pub const MAX_LINE_LENGTH: usize = 4096;

/// Cell of a group's `match`.
const GROUP: &str = "group";

const COLUMNS: [&str; 5] = ["match", "name", "group", "down", "up"];

/// Parses `SELECTOR[+SELECTOR]=RATE[:CEILING][,RATE[:CEILING]]`: with two rates the first one is down.
pub fn parse_class(text: &str) -> Result<TrafficClass, String> {
    const FORM: &str = "expected ADDRESS[/LENGTH]=RATE[:CEILING], or =DOWN,UP";
    let (selectors, rates) = text.rsplit_once('=').ok_or_else(|| format!("invalid class '{text}' ({FORM})"))?;
    let selectors = selectors.split('+').map(str::parse).collect::<Result<Vec<ClassSelector>, String>>()?;
    let origin = format!("the class {text}");
    Ok(TrafficClass { name: None, selectors, group: None, rates: parse_both(rates)?, origin })
}

/// Parses a whole file; the error lists the lines.
pub fn parse_class_file(text: &str) -> Result<TrafficClasses, String> {
    let mut reader = ClassFileReader::default();
    for line in text.lines() {
        if !reader.line(line) {
            break;
        }
    }
    reader.finish()
}

/// Reader of a file, line by line: its memory is bounded by the number of classes, not by the length of the file.
#[derive(Debug, Default)]
pub struct ClassFileReader {
    number: usize,
    columns: Option<Vec<usize>>,
    classes: TrafficClasses,
    errors: Vec<String>,
}

impl ClassFileReader {
    /// Takes the next line, without its end; `false` when no further one is of use.
    pub fn line(&mut self, line: &str) -> bool {
        self.number += 1;
        let line = if self.number == 1 { line.trim_start_matches('\u{feff}') } else { line }.trim();
        if line.is_empty() || line.starts_with('#') {
            return true;
        }
        if self.columns.is_none() && line.len() <= MAX_LINE_LENGTH {
            return self.header(line);
        }
        let taken = if line.len() > MAX_LINE_LENGTH {
            Err(format!("it is longer than {MAX_LINE_LENGTH} bytes"))
        } else {
            self.row(line)
        };
        if let Err(reason) = taken {
            self.errors.push(format!("line {}: {reason}", self.number));
        }
        let is_full = !self.errors.is_empty() && self.classes.list().len() >= super::MAX_CLASSES;
        self.errors.len() < MAX_FILE_ERRORS && !is_full
    }

    /// Classes of the file, or its errors, one per line.
    pub fn finish(mut self) -> Result<TrafficClasses, String> {
        if self.errors.is_empty() && self.classes.is_empty() {
            self.errors.push("it has no classes".to_owned());
        }
        if self.errors.len() >= MAX_FILE_ERRORS {
            self.errors.push(format!("reading ended after {MAX_FILE_ERRORS} errors"));
        }
        if self.errors.is_empty() { Ok(self.classes) } else { Err(self.errors.join("\n")) }
    }

    fn header(&mut self, line: &str) -> bool {
        match header_columns(line) {
            Ok(columns) => {
                self.columns = Some(columns);
                true
            }
            Err(reason) => {
                self.errors.push(format!("line {}: {reason}", self.number));
                false
            }
        }
    }

    fn row(&mut self, line: &str) -> Result<(), String> {
        let columns = self.columns.as_deref().unwrap_or_default();
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if line.contains('"') {
            return Err("it has a quotation mark, which no cell needs".to_owned());
        }
        if cells.len() != columns.len() {
            return Err(format!("it has {} cells, and the header has {}", cells.len(), columns.len()));
        }
        let cell = |wanted: usize| columns.iter().position(|column| *column == wanted).map_or("", |place| cells[place]);
        let class = self.class(cell(0), cell(1), cell(2), [cell(3), cell(4)])?;
        self.classes.add(class)
    }

    fn class(&self, matched: &str, name: &str, group: &str, rates: [&str; 2]) -> Result<TrafficClass, String> {
        let selectors = match matched {
            "" => return Err(format!("its match is empty (expected a selector, or '{GROUP}')")),
            GROUP if name.is_empty() => return Err("a group needs a name".to_owned()),
            GROUP => Vec::new(),
            selectors => selectors.split_whitespace().map(str::parse).collect::<Result<_, String>>()?,
        };
        let place = match group {
            "" => None,
            group => Some(self.classes.group(group).ok_or_else(|| {
                format!("no line above defines the group '{group}' (a line with the match '{GROUP}' does)")
            })?),
        };
        let [down, up] = rates.map(|cell| if cell.is_empty() { Ok(None) } else { parse_rates(cell).map(Some) });
        Ok(TrafficClass {
            name: Some(name).filter(|name| !name.is_empty()).map(str::to_owned),
            selectors,
            group: place,
            rates: PerDirection { up: up?, down: down? },
            origin: format!("line {}", self.number),
        })
    }
}

/// Positions of the columns of a header among [`COLUMNS`].
fn header_columns(line: &str) -> Result<Vec<usize>, String> {
    let expected = || format!("(expected the header {})", COLUMNS.join(","));
    let mut columns = Vec::new();
    for name in line.split(',').map(str::trim) {
        let place = COLUMNS.iter().position(|known| *known == name);
        let place = place.ok_or_else(|| format!("unknown column '{name}' {}", expected()))?;
        if columns.contains(&place) {
            return Err(format!("the column '{name}' is there twice {}", expected()));
        }
        columns.push(place);
    }
    let is_complete = columns.contains(&0) && (columns.contains(&3) || columns.contains(&4));
    if is_complete { Ok(columns) } else { Err(format!("a column is missing {}", expected())) }
}
