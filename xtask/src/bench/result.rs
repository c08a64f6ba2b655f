//! Figures of a run from the client's document.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::program::Dialect;

/// Figures of a run from the client's document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClientFigures {
    /// Rate at the receivers, both directions together, in bit/s.
    pub(super) goodput: f64,
    /// Received bits over the whole run, both directions together.
    pub(super) received_bits: f64,
    /// Lost datagrams over sent ones; `None` for TCP.
    pub(super) loss: Option<f64>,
    /// Jitter of the datagrams in milliseconds; `None` for TCP.
    pub(super) jitter: Option<f64>,
}

/// Parses the figures from the document that a client of `dialect` writes.
pub(super) fn figures(dialect: Dialect, document: &str) -> Result<ClientFigures> {
    let document: Value = serde_json::from_str(document).context("the client's output is not JSON")?;
    if let Some(error) = document["error"].as_str() {
        bail!("the client reports: {error}");
    }
    let figures = match dialect {
        Dialect::Iperf3 => iperf3(&document["end"])?,
        Dialect::Xfr => xfr(&document)?,
        Dialect::Bare | Dialect::Http => bare(&document)?,
    };
    if figures.goodput <= 0.0 {
        bail!("the client's document has no goodput at the receiver");
    }
    Ok(figures)
}

fn iperf3(end: &Value) -> Result<ClientFigures> {
    let mut figures = ClientFigures::default();
    for sum in
        ["sum_received", "sum_received_bidir_reverse"].map(|key| &end[key]).into_iter().filter(|sum| sum.is_object())
    {
        figures.goodput += sum["bits_per_second"].as_f64().context("sum_received lacks bits_per_second")?;
        figures.received_bits += sum["bytes"].as_f64().context("sum_received lacks bytes")? * 8.0;
    }
    let sum = &end["sum"];
    if sum["packets"].is_number() {
        let lost = sum["lost_packets"].as_f64().context("sum lacks lost_packets")?;
        let packets = sum["packets"].as_f64().context("sum lacks packets")?;
        figures.loss = Some(if packets > 0.0 { lost / packets } else { 0.0 });
        figures.jitter = sum["jitter_ms"].as_f64();
    }
    Ok(figures)
}

/// Totals of xfr are of both directions together.
fn xfr(document: &Value) -> Result<ClientFigures> {
    let megabits = document["throughput_mbps"].as_f64().context("the document lacks throughput_mbps")?;
    let bytes = document["bytes_total"].as_f64().context("the document lacks bytes_total")?;
    Ok(ClientFigures { goodput: megabits * 1e6, received_bits: bytes * 8.0, ..ClientFigures::default() })
}

fn bare(document: &Value) -> Result<ClientFigures> {
    let bits = document["received_bytes"].as_f64().context("the document lacks received_bytes")? * 8.0;
    let seconds = document["seconds"].as_f64().context("the document lacks seconds")?;
    Ok(ClientFigures { goodput: bits / seconds, received_bits: bits, ..ClientFigures::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_added() {
        let document = r#"{"end": {
            "sum_received": {"bytes": 100, "bits_per_second": 800.0},
            "sum_received_bidir_reverse": {"bytes": 50, "bits_per_second": 400.0}}}"#;
        let figures = figures(Dialect::Iperf3, document).expect("the document is complete");
        assert_eq!(figures, ClientFigures { goodput: 1200.0, received_bits: 1200.0, loss: None, jitter: None });
    }

    #[test]
    fn datagrams_have_a_loss_and_a_jitter() {
        let document = r#"{"end": {
            "sum": {"lost_packets": 5, "packets": 100, "jitter_ms": 0.25},
            "sum_received": {"bytes": 100, "bits_per_second": 800.0}}}"#;
        let figures = figures(Dialect::Iperf3, document).expect("the document is complete");
        assert_eq!((figures.loss, figures.jitter), (Some(0.05), Some(0.25)));
    }

    #[test]
    fn other_programs_name_their_totals_otherwise() {
        let xfr = figures(Dialect::Xfr, r#"{"bytes_total": 250, "throughput_mbps": 2.0}"#).expect("complete");
        let bare = figures(Dialect::Bare, r#"{"received_bytes": 250, "seconds": 0.001}"#).expect("complete");
        assert_eq!((xfr.goodput, xfr.received_bits), (2e6, 2000.0));
        assert_eq!((bare.goodput, bare.received_bits), (2e6, 2000.0));
    }

    #[test]
    fn a_failed_run_is_an_error_and_not_a_zero() {
        let of = |document| figures(Dialect::Iperf3, document);
        let busy = of(r#"{"error": "the server is busy", "end": {}}"#).expect_err("the client failed");
        assert!(busy.to_string().contains("the server is busy"));
        assert!(of(r#"{"end": {}}"#).is_err());
        assert!(of("iperf3: error").is_err());
        assert!(figures(Dialect::Bare, r#"{"received_bytes": 0, "seconds": 1}"#).is_err());
    }
}
