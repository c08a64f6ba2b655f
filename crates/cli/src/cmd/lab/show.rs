//! `linerate lab show`: description of a path, and the figures that the formulas predict for it.

use linerate_model::direction::Direction;
use std::fmt::Write as _;

use linerate_documents::lab_path::{self, DirectionTruth, LabPathDocument, PathTruth, PredictedBounds};
use linerate_lab::bounds::{BottleneckLink, BoundCause, PathBounds, bounds};
use linerate_lab::compile::compile;
use linerate_lab::description::PathDescription;
use linerate_lab::plan::{NamespacePlan, PathPlan};
use linerate_lab::truth::{GroundTruth, round_trip, truth};
use linerate_units::{BitRate, ByteCount, PacketCount, Ratio, display};

use super::{drawing, path};
use crate::cmd::measurement::{DocumentKind, print_json};
use crate::console;
use crate::exit::ExitStatus;
use linerate_report::text::wrap_text;

/// Output format of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShowFormat {
    /// Drawing and table.
    Drawing,
    /// The same figures as JSON.
    Json,
    /// Path description.
    Toml,
    /// Commands that would set it up.
    Plan,
}

/// Selects the format from the options, of which at most one is given.
pub(super) fn show_format(json: bool, toml: bool, plan: bool) -> ShowFormat {
    match (json, toml, plan) {
        (true, ..) => ShowFormat::Json,
        (_, true, _) => ShowFormat::Toml,
        (_, _, true) => ShowFormat::Plan,
        _ => ShowFormat::Drawing,
    }
}

/// Prints the path.
pub(super) fn run(name: &str, form: ShowFormat) -> ExitStatus {
    let found = match path::find(name) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    match form {
        ShowFormat::Toml => console::data(&found.text),
        ShowFormat::Plan => console::data(&plan_text(&compile(&found.description))),
        ShowFormat::Json => print_json(DocumentKind::LabPath, &document(&found.description)),
        ShowFormat::Drawing => console::data(&drawing_page(&found.description, name)),
    }
    ExitStatus::Success
}

/// Drawing and table; `name` is the path as it was typed, which the next command needs.
fn drawing_page(path: &PathDescription, name: &str) -> String {
    let style = console::data_style();
    let width = usize::from(style.width.get());
    let (bold, plain) = if style.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let mut text = format!("{bold}{}{plain}\n", path.name);
    let mut paragraph = |sentence: &str| {
        for line in wrap_text(sentence, width.saturating_sub(2)) {
            let _ = writeln!(text, "  {line}");
        }
    };
    if !path.story.is_empty() {
        paragraph(&path.story);
        paragraph(&format!("Label: {}. {}", path.label.name(), path.label.meaning()));
    }
    if !path.source.is_empty() {
        paragraph(&format!("Source: {}", path.source));
    }
    text.push('\n');
    text.push_str(&drawing::draw(path, width, style.unicode));
    text.push('\n');
    let directions = [bounds(path, Direction::Up), bounds(path, Direction::Down)];
    text.push_str(&table(&directions, width));
    let sizing = compile(path).sizing;
    let _ = writeln!(text);
    for line in wrap_text(&format!("In a guest: {}.", sizing.reason.trim_end_matches('.')), width.saturating_sub(2)) {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "  Try: linerate lab run {name}");
    for line in wrap_text(&format!("which is: linerate {}", path.scenario.join(" ")), width.saturating_sub(7)) {
        let _ = writeln!(text, "       {line}");
    }
    text
}

/// Table of the formulas' results, with both directions side by side.
fn table(directions: &[PathBounds; 2], width: usize) -> String {
    type BoundsColumn = fn(&PathBounds) -> Option<String>;
    let rows: &[(&str, BoundsColumn)] = &[
        ("round trip, all delays", |bounds| Some(format!("{:.3} ms", bounds.base_rtt.as_secs_f64() * 1e3))),
        ("slowest link", |bounds| Some(display::rate(bounds.bottleneck?.rate))),
        ("… at its slowest", |bounds| {
            bounds.bottleneck.filter(rate_varies).map(|link| display::rate(link.lowest_rate))
        }),
        ("bandwidth-delay product", |bounds| bounds.bdp.map(display::size)),
        ("queue there", |bounds| Some(bounds.bottleneck?.buffer.map_or_else(|| "no limit".to_owned(), display::size))),
        ("delay when it is full", |bounds| bounds.bottleneck?.queueing_delay.map(display::duration)),
        ("goodput at most", |bounds| bounds.goodput_ceiling.map(display::rate)),
        ("… through the policer", |bounds| bounds.policer_ceiling.map(display::rate)),
        ("… through the receive window", |bounds| bounds.receive_window_rate.map(display::rate)),
        ("… through the send buffer", |bounds| bounds.send_buffer_rate.map(display::rate)),
        ("… with this loss", |bounds| bounds.loss_rate.map(display::rate)),
        ("slow start", |bounds| bounds.slow_start.map(display::duration)),
    ];
    let mut text = format!("  {:<32}{:>16}{:>16}\n", "by formula", "towards far", "towards near");
    for (name, column) in rows {
        let values = directions.each_ref().map(column);
        if values.iter().any(Option::is_some) {
            let [forward, backward] = values.map(|value| value.unwrap_or_else(|| "–".to_owned()));
            let _ = writeln!(text, "  {name:<32}{forward:>16}{backward:>16}");
        }
    }
    if let Some((cause, lowest)) = directions[0].lowest() {
        let verdict = format!("Towards far, {} sets the limit: {}.", cause_text(cause), display::rate(lowest));
        for line in wrap_text(&verdict, width.saturating_sub(2)) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// True when the rate changes with time.
fn rate_varies(bottleneck: &BottleneckLink) -> bool {
    bottleneck.lowest_rate < bottleneck.rate
}

fn cause_text(cause: BoundCause) -> &'static str {
    match cause {
        BoundCause::Link => "the slowest link",
        BoundCause::Policer => "the policer",
        BoundCause::ReceiveWindow => "the receive window",
        BoundCause::SendBuffer => "the send buffer",
        BoundCause::Loss => "the loss",
    }
}

fn document(path: &PathDescription) -> LabPathDocument {
    let sizing = compile(path).sizing;
    LabPathDocument {
        schema: lab_path::SCHEMA,
        name: path.name.clone(),
        story: path.story.clone(),
        source: path.source.clone(),
        label: path.label,
        scenario: path.scenario.clone(),
        seed: path.seed,
        hosts: path.hosts.iter().map(|host| host.name.clone()).collect(),
        forward: predicted_bounds(&bounds(path, Direction::Up)),
        backward: predicted_bounds(&bounds(path, Direction::Down)),
        truth: path_truth(path),
        guest_memory_bytes: sizing.memory.get(),
        guest_memory_taken_bytes: sizing.taken.get(),
        guest_memory_reason: sizing.reason,
    }
}

fn predicted_bounds(bounds: &PathBounds) -> PredictedBounds {
    let rate = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
    let bottleneck = bounds.bottleneck;
    PredictedBounds {
        base_rtt_seconds: bounds.base_rtt.as_secs_f64(),
        segment_rtt_seconds: bounds.segment_rtt.as_secs_f64(),
        bottleneck_bits_per_second: rate(bottleneck.map(|link| link.rate)),
        bottleneck_lowest_bits_per_second: rate(bottleneck.map(|link| link.lowest_rate)),
        buffer_bytes: bottleneck.and_then(|link| link.buffer).map(ByteCount::get),
        queueing_delay_seconds: bottleneck.and_then(|link| link.queueing_delay).map(|time| time.as_secs_f64()),
        goodput_ceiling_bits_per_second: rate(bounds.goodput_ceiling),
        policer_ceiling_bits_per_second: rate(bounds.policer_ceiling),
        bdp_bytes: bounds.bdp.map(ByteCount::get),
        receive_window_bits_per_second: rate(bounds.receive_window_rate),
        send_buffer_bits_per_second: rate(bounds.send_buffer_rate),
        loss: bounds.loss.map(Ratio::get),
        loss_bits_per_second: rate(bounds.loss_rate),
        slow_start_seconds: bounds.slow_start.map(|time| time.as_secs_f64()),
    }
}

/// IP size of an ICMP echo request of `ping`.
const SMALL_PACKET: ByteCount = ByteCount::new(84);

/// Expected results of a measurement of the path.
fn path_truth(path: &PathDescription) -> PathTruth {
    let forward = direction_truth(&truth(path, Direction::Up));
    PathTruth {
        small_packet_bytes: SMALL_PACKET.get(),
        small_packet_rtt_seconds: round_trip(path, SMALL_PACKET).as_secs_f64(),
        full_packet_bytes: forward.mtu_bytes,
        base_rtt_seconds: path.propagation().as_secs_f64(),
        forward,
        backward: direction_truth(&truth(path, Direction::Down)),
    }
}

fn direction_truth(truth: &GroundTruth) -> DirectionTruth {
    DirectionTruth {
        mtu_bytes: truth.mtu.get(),
        interface_mtu_bytes: truth.interface_mtu.get(),
        black_hole: truth.black_hole,
        capacity_bits_per_second: truth.capacity.map(BitRate::bits_per_second),
        taken_bits_per_second: truth.taken.bits_per_second(),
        contended: truth.contended,
        loss: truth.loss.get(),
        bursty: truth.bursty,
        periodic_loss_packets: truth.periodic_loss.map(PacketCount::get),
        duplication: truth.duplication.get(),
        reordering: !truth.overtaking.is_zero(),
        overtaking_seconds: truth.overtaking.as_secs_f64(),
        jitter_seconds: truth.jitter.as_secs_f64(),
        policer_bits_per_second: truth.policer.map(|policer| policer.rate.bits_per_second()),
        policer_burst_bytes: truth.policer.map(|policer| policer.burst.get()),
        bleaches_ecn: truth.bleaches_ecn,
        rewrites_ect1: truth.rewrites_ect1,
    }
}

/// Commands that would set up the path.
fn plan_text(plan: &PathPlan) -> String {
    let mut text = String::new();
    for setting in &plan.system {
        let _ = writeln!(text, "sysctl -w {}=\"{}\"", setting.key, setting.value);
    }
    for namespace in plan.namespaces.iter().skip(1) {
        let _ = writeln!(text, "ip netns add {}", namespace.name);
    }
    for pair in &plan.pairs {
        let _ = writeln!(
            text,
            "ip link add name {} address {} netns {} type veth peer name {} address {} netns {}",
            pair.a.device, pair.a.mac, pair.a.namespace, pair.b.device, pair.b.mac, pair.b.namespace
        );
    }
    for (number, namespace) in plan.namespaces.iter().enumerate() {
        namespace_text(&mut text, namespace, number == 0);
    }
    for name in &plan.names {
        let _ = writeln!(text, "echo '{name}' >> /etc/hosts");
    }
    text
}

fn namespace_text(text: &mut String, namespace: &NamespacePlan, initial: bool) {
    let _ = writeln!(text, "\n# {}", namespace.name);
    let (inside, option) = if initial {
        (String::new(), String::new())
    } else {
        (format!("ip netns exec {} ", namespace.name), format!("-netns {} ", namespace.name))
    };
    for setting in &namespace.sysctls {
        let _ = writeln!(text, "{inside}sysctl -w {}=\"{}\"", setting.key, setting.value);
    }
    for device in &namespace.without_offloads {
        let _ = writeln!(text, "{inside}ethtool -K {device} tso off gso off gro off tx-udp-segmentation off");
    }
    for line in &namespace.ip {
        let _ = writeln!(text, "ip {option}{line}");
    }
    for line in &namespace.tc {
        let _ = writeln!(text, "tc {option}{line}");
    }
    for seed in &namespace.seeds {
        let _ = writeln!(text, "# netem {} of {}: seed {}", seed.handle, seed.device, seed.seed);
    }
    if let Some(arguments) = &namespace.server {
        let _ = writeln!(text, "{inside}linerate serve {}", arguments.join(" "));
    }
}
