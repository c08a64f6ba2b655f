//! Delays that a plan predicts, against those that are measured under the load that it states.

use serde_json::Value;

use crate::support::document::{array, number, text};
use crate::support::lab::OwnPath;

use super::guest::run;

/// Factor between a predicted and a measured delay above the idle link's, and the time that no probe resolves.
const FACTOR: f64 = 1.5;
const RESOLUTION: f64 = 0.3;

/// Factor of the one delay in nine that may miss it: bursts of some seconds do not meet each other at random.
const LARGEST_FACTOR: f64 = 2.5;

/// Classes of probes with the class of the plan, and the key of its figure.
const PROBES: [(&str, &str, &str); 3] = [
    ("udp_expedited_forwarding", "interactive", "mean_ns"),
    ("udp_best_effort", "default", "mean_ns"),
    ("tcp_info", "default", "own_queue_ns"),
];

fn milliseconds(document: &Value, key: &str) -> f64 {
    number(document, key) / 1e6
}

fn is_within(factor: f64, (predicted, measured): (f64, f64)) -> bool {
    predicted <= measured * factor + RESOLUTION && measured <= predicted * factor + RESOLUTION
}

/// Compares the predictions with a measurement on this path with these options.
#[track_caller]
fn verify(path: &str, options: &str) {
    let script = format!(
        "shape eth0 {options} --json -q > plan; \"$L\" --no-history load far -4 -C cubic -P 4 -t 5s --phases up,down,both --json -q > load
         echo '== plan'; cat plan; echo '== load'; cat load"
    );
    let said = run(path, &script);
    let (plan, load) = (said.document("plan"), said.document("load"));
    let (mut far_off, mut missed) = (Vec::new(), Vec::new());
    let phases = array(&load, "/phases");
    let idle = phases.iter().find(|phase| phase["kind"] == "idle").expect("measured first");
    let rest = array(idle, "/classes").iter().find(|class| class["class"] == "udp_best_effort").expect("probed");
    let rest = milliseconds(rest, "/rtt/mean_ns");
    for phase in phases.iter().filter(|phase| phase["kind"] != "idle") {
        for (probe, importance, key) in PROBES {
            let load = text(phase, "/kind");
            let class = array(phase, "/classes").iter().find(|class| class["class"] == probe).expect("probed");
            let is_it = |entry: &&Value| entry["load"] == load && entry["importance"] == importance;
            let entry = array(&plan, "/prediction").iter().find(is_it).expect("predicted");
            let (predicted, measured) =
                (milliseconds(entry, &format!("/{key}")), milliseconds(class, "/rtt/mean_ns") - rest);
            let line = format!("{load} full, {probe}: {predicted:.2} ms predicted, {measured:.2} measured");
            far_off.extend((!is_within(LARGEST_FACTOR, (predicted, measured))).then(|| line.clone()));
            missed.extend((!is_within(FACTOR, (predicted, measured))).then_some(line));
        }
    }
    assert!(far_off.is_empty() && missed.len() <= 1, "{options}: {missed:#?}");
}

/// A slow uplink, where one packet is what others wait for.
#[test]
fn delays_of_a_slow_link_are_as_predicted() {
    let options = "--up 970k --down 7700k --link-layer pppoe-llcsnap";
    verify("adsl-atm-pppoe", options);
}

/// A fast link, where the queues' targets decide.
#[test]
fn delays_of_a_fast_link_are_as_predicted() {
    let path = OwnPath::new(
        "[host.near]\n[host.far]\n[[link]]\nbetween = [\"near\", \"far\"]\ndelay = \"10 ms\"\nbuffer = \"500 ms\"\n\n\
         [link.forward]\nrate = \"10 Mbit/s\"\n\n[link.backward]\nrate = \"20 Mbit/s\"\n",
    );
    let options = "--up 9500k --down 19M --back-end htb+fq_codel";
    verify(&path.file, options);
}
