//! Formulas and examples of each calculator.

use linerate_analysis::formulas::{FormulaDescription, entry};
use serde_json::{Value as Json, json};

/// Calculator with its formulas and examples.
#[derive(Debug)]
pub(super) struct CatalogueEntry {
    /// Name of the subcommand.
    pub(super) name: &'static str,
    pub(super) formulas: &'static [FormulaDescription],
    /// Example arguments, without the name.
    pub(super) examples: &'static [&'static str],
}

/// All calculators, in display order.
pub(super) const CATALOGUE: &[CatalogueEntry] = &[
    new("bdp", &[entry::BANDWIDTH_DELAY_PRODUCT], &["10G 117ms", "1G 53ms"]),
    new(
        "window",
        &[entry::WINDOW_RATE],
        &["--window 16MiB --rtt 53ms", "--rate 1G --rtt 53ms", "--window 64KiB --rate 100M"],
    ),
    new(
        "buffer",
        &[entry::USABLE_WINDOW, entry::WINDOW_RATE],
        &[
            "--rate 10G --rtt 117ms",
            "--window 146.25MB",
            "--buffer 6MiB --rtt 117ms",
            "--buffer 6291456 --mss 8948",
            "--window 1MB --share 62.5%",
        ],
    ),
    new(
        "little",
        &[entry::LITTLE],
        &["--in-flight 2.48MB --rate 17.9MB/s", "--segments 40 --rtt 53ms", "--rate 100M --rtt 20ms"],
    ),
    new(
        "transfer",
        &[entry::TRANSFER_TIME],
        &["--volume 101GiB --time 60s", "--rate 941M --volume 1GB", "--rate 100M --time 10s"],
    ),
    new(
        "loss",
        &[entry::LOSS_RESPONSE],
        &[
            "--rate 256M --rtt 53ms --mss 8960",
            "--loss 0.01% --rtt 117ms --congestion cubic",
            "--rate 780M --rtt 53ms --mss 8960",
        ],
    ),
    new("mathis", &[entry::MATHIS], &["--loss 0.1% --rtt 20.2ms", "--rate 256M --rtt 53ms --mss 8960 --constant 1"]),
    new(
        "padhye",
        &[entry::PADHYE],
        &["--loss 0.1% --rtt 20.2ms", "--rate 20M --rtt 20.2ms", "--loss 5% --rtt 50ms --timeout 250ms"],
    ),
    new("cubic", &[entry::CUBIC], &["--loss 0.01% --rtt 117ms", "--rate 100M --rtt 53ms"]),
    new("bbr", &[entry::BBR], &["300M 20ms", "300M 20ms --loss 0.1%"]),
    new("slow-start", &[entry::SLOW_START], &["10G 117ms", "1G 53ms"]),
    new("pacing", &[entry::PACING], &["6.625MB 53ms", "16MiB 53ms --gain 2"]),
    new("ethernet", &[entry::GOODPUT_SHARE], &["1G", "10G --mtu 9000", "100M --no-timestamps"]),
    new("frames", &[entry::FRAME_RATE], &["10G", "10G --mtu 46"]),
    new("mss", &[entry::SEGMENT_SIZE], &["1500", "9000", "1500 --ipv6 --no-timestamps"]),
    new("serialisation", &[entry::SERIALISATION], &["220k 1500", "1G 9000"]),
    new("queue", &[entry::QUEUEING_DELAY], &["300M --buffer 1.5MB", "240k --packets 45", "300M --delay 40ms"]),
    new("policer", &[entry::POLICER], &["100M 200kB 10s", "100M 0 1s"]),
    new("wrap", &[entry::SEQUENCE_WRAP], &["10G", "1G"]),
    new("scale", &[entry::WINDOW_SCALE], &["--buffer 6MiB", "--window 16MiB", "--scale 14"]),
    new(
        "memory",
        &[entry::SEND_MEMORY, entry::WINDOW_RATE],
        &["--rate 1G --rtt 53ms", "--segments 10", "--buffer 4MiB --rtt 53ms", "--rate 1G --rtt 53ms --congestion bbr"],
    ),
    new("sockets", &[entry::SOCKET_MEMORY], &["1M 256KiB", "10k 6MiB --factor 1"]),
    new("pages", &[entry::MEMORY_PAGES], &["--pages 16777216", "--memory 16MiB"]),
    new(
        "rfc6349",
        &[entry::TRANSFER_TIME, entry::TRANSFER_TIME_RATIO, entry::TCP_EFFICIENCY, entry::BUFFER_DELAY],
        &[
            "--actual 12s --ideal 8s",
            "--sent 102000 --retransmitted 2000",
            "--base-rtt 25ms --loaded-rtt 32ms",
            "--volume 1GB --rate 941M --actual 12s",
        ],
    ),
    new("mos", &[entry::E_MODEL], &["150ms --loss 1%", "400ms", "60ms --loss 3% --codec g729a --burst-ratio 2"]),
];

const fn new(
    name: &'static str,
    formulas: &'static [FormulaDescription],
    examples: &'static [&'static str],
) -> CatalogueEntry {
    CatalogueEntry { name, formulas, examples }
}

impl CatalogueEntry {
    /// Entry of this calculator.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        CATALOGUE.iter().find(|entry| entry.name == name)
    }

    /// Examples as commands.
    pub(super) fn commands(&self) -> impl Iterator<Item = String> {
        self.examples.iter().map(|example| format!("linerate calc {} {example}", self.name))
    }

    /// Formulas as JSON.
    pub(super) fn formula_documents(&self) -> Vec<Json> {
        let formulas = self.formulas.iter();
        formulas
            .map(|FormulaDescription { name, text, citation, explanation }| {
                json!({ "name": name, "text": text, "citation": citation, "explanation": explanation })
            })
            .collect()
    }
}
