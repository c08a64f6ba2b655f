//! Whether a record can be made again: it is tried in a network namespace of its own, before anything is taken away.

use std::collections::BTreeSet;

use super::dump::dump;
use super::record::{Link, Object, Record};
use super::replay::{INTERMEDIATE, Maker};
use crate::error::{Error, Result};
use crate::interface::Interface;
use crate::namespace::NetworkNamespace;

/// Kinds of interfaces that a stand-in may be, the best one first.
const STAND_INS: [&str; 3] = [INTERMEDIATE, "dummy", "veth"];

/// Does something in a network namespace that has a loopback device, which is down, and nothing else; programs that
/// `work` starts ([`crate::command::run`]) run there too. Needs root (`CAP_SYS_ADMIN`).
pub fn in_scratch_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    NetworkNamespace::create()?.within(work)
}

/// Fails when what a record has could not be put back exactly as it is, and says which part and what to do. What the kernel
/// made by itself comes back by itself.
pub(super) fn prove(record: &Record) -> Result<()> {
    if let Some(link) = record.intermediate.as_ref().filter(|link| link.kind != INTERMEDIATE) {
        let kind = if link.kind.is_empty() { "a real interface" } else { &link.kind };
        let reason = format!("{} has the name of its intermediate device and is none ({kind}): rename it", link.name);
        return Err(Error::refused(operation(record), reason));
    }
    if record.made().next().is_none() {
        return Ok(());
    }
    let queues = Interface::by_name(&record.interface)?.queues;
    let tried = in_scratch_namespace(|| try_out(record, queues));
    let unable = |error: &Error| {
        let reason = format!(
            "its configuration is somebody's own, and whether it could be put back cannot be tried out ({error}); remove \
             it first, or run this as root outside of a container"
        );
        Error::refused(operation(record), reason)
    };
    match tried {
        Err(error) => Err(unable(&error)),
        Ok(Err(error)) => Err(refused(record, &error.to_string())),
        Ok(Ok(())) => Ok(()),
    }
}

fn operation(record: &Record) -> String {
    format!("taking over the traffic control of {}", record.interface)
}

fn refused(record: &Record, detail: &str) -> Error {
    let interface = &record.interface;
    let reason = format!(
        "what stands there could not be put back exactly as it is, so it is left alone; tried out beside it: {detail}. \
         Remove it first if it is not needed (`tc qdisc del dev {interface} root`, `tc qdisc del dev {interface} ingress`), \
         or leave this interface to what set it up"
    );
    Error::refused(operation(record), reason)
}

fn try_out(record: &Record, queues: Option<(u32, u32)>) -> Result<()> {
    let mut maker = Maker::new()?;
    let own = Link { queues: queues.unwrap_or((1, 1)), ..stand_in(&record.interface) };
    let others = record.objects.iter().flat_map(|object| &object.towards);
    let others: BTreeSet<&String> = others.filter(|name| **name != record.interface && *name != "lo").collect();
    let intermediate = record.intermediate.as_ref();
    let is_made = |name: &str| intermediate.is_some_and(|link| link.name == name);
    let others = others.into_iter().filter(|name| !is_made(name)).map(|name| stand_in(name));
    let links = (record.interface != "lo").then_some(own).into_iter().chain(intermediate.cloned()).chain(others);
    for link in links {
        make_stand_in(&mut maker, &link)?;
    }
    maker.make(record.made())?;
    compare(record, &dump(&record.interface)?)
}

fn stand_in(name: &str) -> Link {
    Link {
        name: name.to_owned(),
        kind: INTERMEDIATE.to_owned(),
        index: 0,
        is_up: false,
        mtu: 1500,
        queue_length: 1000,
        address: Vec::new(),
        queues: (1, 1),
    }
}

fn make_stand_in(maker: &mut Maker, link: &Link) -> Result<()> {
    let mut outcome = Ok(());
    for kind in STAND_INS {
        outcome = maker.make_link(&Link { kind: kind.to_owned(), index: 0, ..link.clone() });
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn compare(wanted: &Record, made: &Record) -> Result<()> {
    let lines = |record: &Record| -> Vec<Object> { record.made().cloned().collect() };
    let (wanted, made) = (lines(wanted), lines(made));
    let differing = wanted.iter().find(|object| !made.contains(object));
    match differing.or_else(|| made.iter().find(|object| !wanted.contains(object))) {
        None if wanted == made => Ok(()),
        None => Err(Error::refused("comparing", "its filters come back in another order")),
        Some(object) => {
            let twin = made.iter().find(|other| other.head() == object.head());
            let what = match twin {
                Some(_) => "comes back with other options",
                None if wanted.contains(object) => "does not come back under this number",
                None => "comes in addition",
            };
            Err(Error::refused("comparing", format!("{} {what}", object.head())))
        }
    }
}
