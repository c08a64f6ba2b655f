//! The kernel's report on a discipline, class or filter (`linux/pkt_sched.h`, `pkt_cls.h`, `tc_act/*.h`) without its
//! volatile parts: counters, time stamps, numbers of users. Refuses incomplete reports, from which the object could not
//! be restored.

use crate::interface::text;
use crate::netlink::{ATTRIBUTE_TYPE_MASK, append_attribute, attribute, attributes, number};

/// Options without volatile parts, and the interfaces whose numbers were in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StableOptions {
    pub(super) options: Vec<u8>,
    /// Numbers of interfaces, in the order of their places.
    pub(super) towards: Vec<u32>,
}

type Outcome<T> = Result<T, String>;

/// Zeroes these bytes, as far as there are any.
fn zero(bytes: &mut [u8], place: usize, length: usize) {
    for byte in bytes.iter_mut().skip(place).take(length) {
        *byte = 0;
    }
}

/// The same attributes, each converted by `change`; those for which it returns `None` are omitted.
pub(super) fn changed(
    bytes: &[u8],
    mut change: impl FnMut(u16, &[u8]) -> Outcome<Option<Vec<u8>>>,
) -> Outcome<Vec<u8>> {
    let mut result = Vec::with_capacity(bytes.len());
    for (kind, content) in attributes(bytes) {
        if let Some(content) = change(kind & ATTRIBUTE_TYPE_MASK, content)? {
            append_attribute(&mut result, kind, &content).map_err(|cause| cause.to_string())?;
        }
    }
    Ok(result)
}

/// Options of a discipline.
pub(super) fn of_discipline(kind: &str, options: &[u8]) -> Outcome<Vec<u8>> {
    match kind {
        // tc_htb_glob: version, r2q, default class, debug, packets that bypassed all classes. The version is reported
        // with the lower half of its number, and accepted without.
        "htb" => changed(options, |kind, content| {
            let mut content = content.to_vec();
            if kind == 2 {
                let version = number(&content, 0).map(|version| if version > 0xffff { version >> 16 } else { version });
                if let (Some(version), Some(place)) = (version, content.get_mut(..4)) {
                    place.copy_from_slice(&version.to_ne_bytes());
                }
                zero(&mut content, 16, 4);
            }
            Ok(Some(content))
        }),
        // tc_sfq_qopt_v1 ends with six counters.
        "sfq" => {
            let mut options = options.to_vec();
            zero(&mut options, 48, 24);
            Ok(options)
        }
        "netem" => netem(options),
        _ => Ok(options.to_vec()),
    }
}

/// The kernel does not report the distribution of delays, so with jitter there may be more than is seen.
fn netem(options: &[u8]) -> Outcome<Vec<u8>> {
    const DESCRIPTION: usize = 24;
    let mut parts = attributes(options.get(DESCRIPTION..).unwrap_or_default());
    // TCA_NETEM_JITTER64, TCA_NETEM_SLOT
    let is_spread = |(kind, content): (u16, &[u8])| {
        (kind & ATTRIBUTE_TYPE_MASK == 11 && content.iter().any(|byte| *byte != 0)) || kind & ATTRIBUTE_TYPE_MASK == 12
    };
    if number(options, 20).unwrap_or(0) != 0 || parts.any(is_spread) {
        return Err("the kernel does not report how its delays are spread".to_owned());
    }
    Ok(options.to_vec())
}

/// Attribute numbers of a filter kind: actions and policer, flags (`TCA_CLS_FLAGS_…`), and counters.
struct FilterLayout {
    actions: u16,
    policer: Option<u16>,
    flags: Option<u16>,
    counters: Option<u16>,
}

const fn shape(actions: u16, policer: Option<u16>, flags: Option<u16>, counters: Option<u16>) -> FilterLayout {
    FilterLayout { actions, policer, flags, counters }
}

fn layout_of(kind: &str) -> Option<FilterLayout> {
    Some(match kind {
        "basic" => shape(3, Some(4), None, Some(5)),
        "bpf" => shape(1, Some(2), Some(9), None),
        "cgroup" => shape(1, Some(2), None, None),
        "flow" => shape(9, Some(10), None, None),
        "flower" => shape(3, None, Some(22), Some(86)),
        "fw" => shape(4, Some(2), None, None),
        "matchall" => shape(2, None, Some(3), Some(4)),
        "u32" => shape(7, Some(6), Some(11), Some(10)),
        _ => return None,
    })
}

/// Options of a filter.
pub(super) fn of_filter(kind: &str, options: &[u8]) -> Outcome<StableOptions> {
    let shape = layout_of(kind).ok_or_else(|| "unknown kind of filter".to_owned())?;
    // TCA_BPF_OPS are the instructions of a classic program; others have only a name.
    if kind == "bpf" && !attributes(options).any(|(kind, _)| kind & ATTRIBUTE_TYPE_MASK == 5) {
        return Err("the kernel does not report the instructions of its program".to_owned());
    }
    let mut towards = Vec::new();
    let options = changed(options, |number, content| match number {
        _ if Some(number) == shape.counters => Ok(None),
        _ if Some(number) == shape.policer => policer(content).map(Some),
        _ if Some(number) == shape.flags => Ok(flags(content)),
        _ if number == shape.actions => {
            changed(content, |_, content| action(content, &mut towards).map(Some)).map(Some)
        }
        // tc_u32_mark: value, mask, hits
        9 if kind == "u32" => {
            let mut content = content.to_vec();
            zero(&mut content, 8, 4);
            Ok(Some(content))
        }
        _ => Ok(Some(content.to_vec())),
    })?;
    Ok(StableOptions { options, towards })
}

/// Flags without those of the hardware (`TCA_CLS_FLAGS_IN_HW`, `_NOT_IN_HW`), which only the kernel sets.
fn flags(content: &[u8]) -> Option<Vec<u8>> {
    let asked = number(content, 0)? & !0b1100;
    (asked != 0).then(|| asked.to_ne_bytes().to_vec())
}

/// One action of a filter.
fn action(content: &[u8], towards: &mut Vec<u32>) -> Outcome<Vec<u8>> {
    // TCA_ACT_KIND, TCA_ACT_OPTIONS
    let kind = attribute(content, 1).map(text);
    let kind = kind.unwrap_or_default();
    changed(content, |number, content| match number {
        2 => action_options(&kind, content, towards).map(Some),
        // TCA_ACT_STATS, _PAD, _USED_HW_STATS, _IN_HW_COUNT
        4 | 5 | 9 | 10 => Ok(None),
        _ => Ok(Some(content.to_vec())),
    })
}

fn action_options(kind: &str, options: &[u8], towards: &mut Vec<u32>) -> Outcome<Vec<u8>> {
    // The numbers of the attributes with time stamps and with the beginning that all have (`tc_gen`).
    let (stamps, parameters) = match kind {
        "police" => return policer(options),
        "gact" | "mirred" | "mpls" | "pedit" | "simple" | "skbedit" | "skbmod" | "tunnel_key" | "vlan" => (1, 2),
        "csum" | "connmark" | "nat" => (2, 1),
        "ctinfo" => (2, 3),
        _ => return Err(format!("unknown action {kind:?}")),
    };
    changed(options, |number_of, content| {
        let mut content = content.to_vec();
        match number_of {
            _ if number_of == stamps => return Ok(None),
            _ if number_of == parameters => {
                // tc_gen: index, capabilities, verdict, how many hold it, how many use it.
                zero(&mut content, 12, 8);
                if kind == "mirred" {
                    towards.extend(number(&content, REDIRECT_INDEX_OFFSET));
                    zero(&mut content, REDIRECT_INDEX_OFFSET, 4);
                }
            }
            // TCA_MIRRED_BLOCKID
            4 if kind == "mirred" => return Err("it redirects to a block of several interfaces".to_owned()),
            _ => {}
        }
        Ok(Some(content))
    })
}

/// Offset of the interface's number in `tc_mirred`.
const REDIRECT_INDEX_OFFSET: usize = 24;

/// `tc_police` in the first attribute, time stamps in the sixth.
fn policer(options: &[u8]) -> Outcome<Vec<u8>> {
    changed(options, |number, content| {
        let mut content = content.to_vec();
        match number {
            1 => zero(&mut content, 44, 8),
            6 => return Ok(None),
            _ => {}
        }
        Ok(Some(content))
    })
}

/// The options of a filter with the numbers of these interfaces filled in.
pub(super) fn with_interfaces(kind: &str, options: &[u8], towards: &[u32]) -> Outcome<Vec<u8>> {
    let Some(shape) = layout_of(kind) else { return Ok(options.to_vec()) };
    let mut left = towards.iter();
    let mut parameters = |number: u16, content: &[u8], is_mirred: bool| {
        let mut content = content.to_vec();
        if is_mirred
            && number == 2
            && let (Some(place), Some(index)) =
                (content.get_mut(REDIRECT_INDEX_OFFSET..REDIRECT_INDEX_OFFSET + 4), left.next())
        {
            place.copy_from_slice(&index.to_ne_bytes());
        }
        Ok(Some(content))
    };
    changed(options, |number, content| {
        if number != shape.actions {
            return Ok(Some(content.to_vec()));
        }
        let with_one = |_: u16, content: &[u8]| {
            let is_mirred =
                attributes(content).any(|(kind, name)| kind & ATTRIBUTE_TYPE_MASK == 1 && text(name) == "mirred");
            let inner = |number: u16, content: &[u8]| match number {
                2 => changed(content, |number, content| parameters(number, content, is_mirred)).map(Some),
                _ => Ok(Some(content.to_vec())),
            };
            changed(content, inner).map(Some)
        };
        changed(content, with_one).map(Some)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(parts: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, content) in parts {
            append_attribute(&mut bytes, *kind, content).expect("short");
        }
        bytes
    }

    #[test]
    fn counters_are_removed_and_interfaces_collected() {
        let mut parameters = [7_u8; 28];
        parameters[24..].copy_from_slice(&9_u32.to_ne_bytes());
        let inner = nested(&[(1, &[1; 32]), (2, &parameters)]);
        let one = nested(&[(1, b"mirred\0"), (4, &[5; 20]), (2, &inner)]);
        let actions = nested(&[(1, &one)]);
        let options = nested(&[(1, &[0; 4]), (7, &actions), (10, &[3; 24]), (11, &8_u32.to_ne_bytes())]);
        let lasting = of_filter("u32", &options).expect("known");
        assert_eq!(lasting.towards, [9]);
        let kinds: Vec<u16> = attributes(&lasting.options).map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [1, 7], "neither hits nor flags");
        parameters[12..20].fill(0);
        let expected = nested(&[(1, &nested(&[(1, b"mirred\0"), (2, &nested(&[(2, &parameters)]))]))]);
        let whole = with_interfaces("u32", &lasting.options, &[9]).expect("in place");
        assert_eq!(whole, nested(&[(1, &[0; 4]), (7, &expected)]));
        assert_eq!(of_filter("u32", &whole).expect("known"), lasting, "nothing is left to remove the second time");
    }

    #[test]
    fn incomplete_reports_are_refused() {
        assert!(of_filter("rsvp", &[]).expect_err("unknown").contains("kind of filter"));
        assert!(of_filter("bpf", &nested(&[(7, b"program\0")])).expect_err("no instructions").contains("program"));
        let unknown = nested(&[(2, &nested(&[(1, &nested(&[(1, b"gate\0"), (2, &[])]))]))]);
        assert!(of_filter("matchall", &unknown).expect_err("unknown").contains("\"gate\""));
        let mut jitter = vec![0; 24];
        assert!(of_discipline("netem", &jitter).is_ok());
        jitter[20] = 1;
        assert!(of_discipline("netem", &jitter).expect_err("jitter").contains("spread"));
    }

    #[test]
    fn htb_counters_and_version_are_normalised() {
        let told = [0x3_0011_u32, 10, 16, 0, 12345].map(u32::to_ne_bytes).concat();
        let taken = [3_u32, 10, 16, 0, 0].map(u32::to_ne_bytes).concat();
        let lasting = of_discipline("htb", &nested(&[(2, &told), (5, &[1, 0, 0, 0])])).expect("known");
        assert_eq!(lasting, nested(&[(2, &taken), (5, &[1, 0, 0, 0])]));
        assert_eq!(of_discipline("htb", &lasting).expect("known"), lasting);
    }
}
