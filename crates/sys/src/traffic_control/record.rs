//! The traffic control of an interface as text: one line for each object, in the order in which they are restored.
//!
//! ```text
//! traffic control of eth0
//! link dev ifb4eth0 kind ifb index 7 state up mtu 1500 txqueuelen 32 address 020000000001 queues 1 1 alias 6c696e65…
//! qdisc dev eth0 parent root handle 1: kind htb options 180002000300…
//! class dev eth0 parent root handle 1:1 kind htb options 300001…
//! filter dev eth0 parent 1: protocol 0x0800 preference 10 chain 0 handle 0x80000800 kind u32 options 0800…
//! qdisc dev ifb4eth0 parent root kind pfifo_fast made-by-the-kernel
//! ```
//!
//! `options` are the kernel's attributes in hexadecimal, without volatile parts; numbers of interfaces in them are
//! zero, and their names follow as `towards`, in the order of their places.

use core::fmt::{self, Write};

use linerate_units::hexadecimal;

/// The beginning of a record's first line.
pub(super) const HEADING: &str = "traffic control of ";
/// Suffix of the interface where its queue had no length: the kernel sets one when a discipline is added.
const NO_QUEUE: &str = " txqueuelen 0";
const KERNEL_MADE: &str = "made-by-the-kernel";

/// Parent of a discipline at the root (`TC_H_ROOT`).
pub(super) const ROOT: u32 = u32::MAX;
/// Parent of disciplines for received packets (`TC_H_INGRESS`, also `TC_H_CLSACT`).
pub(super) const INGRESS: u32 = 0xffff_fff1;

/// The traffic control of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrafficControlRecord {
    pub(super) interface: String,
    /// True when `txqueuelen` of the interface is 0.
    pub(super) has_no_queue: bool,
    /// Intermediate device, if there is one.
    pub(super) intermediate: Option<RecordedLink>,
    pub(super) objects: Vec<TrafficControlObject>,
}

/// An intermediate device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedLink {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) index: u32,
    pub(super) is_up: bool,
    pub(super) mtu: u32,
    pub(super) queue_length: u32,
    pub(super) address: Vec<u8>,
    /// For sending and receiving.
    pub(super) queues: (u32, u32),
    /// `ip link set … alias`; empty without one.
    pub(super) alias: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectCategory {
    Discipline,
    Class,
    Filter(FilterPosition),
}

/// Position of a filter among those of one parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilterPosition {
    /// `ETH_P_…`.
    pub(super) protocol: u16,
    pub(super) preference: u16,
    pub(super) chain: u32,
}

/// A discipline, class or filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrafficControlObject {
    pub(super) what: ObjectCategory,
    pub(super) device: String,
    pub(super) parent: u32,
    pub(super) handle: u32,
    pub(super) kind: String,
    /// `None` where the kernel reports none.
    pub(super) options: Option<Vec<u8>>,
    /// The beginning of a table of sizes (`TCA_STAB_BASE`).
    pub(super) sizes: Option<Vec<u8>>,
    /// The interfaces whose numbers belong into `options`; [`NO_INTERFACE`] for one that no longer exists.
    pub(super) towards: Vec<String>,
    /// True when the kernel made it by itself; its other fields are not recorded then.
    pub(super) is_kernels: bool,
}

impl TrafficControlObject {
    /// True for objects of received traffic.
    pub(super) fn is_ingress(&self) -> bool {
        match self.what {
            ObjectCategory::Filter(_) => self.parent >> 16 == 0xffff,
            _ => self.parent == INGRESS,
        }
    }

    /// Position and kind, without options.
    pub(super) fn head(&self) -> String {
        let mut text = match self.what {
            ObjectCategory::Discipline => "qdisc",
            ObjectCategory::Class => "class",
            ObjectCategory::Filter(_) => "filter",
        }
        .to_owned();
        // Writing into memory does not fail.
        let _ = write!(text, " dev {} parent {}", self.device, TcHandle(self.parent));
        match self.what {
            ObjectCategory::Filter(FilterPosition { protocol, preference, chain }) => {
                let _ = write!(text, " protocol {protocol:#06x} preference {preference} chain {chain}");
                let _ = write!(text, " handle {:#010x}", self.handle);
            }
            _ if self.is_kernels => {}
            _ => {
                let _ = write!(text, " handle {}", TcHandle(self.handle));
            }
        }
        text + " kind " + &self.kind
    }
}

/// A handle as `tc` prints it.
pub(super) struct TcHandle(pub(super) u32);

impl fmt::Display for TcHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 >> 16, self.0 & 0xffff) {
            _ if self.0 == ROOT => formatter.write_str("root"),
            _ if self.0 == INGRESS => formatter.write_str("ingress"),
            (major, 0) => write!(formatter, "{major:x}:"),
            (major, minor) => write!(formatter, "{major:x}:{minor:x}"),
        }
    }
}

fn handle(text: &str) -> Option<u32> {
    match text {
        "root" => Some(ROOT),
        "ingress" => Some(INGRESS),
        _ => {
            let (major, minor) = text.split_once(':')?;
            let part = |digits: &str| {
                if digits.is_empty() { Some(0) } else { u16::from_str_radix(digits, 16).ok().map(u32::from) }
            };
            Some(part(major)? << 16 | part(minor)?)
        }
    }
}

/// Text for bytes, with `-` for none.
fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

fn bytes_or_dash(text: &str) -> Option<Vec<u8>> {
    if text == "-" { Some(Vec::new()) } else { hexadecimal::parse(text) }
}

impl fmt::Display for TrafficControlRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{HEADING}{}{}", self.interface, if self.has_no_queue { NO_QUEUE } else { "" })?;
        if let Some(link) = &self.intermediate {
            write!(formatter, "\n{link}")?;
        }
        self.objects.iter().try_for_each(|object| write!(formatter, "\n{object}"))
    }
}

impl fmt::Display for RecordedLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_up { "up" } else { "down" };
        let Self { name, kind, index, mtu, queue_length, queues: (sending, receiving), .. } = self;
        let address = or_dash(hexadecimal::format(&self.address));
        write!(formatter, "link dev {name} kind {kind} index {index} state {state} mtu {mtu} ")?;
        write!(formatter, "txqueuelen {queue_length} address {address} queues {sending} {receiving}")?;
        if self.alias.is_empty() {
            Ok(())
        } else {
            write!(formatter, " alias {}", hexadecimal::format(self.alias.as_bytes()))
        }
    }
}

impl fmt::Display for TrafficControlObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.head())?;
        if self.is_kernels {
            return write!(formatter, " {KERNEL_MADE}");
        }
        if let Some(options) = &self.options {
            write!(formatter, " options {}", or_dash(hexadecimal::format(options)))?;
        }
        if let Some(sizes) = &self.sizes {
            write!(formatter, " sizes {}", or_dash(hexadecimal::format(sizes)))?;
        }
        self.towards.iter().try_for_each(|device| write!(formatter, " towards {device}"))
    }
}

impl TrafficControlRecord {
    /// Parses the `Display` text of a [`TrafficControlRecord`]; the error is the line that is not part of one.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let heading = first.strip_prefix(HEADING).ok_or_else(|| first.to_owned())?;
        let (interface, has_no_queue) = heading.strip_suffix(NO_QUEUE).map_or((heading, false), |name| (name, true));
        if !is_name(interface) {
            return Err(first.to_owned());
        }
        let mut record =
            Self { interface: interface.to_owned(), has_no_queue, intermediate: None, objects: Vec::new() };
        for line in lines {
            let wrong = || line.to_owned();
            if line.starts_with("link ") && record.intermediate.is_none() && record.objects.is_empty() {
                record.intermediate = Some(RecordedLink::parse(line).ok_or_else(wrong)?);
            } else {
                record.objects.push(TrafficControlObject::parse(line).ok_or_else(wrong)?);
            }
        }
        Ok(record)
    }

    /// Objects that were set up explicitly, without the kernel's defaults.
    pub(super) fn made(&self) -> impl Iterator<Item = &TrafficControlObject> {
        self.objects.iter().filter(|object| !object.is_kernels)
    }
}

/// Names of interfaces have no blanks (`dev_valid_name`).
/// Name of an interface that no longer exists, to which a filter still redirects. No interface can have it.
pub(super) const NO_INTERFACE: &str = "/";

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.len() < 16 && !word.contains(|letter: char| letter.is_whitespace() || letter == '/')
}

/// Tokens of a line, in order: a name and its value.
struct TokenReader<'a>(core::iter::Peekable<core::str::Split<'a, char>>);

impl<'a> TokenReader<'a> {
    fn of(line: &'a str) -> Self {
        Self(line.split(' ').peekable())
    }

    fn after(&mut self, name: &str) -> Option<&'a str> {
        self.0.next_if_eq(&name)?;
        self.0.next()
    }

    fn number(&mut self, name: &str) -> Option<u32> {
        self.after(name)?.parse().ok()
    }

    fn device(&mut self, name: &str) -> Option<String> {
        self.after(name).filter(|word| is_name(word)).map(str::to_owned)
    }

    fn redirect(&mut self) -> Option<String> {
        self.after("towards").filter(|word| is_name(word) || *word == NO_INTERFACE).map(str::to_owned)
    }

    fn kind(&mut self) -> Option<String> {
        let plain = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
        self.after("kind").filter(plain).map(str::to_owned)
    }
}

impl RecordedLink {
    fn parse(text: &str) -> Option<Self> {
        let mut words = TokenReader::of(text.strip_prefix("link ")?);
        let link = Self {
            name: words.device("dev")?,
            kind: words.kind()?,
            index: words.number("index")?,
            is_up: match words.after("state")? {
                "up" => true,
                "down" => false,
                _ => return None,
            },
            mtu: words.number("mtu")?,
            queue_length: words.number("txqueuelen")?,
            address: bytes_or_dash(words.after("address")?)?,
            queues: (words.number("queues")?, words.0.next()?.parse().ok()?),
            alias: String::new(),
        };
        let alias = match words.after("alias") {
            Some(alias) => String::from_utf8(hexadecimal::parse(alias)?).ok().filter(|alias| !alias.is_empty())?,
            None => String::new(),
        };
        words.0.next().is_none().then_some(Self { alias, ..link })
    }
}

impl TrafficControlObject {
    fn parse(line: &str) -> Option<Self> {
        let (what, rest) = line.split_once(' ')?;
        let mut words = TokenReader::of(rest);
        let (device, parent) = (words.device("dev")?, handle(words.after("parent")?)?);
        let what = match what {
            "qdisc" => ObjectCategory::Discipline,
            "class" => ObjectCategory::Class,
            "filter" => ObjectCategory::Filter(FilterPosition {
                protocol: u16::from_str_radix(words.after("protocol")?.strip_prefix("0x")?, 16).ok()?,
                preference: words.after("preference")?.parse().ok()?,
                chain: words.number("chain")?,
            }),
            _ => return None,
        };
        let number = words.after("handle");
        let handle = match (what, number) {
            (ObjectCategory::Filter(_), number) => u32::from_str_radix(number?.strip_prefix("0x")?, 16).ok()?,
            (_, Some(number)) => handle(number)?,
            (_, None) => 0,
        };
        let kind = words.kind()?;
        let is_kernels = words.0.next_if_eq(&KERNEL_MADE).is_some();
        let options = words.after("options").map(bytes_or_dash);
        let sizes = words.after("sizes").map(bytes_or_dash);
        let towards = core::iter::from_fn(|| words.redirect()).collect::<Vec<_>>();
        let (options, sizes) = (transpose_bytes(options)?, transpose_bytes(sizes)?);
        let object = Self { what, device, parent, handle, kind, options, sizes, towards, is_kernels };
        let is_bare = object.options.is_none() && object.sizes.is_none() && object.towards.is_empty();
        let is_whole = words.0.next().is_none() && (number.is_none() == is_kernels) && (is_bare || !is_kernels);
        is_whole.then_some(object)
    }
}

/// Values that are present have to be valid.
#[expect(clippy::option_option, reason = "absent, or there and wrong, or there and right")]
fn transpose_bytes(value: Option<Option<Vec<u8>>>) -> Option<Option<Vec<u8>>> {
    match value {
        None => Some(None),
        Some(None) => None,
        Some(Some(bytes)) => Some(Some(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        "[a-z][a-z0-9.-]{0,14}"
    }

    fn content() -> impl Strategy<Value = Option<Vec<u8>>> {
        prop::option::of(prop::collection::vec(any::<u8>(), 0..40))
    }

    fn objects() -> impl Strategy<Value = TrafficControlObject> {
        let what = prop_oneof![
            Just(ObjectCategory::Discipline),
            Just(ObjectCategory::Class),
            any::<(u16, u16, u32)>().prop_map(|(protocol, preference, chain)| {
                ObjectCategory::Filter(FilterPosition { protocol, preference, chain })
            })
        ];
        let parts = (
            what,
            name(),
            any::<u32>(),
            any::<u32>(),
            name(),
            content(),
            content(),
            prop::collection::vec(name(), 0..3),
        );
        (parts, any::<bool>()).prop_map(|((what, device, parent, handle, kind, options, sizes, towards), kernels)| {
            let object =
                TrafficControlObject { what, device, parent, handle, kind, options, sizes, towards, is_kernels: false };
            if kernels && !matches!(what, ObjectCategory::Filter(_)) {
                TrafficControlObject {
                    handle: 0,
                    options: None,
                    sizes: None,
                    towards: Vec::new(),
                    is_kernels: true,
                    ..object
                }
            } else {
                object
            }
        })
    }

    fn links() -> impl Strategy<Value = RecordedLink> {
        let parts = (name(), name(), any::<u32>(), any::<bool>(), any::<u32>(), any::<u32>());
        (parts, prop::collection::vec(any::<u8>(), 0..8), any::<(u32, u32)>(), ".{0,9}").prop_map(
            |((name, kind, index, is_up, mtu, queue_length), address, queues, alias)| RecordedLink {
                name,
                kind,
                index,
                is_up,
                mtu,
                queue_length,
                address,
                queues,
                alias,
            },
        )
    }

    proptest! {
        #[test]
        fn records_are_read_as_they_were_written(
            interface in name(),
            has_no_queue: bool,
            intermediate in prop::option::of(links()),
            objects in prop::collection::vec(objects(), 0..6),
        ) {
            let record = TrafficControlRecord { interface, has_no_queue, intermediate, objects };
            let text = record.to_string();
            prop_assert_eq!(TrafficControlRecord::parse(&text), Ok(record), "{}", text);
        }

        #[test]
        fn any_text_is_a_record_or_none(text in "(traffic control of eth0\n)?(qdisc|class|filter|link)?[ -~\n]{0,80}") {
            if let Ok(record) = TrafficControlRecord::parse(&text) {
                prop_assert_eq!(TrafficControlRecord::parse(&record.to_string()), Ok(record));
            }
        }

        #[test]
        fn truncated_and_extended_lines_are_refused(object in objects(), cut in 0_usize..200) {
            let line = object.to_string();
            prop_assert_eq!(TrafficControlObject::parse(&format!("{line} more")), None);
            if cut < line.len() {
                prop_assert_ne!(TrafficControlObject::parse(&line[..cut]), Some(object));
            }
        }
    }

    #[test]
    fn damaged_lines_are_named() {
        for (text, line) in [
            ("", ""),
            ("traffic control of ", "traffic control of "),
            ("traffic control of eth0\nqdisc dev eth0", "qdisc dev eth0"),
            (
                "traffic control of eth0\nqdisc dev eth0 parent root handle 1: kind htb options 0",
                "qdisc dev eth0 parent root handle 1: kind htb options 0",
            ),
        ] {
            assert_eq!(TrafficControlRecord::parse(text), Err(line.to_owned()));
        }
        let text = "traffic control of eth0 txqueuelen 0\nqdisc dev eth0 parent root kind noqueue made-by-the-kernel";
        let record = TrafficControlRecord::parse(text).expect("a record");
        assert!(record.has_no_queue && record.made().next().is_none() && record.to_string() == text);
    }
}
