//! One flow through `htb+bfifo` at each rate and round-trip time: in the lab, and without delay on this host's kernel.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use linerate_shape::back_ends::{BackEndId, DeviceProperties, PlanInputs};
use linerate_shape::capability::KernelCapabilities;
use linerate_shape::link::AccessLink;
use linerate_shape::plan::{ShaperPlan, TcParent};
use linerate_shape::policy::TrafficPolicy;
use linerate_units::BitRate;
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("one-flow.sh");

/// Name for `--bed`.
pub(super) const NAME: &str = "one-flow";

/// Rates in kbit/s.
const RATES: [u32; 11] = [200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000];

/// Least share of the rate.
const MIN_SHARE: f64 = 0.95;

/// Bytes of a full packet as the shaper counts it, and of its payload.
const PACKET: f64 = 1514.0;
const PAYLOAD: f64 = 1448.0;

/// Round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RoundTrip {
    /// That of a virtual link of this host, about 0.05 ms.
    OfThisHost,
    /// Milliseconds in the lab.
    InTheLab(u32),
}

const ROUND_TRIPS: [RoundTrip; 3] = [RoundTrip::OfThisHost, RoundTrip::InTheLab(5), RoundTrip::InTheLab(50)];

impl RoundTrip {
    fn text(self) -> String {
        match self {
            Self::OfThisHost => "0.05 ms".to_owned(),
            Self::InTheLab(milliseconds) => format!("{milliseconds} ms"),
        }
    }
}

/// One measurement, of both directions after each other.
#[derive(Clone, Copy, Debug)]
struct SingleFlowRun {
    kilobits: u32,
    round_trip: RoundTrip,
}

/// Shares of the rate that the plan sets, up and down.
type Shares = (Option<f64>, Option<f64>);

impl SingleFlowRun {
    fn name(self) -> String {
        format!("{NAME}.{}.{}", self.kilobits, self.round_trip.text().replace(' ', ""))
    }

    fn plan(self) -> Result<ShaperPlan> {
        let rate = Some(BitRate::from_bits_per_second(f64::from(self.kilobits) * 1e3));
        let (line, device) = (AccessLink::new(rate, rate), DeviceProperties::ethernet("eth0"));
        let (policy, capabilities) = (TrafficPolicy::default(), KernelCapabilities::all_features());
        let inputs = PlanInputs { line: &line, policy: &policy, capabilities: &capabilities, device: &device };
        let back_end = BackEndId::HtbBfifo.back_end();
        back_end.plan(&inputs).map_err(|refusal| anyhow::anyhow!("{refusal}"))
    }

    /// Seconds before the measurement, and of it.
    const fn durations(self) -> (u32, u32) {
        match self.kilobits {
            ..2000 => (10, 20),
            2000..100_000 => (8, 10),
            _ => (6, 4),
        }
    }

    /// A link of twice the rate and windows that fill it.
    fn path(self, milliseconds: u32) -> String {
        let link = (2 * self.kilobits).max(10_000);
        let host = "congestion_control = \"cubic\"\nsysctl = { \"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\", \
                    \"net.ipv4.tcp_wmem\" = \"4096 16384 67108864\" }\n";
        let delay = milliseconds * 500;
        format!(
            "[host.near]\n{host}\n[host.far]\n{host}\n[[link]]\nbetween = [\"near\", \"far\"]\nmtu = 1500\nrate = \
             \"{link} kbit/s\"\ndelay = \"{delay} us\"\nbuffer = \"4 MB\"\n"
        )
    }

    /// Shares from the kept output, or from a new measurement with `linerate`.
    fn shares(self, linerate: Option<&Path>, kept: &Path) -> Result<Option<Shares>> {
        let file = kept.join(format!("{}.json", self.name()));
        let plan = self.plan()?;
        let commands: Vec<String> = plan.commands().iter().map(ToString::to_string).collect();
        let known = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let figures = match (known.filter(|known| known["plan"] == json!(commands)), linerate) {
            (Some(known), _) => known,
            (None, None) => return Ok(None),
            (None, Some(linerate)) => {
                let (up, down) = self.measure(linerate, &kept.join(format!("{}.work", self.name())))?;
                let figures = json!({ "plan": commands, "up": up, "down": down });
                fs::write(&file, figures.to_string()).with_context(|| format!("cannot write {}", file.display()))?;
                figures
            }
        };
        let share = |direction: &str, device: &str| {
            let set = root_rate(&plan, device)?;
            Some(figures[direction].as_f64()? * PACKET / PAYLOAD / set)
        };
        Ok(Some((share("up", "eth0"), share("down", "ifb4eth0"))))
    }

    /// Goodput in bit/s, up and down.
    fn measure(self, linerate: &Path, work: &Path) -> Result<Shares> {
        if work.exists() {
            fs::remove_dir_all(work)?;
        }
        fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
        fs::write(work.join("one-flow.sh"), SCRIPT)?;
        let (warm, seconds) = self.durations();
        let arguments = [self.kilobits, warm, seconds].map(|number| number.to_string());
        let mut command = match self.round_trip {
            RoundTrip::OfThisHost => {
                let mut command = Command::new("unshare");
                command.args(["-n", "sh", "one-flow.sh", "10.9.0.2"]);
                command
            }
            RoundTrip::InTheLab(milliseconds) => {
                fs::write(work.join("path.toml"), self.path(milliseconds))?;
                let mut command = Command::new(linerate);
                command.args(["--no-history", "lab", "run", "path.toml", "--", "sh", "one-flow.sh", "far"]);
                command
            }
        };
        let output = command.arg(linerate).args(arguments).current_dir(work).output();
        let output = output.with_context(|| format!("cannot start {command:?}"))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} ended with {}: {}", self.name(), output.status, stderr.trim());
        let goodput = |direction: &str| {
            let text = fs::read_to_string(work.join(format!("{direction}.json"))).ok()?;
            let document: Value = serde_json::from_str(&text).ok()?;
            document["end"]["sum_received"]["bits_per_second"].as_f64()
        };
        let found = (goodput("up"), goodput("down"));
        fs::remove_dir_all(work).with_context(|| format!("cannot remove {}", work.display()))?;
        Ok(found)
    }
}

/// Rate of a device's first class, in bit/s: that of the link.
fn root_rate(plan: &ShaperPlan, device: &str) -> Option<f64> {
    let root = plan.disciplines().find(|one| one.device == device && one.parent == TcParent::Root)?;
    let class = plan.classes().find(|class| class.device == device && class.parent == root.handle)?;
    Some(class.rate.bits_per_second())
}

/// Measures, or takes the kept figures where there is no program, and formats the section; also returns the misses.
pub(super) fn section(linerate: Option<&Path>, kept: &Path) -> (String, Vec<String>) {
    let mut text = HEADING.to_owned();
    let mut missed = Vec::new();
    for kilobits in RATES {
        let _ = write!(text, "| {} ", rate_text(kilobits));
        for round_trip in ROUND_TRIPS {
            let run = SingleFlowRun { kilobits, round_trip };
            let shares = run.shares(linerate, kept).unwrap_or_else(|error| {
                eprintln!("{}: {error:#}", run.name());
                None
            });
            let (up, down) = shares.unwrap_or_default();
            for (share, direction) in [(up, "up"), (down, "down")] {
                let shown = share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0));
                let _ = write!(text, "| {shown} ");
                if share.is_none_or(|share| share < MIN_SHARE) {
                    missed.push(format!("{}, {direction}: {shown}", run.name()));
                }
            }
        }
        text.push_str("|\n");
    }
    (text, missed)
}

fn rate_text(kilobits: u32) -> String {
    match kilobits {
        ..1000 => format!("{kilobits} kbit/s"),
        1000..1_000_000 => format!("{} Mbit/s", kilobits / 1000),
        _ => format!("{} Gbit/s", kilobits / 1_000_000),
    }
}

const HEADING: &str = "
## One flow

A single connection with CUBIC through `htb+bfifo`, the automatic choice on kernels that have HTB alone, in the given
direction; share of the rate that the plan sets, as bytes on the wire. Below 3 Mbit/s received packets are shaped up to 5 %
below the given rate. 0.05 ms: a virtual link between two network namespaces of the host that wrote this page; 5 and 50
ms: in the lab. Bound: at least 95 % (`one_flow_fills_the_rate` of `crates/cli/tests/shape.rs` and
`crates/cli/tests/shape_lab/one_flow.rs` for samples of it).

| rate | up, 0.05 ms | down | up, 5 ms | down | up, 50 ms | down |
|---|---:|---:|---:|---:|---:|---:|
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Received packets of 12.1 ms are shaped 4 % below the rate; those of 1.2 ms are not.
    #[test]
    fn shares_are_of_the_rate_that_is_set() {
        let rates = |kilobits| {
            let plan = SingleFlowRun { kilobits, round_trip: RoundTrip::OfThisHost }.plan().expect("planned");
            ["eth0", "ifb4eth0"].map(|device| root_rate(&plan, device).expect("a class") / f64::from(kilobits))
        };
        assert!(rates(1000)[0] > 999.0 && (959.0..960.5).contains(&rates(1000)[1]), "{:?}", rates(1000));
        assert!(rates(10_000).iter().all(|rate| *rate > 999.0), "{:?}", rates(10_000));
    }

    #[test]
    fn each_missing_figure_is_a_miss() {
        let (text, missed) = section(None, Path::new("/nonexistent"));
        assert_eq!(missed.len(), RATES.len() * ROUND_TRIPS.len() * 2);
        assert!(text.contains("| 500 kbit/s | – | – |") && text.contains("| 1 Gbit/s |"), "{text}");
    }
}
