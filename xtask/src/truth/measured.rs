//! Measurements of paths in the lab: one guest for each transfer and each diagnosis.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use linerate_lab::bounds::bounds;
use linerate_lab::description::PathDescription;
use serde_json::Value;
use toml::Table;

use super::cause::{self, RemovableCause};
use super::judge::{CausePair, Counterfactuals, MeasuredGoodput};
use super::text;

/// Bytes that the lab's links count with each packet.
const ETHERNET_HEADER: f64 = 14.0;

/// Seconds after which a guest is stopped.
const LONGEST: &str = "240";

/// Transfers whose mean is the goodput of a path, and most attempts at them.
const TRANSFERS: usize = 3;
const ATTEMPTS: i64 = 5;

/// Lab in a folder, which keeps the descriptions of one path and its variants.
pub(super) struct PathLab<'a> {
    linerate: &'a Path,
    folder: PathBuf,
    name: String,
}

impl<'a> PathLab<'a> {
    /// Lab for the path `name`.
    pub(super) fn new(linerate: &'a Path, folder: &Path, name: &str) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { linerate, folder: folder.to_path_buf(), name: name.to_owned() })
    }

    /// Measures the path as it is and without each of the causes; without each two of them where no single one gains.
    pub(super) fn counterfactuals(&self, path: &Table, causes: &[RemovableCause]) -> Result<Counterfactuals> {
        let as_is = self.goodput(path, "")?;
        let mut measured =
            Counterfactuals { as_is, without: Vec::new(), without_pair: None, ceiling: ceiling(path), diagnosed: None };
        for cause in causes {
            let without = self.goodput(&cause.removed_from(path), cause.name())?;
            measured.without.push((*cause, without.whole));
        }
        for (place, first) in causes.iter().enumerate() {
            for second in &causes[place + 1..] {
                if measured.has_gain() {
                    return Ok(measured);
                }
                let variant = format!("{}-and-{}", first.name(), second.name());
                let goodput = self.goodput(&second.removed_from(&first.removed_from(path)), &variant)?.whole;
                measured.consider(CausePair { causes: (*first, *second), goodput });
            }
        }
        Ok(measured)
    }

    /// Measures the goodput without a cause that was not built in, and adds it.
    pub(super) fn add(&self, measured: &mut Counterfactuals, path: &Table, cause: RemovableCause) -> Result<()> {
        let without = self.goodput(&cause.removed_from(path), cause.name())?;
        measured.without.push((cause, without.whole));
        Ok(())
    }

    /// Diagnoses the path with its own transfer.
    pub(super) fn diagnosis(&self, path: &Table) -> Result<Value> {
        let file = self.write(path, "")?;
        let target = format!("lab:{}", file.display());
        let mut document = self.run(&["--no-history", "diagnose", &target, "--json", "--observation", "--quiet"])?;
        Ok(document["result"]["diagnose"].take())
    }

    /// Goodput of the path's own transfer: the mean of several, each with another seed of the path, as one that chance has
    /// slowed says little. One that ends with an error is repeated with a further seed. It is nothing where all of them end so.
    pub(super) fn goodput(&self, path: &Table, variant: &str) -> Result<MeasuredGoodput> {
        let seed = path.get("seed").and_then(toml::Value::as_integer).unwrap_or(1);
        let (mut path, mut transfers) = (path.clone(), Vec::new());
        for attempt in 0..ATTEMPTS {
            path.insert("seed".to_owned(), toml::Value::Integer(seed + attempt));
            transfers.extend(self.transfer(&path, variant)?);
            if transfers.len() == TRANSFERS {
                break;
            }
        }
        Ok(MeasuredGoodput::mean(&transfers))
    }

    /// Goodput of one transfer; `None` where it ends with an error.
    fn transfer(&self, path: &Table, variant: &str) -> Result<Option<MeasuredGoodput>> {
        let file = self.write(path, variant)?.display().to_string();
        let scenario = cause::scenario(path);
        let words: Vec<&str> = scenario.iter().map(String::as_str).collect();
        let document = self.run(&[&["lab", "run", &file, "--", "linerate"], words.as_slice(), &["-J"]].concat())?;
        Ok(document["error"].is_null().then(|| read_goodput(&document)))
    }

    fn write(&self, path: &Table, variant: &str) -> Result<PathBuf> {
        let name = if variant.is_empty() { self.name.clone() } else { format!("{}-without-{variant}", self.name) };
        let file = self.folder.join(format!("{name}.toml"));
        fs::write(&file, text::text(path)).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// Runs linerate, and reads the document that it writes.
    fn run(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new("timeout");
        command.args(["--signal=INT", "--kill-after=10", LONGEST]).arg(self.linerate).args(arguments);
        let output = command.output().context("cannot start timeout(1)")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = errors.trim().lines().last().unwrap_or_default();
        ensure!(output.status.code() != Some(124), "it took more than {LONGEST} s: {}", arguments.join(" "));
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("linerate {} wrote no JSON ({}): {said}", arguments.join(" "), output.status))
    }
}

/// Goodput in a document of `linerate iperf3 -J`.
fn read_goodput(document: &Value) -> MeasuredGoodput {
    let whole = document["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_default();
    let intervals = document["intervals"].as_array().map(Vec::as_slice).unwrap_or_default();
    let half: Vec<f64> = intervals[intervals.len() / 2..]
        .iter()
        .filter_map(|interval| interval["sum"]["bits_per_second"].as_f64())
        .collect();
    let count = u32::try_from(half.len()).map_or(0.0, f64::from);
    let steady = if half.is_empty() { whole } else { half.iter().sum::<f64>() / count };
    MeasuredGoodput { whole, steady }
}

/// Payload rate that the links carry in the direction of the data, whatever the sender's own queue passes.
pub(super) fn ceiling(path: &Table) -> Option<f64> {
    let links = RemovableCause::SenderQueue.removed_from(path);
    let read = PathDescription::parse("path", &text::text(&links)).ok()?;
    let is_reverse = read.scenario.iter().any(|word| word == "-R");
    let way =
        if is_reverse { linerate_model::direction::Direction::Down } else { linerate_model::direction::Direction::Up };
    let bounds = bounds(&read, way);
    bounds.goodput_ceiling.map(linerate_units::BitRate::bits_per_second)
}

/// IP-layer rate of packets of this size: that of the slowest link, of a policer, or of the sender's own queue.
pub(super) fn capacity(path: &Table, packet: u64) -> Option<f64> {
    let read = PathDescription::parse("path", &text::text(path)).ok()?;
    let bounds = bounds(&read, linerate_model::direction::Direction::Up);
    let lowest = [bounds.goodput_ceiling, bounds.policer_ceiling].into_iter().flatten().min()?;
    let (segment, mtu) = (f64::from(bounds.segment?.get()), read.links.iter().map(|link| link.mtu).min()?);
    let of_links = lowest.bits_per_second() * (f64::from(mtu.get()) + ETHERNET_HEADER) / segment;
    let packet = linerate_units::ByteCount::new(packet).as_f64();
    Some(of_links * packet / (packet + ETHERNET_HEADER))
}
