//! Reference table of causes and signatures, remeasured: 28 rows from an emulator in user space on a kernel 6.18, here
//! on the real queues of a kernel 6.12 in virtual time.
//!
//! A row agrees when its goodput is within 10 % of the published one. Otherwise the row has a reason, and bounds from a
//! formula or from the path. `cargo xtask truth` writes docs/truth-table.md.

use std::fmt::Write as _;

use serde_json::Value;

use crate::support::lab::{in_parallel, lab, lab_iperf3};

/// Transfer of the table: 8 s of which the first 2 are omitted.
const TIME: &[&str] = &["-t", "8", "-O", "2"];

#[derive(Clone, Copy)]
struct Row {
    number: &'static str,
    cause: &'static str,
    path: &'static str,
    options: &'static [&'static str],
    /// Published goodput in Mbit/s, from and to.
    published: (f64, f64),
    /// Deviation in the lab: from and to in Mbit/s, and the reason.
    differs: Option<(f64, f64, &'static str)>,
}

const CUBIC: &[&str] = &["-C", "cubic"];
const BBR: &[&str] = &["-C", "bbr"];

const fn row(
    number: &'static str,
    cause: &'static str,
    path: &'static str,
    options: &'static [&'static str],
    published: (f64, f64),
) -> Row {
    Row { number, cause, path, options, published, differs: None }
}

const fn other(row: Row, from: f64, to: f64, why: &'static str) -> Row {
    Row { differs: Some((from, to, why)), ..row }
}

const ROWS: &[Row] = &[
    row("1", "tcp_rmem 375 kB", "300m-20ms-receive-buffer-375k", CUBIC, (89.0, 89.0)),
    row("2", "tcp_rmem 750 kB (1 BDP)", "300m-20ms-receive-buffer-750k", CUBIC, (176.0, 176.0)),
    other(
        row("3", "tcp_rmem 1.125 MB", "300m-20ms-receive-buffer-1125k", CUBIC, (228.0, 228.0)),
        250.0,
        275.0,
        "the window (0.62 of the buffer: 697 kB) per 20.1 to 20.9 ms allows 267 to 277 Mbit/s; the emulator let the round \
         trip grow to 24.2 ms, a virtual clock does not",
    ),
    row("4", "tcp_rmem 1.5 MB (2 BDP)", "300m-20ms-receive-buffer-1500k", CUBIC, (278.0, 278.0)),
    row("5", "tcp_rmem 2.25 MB", "300m-20ms-receive-buffer-2250k", CUBIC, (285.0, 285.0)),
    row("6", "tcp_rmem 6.3 MB", "300m-20ms", CUBIC, (282.0, 282.0)),
    other(
        row("7", "tcp_wmem 375 kB", "300m-20ms-send-buffer-375k", CUBIC, (112.0, 112.0)),
        150.0,
        230.0,
        "a kernel 6.12 has more than the buffer's size in flight before it blocks a writer (observed: 0.6 to 1.1 MB of \
         a buffer of 375 kB), with iperf3 3.12 as well as with linerate",
    ),
    row("8", "tcp_wmem 750 kB", "300m-20ms-send-buffer-750k", CUBIC, (186.0, 186.0)),
    row("9", "tcp_wmem 1.5 MB", "300m-20ms-send-buffer-1500k", CUBIC, (286.0, 286.0)),
    row("10", "tcp_wmem 2.25 MB", "300m-20ms-send-buffer-2250k", CUBIC, (287.0, 287.0)),
    other(
        row("11", "-w 5K", "300m-20ms-socket-buffer-5k", &["-C", "cubic", "-w", "5K"], (1.37, 1.37)),
        1.0,
        3.5,
        "a few segments per round trip: 4344 B (three) make 1.7 Mbit/s, six make 3.5; how many of them a buffer of 10 kB \
         holds differs between the kernels",
    ),
    row("12", "-w 64K", "300m-20ms-socket-buffer-64k", &["-C", "cubic", "-w", "64K"], (30.5, 30.5)),
    row(
        "13",
        "the program writes 50 Mbit/s",
        "300m-20ms-application-paced-50m",
        &["-C", "cubic", "-b", "50M"],
        (49.9, 49.9),
    ),
    row(
        "14",
        "SO_MAX_PACING_RATE 100 Mbit/s",
        "300m-20ms-socket-paced-100m",
        &["-C", "cubic", "--fq-rate", "100M"],
        (100.0, 100.0),
    ),
    row("15", "BBR", "300m-20ms-bbr", BBR, (289.0, 289.0)),
    row("16", "4 streams", "300m-20ms-four-streams", &["-C", "cubic", "-P", "4"], (276.0, 276.0)),
    other(
        row("17", "loss 0.1 %, CUBIC", "300m-20ms-loss-cubic", CUBIC, (23.0, 29.0)),
        11.0,
        45.0,
        "single runs of 6 s see some 20 losses: half to twice the formula's 22 Mbit/s",
    ),
    other(
        row("17", "loss 0.1 %, Reno", "300m-20ms-loss-reno", &["-C", "reno"], (21.8, 21.8)),
        11.0,
        45.0,
        "single runs of 6 s see some 20 losses: half to twice the formula's 22 Mbit/s",
    ),
    row("17", "loss 0.1 %, BBR", "300m-20ms-loss-bbr", BBR, (280.0, 280.0)),
    other(
        row("18", "loss 0.1 %, no SACK, CUBIC", "300m-20ms-loss-no-sack-cubic", CUBIC, (19.0, 25.0)),
        9.0,
        45.0,
        "as row 17: without SACK a single loss costs CUBIC little",
    ),
    other(
        row("18", "loss 0.1 %, no SACK, BBR", "300m-20ms-loss-no-sack-bbr", BBR, (96.0, 115.0)),
        0.5,
        130.0,
        "slow start has thousands of segments in flight and several of them are lost; each is retransmitted in a \
         separate round trip, and until then hardly any data arrives: for a varying part of the eight seconds",
    ),
    other(
        row("19", "drop-tail 0.5 BDP, SACK on", "300m-20ms-half-buffer", CUBIC, (212.0, 215.0)),
        257.0,
        287.0,
        "half a product of buffer is enough for one CUBIC flow, whose window falls to 0.7 (RFC 9438); the emulator lost \
         bursts that a real queue absorbs",
    ),
    other(
        row("19", "drop-tail 0.5 BDP, SACK off", "300m-20ms-half-buffer-no-sack", CUBIC, (4.9, 8.0)),
        5.0,
        200.0,
        "slow start's overshoot is repaired one segment per round trip; it happens once here and repeatedly in the \
         emulator",
    ),
    other(
        row("20", "as 19, timestamps off", "300m-20ms-half-buffer-no-timestamps", CUBIC, (218.0, 238.0)),
        257.0,
        290.0,
        "as row 19; timestamps off gain 12 bytes in a segment and nothing else, as there",
    ),
    row("21", "policer 100 Mbit/s, CUBIC", "300m-20ms-policer-cubic", CUBIC, (80.0, 80.0)),
    row("21", "policer 100 Mbit/s, BBR", "300m-20ms-policer-bbr", BBR, (95.6, 95.6)),
    row(
        "21",
        "policer, paced at 95 Mbit/s",
        "300m-20ms-policer-paced-95m",
        &["-C", "cubic", "--fq-rate", "95M"],
        (94.1, 94.1),
    ),
    other(
        row(
            "22",
            "black hole, mtu_probing 1",
            "300m-20ms-black-hole-probing",
            &["-C", "cubic", "-t", "20", "-O", "0"],
            (209.0, 209.0),
        ),
        150.0,
        287.0,
        "the stall until the kernel probes is some seconds of twenty, longer or shorter by a timeout's doubling",
    ),
    row(
        "22",
        "black hole, mtu_probing 2",
        "300m-20ms-black-hole-probing-always",
        &["-C", "cubic", "-t", "20", "-O", "0"],
        (285.0, 285.0),
    ),
    row("23", "slow reader 5 MB/s, CUBIC", "300m-20ms-slow-reader", CUBIC, (40.0, 40.0)),
    row("23", "slow reader 5 MB/s, BBR", "300m-20ms-slow-reader-bbr", BBR, (40.0, 40.0)),
    other(
        row("26", "MTU 9000, tcp_rmem 750 kB", "300m-20ms-mtu-9000-receive-buffer-750k", CUBIC, (194.0, 194.0)),
        200.0,
        287.0,
        "a 6.12 kernel makes 0.89 of this buffer a window (668 kB per 21 ms: 254 Mbit/s), 6.18 made 0.70",
    ),
    row("26", "MTU 9000, tcp_rmem 1.5 MB", "300m-20ms-mtu-9000-receive-buffer-1500k", CUBIC, (293.0, 293.0)),
    other(
        row("27", "1 Gbit/s, window scaling on", "rhel-1g-1500us", CUBIC, (587.0, 866.0)),
        900.0,
        957.0,
        "the emulator was out of processor time; in virtual time the link is full",
    ),
    other(
        row("27", "1 Gbit/s, window scaling off", "rhel-1g-1500us-no-window-scaling", CUBIC, (197.0, 240.0)),
        240.0,
        350.0,
        "65535 B per 1.5 ms are 350 Mbit/s at the most; the emulator's round trip was 1.65 ms",
    ),
];

/// Rows tested in every run: one of each kind.
const USUAL: &[usize] = &[0, 6, 10, 13, 23, 29];

fn goodput(row: &Row) -> f64 {
    let options: Vec<&str> = TIME.iter().chain(row.options).copied().collect();
    let document = lab_iperf3(row.path, &options);
    let rate = document.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    rate.expect("a rate") / 1e6
}

fn judge(row: &Row, found: f64) -> (bool, String) {
    let (from, to) = row.published;
    let agrees = found >= from * 0.9 && found <= to * 1.1;
    match row.differs {
        _ if agrees => (true, "within 10 %".to_owned()),
        Some((from, to, why)) => ((from..=to).contains(&found), format!("differs, {from} to {to} expected: {why}")),
        None => (false, "differs".to_owned()),
    }
}

fn measure(rows: &[&Row]) -> Vec<f64> {
    in_parallel(rows, |row| goodput(row))
}

fn wrong(rows: &[&Row], found: &[f64]) -> Vec<String> {
    let of = |(row, found): (&&Row, &f64)| {
        let (right, text) = judge(row, *found);
        (!right).then(|| format!("row {} ({}): {found:.2} Mbit/s, {text}", row.number, row.path))
    };
    rows.iter().zip(found).filter_map(of).collect()
}

#[test]
fn the_usual_rows_are_as_published_or_as_explained() {
    let rows: Vec<&Row> = USUAL.iter().map(|index| &ROWS[*index]).collect();
    let found = measure(&rows);
    let wrong = wrong(&rows, &found);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Raises a connection's buffer limit while it runs, after 4 of 10 s: rates before and after in Mbit/s.
fn raised(path: &str, key: &str, options: &str) -> (f64, f64) {
    let script = format!(
        "linerate iperf3 -c far -t 10 -C cubic -J {options} & sleep 4.5; sysctl -qw {key}='4096 131072 6291456'; wait"
    );
    let document = lab(path, &["sh", "-c", &script]).json();
    let rate = |from: usize, to: usize| {
        let intervals = document["intervals"].as_array().expect("intervals");
        let rates = intervals[from..to].iter().filter_map(|one| one["sum"]["bits_per_second"].as_f64());
        let rates: Vec<f64> = rates.collect();
        rates.iter().sum::<f64>() / f64::from(u32::try_from(rates.len()).unwrap_or(1)) / 1e6
    };
    (rate(1, 4), rate(7, 10))
}

/// Rows 24 and 25: a limit raised during a transfer.
fn raised_in_the_middle() -> [(&'static str, &'static str, (f64, f64), bool); 2] {
    // Data flows to this host, whose receive buffer is then the limit.
    let receive = raised("300m-20ms-receive-buffer-375k", "net.ipv4.tcp_rmem", "-R");
    let send = raised("300m-20ms-send-buffer-750k", "net.ipv4.tcp_wmem", "");
    [
        // Autotuning may use the new limit, but the window scale stays: never slower, never beyond the link.
        ("24", "tcp_rmem raised in mid-flow", receive, receive.1 > receive.0 * 0.95 && receive.1 < 290.0),
        ("25", "tcp_wmem raised in mid-flow", send, send.1 > 260.0),
    ]
}

/// Row 28: setsockopt is bounded by `rmem_max`, independent of `tcp_rmem`.
fn granted() -> u64 {
    let document = lab_iperf3("300m-20ms-socket-buffer-8m", &["-t", "1", "-w", "8M"]);
    document["start"]["rcvbuf_actual"].as_u64().expect("what the kernel granted")
}

/// Entry point of `cargo xtask truth`.
#[test]
#[ignore = "long: cargo xtask truth"]
fn publish() {
    let file = std::env::var_os("LINERATE_TRUTH").expect("LINERATE_TRUTH names the file");
    let rows: Vec<&Row> = ROWS.iter().collect();
    let found = measure(&rows);
    let mut page = String::from(
        "# The reference table, measured anew\n\n\
         28 rows of causes and signatures that were measured with an emulator in user space (kernel 6.18, real time), here in \
         the lab (kernel 6.12, virtual time): 8 s of which 2 do not count. Goodput in Mbit/s. Made by `cargo xtask truth`.\n\n\
         | row | cause | path | published | here | |\n|---|---|---|---:|---:|---|\n",
    );
    for (row, found) in rows.iter().zip(&found) {
        let (from, to) = row.published;
        let published = if from < to { format!("{from}–{to}") } else { format!("{from}") };
        let (right, text) = judge(row, *found);
        let mark = if right { "" } else { " ✗" };
        let _ = writeln!(
            page,
            "| {}{mark} | {} | `{}` | {published} | {found:.1} | {text} |",
            row.number, row.cause, row.path
        );
    }
    let mut others = Vec::new();
    for (number, cause, (before, after), right) in raised_in_the_middle() {
        if !right {
            others.push(format!("row {number} ({cause}): {before:.1}, then {after:.1} Mbit/s"));
        }
        let mark = if right { "" } else { " ✗" };
        let _ = writeln!(page, "| {number}{mark} | {cause} | | | {before:.1} → {after:.1} | before → after 3 s |");
    }
    let granted = granted();
    let _ =
        writeln!(page, "| 28 | -w 8M with rmem_max 4 MiB | `300m-20ms-socket-buffer-8m` | 8388608 B | {granted} B | |");
    std::fs::write(&file, page).expect("the file can be written");
    let mut wrong = wrong(&rows, &found);
    wrong.extend(others);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(granted, 8_388_608);
}
