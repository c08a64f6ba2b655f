//! Figures of the web page on an emulated path, next to those of `linerate test` on the same path.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::linerate;
use crate::support::process::run;

const LIMIT: Duration = Duration::from_secs(300);
const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/web_lab/browser.py");

/// Result of `script` on a path of 100 Mbit/s and 20 ms, with a server of the page on port 8080 of far.
fn on_the_path(script: &str) -> Value {
    let program = linerate().get_program().to_owned();
    let folder = Path::new(&program).parent().expect("a folder").to_str().expect("UTF-8").to_owned();
    let serve =
        "ip netns exec far linerate serve -p 6001 --no-stamp --web=8080 --server-max-duration 15s > /dev/null 2>&1";
    let script = format!("{serve} & server=$!; sleep 1; {script}; kill $server");
    let mut command = linerate();
    command.args(["lab", "run", "--rate", "100M", "--rtt", "20ms", "--", "sh", "-c", &script]);
    command.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()));
    run(command, LIMIT).expect_code(0).json()
}

#[test]
fn the_page_measures_what_linerate_test_measures() {
    let test = |options: &str| format!("linerate iperf3 -c far -P 4 -t 6 -O 1 -J {options}");
    let goodput = |options: &str| {
        let document = on_the_path(&test(options));
        document["end"]["sum_received"]["bits_per_second"].as_f64().expect("a rate")
    };
    let answer = on_the_path(&format!("python3 {BROWSER} far 8080"));
    let phases = answer["run"]["result"]["web"]["phases"].as_array().expect("phases");
    let phase = |kind: &str| phases.iter().find(|phase| phase["kind"] == kind).expect("the phase");
    for (kind, expected) in [("up", goodput("")), ("down", goodput("-R"))] {
        let measured = phase(kind)["goodput_bits_per_second"].as_f64().expect("a rate");
        assert!((measured / expected - 1.0).abs() < 0.05, "{kind}: {measured} of {expected}");
    }
    let milliseconds = |value: &Value| value.as_f64().expect("a time") / 1e6;
    let idle = milliseconds(&phase("idle")["browser_rtt"]["median_ns"]);
    assert!((19.9..22.0).contains(&idle), "{idle} ms");
    // The buffer is one bandwidth-delay product.
    for kind in ["down", "up"] {
        let added = milliseconds(&phase(kind)["browser_added_p95_ns"]);
        assert!((12.0..24.0).contains(&added), "{kind}: {added} ms");
    }
    assert_eq!(answer["run"]["result"]["web"]["grade"]["letter"], "A", "{answer}");
    let down = phase("down");
    assert_eq!(down["verdicts"][0]["cause"], "link-rate", "{down}");
}
