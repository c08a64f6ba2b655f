//! Figures of a run from the client's `-J` document.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Figures of a run from the client's document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClientFigures {
    /// Rate at the receivers, both directions together, in bit/s.
    pub(super) goodput: f64,
    /// Received bits over the whole run, both directions together.
    pub(super) received_bits: f64,
    /// Lost datagrams over sent ones; `None` for TCP.
    pub(super) loss: Option<f64>,
}

/// Parses the figures from the document that `iperf3 -c … -J` writes.
pub(super) fn figures(document: &str) -> Result<ClientFigures> {
    let document: Value = serde_json::from_str(document).context("the client's output is not JSON")?;
    if let Some(error) = document["error"].as_str() {
        bail!("the client reports: {error}");
    }
    let end = &document["end"];
    let mut figures = ClientFigures { goodput: 0.0, received_bits: 0.0, loss: None };
    for sum in
        ["sum_received", "sum_received_bidir_reverse"].map(|key| &end[key]).into_iter().filter(|sum| sum.is_object())
    {
        figures.goodput += sum["bits_per_second"].as_f64().context("sum_received lacks bits_per_second")?;
        figures.received_bits += sum["bytes"].as_f64().context("sum_received lacks bytes")? * 8.0;
    }
    if figures.goodput <= 0.0 {
        bail!("the client's document has no goodput at the receiver");
    }
    if end["sum"].is_object() {
        figures.loss = Some(loss(&end["sum"])?);
    }
    Ok(figures)
}

fn loss(sum: &Value) -> Result<f64> {
    let lost = sum["lost_packets"].as_f64().context("sum lacks lost_packets")?;
    let packets = sum["packets"].as_f64().context("sum lacks packets")?;
    Ok(if packets > 0.0 { lost / packets } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_added() {
        let document = r#"{"end": {
            "sum_received": {"bytes": 100, "bits_per_second": 800.0},
            "sum_received_bidir_reverse": {"bytes": 50, "bits_per_second": 400.0}}}"#;
        let figures = figures(document).expect("the document is complete");
        assert_eq!(figures, ClientFigures { goodput: 1200.0, received_bits: 1200.0, loss: None });
    }

    #[test]
    fn datagrams_have_a_loss() {
        let document = r#"{"end": {
            "sum": {"lost_packets": 5, "packets": 100},
            "sum_received": {"bytes": 100, "bits_per_second": 800.0}}}"#;
        assert_eq!(figures(document).expect("the document is complete").loss, Some(0.05));
    }

    #[test]
    fn a_failed_run_is_an_error_and_not_a_zero() {
        let busy = figures(r#"{"error": "the server is busy", "end": {}}"#).expect_err("the client failed");
        assert!(busy.to_string().contains("the server is busy"));
        assert!(figures(r#"{"end": {}}"#).is_err());
        assert!(figures("iperf3: error").is_err());
    }
}
