//! `tc`'s answers. Not every kind is printed as JSON by every `tc`: classes of HTB come as text from many.

use core::fmt;

use linerate_units::BitRate;
use serde_json::{Map, Value};

use super::{SeenClass, SeenDiscipline, SeenFilter};
use crate::plan::{Handle, Parent};

/// An answer of `tc` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBackError {
    /// What was asked for: `queueing disciplines`.
    what: &'static str,
    /// What is wrong with it.
    why: String,
}

impl fmt::Display for ReadBackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the list of {} that tc printed cannot be read: {}", self.what, self.why)
    }
}

impl core::error::Error for ReadBackError {}

/// Reads `tc -j qdisc show`, of all interfaces or, with `device`, of that one.
pub fn disciplines(text: &str, device: Option<&str>) -> Result<Vec<SeenDiscipline>, ReadBackError> {
    let entries = entries(text, "queueing disciplines")?;
    Ok(entries.iter().filter_map(|entry| discipline(entry, device)).collect())
}

/// Reads `tc -j class show dev DEVICE`, as JSON or as text.
pub fn classes(text: &str, device: &str) -> Result<Vec<SeenClass>, ReadBackError> {
    if text.trim_start().starts_with('[') {
        let entries = entries(text, "classes")?;
        return Ok(entries.iter().filter_map(|entry| class_of_json(entry, device)).collect());
    }
    Ok(text.lines().filter_map(|line| class_of_text(line, device)).collect())
}

/// Reads `tc -j filter show dev DEVICE parent PARENT`.
pub fn filters(text: &str, device: &str, parent: Parent) -> Result<Vec<SeenFilter>, ReadBackError> {
    let entries = entries(text, "filters")?;
    Ok(entries.iter().filter_map(|entry| filter(entry, device, parent)).collect())
}

fn entries(text: &str, what: &'static str) -> Result<Vec<Map<String, Value>>, ReadBackError> {
    if text.trim().is_empty() {
        return Ok(vec![]);
    }
    serde_json::from_str(text).map_err(|error| ReadBackError { what, why: error.to_string() })
}

fn text_of<'v>(entry: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    entry.get(key)?.as_str()
}

fn handle_of(entry: &Map<String, Value>, key: &str) -> Option<Handle> {
    text_of(entry, key)?.parse().ok()
}

/// `tc` writes rates as byte/s in JSON.
fn rate_of(entry: &Map<String, Value>, key: &str) -> Option<BitRate> {
    entry.get(key)?.as_f64().map(|bytes| BitRate::from_bits_per_second(bytes * 8.0))
}

fn discipline(entry: &Map<String, Value>, device: Option<&str>) -> Option<SeenDiscipline> {
    let kind = text_of(entry, "kind")?.to_owned();
    let parent = if entry.get("root").is_some_and(|root| root != &Value::Bool(false)) {
        Some(Parent::Root)
    } else if kind == "ingress" || kind == "clsact" {
        Some(Parent::Ingress)
    } else {
        handle_of(entry, "parent").map(Parent::At)
    };
    let options = entry.get("options").and_then(Value::as_object);
    let rate = options.and_then(|options| rate_of(options, "bandwidth").or_else(|| rate_of(options, "rate")));
    let device = text_of(entry, "dev").or(device)?.to_owned();
    Some(SeenDiscipline { device, kind, handle: handle_of(entry, "handle")?, parent, rate })
}

fn class_of_json(entry: &Map<String, Value>, device: &str) -> Option<SeenClass> {
    let options = entry.get("options").and_then(Value::as_object);
    let rate = |key: &str| rate_of(entry, key).or_else(|| rate_of(options?, key));
    Some(SeenClass {
        device: device.to_owned(),
        kind: text_of(entry, "class").or_else(|| text_of(entry, "kind"))?.to_owned(),
        handle: handle_of(entry, "handle")?,
        rate: rate("rate"),
        ceiling: rate("ceil"),
    })
}

/// `class htb 1:10 parent 1:1 leaf 10: prio 0 rate 73328bit ceil 220Kbit burst 1513b cburst 1513b`.
fn class_of_text(line: &str, device: &str) -> Option<SeenClass> {
    let mut words = line.split_whitespace();
    if words.next() != Some("class") {
        return None;
    }
    let kind = words.next()?.to_owned();
    let handle = words.next()?.parse().ok()?;
    let rest: Vec<_> = words.collect();
    let after = |key: &str| rest.windows(2).find(|pair| pair[0] == key).and_then(|pair| rate(pair[1]));
    Some(SeenClass { device: device.to_owned(), kind, handle, rate: after("rate"), ceiling: after("ceil") })
}

/// A rate as `tc` prints it: `220Kbit`, `73328bit`, `1Gbit`.
fn rate(text: &str) -> Option<BitRate> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "bit" => 1.0,
        "Kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        "Tbit" => 1e12,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| BitRate::from_bits_per_second(number * factor))
}

fn filter(entry: &Map<String, Value>, device: &str, parent: Parent) -> Option<SeenFilter> {
    // `tc` lists the chain and the hash table of each before the filters in it: those have no options or no goal.
    let options = entry.get("options").and_then(Value::as_object)?;
    let actions = options.get("actions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let action =
        |kind: &str| actions.iter().filter_map(Value::as_object).find(|one| text_of(one, "kind") == Some(kind));
    let redirect = action("mirred").filter(|one| text_of(one, "mirred_action") == Some("redirect"));
    let class = handle_of(options, "flowid").or_else(|| handle_of(options, "classid"));
    // A policer without the word `action` is printed right among the options.
    let polices = action("police").is_some() || text_of(options, "kind") == Some("police");
    let redirect = redirect.and_then(|one| text_of(one, "to_dev")).map(str::to_owned);
    let goes = class.is_some() || redirect.is_some() || polices || !actions.is_empty();
    goes.then(|| SeenFilter {
        device: device.to_owned(),
        parent,
        protocol: text_of(entry, "protocol").unwrap_or_default().to_owned(),
        kind: text_of(entry, "kind").unwrap_or_default().to_owned(),
        class,
        redirect,
        polices,
    })
}
