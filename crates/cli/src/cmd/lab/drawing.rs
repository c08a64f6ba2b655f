//! Drawing of a path: hosts as boxes, links as lines with the properties of each direction.

use std::fmt::Write as _;
use std::time::Duration;

use linerate_lab::description::{
    BottleneckQueue, BufferSize, EmulatedLink, HostDescription, LinkDirection, LinkFraming, LinkLayer, LossModel,
    PathDescription, TrafficDescription, TrafficKind,
};
use linerate_lab::plan::SysctlSetting;
use linerate_units::{BitRate, display};

use linerate_report::text::wrap_text;

/// Characters of a drawing.
struct LineCharacters {
    top: [&'static str; 3],
    sides: &'static str,
    bottom: [&'static str; 3],
    line: &'static str,
    leave: &'static str,
    enter: &'static str,
    towards_far: &'static str,
    towards_near: &'static str,
}

const UNICODE: LineCharacters = LineCharacters {
    top: ["┌", "─", "┐"],
    sides: "│",
    bottom: ["└", "─", "┘"],
    line: "│",
    leave: "┬",
    enter: "┴",
    towards_far: "▼",
    towards_near: "▲",
};

const ASCII: LineCharacters = LineCharacters {
    top: ["+", "-", "+"],
    sides: "|",
    bottom: ["+", "-", "+"],
    line: "|",
    leave: "+",
    enter: "+",
    towards_far: "v",
    towards_near: "^",
};

/// Column of the links' line.
const LINK_COLUMN: usize = 6;

/// Draws `path`, wrapped at `width` characters.
pub(super) fn draw(path: &PathDescription, width: usize, unicode: bool) -> String {
    let strokes = if unicode { &UNICODE } else { &ASCII };
    let inner = path.hosts.iter().map(|host| host.name.chars().count()).max().unwrap_or(4).max(5) + 2;
    let mut text = String::new();
    for (index, host) in path.hosts.iter().enumerate() {
        draw_host(&mut text, host, index, path, inner, width, strokes);
        if let Some(link) = path.links.get(index) {
            draw_link(&mut text, link, width, strokes);
        }
    }
    for traffic in &path.traffic {
        for (number, line) in wrap_text(&traffic_text(traffic), width.saturating_sub(8)).into_iter().enumerate() {
            let _ = writeln!(text, "  {} {line}", if number == 0 { "also:" } else { "     " });
        }
    }
    text
}

fn draw_host(
    text: &mut String,
    host: &HostDescription,
    index: usize,
    path: &PathDescription,
    inner: usize,
    width: usize,
    strokes: &LineCharacters,
) {
    let (first, last) = (index == 0, index + 1 == path.hosts.len());
    let edge = |corners: [&str; 3], mark: Option<&str>| {
        let stem = LINK_COLUMN - 4;
        let middle: String = (0..inner).map(|column| mark.filter(|_| column == stem).unwrap_or(corners[1])).collect();
        format!("  {}{middle}{}", corners[0], corners[2])
    };
    let details = host_details(host);
    let width = width.saturating_sub(inner + 7).max(24);
    let mut lines = wrap_text(&details, width).into_iter();
    let _ = writeln!(text, "{}", edge(strokes.top, (!first).then_some(strokes.enter)));
    let name = format!(" {:<width$} ", host.name, width = inner - 2);
    let _ = writeln!(text, "  {0}{name}{0}  {1}", strokes.sides, lines.next().unwrap_or_default());
    let bottom = edge(strokes.bottom, (!last).then_some(strokes.leave));
    let _ = writeln!(text, "{}", format!("{bottom}  {}", lines.next().unwrap_or_default()).trim_end());
    for line in lines {
        let stem = if last { " " } else { strokes.line };
        let _ = writeln!(text, "{:>LINK_COLUMN$}{:pad$}{line}", stem, "", pad = inner + 6 - LINK_COLUMN);
    }
}

fn host_details(host: &HostDescription) -> String {
    let mut parts = vec![host.congestion_control.clone()];
    parts.extend(host.queueing.iter().map(|queueing| format!("queueing {queueing}")));
    parts.extend(host.queueing_rate.map(|rate| format!("queueing rate {}", display::rate(rate))));
    parts.extend(host.sysctls.iter().map(setting));
    if let Some(offload) = host.offload {
        parts.push(format!("offloads {}", if offload { "on" } else { "off" }));
    }
    if let Some(server) = &host.server {
        parts.push(
            ["linerate serve".to_owned()].into_iter().chain(server.iter().cloned()).collect::<Vec<_>>().join(" "),
        );
    }
    parts.join(", ")
}

fn setting(sysctl: &SysctlSetting) -> String {
    let name = sysctl.key.strip_prefix("net.ipv4.").unwrap_or(&sysctl.key);
    format!("{name} = {}", sysctl.value)
}

fn draw_link(text: &mut String, link: &EmulatedLink, width: usize, strokes: &LineCharacters) {
    let width = width.saturating_sub(LINK_COLUMN + 6).max(24);
    let mut put = |mark: &str, properties: &str| {
        for (number, line) in wrap_text(properties, width).into_iter().enumerate() {
            let mark = if number == 0 { mark } else { " " };
            let _ = writeln!(text, "{:>LINK_COLUMN$}   {mark} {line}", strokes.line);
        }
    };
    let forward = direction_text(&link.forward);
    let backward = direction_text(&link.backward);
    put(strokes.towards_far, &forward);
    put(strokes.towards_near, if forward == backward { "the same" } else { &backward });
    put(" ", &format!("MTU {}", link.mtu));
}

fn direction_text(direction: &LinkDirection) -> String {
    let mut parts = vec![
        direction.rate.map_or_else(|| "any rate".to_owned(), |rate| rate_text(rate, direction)),
        link_layer_text(direction.layer),
        format!("{} delay", exact(direction.delay)),
    ];
    if let Some(jitter) = direction.jitter {
        parts.push(format!("± {} ({})", exact(jitter.by), jitter.distribution.name()));
    }
    parts.push(queue_text(direction));
    parts.extend(direction.loss.map(loss_text));
    parts.extend(direction.duplicate.map(|share| format!("{} duplicated", display::percent(share))));
    parts.extend(direction.corrupt.map(|share| format!("{} corrupted", display::percent(share))));
    parts.extend(
        direction
            .reorder
            .map(|reorder| format!("{} overtake by {}", display::percent(reorder.share), exact(reorder.by))),
    );
    parts.extend(
        direction.policer.map(|policer| {
            format!("policed at {}, burst {}", display::rate(policer.rate), display::size(policer.burst))
        }),
    );
    parts.extend(direction.drop_larger_than.map(|size| format!("IP packets over {} vanish", display::size(size))));
    parts.extend(direction.ecn_threshold.map(|size| format!("ECN marks above {}", display::size(size))));
    if direction.bleach_ecn {
        parts.push("ECN bits cleared".to_owned());
    }
    if direction.rewrite_ect1 {
        parts.push("ECT(1) becomes ECT(0)".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// Bytes that a packet occupies on the link; empty for virtual Ethernet.
fn link_layer_text(layer: LinkLayer) -> String {
    if layer.is_virtual_ethernet() {
        return String::new();
    }
    let framing = match layer.framing {
        LinkFraming::None => "",
        LinkFraming::Atm => " in ATM cells",
        LinkFraming::Ptm => " in PTM blocks",
    };
    let minimum = if layer.minimum.is_zero() { String::new() } else { format!(", at least {}", layer.minimum.get()) };
    format!("{} B more per packet{minimum}{framing}", layer.overhead.get())
}

/// Rate and its changes: up to four rates one by one, more as their range.
fn rate_text(rate: BitRate, direction: &LinkDirection) -> String {
    let steps = &direction.steps;
    match (steps.as_slice(), steps.last()) {
        ([], _) | (_, None) => display::rate(rate),
        ([_] | [_, _] | [_, _, _], _) if direction.steps_period.is_none() => {
            let later = steps.iter().map(|step| format!(", from {} on {}", exact(step.at), display::rate(step.rate)));
            core::iter::once(display::rate(rate)).chain(later).collect()
        }
        (_, Some(last)) => {
            let first = direction.steps_period.is_none().then_some(rate);
            let rates = || steps.iter().map(|step| step.rate).chain(first);
            let bound = |rate: Option<BitRate>| rate.map(display::rate).unwrap_or_default();
            let (low, high) = (bound(rates().min()), bound(rates().max()));
            match direction.steps_period {
                None => format!("{} rates from {low} to {high}, the last from {} on", steps.len() + 1, exact(last.at)),
                Some(period) => {
                    let mean = display::rate(rate);
                    format!("{} rates from {low} to {high}, mean {mean}, again after {}", steps.len(), exact(period))
                }
            }
        }
    }
}

fn queue_text(direction: &LinkDirection) -> String {
    let holds = match direction.buffer {
        None if direction.queue == BottleneckQueue::Fifo => return String::new(),
        None => String::new(),
        Some(BufferSize::Bytes(size)) => format!(" of {}", display::size(size)),
        Some(BufferSize::Packets(count)) => format!(" of {count} packets"),
        Some(BufferSize::Time(time)) => format!(" of {}", exact(time)),
        Some(BufferSize::Multiple(ratio)) => format!(" of {} BDP", ratio.get()),
    };
    format!("{} queue{holds}", direction.queue.name())
}

fn loss_text(loss: LossModel) -> String {
    match loss {
        LossModel::Random(share) => format!("{} lost", display::percent(share)),
        LossModel::Every(count) => format!("each {count}th packet lost"),
        LossModel::GilbertElliott { .. } => format!("{} lost in bursts", display::percent(loss.mean())),
    }
}

fn traffic_text(traffic: &TrafficDescription) -> String {
    let how = match traffic.kind {
        TrafficKind::Bulk => "as much as the path carries".to_owned(),
        TrafficKind::Paced { rate } => format!("paced at {}", display::rate(rate)),
        TrafficKind::OnOff { rate, on, off } => {
            format!("{} for {}, nothing for {}", display::rate(rate), exact(on), exact(off))
        }
        TrafficKind::SlowReader { rate } => format!("read at {}", display::rate(rate)),
        TrafficKind::ApplicationPaced { rate } => format!("written at {}", display::rate(rate)),
    };
    format!("{} → {}: {} flow(s), {how}, from {}", traffic.from, traffic.to, traffic.streams, exact(traffic.start))
}

/// Time as in the description, in milliseconds: rounding would describe a different path.
fn exact(time: Duration) -> String {
    let text = format!("{:.6}", time.as_secs_f64() * 1e3);
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}
