//! Formulas and examples of each calculator.

use linerate_analysis::formulas::{FormulaDescription, entry};
use linerate_documents::calculation::CalculatorName;

/// Calculator with its formulas and examples.
#[derive(Debug)]
pub(super) struct CatalogueEntry {
    pub(super) calculator: CalculatorName,
    pub(super) formulas: &'static [FormulaDescription],
    /// Example arguments, without the name.
    pub(super) examples: &'static [&'static str],
}

/// All calculators, in display order.
pub(super) const CATALOGUE: &[CatalogueEntry] = &[
    new(CalculatorName::Bdp, &[entry::BANDWIDTH_DELAY_PRODUCT], &["10G 117ms", "1G 53ms"]),
    new(
        CalculatorName::Window,
        &[entry::WINDOW_RATE],
        &["--window 16MiB --rtt 53ms", "--rate 1G --rtt 53ms", "--window 64KiB --rate 100M"],
    ),
    new(
        CalculatorName::Buffer,
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
        CalculatorName::Little,
        &[entry::LITTLE],
        &["--in-flight 2.48MB --rate 17.9MB/s", "--segments 40 --rtt 53ms", "--rate 100M --rtt 20ms"],
    ),
    new(
        CalculatorName::Transfer,
        &[entry::TRANSFER_TIME],
        &["--volume 101GiB --time 60s", "--rate 941M --volume 1GB", "--rate 100M --time 10s"],
    ),
    new(
        CalculatorName::Loss,
        &[entry::LOSS_RESPONSE],
        &[
            "--rate 256M --rtt 53ms --mss 8960",
            "--loss 0.01% --rtt 117ms --congestion cubic",
            "--rate 780M --rtt 53ms --mss 8960",
        ],
    ),
    new(
        CalculatorName::Mathis,
        &[entry::MATHIS],
        &["--loss 0.1% --rtt 20.2ms", "--rate 256M --rtt 53ms --mss 8960 --constant 1"],
    ),
    new(
        CalculatorName::Padhye,
        &[entry::PADHYE],
        &["--loss 0.1% --rtt 20.2ms", "--rate 20M --rtt 20.2ms", "--loss 5% --rtt 50ms --timeout 250ms"],
    ),
    new(CalculatorName::Cubic, &[entry::CUBIC], &["--loss 0.01% --rtt 117ms", "--rate 100M --rtt 53ms"]),
    new(CalculatorName::Bbr, &[entry::BBR], &["300M 20ms", "300M 20ms --loss 0.1%"]),
    new(CalculatorName::SlowStart, &[entry::SLOW_START], &["10G 117ms", "1G 53ms"]),
    new(CalculatorName::Pacing, &[entry::PACING], &["6.625MB 53ms", "16MiB 53ms --gain 2"]),
    new(CalculatorName::Ethernet, &[entry::GOODPUT_SHARE], &["1G", "10G --mtu 9000", "100M --no-timestamps"]),
    new(CalculatorName::Frames, &[entry::FRAME_RATE], &["10G", "10G --mtu 46"]),
    new(CalculatorName::Mss, &[entry::SEGMENT_SIZE], &["1500", "9000", "1500 --ipv6 --no-timestamps"]),
    new(CalculatorName::Serialisation, &[entry::SERIALISATION], &["220k 1500", "1G 9000"]),
    new(
        CalculatorName::Queue,
        &[entry::QUEUEING_DELAY],
        &["300M --buffer 1.5MB", "240k --packets 45", "300M --delay 40ms"],
    ),
    new(CalculatorName::Policer, &[entry::POLICER], &["100M 200kB 10s", "100M 0 1s"]),
    new(CalculatorName::Wrap, &[entry::SEQUENCE_WRAP], &["10G", "1G"]),
    new(CalculatorName::Scale, &[entry::WINDOW_SCALE], &["--buffer 6MiB", "--window 16MiB", "--scale 14"]),
    new(
        CalculatorName::Memory,
        &[entry::SEND_MEMORY, entry::WINDOW_RATE],
        &["--rate 1G --rtt 53ms", "--segments 10", "--buffer 4MiB --rtt 53ms", "--rate 1G --rtt 53ms --congestion bbr"],
    ),
    new(CalculatorName::Sockets, &[entry::SOCKET_MEMORY], &["1M 256KiB", "10k 6MiB --factor 1"]),
    new(CalculatorName::Pages, &[entry::MEMORY_PAGES], &["--pages 16777216", "--memory 16MiB"]),
    new(
        CalculatorName::Rfc6349,
        &[entry::TRANSFER_TIME, entry::TRANSFER_TIME_RATIO, entry::TCP_EFFICIENCY, entry::BUFFER_DELAY],
        &[
            "--actual 12s --ideal 8s",
            "--sent 102000 --retransmitted 2000",
            "--base-rtt 25ms --loaded-rtt 32ms",
            "--volume 1GB --rate 941M --actual 12s",
        ],
    ),
    new(
        CalculatorName::Mos,
        &[entry::E_MODEL],
        &["150ms --loss 1%", "400ms", "60ms --loss 3% --codec g729a --burst-ratio 2"],
    ),
];

const fn new(
    calculator: CalculatorName,
    formulas: &'static [FormulaDescription],
    examples: &'static [&'static str],
) -> CatalogueEntry {
    CatalogueEntry { calculator, formulas, examples }
}

impl CatalogueEntry {
    /// Entry of the calculator whose subcommand has this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        CATALOGUE.iter().find(|entry| entry.name() == name)
    }

    /// Name of the subcommand.
    pub(super) const fn name(&self) -> &'static str {
        self.calculator.name()
    }

    /// Examples as commands.
    pub(super) fn commands(&self) -> impl Iterator<Item = String> {
        self.examples.iter().map(|example| format!("linerate calc {} {example}", self.name()))
    }
}
