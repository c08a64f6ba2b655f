//! Single run in the lab, with its figures kept as JSON so that it is not measured again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use linerate_shape::back_ends::{BackEndId, DeviceProperties, PlanInputs};
use linerate_shape::capability::{KernelCapabilities, choose};
use linerate_shape::link::{AccessLink, LinkLayer, parse_keywords};
use linerate_shape::plan::ShaperPlan;
use linerate_shape::policy::TrafficPolicy;
use linerate_shape::script::script;
use linerate_units::{BitRate, Mtu, StreamCount};
use serde_json::{Value, json};

use super::beds::{self, SaturatedDirections, TestBed};

const GUEST: &str = include_str!("guest.sh");
const PROBES: &str = include_str!("probes.sh");

/// Repetition of a case of a test bed with one back end.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapingRun<'a> {
    pub(super) bed: &'a TestBed,
    pub(super) back_end: &'static str,
    pub(super) mode: SaturatedDirections,
    pub(super) number: u32,
}

impl ShapingRun<'_> {
    fn name(&self) -> String {
        format!("{}.{}.{}.{}", self.bed.name, self.back_end, self.mode.name(), self.number)
    }

    /// Returns the figures: those kept for the same scripts, or new ones.
    pub(super) fn figures(&self, linerate: &Path, kept: &Path) -> Result<Value> {
        if let Some(figures) = self.kept_figures(kept)? {
            return Ok(figures);
        }
        let work = kept.join(format!("{}.work", self.name()));
        let figures = self.measure(linerate, &work, &self.shaper()?)?;
        let file = self.file(kept);
        fs::write(&file, serde_json::to_vec(&figures)?).with_context(|| format!("cannot write {}", file.display()))?;
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
        Ok(figures)
    }

    /// Returns the figures kept for the same scripts.
    pub(super) fn kept_figures(&self, kept: &Path) -> Result<Option<Value>> {
        let file = self.file(kept);
        let Ok(text) = fs::read_to_string(&file) else { return Ok(None) };
        let figures: Value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
        Ok((figures["shaper"] == self.shaper()?).then_some(figures))
    }

    fn file(&self, kept: &Path) -> PathBuf {
        kept.join(format!("{}.json", self.name()))
    }

    /// Returns the arguments of `linerate shape`.
    fn arguments(&self) -> String {
        let (up, down) = self.bed.rates;
        let mtu = self.bed.mtu.map(|mtu| format!(" --route-mtu {mtu}")).unwrap_or_default();
        format!("eth0 --up {up}k --down {down}k --back-end {}{mtu}{}", self.back_end, self.bed.options)
    }

    /// Returns the arguments with the commands of their plan, by which kept figures are known; `null` for the unshaped
    /// link.
    fn shaper(&self) -> Result<Value> {
        let Some((line, plan)) = plan(self.bed, self.back_end)? else { return Ok(Value::Null) };
        // Comments, such as the predictions, change nothing that is measured.
        let script = script(&plan, &line);
        let commands: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
        Ok(json!({ "arguments": self.arguments(), "plan": commands.join("\n") }))
    }

    fn measure(&self, linerate: &Path, work: &Path, shaper: &Value) -> Result<Value> {
        if work.exists() {
            fs::remove_dir_all(work)?;
        }
        fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
        let path = match self.bed.path {
            beds::BedPath::Library(name) => name.to_owned(),
            beds::BedPath::Inline(text) => {
                fs::write(work.join("bed.toml"), text)?;
                "bed.toml".to_owned()
            }
        };
        if !shaper.is_null() {
            fs::write(work.join("shape"), self.arguments())?;
        }
        if let Some(mtu) = self.bed.mtu {
            fs::write(work.join("mtu"), mtu.to_string())?;
        }
        fs::write(work.join("guest.sh"), GUEST)?;
        fs::write(work.join("probes.sh"), PROBES)?;
        let (warm, seconds) = self.bed.durations;
        // An interval without a simple ratio to a packet's time, and different in each run: otherwise all pings of a
        // run would hit the same phase of the same cycle.
        let interval = if seconds < 10 { 0.0051 } else { 0.2003 + 0.0037 * f64::from(self.number % 11) };
        let arguments = [
            "guest.sh".to_owned(),
            self.mode.name().to_owned(),
            seconds.to_string(),
            warm.to_string(),
            self.bed.flows.to_string(),
            format!("{interval:.4}"),
            format!("0.{:03}", 100 + 37 * self.number % 800),
        ];
        let before = children_ticks();
        let stdout = self.lab(linerate, work, &path, &arguments)?;
        let ticks = children_ticks().zip(before).map(|(after, before)| after - before);
        let mut figures = read(&stdout, work, (warm, seconds));
        figures["ticks"] = json!(ticks);
        figures["shaper"] = shaper.clone();
        if seconds >= 10 {
            let time = seconds.to_string();
            let arguments = ["probes.sh".to_owned(), self.mode.name().to_owned(), time, self.bed.flows.to_string()];
            self.lab(linerate, work, &path, &arguments)?;
            let text = fs::read_to_string(work.join("load.json")).context("linerate load wrote no document")?;
            figures["probes"] = probes(&serde_json::from_str::<Value>(&text)?["result"]["load"]);
        }
        Ok(figures)
    }

    fn lab(&self, linerate: &Path, work: &Path, path: &str, arguments: &[String]) -> Result<String> {
        let output = Command::new(linerate)
            .args(["--no-history", "lab", "run", "--seed", &(self.number + 1).to_string(), path, "--", "sh"])
            .args(arguments)
            .current_dir(work)
            .output()
            .with_context(|| format!("cannot start {}", linerate.display()))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} ended with {}: {}", self.name(), output.status, stderr.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Returns the plan of a back end on a test bed, for its number of flows; `None` for the unshaped link.
pub(super) fn plan(bed: &TestBed, back_end: &str) -> Result<Option<(AccessLink, ShaperPlan)>> {
    if back_end == "none" {
        return Ok(None);
    }
    let rate = |kilobits: f64| Some(BitRate::from_bits_per_second(kilobits * 1e3));
    let mut line = AccessLink::new(rate(bed.rates.0), rate(bed.rates.1));
    line.mtu = Mtu::new(bed.mtu.unwrap_or(1500));
    line.layer = parse_keywords(bed.options.trim_start_matches(" --link-layer ")).unwrap_or(LinkLayer::NO_OVERHEAD);
    line.flows = StreamCount::new(bed.flows.into());
    line.limits_faster_link = bed.link_rates.is_none();
    let device = DeviceProperties::ethernet("eth0");
    let (policy, capabilities) = (TrafficPolicy::default(), KernelCapabilities::all_features());
    let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &device };
    let id = BackEndId::from_name(back_end).ok_or_else(|| anyhow::anyhow!("unknown back end {back_end}"))?;
    let choice = choose(&inputs, Some(id)).map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    Ok(Some((line, choice.plan)))
}

/// Returns the directory of the kept runs.
pub(super) fn kept_directory() -> PathBuf {
    crate::workspace::root().join("target/shaping")
}

/// Returns the processor time of ended children, in ticks of 10 ms (proc(5), `cutime` and `cstime`).
fn children_ticks() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ').skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn read(stdout: &str, work: &Path, times: (u32, u32)) -> Value {
    let of = |key: &str| stdout.lines().filter_map(move |line| line.split_once(key)).collect::<Vec<_>>();
    let pings: Vec<f64> =
        of(" time=").iter().filter_map(|(_, time)| time.strip_suffix(" ms")?.trim().parse().ok()).collect();
    let sent = of(" packets transmitted").first().and_then(|(before, _)| before.trim().parse::<f64>().ok());
    json!({
        "pings_ms": pings,
        "sent": sent,
        "wire_up": carried(stdout, "eth0", 0),
        // Traffic after the shaper, where there is an intermediate device; else the received traffic.
        "wire_down": carried(stdout, "ifb4eth0", 0).or_else(|| carried(stdout, "eth0", 1)),
        "policed": carried(stdout, "ifb4eth0", 0).is_none(),
        "up": transfer(&work.join("up.json"), times),
        "down": transfer(&work.join("down.json"), times),
    })
}

/// Returns the bit/s of a device between both samples of its counters: sent (0) or received (1).
fn carried(stdout: &str, device: &str, which: usize) -> Option<f64> {
    let rows = stdout.lines().filter_map(|line| line.strip_prefix("counters ")).map(|line| line.split(' ').collect());
    let samples: Vec<(f64, f64)> = rows
        .filter(|row: &Vec<&str>| row.get(1) == Some(&device))
        .filter_map(|row| Some((row.first()?.parse().ok()?, row.get(2 + which)?.parse().ok()?)))
        .collect();
    let (first, last) = (samples.first()?, samples.last()?);
    let time = last.0 - first.0;
    (time > 0.0).then(|| (last.1 - first.1) * 8.0 / time)
}

/// Returns the goodput in bit/s and the senders' own round-trip time in ms, over the measured time.
fn transfer(file: &Path, (warm, seconds): (u32, u32)) -> Value {
    let Some(document) = fs::read_to_string(file).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok())
    else {
        return Value::Null;
    };
    let (from, to) = (f64::from(warm), f64::from(warm + seconds));
    let counts = |interval: &&Value| {
        let at = |key: &str| interval["sum"][key].as_f64();
        at("start").is_some_and(|start| start >= from - 0.1) && at("end").is_some_and(|end| end <= to + 0.1)
    };
    let intervals = document["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let all: Vec<&Value> = intervals.iter().filter(counts).collect();
    let goodput = all.iter().filter_map(|one| one["sum"]["bits_per_second"].as_f64());
    let trips = all.iter().flat_map(|one| one["streams"].as_array().map_or(&[][..], Vec::as_slice));
    json!({
        "goodput": mean(&goodput.collect::<Vec<_>>()),
        "round_trip_ms": mean(&trips.filter_map(|one| Some(one["rtt"].as_f64()? / 1e3)).collect::<Vec<_>>()),
    })
}

/// Returns mean, 99th percentile and maximum of each class in ms, of the last phase of `linerate load`.
fn probes(document: &Value) -> Value {
    let phases = document["phases"].as_array().map_or(&[][..], Vec::as_slice);
    let classes = phases.last().and_then(|phase| phase["classes"].as_array()).map_or(&[][..], Vec::as_slice);
    let one = |class: &Value| {
        let time = |key: &str| class["rtt"][key].as_f64().map(|time| time / 1e6);
        let name = class["class"].as_str().unwrap_or_default().to_owned();
        (name, json!({ "mean": time("mean_ns"), "p99": time("p99_ns"), "max": time("max_ns"), "lost": class["lost"] }))
    };
    Value::Object(classes.iter().map(one).collect())
}

/// Returns the mean; `None` without values.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    let count = values.iter().fold(0.0, |count, _| count + 1.0);
    (count > 0.0).then(|| values.iter().sum::<f64>() / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_and_counters_are_parsed() {
        let stdout = "counters 10.00 eth0 1000 5000\n64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=18.2 ms\n\
                    2 packets transmitted, 1 received, 50% packet loss, time 200ms\ncounters 12.00 eth0 3000 6000\n";
        let figures = read(stdout, Path::new("/nonexistent"), (1, 2));
        assert_eq!(figures["pings_ms"], json!([18.2]));
        assert_eq!(figures["sent"], json!(2.0));
        assert_eq!((figures["wire_up"].as_f64(), figures["wire_down"].as_f64()), (Some(8000.0), Some(4000.0)));
        assert_eq!((&figures["policed"], &figures["up"]), (&json!(true), &Value::Null));
        assert_eq!(carried("counters 1.0 eth0 1 2\ncounters 1.0 eth0 1 2\n", "eth0", 0), None);
    }

    #[test]
    fn classes_of_the_last_phase() {
        let class = |mean: f64| json!({ "class": "icmp", "lost": 0, "rtt": { "mean_ns": mean } });
        let document = json!({ "phases": [{ "classes": [class(1e6)] }, { "classes": [class(5e6)] }] });
        assert_eq!(probes(&document)["icmp"]["mean"], json!(5.0));
        assert_eq!(mean(&[]), None);
    }
}
