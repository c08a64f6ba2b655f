//! Descriptions of paths: TOML, read strictly.
//!
//! What is not known, not possible or lacks its unit is an error that names the line: a path that silently is another
//! one than its author meant would make every figure measured on it wrong. `docs/paths.md` lists all keys.

mod error;
mod hosts;
mod label;
mod links;
mod quantity;
mod raw;
mod traffic;
mod types;

use toml::Spanned;

pub use error::DescriptionError;
pub use hosts::CONGESTION_CONTROLS;
pub use label::Label;
pub(crate) use links::count_factors;
pub(crate) use traffic::{DATAGRAM, MOST_DATAGRAMS};
pub use types::{
    Buffer, Direction, Distribution, ETHERNET_HEADER, Host, Jitter, Link, Loss, PathDescription, Policer, Queue,
    RateStep, Reorder, Traffic, TrafficKind, TrafficProtocol,
};

use error::Problem;
use raw::RawPath;

/// Where the author finds all keys.
const ALL_KEYS: &str = "docs/paths.md lists all keys with their units";

impl PathDescription {
    /// Reads the description `text` of the path `name`; a name that ends with `.toml` is taken for the file's, and the
    /// path's is what stands before that.
    ///
    /// # Errors
    /// Text that is not TOML, keys that do not exist, quantities without units, values that no path can have. The first
    /// of them, with its line.
    pub fn parse(name: &str, text: &str) -> Result<Self, DescriptionError> {
        let file = if is_file_name(name) { name.to_owned() } else { format!("{name}.toml") };
        let located = |problem| DescriptionError::locate(&file, text, problem);
        let name = path_name(&file).map_err(located)?;
        let raw: RawPath = toml::from_str(text).map_err(|error| located(not_readable(&error, text)))?;
        understand(name, &raw).map_err(located)
    }
}

fn is_file_name(name: &str) -> bool {
    name.strip_suffix(".toml").is_some_and(|stem| !stem.is_empty())
}

/// The path's name: the last part of the file's, without `.toml`.
fn path_name(file: &str) -> Result<String, Problem> {
    let last = file.rsplit('/').next().unwrap_or(file);
    let name = last.strip_suffix(".toml").unwrap_or(last);
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(is_plain) {
        return Err(Problem::new(
            0..0,
            format!("'{name}' is no name for a path"),
            "name the file with small letters, digits and hyphens, such as adsl-2mbit.toml",
        ));
    }
    Ok(name.to_owned())
}

/// What the TOML reader says, with a way out.
fn not_readable(error: &toml::de::Error, text: &str) -> Problem {
    let message = error.message().to_owned();
    let advice = if message.contains("has no unit") {
        "write the number with its unit, in quotes, such as \"10 Gbit/s\", \"58.5 ms\", \"1.5 MB\" or \"0.1 %\""
    } else if message.starts_with("unknown field") {
        "correct the key's spelling, or remove it; docs/paths.md lists all keys with their units"
    } else if message.starts_with("missing field") {
        "add the key; docs/paths.md lists all keys with their units"
    } else {
        ALL_KEYS
    };
    // An error at the end of the text stands on its last line, not on the empty one after it.
    let end = text.trim_end().len();
    let start = error.span().map_or(0, |span| span.start).min(end);
    Problem::new(
        start..start,
        message.replace("unknown field", "unknown key").replace("missing field", "missing key"),
        advice,
    )
}

fn understand(name: String, raw: &RawPath) -> Result<PathDescription, Problem> {
    let names = hosts::chain(raw)?;
    let links = links::links(&raw.link)?;
    let hosts = hosts::hosts(raw, &names)?;
    let traffic = raw.traffic.iter().map(|traffic| traffic::traffic(traffic, &hosts)).collect::<Result<_, _>>()?;
    Ok(PathDescription {
        name,
        story: line(&raw.story, "story")?,
        source: line(&raw.source, "source")?,
        label: label(&raw.label)?,
        scenario: words(&raw.scenario)?,
        seed: seed(raw.seed.as_ref())?,
        hosts,
        links,
        traffic,
    })
}

/// One line that says something.
fn line(text: &Spanned<String>, what: &str) -> Result<String, Problem> {
    let trimmed = text.get_ref().trim();
    if trimmed.is_empty() || trimmed.contains(char::is_control) {
        return Err(Problem::new(
            text.span(),
            format!("the {what} is not one line of text"),
            "write one sentence, without line breaks",
        ));
    }
    Ok(trimmed.to_owned())
}

fn label(text: &Spanned<String>) -> Result<Label, Problem> {
    Label::from_name(text.get_ref()).ok_or_else(|| {
        let known = Label::ALL.iter().map(|label| label.name());
        unknown(text, "label", known)
    })
}

/// A name that is not one of those known.
fn unknown<'a>(text: &Spanned<String>, what: &str, known: impl Iterator<Item = &'a str>) -> Problem {
    let known: Vec<&str> = known.collect();
    Problem::new(
        text.span(),
        format!("there is no {what} '{}'", text.get_ref()),
        format!("write one of {}", known.join(", ")),
    )
}

/// The scenario's words. There is no shell, hence no quotes.
fn words(text: &Spanned<String>) -> Result<Vec<String>, Problem> {
    let words: Vec<String> = text.get_ref().split_whitespace().map(str::to_owned).collect();
    if words.is_empty() || text.get_ref().contains(['"', '\'', '\\', '$', '`', '|', '&', ';']) {
        return Err(Problem::new(
            text.span(),
            "the scenario is not a plain command",
            "write words with blanks between them, such as \"iperf3 -c far -t 10\": no shell reads them",
        ));
    }
    Ok(words)
}

fn seed(seed: Option<&Spanned<i64>>) -> Result<u64, Problem> {
    let Some(seed) = seed else { return Ok(1) };
    u64::try_from(*seed.get_ref()).map_err(|_| {
        Problem::new(seed.span(), format!("the seed {} is negative", seed.get_ref()), "write a number from 0 on")
    })
}

#[cfg(test)]
mod tests;
