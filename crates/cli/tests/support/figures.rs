//! Consistency checks of a test's figures, for any program.

use linerate_model::parameters::TestDirection;
use serde_json::Value;

use super::Program;
use super::document::{array, count, number, sum_of_intervals, text};
use super::pairing::Pair;

/// Largest amount in flight when a test ends: the buffers of both hosts, and the delay of a busy host.
const IN_FLIGHT: u64 = 256 << 20;

/// Amount of data of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Duration in seconds.
    Seconds(u32),
    /// Bytes per direction.
    Bytes(u64),
}

/// Requested test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestedTest {
    pub(crate) udp: bool,
    pub(crate) direction: TestDirection,
    pub(crate) amount: Amount,
    pub(crate) streams: usize,
    /// Omitted seconds at the start.
    pub(crate) omit: u32,
}

impl RequestedTest {
    /// A TCP test of a second.
    pub(crate) const TCP: Self =
        Self { udp: false, direction: TestDirection::Forward, amount: Amount::Seconds(1), streams: 1, omit: 0 };
    /// A UDP test of a second.
    pub(crate) const UDP: Self = Self { udp: true, ..Self::TCP };
}

/// Documents of one test.
struct Documents<'a> {
    pair: &'a Pair,
    asked: RequestedTest,
    client: Value,
    server: Value,
}

/// Checks the documents of both hosts, and returns them: client, server.
pub(crate) fn check(pair: &Pair, asked: RequestedTest) -> (Value, Value) {
    let documents = Documents { pair, asked, client: pair.client.json(), server: pair.server.json() };
    documents.start();
    match asked.direction {
        TestDirection::Forward => documents.direction("", true),
        TestDirection::Reverse => documents.direction("", false),
        TestDirection::Bidirectional => {
            documents.direction("", true);
            documents.direction("_bidir_reverse", false);
        }
    }
    documents.intervals();
    documents.processor();
    (documents.client, documents.server)
}

impl Documents<'_> {
    fn start(&self) {
        let streams = self.asked.streams * if self.asked.direction == TestDirection::Bidirectional { 2 } else { 1 };
        let protocol = if self.asked.udp { "UDP" } else { "TCP" };
        let cookie = text(&self.client, "/start/cookie");
        for document in [&self.client, &self.server] {
            assert_eq!(document.get("error"), None, "{}", self.pair.pairing);
            assert_eq!(array(document, "/start/connected").len(), streams);
            assert_eq!(array(document, "/end/streams").len(), streams);
            assert_eq!(text(document, "/start/test_start/protocol"), protocol);
            assert_eq!(count(document, "/start/test_start/num_streams"), self.asked.streams as u64);
            assert_eq!(count(document, "/start/test_start/omit"), u64::from(self.asked.omit));
            assert_eq!(text(document, "/start/cookie"), cookie);
        }
    }

    /// Checks one direction: `suffix` of its sums, and its sender.
    fn direction(&self, suffix: &str, client_sends: bool) {
        let pairing = self.pair.pairing;
        let (sent_key, received_key) = (format!("/end/sum_sent{suffix}"), format!("/end/sum_received{suffix}"));
        let bytes = |document: &Value, key: &str| count(document, &format!("{key}/bytes"));
        let (sent, received) = (bytes(&self.client, &sent_key), bytes(&self.client, &received_key));
        let (sender, sending, receiving) = if client_sends {
            (pairing.client, &self.client, &self.server)
        } else {
            (pairing.server, &self.server, &self.client)
        };
        // A short transfer between stock programs may end before the receiver has counted anything.
        let is_ours = [pairing.client, pairing.server].contains(&Program::Linerate);
        if !is_ours && received == 0 {
            return;
        }
        assert!(sent > 0 && received > 0, "{pairing}{suffix}: sent {sent}, received {received}");
        // From 3.16 on, iperf3's threads continue to send while its main thread reads their figures.
        let uncounted = if sender == Program::Iperf3 { self.asked.streams as u64 * (1 << 20) } else { 0 };
        // Data in flight at the end of the omitted part was sent in it, but is received after it.
        let uncounted = if self.asked.omit > 0 { IN_FLIGHT } else { uncounted };
        assert!(received <= sent + uncounted, "{pairing}{suffix}: received {received}, sent only {sent}");
        assert!(sent <= received + IN_FLIGHT, "{pairing}{suffix}: sent {sent}, received only {received}");
        assert_eq!(bytes(sending, &sent_key), sent, "{pairing}{suffix}: the sender's own figure");
        assert_eq!(bytes(receiving, &received_key), received, "{pairing}{suffix}: the receiver's own figure");
        self.amount(&sent_key, sent, sender);
        if self.asked.udp {
            self.datagrams(&sent_key, &received_key, receiving);
        } else {
            self.rate(&sent_key);
            let retransmits = count(&self.client, &format!("{sent_key}/retransmits"));
            assert!(retransmits < 1_000_000, "{pairing}{suffix}: {retransmits} retransmissions");
            assert_eq!(count(sending, &format!("{sent_key}/retransmits")), retransmits, "{pairing}{suffix}");
        }
    }

    fn amount(&self, sent_key: &str, sent: u64, sender: Program) {
        let pairing = self.pair.pairing;
        let seconds = number(&self.client, &format!("{sent_key}/seconds"));
        match self.asked.amount {
            Amount::Seconds(asked) => {
                let asked = f64::from(asked);
                assert!((asked * 0.98..asked + 1.0).contains(&seconds), "{pairing}: took {seconds} s");
            }
            // A UDP test ends with a whole datagram.
            Amount::Bytes(asked) if self.asked.udp || sender == Program::Iperf3 => {
                let block = count(&self.client, "/start/test_start/blksize") * self.asked.streams as u64;
                let excess = 2 * block + self.excess_of_a_late_end(sender);
                assert!((asked..=asked + excess).contains(&sent), "{pairing}: sent {sent} of {asked}");
            }
            Amount::Bytes(asked) => {
                // An iperf3 does not count an incomplete block.
                let is_exact = pairing.client == pairing.server;
                let block = if is_exact { 1 } else { count(&self.client, "/start/test_start/blksize") };
                assert_eq!(sent, asked.next_multiple_of(block), "{pairing}");
            }
        }
    }

    /// Bytes that iperf3's server sends at its rate until it learns that the client has all, which is slow on a busy
    /// host.
    fn excess_of_a_late_end(&self, sender: Program) -> u64 {
        /// Bytes of a fifth of a second at a rate in bits.
        const SHARE: u64 = 5 * 8;
        if !self.asked.udp || self.asked.direction != TestDirection::Reverse || sender != Program::Iperf3 {
            return 0;
        }
        count(&self.client, "/start/test_start/target_bitrate") / SHARE
    }

    fn rate(&self, key: &str) {
        let figure = |name: &str| number(&self.client, &format!("{key}/{name}"));
        let expected = figure("bytes") * 8.0 / figure("seconds");
        let ratio = figure("bits_per_second") / expected;
        assert!((0.999..1.001).contains(&ratio), "{}: {key} is off by {ratio}", self.pair.pairing);
    }

    fn datagrams(&self, sent_key: &str, received_key: &str, receiving: &Value) {
        let pairing = self.pair.pairing;
        let figure = |name: &str| count(&self.client, &format!("{received_key}/{name}"));
        let (packets, lost) = (figure("packets"), figure("lost_packets"));
        let sent = count(&self.client, &format!("{sent_key}/packets"));
        let block = count(&self.client, "/start/test_start/blksize");
        assert_eq!(count(&self.client, &format!("{sent_key}/bytes")), sent * block, "{pairing}: whole datagrams");
        assert_eq!(figure("bytes"), (packets - lost) * block, "{pairing}: {packets} expected, {lost} lost");
        assert!(packets <= sent, "{pairing}: {packets} expected of {sent}");
        let percent = number(&self.client, &format!("{received_key}/lost_percent"));
        let ratio = 100.0 * number(&self.client, &format!("{received_key}/lost_packets"))
            / number(&self.client, &format!("{received_key}/packets"));
        assert!((percent - ratio).abs() < 1e-6, "{pairing}: {percent} % is not {ratio} %");
        // UDP at a low rate over loopback arrives, unless the host is busy for long.
        assert!(percent < 50.0, "{pairing}: {percent} % lost");
        let jitter = number(&self.client, &format!("{received_key}/jitter_ms"));
        assert!((0.0..1000.0).contains(&jitter), "{pairing}: jitter {jitter} ms");
        let theirs = number(receiving, &format!("{received_key}/jitter_ms"));
        assert!((theirs - jitter).abs() < 1e-3, "{pairing}: jitter {theirs} ms at the receiver, {jitter} ms here");
    }

    /// Asserts that the client's intervals add up to its total.
    fn intervals(&self) {
        let (total, sum) = match self.asked.direction {
            TestDirection::Forward | TestDirection::Bidirectional => ("/end/sum_sent/bytes", "sum"),
            TestDirection::Reverse => ("/end/sum_received/bytes", "sum"),
        };
        let (total, intervals) = (count(&self.client, total), sum_of_intervals(&self.client, sum, "bytes"));
        match self.pair.pairing.client {
            Program::Linerate => assert_eq!(intervals, total, "{}", self.pair.pairing),
            // The stock iperf3 has no interval for data after the last one.
            Program::Iperf3 => assert!(intervals <= total, "{}", self.pair.pairing),
        }
    }

    fn processor(&self) {
        for (end, document) in [("client", &self.client), ("server", &self.server)] {
            for side in ["host", "remote"] {
                let share = |part: &str| number(document, &format!("/end/cpu_utilization_percent/{side}_{part}"));
                let (total, user, system) = (share("total"), share("user"), share("system"));
                let what = format!("{}, {side} of the {end}", self.pair.pairing);
                assert!((0.0..100_000.0).contains(&total), "{what}: {total} %");
                assert!((user + system - total).abs() <= 0.02 * total + 0.1, "{what}: {user} + {system} of {total} %");
            }
        }
    }
}
