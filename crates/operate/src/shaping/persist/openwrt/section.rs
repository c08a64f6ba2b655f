//! Section of an interface in `/etc/config/linerate`.

use linerate_shape::uci::{self, UciEntry, UciSection};

use super::super::request::PersistRequest;

/// Type of the sections.
pub(super) const KIND: &str = "shaper";

/// Option with the checksum of the section as linerate wrote it, by which an edited one is recognised.
const CHECKSUM: &str = "checksum";

/// Option that switches a section on and off, which is no edit.
const ENABLED: &str = "enabled";

/// Comment at the head of a new file. `uci commit` drops it.
pub(super) const HEAD: &str = "\
# Shapers at boot, made by `linerate shape DEV persist`; removed by `unpersist`. Change one with `uci set` and
# `uci commit linerate`, then run `/etc/init.d/linerate reload`.
";

/// Relation of a section to the one that linerate wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionOwner {
    /// As linerate wrote it, or switched off.
    Linerate,
    /// Written or edited by the user.
    User,
}

/// Name of a section: letters, digits and `_`, which shell functions of `OpenWrt` require. Other bytes, and `_`, become `_`
/// and two hexadecimal digits, so that names are unique.
pub(super) fn section_name(device: &str) -> String {
    let escaped = |byte: u8| match byte {
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    };
    device.bytes().map(escaped).collect()
}

/// Entries for a request, with their checksum. An element of the list `options` is an option and, after a blank, its value.
pub(super) fn entries(wish: &PersistRequest) -> Vec<UciEntry> {
    let mut entries = vec![UciEntry::option(ENABLED, "1"), UciEntry::option("device", &wish.device)];
    let mut options = Vec::new();
    if !wish.autorate.is_empty() {
        entries.push(UciEntry::option("autorate", "1"));
    }
    let mut words = wish.words.iter().skip(1).chain(&wish.autorate).peekable();
    while let Some(word) = words.next() {
        let value = words.next_if(|next| !next.starts_with("--"));
        match (word.as_str(), value) {
            ("--autorate", None) => {}
            ("--up" | "--down", Some(rate)) => entries.push(UciEntry::option(&word[2..], rate)),
            (_, Some(value)) => options.push(UciEntry::list("options", &format!("{word} {value}"))),
            (_, None) => options.push(UciEntry::list("options", word)),
        }
    }
    entries.extend(options);
    let checksum = checksum(&entries);
    entries.push(UciEntry::option(CHECKSUM, &checksum));
    entries
}

/// Checksum of all entries but itself and [`ENABLED`] (FNV-1a, 64 bits).
fn checksum(entries: &[UciEntry]) -> String {
    let counts = |entry: &&UciEntry| entry.is_list || ![CHECKSUM, ENABLED].contains(&entry.name.as_str());
    let counted: Vec<UciEntry> = entries.iter().filter(counts).cloned().collect();
    let text = uci::section_text(KIND, "", &counted);
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// Owner of a section.
pub(super) fn owner(section: &UciSection) -> SectionOwner {
    let is_ours =
        !section.has_other_text && section.value(CHECKSUM).is_some_and(|written| written == checksum(&section.entries));
    if is_ours { SectionOwner::Linerate } else { SectionOwner::User }
}

/// True when both would set the same shaper up.
pub(super) fn is_equal(section: &UciSection, entries: &[UciEntry]) -> bool {
    checksum(&section.entries) == checksum(entries)
}

/// True when the section is in effect, as the start script decides.
pub(super) fn is_enabled(section: &UciSection) -> bool {
    !matches!(section.value(ENABLED), Some("0" | "off" | "false" | "no" | "disabled"))
}

/// Section of this interface: by its name, else by its option `device`.
pub(super) fn of_device<'s>(sections: &'s [UciSection], device: &str) -> Option<&'s UciSection> {
    let name = section_name(device);
    let shapers = || sections.iter().filter(|section| section.kind == KIND);
    shapers()
        .find(|section| section.name.as_deref() == Some(&name))
        .or_else(|| shapers().find(|section| section.value("device") == Some(device)))
}

/// The file with this section in place of its previous one, or at its end.
pub(super) fn with_section(text: &str, previous: Option<&UciSection>, name: &str, entries: &[UciEntry]) -> String {
    let section = uci::section_text(KIND, name, entries);
    if let Some(previous) = previous {
        return format!("{}{section}{}", &text[..previous.range.start], &text[previous.range.end..]);
    }
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{}{end}\n{section}", if text.is_empty() { HEAD } else { text })
}

/// The file without this section; `None` when nothing of the user's is left.
pub(super) fn without_section(text: &str, section: &UciSection) -> Option<String> {
    let left = uci::without(text, &section.range);
    let is_left = !left.replace(HEAD, "").trim().is_empty();
    is_left.then_some(left)
}

/// The file with this section switched off, and the section's other text as it was.
pub(super) fn switched_off(text: &str, section: &UciSection) -> String {
    const ON: &str = "option enabled '1'";
    let own = &text[section.range.clone()];
    let end = if own.ends_with('\n') { "" } else { "\n" };
    let off = if own.matches(ENABLED).count() == 1 && own.contains(ON) {
        own.replace(ON, "option enabled '0'")
    } else {
        // The last value counts.
        format!("{own}{end}\toption enabled '0'\n")
    };
    format!("{}{off}{}", &text[..section.range.start], &text[section.range.end..])
}
