//! Descriptions of paths: TOML, parsed strictly.
//!
//! Unknown keys, impossible values and missing units are errors that name the line: a path that silently differs from
//! its author's intent would make every figure measured on it wrong. `docs/paths.md` lists all keys.

mod error;
mod hosts;
mod link_layer;
mod links;
mod quantity;
mod raw;
mod trace;
mod traffic;
mod types;

use toml::Spanned;

pub use error::DescriptionError;
pub use hosts::CONGESTION_CONTROLS;
pub use linerate_analysis::link_layer::{LinkFraming, LinkLayer};
pub use linerate_model::diagnosis::PathLabel;
pub(crate) use links::count_factors;
pub use trace::{DeliveryTrace, OPPORTUNITY, TraceError};
pub(crate) use traffic::{DATAGRAM_PAYLOAD, MAX_BURST_DATAGRAMS};
pub(crate) use types::PARALLEL;
pub use types::{
    BottleneckQueue, BufferSize, DelayJitter, EmulatedLink, HostDescription, JitterDistribution, LinkDirection,
    LinkReordering, LossModel, PathDescription, PolicerDescription, RateStep, TrafficDescription, TrafficKind,
    TrafficProtocol,
};

use error::DescriptionProblem;
use raw::RawPath;

/// Reference of all keys, for error messages.
const KEYS_REFERENCE: &str = "docs/paths.md lists all keys with their units";

impl PathDescription {
    /// Reads the description `text` of the path `name`; a name that ends with `.toml` is the file's, and the path's
    /// name is the part before that.
    ///
    /// # Errors
    /// Invalid TOML, unknown keys, quantities without units, values that no path can have. The first of them, with its
    /// line.
    pub fn parse(name: &str, text: &str) -> Result<Self, DescriptionError> {
        Self::parse_with_traces(name, text, &mut |_| Err("there are no other files here".to_owned()))
    }

    /// As [`PathDescription::parse`], for a description whose links may have traces: `read` returns the content of the
    /// file that a link names, or the reason why there is none.
    ///
    /// # Errors
    /// Those of [`PathDescription::parse`], and traces that cannot be read.
    pub fn parse_with_traces(
        name: &str,
        text: &str,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, DescriptionError> {
        let file = if is_file_name(name) { name.to_owned() } else { format!("{name}.toml") };
        let located = |problem| DescriptionError::locate(&file, text, problem);
        let name = path_name(&file).map_err(located)?;
        let raw: RawPath = toml::from_str(text).map_err(|error| located(parse_problem(&error, text)))?;
        validate(name, &raw, read).map_err(located)
    }
}

fn is_file_name(name: &str) -> bool {
    name.strip_suffix(".toml").is_some_and(|stem| !stem.is_empty())
}

/// The path's name: the last part of the file's, without `.toml`.
fn path_name(file: &str) -> Result<String, DescriptionProblem> {
    let last = file.rsplit('/').next().unwrap_or(file);
    let name = last.strip_suffix(".toml").unwrap_or(last);
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(is_plain) {
        return Err(DescriptionProblem::new(
            0..0,
            format!("'{name}' is not a path name"),
            "name the file with small letters, digits and hyphens, such as adsl-2mbit.toml",
        ));
    }
    Ok(name.to_owned())
}

/// Error of the TOML parser, with a remedy.
fn parse_problem(error: &toml::de::Error, text: &str) -> DescriptionProblem {
    let message = error.message().to_owned();
    let advice = if message.contains("has no unit") {
        "write the number with its unit, in quotes, such as \"10 Gbit/s\", \"58.5 ms\", \"1.5 MB\" or \"0.1 %\""
    } else if message.starts_with("unknown field") {
        "correct the key's spelling, or remove it; docs/paths.md lists all keys with their units"
    } else if message.starts_with("missing field") {
        "add the key; docs/paths.md lists all keys with their units"
    } else {
        KEYS_REFERENCE
    };
    // An error at the end of the text is on its last line, not on the empty one after it.
    let end = text.trim_end().len();
    let start = error.span().map_or(0, |span| span.start).min(end);
    DescriptionProblem::new(
        start..start,
        message.replace("unknown field", "unknown key").replace("missing field", "missing key"),
        advice,
    )
}

fn validate(
    name: String,
    raw: &RawPath,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<PathDescription, DescriptionProblem> {
    let names = hosts::chain(raw)?;
    let links = links::links(&raw.link, read)?;
    let hosts = hosts::hosts(raw, &names)?;
    let traffic = raw.traffic.iter().map(|traffic| traffic::traffic(traffic, &hosts)).collect::<Result<_, _>>()?;
    Ok(PathDescription {
        name,
        story: optional_line(raw.story.as_ref(), "story")?,
        source: optional_line(raw.source.as_ref(), "source")?,
        label: raw.label.as_ref().map_or(Ok(PathLabel::None), label)?,
        scenario: raw.scenario.as_ref().map_or_else(|| Ok(default_scenario()), scenario_arguments)?,
        seed: seed(raw.seed.as_ref())?,
        hosts,
        links,
        traffic,
    })
}

/// Scenario of a path that names none.
fn default_scenario() -> Vec<String> {
    ["test", "far"].map(str::to_owned).into()
}

/// One line, empty where the key is absent: a private path needs no story.
fn optional_line(text: Option<&Spanned<String>>, what: &str) -> Result<String, DescriptionProblem> {
    text.map_or_else(|| Ok(String::new()), |text| single_line(text, what))
}

/// One non-empty line.
fn single_line(text: &Spanned<String>, what: &str) -> Result<String, DescriptionProblem> {
    let trimmed = text.get_ref().trim();
    if trimmed.is_empty() || trimmed.contains(char::is_control) {
        return Err(DescriptionProblem::new(
            text.span(),
            format!("the {what} is not one line of text"),
            "write one sentence, without line breaks",
        ));
    }
    Ok(trimmed.to_owned())
}

fn label(text: &Spanned<String>) -> Result<PathLabel, DescriptionProblem> {
    PathLabel::from_name(text.get_ref()).ok_or_else(|| {
        let known = PathLabel::ALL.iter().map(|label| label.name());
        unknown(text, "label", known)
    })
}

/// Error for an unknown name, with the known ones.
fn unknown<'a>(text: &Spanned<String>, what: &str, known: impl Iterator<Item = &'a str>) -> DescriptionProblem {
    let known: Vec<&str> = known.collect();
    DescriptionProblem::new(
        text.span(),
        format!("unknown {what} '{}'", text.get_ref()),
        format!("write one of {}", known.join(", ")),
    )
}

/// Arguments of the scenario. There is no shell, hence no quotes.
fn scenario_arguments(text: &Spanned<String>) -> Result<Vec<String>, DescriptionProblem> {
    let words: Vec<String> = text.get_ref().split_whitespace().map(str::to_owned).collect();
    if words.is_empty() || text.get_ref().contains(['"', '\'', '\\', '$', '`', '|', '&', ';']) {
        return Err(DescriptionProblem::new(
            text.span(),
            "the scenario is not a plain command",
            "write arguments separated by blanks, such as \"iperf3 -c far -t 10\": there is no shell",
        ));
    }
    Ok(words)
}

fn seed(seed: Option<&Spanned<i64>>) -> Result<u64, DescriptionProblem> {
    let Some(seed) = seed else { return Ok(1) };
    u64::try_from(*seed.get_ref()).map_err(|_| {
        DescriptionProblem::new(
            seed.span(),
            format!("the seed {} is negative", seed.get_ref()),
            "write a number from 0 on",
        )
    })
}

#[cfg(test)]
mod tests;
