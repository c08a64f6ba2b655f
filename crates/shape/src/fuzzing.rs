//! Body of the fuzz target, shared with the short deterministic run among the tests.

use linerate_model::direction::Direction;
use linerate_units::BitRate;

use crate::policy::{DualQueueOptions, QdiscOptions};
use crate::traffic_classes::{MAX_CLASSES, TrafficClasses, parse_class_file};
use crate::uci;
use crate::verify::PerDirection;
use crate::wondershaper::{Translation, translate};

/// Fuzz target: takes any bytes; panics on a violated invariant.
pub type ShapeFuzzTarget = fn(&[u8]);

/// Every target by name, as in `fuzz/fuzz_targets` and `fuzz/corpus`.
pub const TARGETS: &[(&str, ShapeFuzzTarget)] = &[
    ("shape_classes", shape_classes),
    ("shape_dual_queue", shape_dual_queue),
    ("shape_qdisc_options", shape_qdisc_options),
    ("shape_uci", shape_uci),
    ("shape_wondershaper", shape_wondershaper),
];

/// Parses text of any kind as a file of traffic classes: an error names a line or the file, and accepted classes have rates
/// that fit below their groups and the link.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn shape_classes(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_class_file(&text) {
        Ok(classes) => check(&classes),
        Err(errors) => {
            let is_named =
                |error: &str| ["line ", "it has no classes", "reading ended"].iter().any(|one| error.starts_with(one));
            assert!(errors.lines().all(is_named), "{errors}");
        }
    }
}

/// Parses text of any kind as options of `dualpi2`: what is accepted is written so that the same is read, and its
/// arguments for `tc` are plain words.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn shape_dual_queue(data: &[u8]) {
    let Ok(options) = String::from_utf8_lossy(data).parse::<DualQueueOptions>() else { return };
    assert_eq!(options.to_string().parse(), Ok(options));
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ._".contains(letter);
    assert!(options.tc_arguments().chars().all(is_plain), "{options}");
}

/// Parses text of any kind as options of queueing disciplines: what is accepted is written so that the same is read.
///
/// # Panics
///
/// When this invariant is violated.
pub fn shape_qdisc_options(data: &[u8]) {
    let Ok(options) = String::from_utf8_lossy(data).parse::<QdiscOptions>() else { return };
    assert_eq!(options.to_string().parse(), Ok(options));
    assert!(!options.is_default() && options.with(options) == options, "{options}");
}

/// Parses text of any kind as a configuration file of `OpenWrt`: an error names the line, and a section that is removed and
/// written again has the same entries.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn shape_uci(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let sections = match uci::sections(&text) {
        Ok(sections) => sections,
        Err(error) => {
            assert!(error.starts_with("line "), "{error}");
            return;
        }
    };
    for section in sections.iter().filter(|section| !section.has_other_text) {
        let left = uci::sections(&uci::without(&text, &section.range)).map(|left| left.len());
        assert_eq!(left, Ok(sections.len() - 1), "{section:?}");
        let is_plain = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if section.kind.is_empty() || !is_plain(&section.kind) {
            continue;
        }
        if section.entries.iter().any(|entry| entry.name.is_empty() || !is_plain(&entry.name)) {
            continue;
        }
        let written = uci::section_text(&section.kind, section.name.as_deref().unwrap_or("x"), &section.entries);
        let again = uci::sections(&written).map(|mut again| again.pop().map(|one| one.entries));
        assert_eq!(again, Ok(Some(section.entries.clone())), "{written}");
    }
}

fn check(classes: &TrafficClasses) {
    let list = classes.list();
    assert!((1..=MAX_CLASSES).contains(&list.len()));
    for (place, class) in list.iter().enumerate() {
        assert!(class.group.is_none_or(|group| group < place && list[group].is_group()), "{class:?}");
        assert!(!class.title().is_empty(), "{class:?}");
    }
    let link = BitRate::from_bits_per_second(1e9);
    let fits = classes.check_sums(PerDirection { up: Some(link), down: Some(link) }).is_ok();
    for direction in Direction::BOTH {
        let scaled = classes.scaled(direction, link);
        for (class, rates) in list.iter().zip(&scaled) {
            let asked = *class.rates.of(direction);
            assert_eq!(rates.is_some(), asked.is_some(), "{class:?}");
            let Some((rates, asked)) = (*rates).zip(asked) else { continue };
            let (given, wanted) = (rates.guaranteed.bits_per_second(), asked.guaranteed.bits_per_second());
            assert!(given > 0.0 && given <= wanted && (!fits || given >= wanted * 0.999_999), "{class:?}: {given}");
        }
    }
}

/// Translates the first line as a command line of wondershaper, with the lines after it as its presets: what is accepted asks for one
/// shaper of an interface, and no value becomes an option.
///
/// # Panics
///
/// When one of these invariants is violated.
pub fn shape_wondershaper(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (line, presets) = text.split_once('\n').unwrap_or((&text, ""));
    let texts: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let arguments = match translate(&texts, |_| Ok(presets.to_owned())) {
        Ok(Translation::Arguments(arguments)) => arguments,
        Ok(Translation::Usage) => return,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ["shape", device, others @ ..] = &arguments[..] else {
        return assert_eq!(arguments, ["--version"]);
    };
    assert!(!device.is_empty() && !device.starts_with('-'), "{arguments:?}");
    match others {
        ["off"] | ["status", "--once"] => {}
        [options @ .., "--replace"] => check_shaper(options),
        _ => panic!("neither a shaper nor an action: {arguments:?}"),
    }
}

/// Options of a shaper have one value each: rates are numbers, and selectors have their kind.
fn check_shaper(options: &[&str]) {
    let pairs = options.chunks_exact(2);
    assert!(pairs.remainder().is_empty() && !options.is_empty(), "{options:?}");
    for pair in pairs {
        let is_selector = |kinds: &[&str]| kinds.iter().any(|kind| pair[1].starts_with(kind));
        assert!(
            match pair[0] {
                "--up" | "--down" =>
                    pair[1].strip_suffix('k').is_some_and(|rate| rate.parse::<u64>().is_ok_and(|rate| rate > 0)),
                "--interactive" => is_selector(&["host/"]),
                "--bulk" => is_selector(&["host/", "tcp/", "udp/"]),
                _ => false,
            },
            "{options:?}"
        );
    }
}
