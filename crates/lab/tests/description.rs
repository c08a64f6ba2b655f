//! Properties of all descriptions, for any content.

use linerate_lab::bounds::bounds;
use linerate_lab::compile::compile;
use linerate_lab::description::{BottleneckQueue, CONGESTION_CONTROLS, PathDescription, PathLabel};
use linerate_model::direction::Direction;
use proptest::prelude::*;

/// Lines of the language, valid and invalid, to be combined at random.
const WORDS: &[&str] = &[
    "story = \"s\"",
    "source = \"s\"",
    "label = \"none\"",
    "scenario = \"test far\"",
    "seed = 1",
    "[host.near]",
    "[host.far]",
    "[host.r1]",
    "[[link]]",
    "[link.forward]",
    "[link.backward]",
    "[[traffic]]",
    "between = [\"near\", \"far\"]",
    "between = [\"near\", \"r1\"]",
    "between = [\"r1\", \"far\"]",
    "between = []",
    "mtu = 68",
    "mtu = 1279",
    "mtu = 65535",
    "mtu = 9223372036854775807",
    "rate = \"8 bit/s\"",
    "rate = \"10 Tbit/s\"",
    "rate = \"1 Gbit/s\"",
    "rate = 1",
    "steps = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]",
    "steps = []",
    "link_layer = { framing = \"atm\", overhead = \"8 B\", minimum = \"64 B\" }",
    "link_layer = { framing = \"ptm\", overhead = \"1 B\" }",
    "delay = \"0 ms\"",
    "delay = \"270 s\"",
    "delay = \"1 us\"",
    "jitter = \"1 us\"",
    "distribution = \"pareto\"",
    "loss = \"100 %\"",
    "loss = { every = 100000000 }",
    "loss = { every = 9223372036854775807 }",
    "loss = {}",
    "loss = { gilbert_elliott = { good_to_bad = \"0 %\", bad_to_good = \"0 %\" } }",
    "duplicate = \"100 %\"",
    "corrupt = \"0.0000001 %\"",
    "reorder = { share = \"100 %\", by = \"1 us\" }",
    "buffer = \"1 packet\"",
    "buffer = \"4000000 packets\"",
    "buffer = \"100000 BDP\"",
    "buffer = \"1 h\"",
    "buffer = \"4 GiB\"",
    "buffer = \"1 B\"",
    "queue = \"cake\"",
    "queue = \"red\"",
    "queue = \"sfq\"",
    "queue = \"fq_codel\"",
    "ecn_threshold = \"1 B\"",
    "policer = { rate = \"8 bit/s\", burst = \"1 B\" }",
    "drop_larger_than = \"1 B\"",
    "bleach_ecn = true",
    "rewrite_ect1 = true",
    "queue = \"dualpi2\"",
    "offload = true",
    "congestion_control = \"bbr\"",
    "queueing = \"fq\"",
    "sysctl = { \"net.ipv4.tcp_mem\" = \"1 2 3\" }",
    "sysctl = { \"net.ipv4.tcp_rmem\" = \"1 1 2147483647\" }",
    "server = []",
    "kind = \"bulk\"",
    "kind = \"on-off\"",
    "kind = \"paced\"",
    "kind = \"slow-reader\"",
    "from = \"near\"",
    "to = \"far\"",
    "to = \"near\"",
    "protocol = \"udp\"",
    "streams = 128",
    "start = \"1 h\"",
    "duration = \"1 s\"",
    "on = \"1 ns\"",
    "off = \"1 h\"",
    "= ",
    "\"",
    "[",
    "\u{fc}",
];

/// Required keys of every description, so that random keys reach the checks behind.
const TOP: &str = "story = \"s\"\nsource = \"s\"\nlabel = \"none\"\nscenario = \"test far\"\n[host.near]\n[host.far]\n[[link]]\n\
                   between = [\"near\", \"far\"]\n";

/// Parses `text`; a rejected one has an error with a line, and an accepted one has one plan and finite bounds.
fn read(text: &str) -> Result<(), TestCaseError> {
    match PathDescription::parse("any", text) {
        Err(error) => {
            prop_assert!(error.line() >= 1 && error.line() <= text.split('\n').count(), "{error}");
            let prefix = format!("any.toml:{}: ", error.line());
            prop_assert!(error.to_string().starts_with(&prefix), "{error}");
            prop_assert!(!error.message().is_empty() && !error.advice().is_empty(), "{error}");
        }
        Ok(path) => {
            let again = PathDescription::parse("any", text);
            prop_assert_eq!(again.as_ref(), Ok(&path));
            prop_assert_eq!(compile(&path), compile(&path));
            for way in [Direction::Up, Direction::Down] {
                prop_assert!(bounds(&path, way).segment_rtt >= path.propagation());
            }
        }
    }
    Ok(())
}

/// The reference of all keys.
const REFERENCE: &str = include_str!("../../../docs/paths.md");

#[test]
fn the_reference_names_everything_that_can_be_written() {
    let labels = PathLabel::ALL.iter().map(|label| format!("| `{label}` | {} |", label.meaning()));
    let queues = BottleneckQueue::ALL.iter().map(|queue| format!("`{}`", queue.name()));
    let controls = CONGESTION_CONTROLS.iter().map(|name| format!("`{name}`"));
    for text in labels.chain(queues).chain(controls) {
        assert!(REFERENCE.contains(&text), "not in docs/paths.md: {text}");
    }
    // The error for an unknown key lists all keys of its table.
    for (table, wrong) in [(TOP, "x = 1"), (TOP, "[host.r1]\nx = 1"), (TOP, "[[traffic]]\nx = 1"), ("x = 1\n", TOP)] {
        let Err(error) = PathDescription::parse("any", &format!("{table}{wrong}")) else { panic!("accepted: {wrong}") };
        let keys = error.message().split('`').skip(3).step_by(2);
        for key in keys.filter(|key| !["host", "link", "traffic", "forward", "backward"].contains(key)) {
            assert!(REFERENCE.contains(&format!("`{key}`")), "not in docs/paths.md: {key}");
        }
    }
}

#[test]
fn the_reference_shows_the_actual_error() {
    let text = format!("{TOP}rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\nbuffer = \"45\"\n");
    let Err(error) = PathDescription::parse("my.toml", &text) else { panic!("accepted") };
    assert!(REFERENCE.contains(&format!("```text\n{error}\n```")), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_line(text in ".{0,200}") {
        read(&text)?;
    }

    #[test]
    fn any_lines_of_the_language_are_read_or_refused(words in prop::collection::vec(prop::sample::select(WORDS), 0..12)) {
        read(&words.join("\n"))?;
        read(&format!("{TOP}{}", words.join("\n")))?;
    }

    #[test]
    fn any_value_of_a_key_is_read_or_refused(value in "\\PC{0,12}", number in any::<f64>(), unit in "( ?[a-zA-Z%/]{0,8})") {
        for key in ["rate", "delay", "jitter", "loss", "buffer", "ecn_threshold", "duplicate", "drop_larger_than"] {
            let written = value.replace(['\\', '"'], "");
            read(&format!("{TOP}rate = \"1 Mbit/s\"\n{key} = \"{written}\"\n").replacen("rate = \"1 Mbit/s\"\nrate", "rate", 1))?;
            read(&format!("{TOP}{key} = \"{number}{unit}\"\n"))?;
        }
    }

    #[test]
    fn every_possible_link_has_a_plan(
        rate in 8_u64..10_000_000_000_000,
        delay in 0_u64..270_000_000,
        share in 0.0_f64..=100.0,
        milliseconds in 1_u64..100,
        mtu in 68_u32..=65_535,
        queue in prop::sample::select(vec!["fifo", "fq_codel", "codel", "cake", "pie", "fq_pie", "red", "sfq"]),
    ) {
        let text = format!(
            "{TOP}mtu = {mtu}\nrate = \"{rate} bit/s\"\ndelay = \"{delay} us\"\nloss = \"{share} %\"\nqueue = \"{queue}\"\n\
             buffer = \"{milliseconds} ms\"\n"
        );
        let packet = u64::from(mtu) + 14;
        let size = rate * milliseconds / 8000;
        match PathDescription::parse("any", &text) {
            Ok(path) => {
                let plan = compile(&path);
                prop_assert_eq!(plan.namespaces.len(), 3);
                let seeds: usize = plan.namespaces.iter().map(|namespace| namespace.seeds.len()).sum();
                prop_assert_eq!(seeds, if share > 0.0 { 2 } else { 0 });
            }
            // Such a link can only be rejected for its buffer.
            Err(error) => {
                let largest = if queue == "red" { 4_000_000 } else { 4_294_967_295 };
                prop_assert!(size <= packet || size >= largest, "{error}");
            }
        }
    }
}
