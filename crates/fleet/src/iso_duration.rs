//! Durations of ISO 8601, as in psConfig: `PT30S`, `PT4H`, `P1D`.

use core::time::Duration;

use jiff::{Span, SpanRelativeTo};
use serde::de::{Deserialize, Deserializer, Error};

/// Parses a duration of weeks, days, hours, minutes and seconds; a day has 24 hours. `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    // The library also reads "4h" and calendar units, whose length depends on the date.
    let (days, _) = text.strip_prefix('P')?.split_once('T').unwrap_or((text, ""));
    if days.contains(['Y', 'M']) {
        return None;
    }
    let span: Span = text.parse().ok()?;
    span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?.try_into().ok()
}

/// Reads an optional duration.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let refused = || D::Error::custom(format!("{text:?} is no ISO 8601 duration: write PT30S, PT4H or P1D"));
    parse(&text).map(Some).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_the_schema() {
        for (text, seconds) in
            [("PT30S", 30), ("PT4H", 14_400), ("P1D", 86_400), ("P1W", 604_800), ("P1DT1M", 86_460), ("PT0S", 0)]
        {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("PT1.5S"), Some(Duration::from_millis(1500)));
        for text in ["", "P", "PT", "4h", "P1M", "P1Y", "-PT1S", "PT-1S", "30", "PT1", "pt1s x", "P99999999999W"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
