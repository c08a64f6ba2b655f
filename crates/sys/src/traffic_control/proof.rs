//! Verification that a record can be restored: it is tried in a network namespace of its own, before anything is
//! removed.

use linerate_units::CompactCollect;
use std::collections::BTreeSet;

use super::dump::dump;
use super::record::{NO_INTERFACE, RecordedLink, TrafficControlObject, TrafficControlRecord};
use super::replay::{INTERMEDIATE, RecordReplayer};
use crate::error::{Error, Result};
use crate::interface::NetworkInterface;
use crate::namespace::NetworkNamespace;

/// Kinds of interfaces that a stand-in may have, the best one first.
const STAND_IN_KINDS: [&str; 3] = [INTERMEDIATE, "dummy", "veth"];

/// Runs `work` in a network namespace that has a loopback device, which is down, and nothing else; programs that `work`
/// starts ([`crate::command::run`]) run there, too. Needs root (`CAP_SYS_ADMIN`).
pub fn in_scratch_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    NetworkNamespace::create()?.within(work)
}

/// Fails when a record could not be restored exactly, with the part and the remedy. The kernel's defaults are restored
/// by the kernel itself.
pub(super) fn verify_restorable(record: &TrafficControlRecord) -> Result<()> {
    if let Some(link) = record.intermediate.as_ref().filter(|link| link.kind != INTERMEDIATE) {
        let kind = if link.kind.is_empty() { "a real interface" } else { &link.kind };
        let reason =
            format!("{} has the name of its intermediate device but is not one ({kind}): rename it", link.name);
        return Err(Error::refused(operation(record), reason));
    }
    if let Some(dead) = record.made().find(|object| object.towards.iter().any(|name| name == NO_INTERFACE)) {
        return Err(refused(record, &format!("{}: it redirects to an interface that no longer exists", dead.head())));
    }
    if record.made().next().is_none() {
        return Ok(());
    }
    let queues = NetworkInterface::by_name(&record.interface)?.queues;
    let tried = in_scratch_namespace(|| try_restore(record, queues));
    let unable = |error: &Error| {
        let reason = format!(
            "its configuration is foreign, and its restoration cannot be tested ({error}); remove \
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

fn operation(record: &TrafficControlRecord) -> String {
    format!("replacing the traffic control of {}", record.interface)
}

fn refused(record: &TrafficControlRecord, detail: &str) -> Error {
    let interface = &record.interface;
    let reason = format!(
        "the present configuration cannot be restored exactly, so it is unchanged; test in another namespace: \
         {detail}. Remove it first if it is not needed (`tc qdisc del dev {interface} root`, `tc qdisc del dev \
         {interface} ingress`), or leave this interface to the program that set it up"
    );
    Error::refused(operation(record), reason)
}

fn try_restore(record: &TrafficControlRecord, queues: Option<(u32, u32)>) -> Result<()> {
    let mut maker = RecordReplayer::new()?;
    let own = RecordedLink { queues: queues.unwrap_or((1, 1)), ..stand_in(&record.interface) };
    let others = record.objects.iter().flat_map(|object| &object.towards);
    let others: BTreeSet<&String> =
        others.filter(|name| **name != record.interface && *name != "lo").collect_compactly();
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

fn stand_in(name: &str) -> RecordedLink {
    RecordedLink {
        name: name.to_owned(),
        kind: INTERMEDIATE.to_owned(),
        index: 0,
        is_up: false,
        mtu: 1500,
        queue_length: 1000,
        alias: String::new(),
        address: Vec::new(),
        queues: (1, 1),
    }
}

fn make_stand_in(maker: &mut RecordReplayer, link: &RecordedLink) -> Result<()> {
    let mut outcome = Ok(());
    for kind in STAND_IN_KINDS {
        outcome = maker.make_link(&RecordedLink { kind: kind.to_owned(), index: 0, ..link.clone() });
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn compare(wanted: &TrafficControlRecord, made: &TrafficControlRecord) -> Result<()> {
    let lines = |record: &TrafficControlRecord| -> Vec<TrafficControlObject> { record.made().cloned().collect() };
    let (wanted, made) = (lines(wanted), lines(made));
    let differing = wanted.iter().find(|object| !made.contains(object));
    match differing.or_else(|| made.iter().find(|object| !wanted.contains(object))) {
        None if wanted == made => Ok(()),
        None => Err(Error::refused("comparing", "its filters are restored in another order")),
        Some(object) => {
            let twin = made.iter().find(|other| other.head() == object.head());
            let what = match twin {
                Some(_) => "is restored with other options",
                None if wanted.contains(object) => "is not restored under this number",
                None => "is an additional object",
            };
            Err(Error::refused("comparing", format!("{} {what}", object.head())))
        }
    }
}
