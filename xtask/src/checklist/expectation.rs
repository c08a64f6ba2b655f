//! Expectations of the rows of docs/seeds-checks.tsv.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Expectation of a command's output.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expectation {
    /// Text that is shown.
    Shown(String),
    /// Text that is not shown.
    Absent(String),
    /// Figure of the JSON output, with its bounds.
    Figure { pointer: String, least: f64, most: f64 },
}

impl Expectation {
    /// Parses one expectation: `text`, `!text` or `/json/pointer LOW..HIGH`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        if let Some(absent) = text.strip_prefix('!') {
            return Ok(Self::Absent(absent.to_owned()));
        }
        let Some((pointer, bounds)) = text.split_once(' ').filter(|_| text.starts_with('/')) else {
            return if text.is_empty() {
                bail!("an empty expectation holds always")
            } else {
                Ok(Self::Shown(text.to_owned()))
            };
        };
        let (least, most) = bounds.split_once("..").with_context(|| format!("'{bounds}' is no range LOW..HIGH"))?;
        Ok(Self::Figure { pointer: pointer.to_owned(), least: least.parse()?, most: most.parse()? })
    }

    /// Checks the output; returns the figure or text that was seen, or the reason of the failure.
    pub(super) fn check(&self, output: &str) -> Result<String, String> {
        // Texts are wrapped to the terminal's width.
        let flat = output.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Self::Shown(text) if flat.contains(text.as_str()) => Ok(format!("shows “{text}”")),
            Self::Shown(text) => Err(format!("does not show “{text}”")),
            Self::Absent(text) if flat.contains(text.as_str()) => Err(format!("shows “{text}”")),
            Self::Absent(text) => Ok(format!("no “{text}”")),
            Self::Figure { pointer, least, most } => figure(output, pointer, *least, *most),
        }
    }
}

fn figure(output: &str, pointer: &str, least: f64, most: f64) -> Result<String, String> {
    let start = output.find('{').ok_or("no JSON")?;
    let values = serde_json::Deserializer::from_str(&output[start..]).into_iter::<Value>().next();
    let document = values.ok_or("no JSON")?.map_err(|cause| cause.to_string())?;
    let value = document.pointer(pointer).and_then(Value::as_f64).ok_or_else(|| format!("no figure at {pointer}"))?;
    let text = format!("{pointer} = {value:.4e}, expected {least:.4e} to {most:.4e}");
    if (least..=most).contains(&value) { Ok(text) } else { Err(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_can_fail() {
        let parse = |text: &str| Expectation::parse(text).expect("valid");
        assert!(parse("146.25 MB").check("BDP: 146.25\n  MB").is_ok());
        assert!(parse("146.25 MB").check("BDP: 14.6 MB").is_err());
        assert!(parse("!edit").check("edit it").is_err() && parse("!edit").check("delete it").is_ok());
        let rate = parse("/end/rate 9e8..1e9");
        assert!(rate.check("note\n{\"end\": {\"rate\": 956e6}}\n").is_ok());
        assert!(rate.check("{\"end\": {\"rate\": 272e6}}").is_err() && rate.check("text").is_err());
        assert!(Expectation::parse("").is_err() && Expectation::parse("/a 1").is_err());
    }
}
