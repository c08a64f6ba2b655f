//! Results as a section of docs/compatibility.md.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::cases::Case;
use super::peers::Peers;
use super::{CaseResult, Comparison, Pairing};

/// Line after which the page is generated.
const MARK: &str = "<!-- results of cargo xtask interop --write -->\n";

/// Difference that stays.
struct KnownDifference {
    /// Start of the peer's name.
    peer: &'static str,
    /// Text in the case's name.
    case: &'static str,
    pairing: Option<Pairing>,
    reason: &'static str,
}

/// Differences that stay, with their reasons; docs/compatibility.md explains them.
const KNOWN: &[KnownDifference] = &[
    KnownDifference { peer: "iperf3", case: "-C nosuch", pairing: None, reason: "no stream, no buffer sizes" },
    KnownDifference { peer: "iperf3", case: "-L 7", pairing: None, reason: "no stream, no buffer sizes" },
    KnownDifference { peer: "riperf3", case: "-C nosuch", pairing: None, reason: "iperf3 fails, too" },
    KnownDifference { peer: "riperf3", case: "-L 7", pairing: None, reason: "iperf3 fails, too" },
    KnownDifference { peer: "iperf3 3.12", case: "-b 1X", pairing: None, reason: "refused since 3.21" },
    KnownDifference {
        peer: "iperf3 3.12",
        case: "--server-bitrate-limit 5M",
        pairing: None,
        reason: "3.12 refuses after the streams are open, 3.21 and linerate before",
    },
    KnownDifference {
        peer: "riperf3",
        case: "--server-bitrate-limit 5M",
        pairing: None,
        reason: "riperf3 refuses during the test, iperf3 and linerate before",
    },
];

/// Reason of a difference: a known one, or for other implementations that linerate does as iperf3.
fn reason(found: &Peers, results: &[CaseResult], result: &CaseResult, pairing: Pairing) -> Option<&'static str> {
    let (peer, case) = (&found.peers[result.peer].name, result.case);
    let is_as_iperf3 = !peer.starts_with("iperf3") && equals_iperf3(found, results, case);
    known_reason(peer, case, pairing).or(is_as_iperf3.then_some("as iperf3"))
}

/// True when linerate with itself equals an iperf3 with itself.
fn equals_iperf3(found: &Peers, results: &[CaseResult], case: &Case) -> bool {
    results
        .iter()
        .filter(|result| result.case == case && found.peers[result.peer].name.starts_with("iperf3"))
        .any(|result| result.pairings.as_ref().is_some_and(|pairings| pairings[0] == Comparison::Equal))
}

fn known_reason(peer: &str, case: &Case, pairing: Pairing) -> Option<&'static str> {
    let applies = |known: &&KnownDifference| {
        peer.starts_with(known.peer)
            && case.name().contains(known.case)
            && known.pairing.is_none_or(|expected| expected == pairing)
    };
    KNOWN.iter().find(applies).map(|known| known.reason)
}

/// True when each difference has a reason.
pub(super) fn is_documented(found: &Peers, results: &[CaseResult]) -> bool {
    differences(results).all(|(result, pairing, _)| reason(found, results, result, pairing).is_some())
}

fn differences(results: &[CaseResult]) -> impl Iterator<Item = (&CaseResult, Pairing, &str)> {
    results.iter().flat_map(|result| {
        let pairings = result.pairings.iter().flatten().zip(Pairing::ALL);
        pairings.filter_map(move |(comparison, pairing)| match comparison {
            Comparison::Equal => None,
            Comparison::Different(text) => Some((result, pairing, text.as_str())),
        })
    })
}

/// Formats the tables.
pub(super) fn results(found: &Peers, all: &[CaseResult]) -> String {
    let mut text = String::from(
        "\nCells that equal the peer against itself, of all cells whose options the peer has:\n\n\
         | peer | linerate → linerate | linerate → peer | peer → linerate | cases that the peer lacks |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for (index, peer) in found.peers.iter().enumerate() {
        let of_peer: Vec<&CaseResult> = all.iter().filter(|result| result.peer == index).collect();
        let run: Vec<_> = of_peer.iter().filter_map(|result| result.pairings.as_ref()).collect();
        let equal = [0, 1, 2].map(|pairing: usize| {
            let count = run.iter().filter(|pairings| pairings[pairing] == Comparison::Equal).count();
            format!("{count} of {}", run.len())
        });
        let lacking = of_peer.len() - run.len();
        let _ = writeln!(text, "| {} | {} | {} | {} | {lacking} |", peer.name, equal[0], equal[1], equal[2]);
    }
    for missing in &found.missing {
        let _ = writeln!(text, "| {} | not run: {} | | | |", missing.name, missing.reason);
    }
    let mut rows = differences(all).peekable();
    if rows.peek().is_some() {
        text.push_str("\n| peer | pairing | case | difference | reason |\n|---|---|---|---|---|\n");
    }
    for (result, pairing, difference) in rows {
        let peer = &found.peers[result.peer].name;
        let reason = reason(found, all, result, pairing).unwrap_or("**not explained**");
        let case = result.case.name();
        let _ = writeln!(text, "| {peer} | {} | `{case}` | {} | {reason} |", pairing.name(), escaped(difference));
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Replaces the generated part of the page.
pub(super) fn replace(page: &str, results: &str) -> Result<String> {
    let (before, _) = page.split_once(MARK).context("the page has no mark for the results")?;
    Ok(format!("{before}{MARK}{results}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::interop::cases::CASES;
    use crate::interop::peers::{MissingPeer, Peer};

    fn found() -> Peers {
        let peer = Peer { program: PathBuf::from("iperf3"), name: "iperf3 9".to_owned(), pads_pkcs1: false };
        Peers { peers: vec![peer], missing: vec![MissingPeer { name: "riperf3", reason: "no network".to_owned() }] }
    }

    #[test]
    fn the_table_counts_equal_cells_and_lists_the_others() {
        let equal = || Comparison::Equal;
        let results_of = [
            CaseResult { peer: 0, case: &CASES[0], pairings: Some([equal(), equal(), equal()]) },
            CaseResult {
                peer: 0,
                case: &CASES[1],
                pairings: Some([equal(), Comparison::Different("fails".to_owned()), equal()]),
            },
            CaseResult { peer: 0, case: &CASES[2], pairings: None },
        ];
        let text = results(&found(), &results_of);
        assert!(text.contains("| iperf3 9 | 2 of 2 | 1 of 2 | 2 of 2 | 1 |"), "{text}");
        assert!(text.contains("| riperf3 | not run: no network |"), "{text}");
        assert!(text.contains("| iperf3 9 | linerate → peer | `-R` | fails | **not explained** |"), "{text}");
        assert!(!is_documented(&found(), &results_of));
        assert!(is_documented(&found(), &results_of[..1]));
    }

    #[test]
    fn only_the_part_after_the_mark_is_replaced() {
        let page = format!("text\n{MARK}old");
        assert_eq!(replace(&page, "new").expect("it has a mark"), format!("text\n{MARK}new"));
        assert!(replace("text", "new").is_err());
    }
}
