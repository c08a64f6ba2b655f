//! Metrics of results: `/metrics`, `/probe` and text files, checked by Prometheus' own promtool.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_documents::fleet_result::SessionOutcome;
use linerate_history::result_log::ResultLog;
use linerate_sys::clock::realtime_now;

use crate::support::fleet_results::{append, result};
use crate::support::process::{Process, eventually, run};
use crate::support::{Program, Scratch, Server, linerate};

const LIMIT: Duration = Duration::from_secs(60);

/// `linerate export --follow --metrics` of a log, on a free port.
struct MetricsProcess {
    process: Process,
    address: String,
}

impl MetricsProcess {
    fn start(log: &ResultLog, more: &[&str]) -> Self {
        let mut command = linerate();
        command.args(["export", "--follow", "--metrics", "127.0.0.1:0"]).args(more).arg(log.directory());
        let process = Process::start(command);
        let address = || {
            let notes = process.stderr();
            Some(notes.split_once("http://")?.1.split_once("/metrics")?.0.to_owned())
        };
        assert!(eventually(LIMIT, || address().is_some()), "{}", process.stderr());
        let address = address().expect("just seen");
        Self { process, address }
    }

    /// Status and body.
    fn get(&self, target: &str, headers: &str) -> (String, String) {
        let mut client = TcpStream::connect(&self.address).expect("it listens");
        write!(client, "GET {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }

    fn page(&self) -> String {
        self.get("/metrics", "").1
    }
}

/// Asserts that promtool finds no error, and nothing to improve.
fn assert_metrics(page: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = command.spawn().expect("promtool is installed (package prometheus)");
    promtool.stdin.take().expect("piped").write_all(page.as_bytes()).expect("read");
    let output = promtool.wait_with_output().expect("it ends");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && text.trim().is_empty(), "{text}\n{page}");
}

fn now() -> u64 {
    realtime_now().since_unix_epoch().as_secs()
}

#[test]
fn pages_and_text_files_have_the_last_results() {
    let scratch = Scratch::new();
    let log = ResultLog::open(scratch.path("results").as_ref()).expect("a log");
    let now = now();
    append(&log, [now - 900, now - 5 * 86400].into_iter());
    let mut hostile = result(now - 60);
    hostile.source = "a\"\\\n\u{7f}{}= é".to_owned();
    hostile.figures[0].name = "gööd\"put\n".to_owned();
    hostile.figures[1].value = Some(f64::NAN);
    log.append(&hostile).expect("written");
    let file = scratch.path("linerate.prom");
    let metrics = MetricsProcess::start(&log, &["--textfile", &file]);
    let has = |part: &str| eventually(LIMIT, || metrics.page().contains(part));
    assert!(has("linerate_figure_bytes_per_second{source=\"a\\\"\\\\\\n"), "{}", metrics.page());
    let page = metrics.page();
    assert_metrics(&page);
    let pair = r#"source="a",destination="b",task="goodput",test="throughput""#;
    for line in [
        format!("linerate_goodput_bytes_per_second{{{pair},direction=\"up\",figure=\"goodput_up\"}} 10125000"),
        format!("linerate_last_run_timestamp_seconds{{{pair}}} {}", now - 900),
        // The result of five days ago is not read.
        "linerate_results_total{outcome=\"done\"} 2".to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    // A result that is written now.
    let mut skipped = result(now);
    skipped.outcome = SessionOutcome::Skipped;
    log.append(&skipped).expect("written");
    assert!(has(&format!("linerate_last_outcome{{{pair},outcome=\"skipped\"}} 1")), "{}", metrics.page());
    let (status, html) = metrics.get("/", "");
    assert!(status.ends_with("200 OK") && html.contains("<b>a → b</b>"), "{status}: {} bytes", html.len());
    let page = metrics.page();
    metrics.process.signal("TERM");
    metrics.process.finish(LIMIT).expect_code(0);
    let text = std::fs::read_to_string(&file).expect("a text file");
    assert_eq!(text, page);
    assert_eq!(std::fs::read_dir(scratch.path("")).expect("a directory").count(), 2, "a temporary file stays");
}

#[test]
fn a_text_file_is_written_without_a_server() {
    let scratch = Scratch::new();
    let log = ResultLog::open(scratch.path("results").as_ref()).expect("a log");
    append(&log, [now()].into_iter());
    let write = |file: &str| {
        let mut command = linerate();
        command.args(["export", "--textfile", file]).arg(log.directory());
        run(command, LIMIT)
    };
    let file = scratch.path("linerate.prom");
    write(&file).expect_code(0);
    let text = std::fs::read_to_string(&file).expect("a text file");
    assert!(text.contains("linerate_goodput_bytes_per_second{"), "{text}");
    assert_metrics(&text);
    let refused = write(&scratch.path("linerate.txt")).expect_code(2);
    assert!(refused.stderr.contains("names end in .prom"), "{}", refused.stderr);
    let printed = |format: &str| {
        let mut command = linerate();
        command.args(["export", "--format", format]).arg(log.directory());
        run(command, LIMIT).expect_code(0).stdout
    };
    assert_metrics(&printed("prometheus"));
    let document: serde_json::Value = serde_json::from_str(&printed("pscheduler")).expect("one line");
    assert_eq!(document["test"]["type"], "diagnose");
    for (arguments, part) in [
        (vec!["export"], "no destination"),
        (vec!["export", "--metrics", "127.0.0.1:0"], "add --follow"),
        (vec!["export", "--follow"], "no destination"),
        (vec!["export", "--format", "prometheus", "--textfile", "x.prom"], "leave out the destinations"),
    ] {
        let mut command = linerate();
        command.args(arguments).arg(log.directory());
        let refused = run(command, LIMIT).expect_code(2);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
}

#[test]
fn probes_measure_within_the_time_of_the_scraper() {
    let scratch = Scratch::new();
    let log = ResultLog::open(scratch.path("results").as_ref()).expect("a log");
    let closed = MetricsProcess::start(&log, &[]);
    let (status, reason) = closed.get("/probe?target=127.0.0.1&module=rtt", "");
    assert!(status.contains("403") && reason.contains("--probe-any"), "{status} {reason}");
    let open = MetricsProcess::start(&log, &["--probe-any"]);
    let server = Server::start(Program::Linerate, &[]);
    let modules = [("rtt", "probe_rtt_seconds"), ("loss", "probe_loss_ratio"), ("mtu", "probe_mtu_bytes")];
    std::thread::scope(|scope| {
        for (module, figure) in modules {
            let (open, port) = (&open, server.port);
            scope.spawn(move || {
                let (status, page) = open.get(&format!("/probe?target=127.0.0.1:{port}&module={module}"), "");
                assert!(status.contains("200"), "{status} {page}");
                assert!(
                    page.contains("probe_success 1\n") && page.contains(&format!("\n{figure}")),
                    "{module}: {page}"
                );
                assert_metrics(&page);
            });
        }
    });
    // A host that answers nothing, and a scraper that waits for a second.
    let (status, page) = open.get("/probe?target=192.0.2.1", "X-Prometheus-Scrape-Timeout-Seconds: 1\r\n");
    assert!(status.contains("200") && page.contains("\nprobe_success 0\n"), "{status} {page}");
    let seconds = page.lines().find_map(|line| line.strip_prefix("probe_duration_seconds "));
    let seconds: f64 = seconds.and_then(|text| text.parse().ok()).expect("a duration");
    assert!(seconds < 1.0, "{seconds}");
    for (query, part) in
        [("target=127.0.0.1&module=capacity", "unknown module"), ("module=rtt", "\"target\" is missing")]
    {
        let (status, body) = open.get(&format!("/probe?{query}"), "");
        assert!(status.contains("400") && body.contains(part), "{status} {body}");
    }
    assert!(open.get("/probe?target=lab:cable-bloat", "").0.contains("403"));
}

#[test]
fn metrics_of_flows_have_base_units() {
    let mut command = linerate();
    command.args(["watch", "--once", "--prometheus"]);
    assert_metrics(&run(command, LIMIT).expect_code(0).stdout);
}
