//! Links: the properties of each direction, and checks that a path can have them.

use core::time::Duration;

use linerate_analysis::link_layer::{LinkFraming, LinkLayer};
use linerate_units::{BitRate, ByteCount, Mtu, PacketCount, Ratio};
use toml::Spanned;

use super::error::DescriptionProblem;
use super::link_layer::ATM_TRAILER;
use super::quantity::NamedQuantity;
use super::raw::{
    RawDirection, RawGilbertElliott, RawLink, RawLinkLayer, RawLoss, RawLossModel, RawPolicer, RawQuantity,
    RawRateStep, RawReorder,
};
use super::trace::{DeliveryTrace, OPPORTUNITY};
use super::types::{
    BottleneckQueue, BufferSize, DelayJitter, EmulatedLink, JitterDistribution, LinkDirection, LinkReordering,
    LossModel, PolicerDescription, RateStep,
};
use super::unknown;

/// The smallest MTU of IPv4 (RFC 791), and the largest that virtual Ethernet takes.
const MTU_RANGE: core::ops::RangeInclusive<i64> = 68..=65_535;

/// MTU of Ethernet.
const DEFAULT_MTU: u32 = 1500;

/// Maximum count of one of the counters behind `every`.
const MAX_COUNTER: u64 = 10_000;

/// Maximum time of a policer's bucket, which the kernel counts with 32 bits of 64 ns.
const MAX_BURST_TIME: Duration = Duration::from_secs(270);

/// Maximum number of rate changes; longer lists are mistakes.
const MAX_RATE_STEPS: usize = 10_000;

/// Least rate of a step of a trace in bit/s, that of an outage of 25 minutes.
const MIN_STEP_RATE: f64 = 8.0;

/// Maximum size of a queue in bytes, which the kernel counts with 32 bits.
const MAX_BUFFER: u64 = 4_294_967_295;

/// Reader of the files that links name.
type FileReader<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

pub(super) fn links(raw: &[RawLink], read: &mut FileReader<'_>) -> Result<Vec<EmulatedLink>, DescriptionProblem> {
    let links: Vec<EmulatedLink> = raw.iter().map(|raw| link(raw, read)).collect::<Result<_, _>>()?;
    let round_trip = links.iter().map(|link| link.forward.delay + link.backward.delay).sum();
    for (link, raw) in links.iter().zip(raw) {
        for (direction, own) in [(&link.forward, &raw.forward), (&link.backward, &raw.backward)] {
            let raw = raw.direction(own.as_ref());
            check_link_layer(direction, link.mtu, &raw)?;
            check_buffer(direction, link.mtu, &raw, round_trip)?;
        }
    }
    Ok(links)
}

/// Checks that the kernel can have a buffer of the size that results on this path.
fn check_buffer(
    direction: &LinkDirection,
    mtu: Mtu,
    raw: &RawDirection,
    round_trip: Duration,
) -> Result<(), DescriptionProblem> {
    let (Some(buffer), Some(rate), Some(text)) = (direction.buffer, direction.rate, &raw.buffer) else { return Ok(()) };
    let problem = |message: String, advice: &str| Err(DescriptionProblem::new(text.span(), message, advice));
    if matches!(buffer, BufferSize::Multiple(_)) && round_trip.is_zero() {
        let advice = "give a link its delay, or write the buffer in bytes, packets or milliseconds";
        return problem("a path without delay has no bandwidth-delay product".to_owned(), advice);
    }
    let packet = direction.layer.counted(mtu.byte_count());
    let size = buffer.size(direction.layer.counted_rate(rate), round_trip, packet);
    if size.get() > MAX_BUFFER {
        return problem(format!("the buffer comes to {size}, and the kernel's hold 4 GiB"), "write \"unlimited\"");
    }
    if direction.queue == BottleneckQueue::Red && direction.ecn_threshold.is_none() && size > MAX_RED_QUEUE {
        let message = format!("the kernel cannot average a queue of {size}: random early detection goes to 4 MB");
        return problem(message, "write a smaller buffer, an ecn_threshold, or queue = \"codel\"");
    }
    if size < packet {
        return problem(format!("the buffer of {size} does not hold one packet of {packet}"), "write a larger one");
    }
    match direction.ecn_threshold.zip(raw.ecn_threshold.as_ref()) {
        Some((threshold, text)) if threshold >= size => Err(DescriptionProblem::new(
            text.span(),
            format!("the queue never exceeds its buffer of {size}, so never the threshold of {threshold}"),
            "write a threshold below the buffer",
        )),
        _ => Ok(()),
    }
}

/// As [`MAX_RED_QUEUE`], where the average is of two values only.
const MAX_ECN_THRESHOLD: ByteCount = ByteCount::new(100_000_000);

/// The kernel's average and its weight share 32 bits.
const MAX_RED_QUEUE: ByteCount = ByteCount::new(4_000_000);

fn link(raw: &RawLink, read: &mut FileReader<'_>) -> Result<EmulatedLink, DescriptionProblem> {
    let mtu = mtu(raw.mtu.as_ref())?;
    Ok(EmulatedLink {
        is_parallel: raw.parallel.unwrap_or(false),
        mtu,
        forward: direction(&raw.direction(raw.forward.as_ref()), read)?,
        backward: direction(&raw.direction(raw.backward.as_ref()), read)?,
    })
}

fn mtu(raw: Option<&Spanned<i64>>) -> Result<Mtu, DescriptionProblem> {
    let Some(raw) = raw else { return Ok(Mtu::new(DEFAULT_MTU)) };
    let number = *raw.get_ref();
    let advice = "write a number of bytes from 68 to 65535; below 1280 the path has no IPv6";
    match u32::try_from(number) {
        Ok(bytes) if MTU_RANGE.contains(&number) => Ok(Mtu::new(bytes)),
        _ => Err(DescriptionProblem::new(raw.span(), format!("an MTU of {number} bytes is not possible"), advice)),
    }
}

/// A quantity that may be missing.
fn named<'a>(what: &'static str, text: Option<&'a Spanned<RawQuantity>>) -> Option<NamedQuantity<'a>> {
    text.map(|text| NamedQuantity { what, text })
}

fn direction(raw: &RawDirection, read: &mut FileReader<'_>) -> Result<LinkDirection, DescriptionProblem> {
    let share = |what, text: &Option<_>| named(what, Option::as_ref(text)).map(|named| named.share()).transpose();
    let size = |what, text: &Option<_>| named(what, Option::as_ref(text)).map(|named| named.size()).transpose();
    let mut direction = LinkDirection {
        policer: raw.policer.as_ref().map(|raw| policer(raw.get_ref())).transpose()?,
        drop_larger_than: size("the size", &raw.drop_larger_than)?,
        bleach_ecn: raw.bleach_ecn.unwrap_or(false),
        rewrite_ect1: raw.rewrite_ect1.unwrap_or(false),
        queue: raw.queue.as_ref().map(queue).transpose()?.unwrap_or_default(),
        buffer: named("the buffer", raw.buffer.as_ref()).map(|named| named.buffer()).transpose()?.flatten(),
        ecn_threshold: size("the threshold", &raw.ecn_threshold)?,
        rate: named("the rate", raw.rate.as_ref()).map(|named| named.rate()).transpose()?,
        layer: raw
            .link_layer
            .as_ref()
            .map(|raw| link_layer(raw.get_ref()))
            .transpose()?
            .unwrap_or(LinkLayer::VIRTUAL_ETHERNET),
        steps: raw.steps.as_ref().map(steps).transpose()?.unwrap_or_default(),
        steps_period: None,
        delay: named("the delay", raw.delay.as_ref()).map(|named| named.delay()).transpose()?.unwrap_or_default(),
        jitter: jitter(raw)?,
        loss: raw.loss.as_ref().map(loss).transpose()?.flatten(),
        duplicate: share("the share of duplicates", &raw.duplicate)?.filter(|share| share.get() > 0.0),
        corrupt: share("the share of damaged packets", &raw.corrupt)?.filter(|share| share.get() > 0.0),
        reorder: raw.reorder.as_ref().map(|raw| reorder(raw.get_ref())).transpose()?.flatten(),
    };
    if let Some(file) = &raw.trace {
        follow(&mut direction, &trace(raw, file, read)?);
    }
    check_delays(raw, &direction)?;
    check_queue(raw, &direction)?;
    check_steps(raw, &direction)?;
    Ok(direction)
}

/// Maximum overhead and minimum packet size of a link layer.
const MAX_OVERHEAD: ByteCount = ByteCount::new(256);

/// Largest MTU of a link whose layer is a table of sizes in the kernel, one per byte.
const MAX_LINK_LAYER_MTU: Mtu = Mtu::new(9216);

fn link_layer(raw: &RawLinkLayer) -> Result<LinkLayer, DescriptionProblem> {
    let framing = raw.framing.as_ref().map(framing).transpose()?.unwrap_or_default();
    let size = |what, text: &Spanned<RawQuantity>| {
        let size = NamedQuantity { what, text }.size()?;
        if size > MAX_OVERHEAD {
            let message = format!("{what} of {size} exceeds {MAX_OVERHEAD}");
            return Err(DescriptionProblem::new(text.span(), message, "write a size such as \"40 B\""));
        }
        Ok(size)
    };
    let overhead = size("the overhead", &raw.overhead)?;
    if framing == LinkFraming::Atm && overhead < ATM_TRAILER {
        let message = format!("every packet over ATM has a trailer of {ATM_TRAILER}");
        return Err(DescriptionProblem::new(raw.overhead.span(), message, "include it: \"8 B\" or more"));
    }
    let minimum = raw.minimum.as_ref().map(|text| size("the minimum", text)).transpose()?.unwrap_or_default();
    Ok(LinkLayer { framing, overhead, minimum })
}

fn framing(text: &Spanned<String>) -> Result<LinkFraming, DescriptionProblem> {
    LinkFraming::ALL
        .into_iter()
        .find(|framing| framing.name() == text.get_ref())
        .ok_or_else(|| unknown(text, "framing", LinkFraming::ALL.iter().map(|framing| framing.name())))
}

/// Checks that a link layer has a rate at which its bytes take time.
fn check_link_layer(direction: &LinkDirection, mtu: Mtu, raw: &RawDirection) -> Result<(), DescriptionProblem> {
    let Some(text) = &raw.link_layer else { return Ok(()) };
    if direction.rate.is_none() {
        let advice = "add the link's rate: only there bytes take time";
        return Err(DescriptionProblem::new(text.span(), "a link layer without a rate", advice));
    }
    if mtu > MAX_LINK_LAYER_MTU {
        let message = format!("a link layer with an MTU of {mtu}, above {MAX_LINK_LAYER_MTU}");
        return Err(DescriptionProblem::new(text.span(), message, "write a smaller MTU"));
    }
    Ok(())
}

/// Times at which the rate changes, each after the one before.
fn steps(raw: &Spanned<Vec<RawRateStep>>) -> Result<Vec<RateStep>, DescriptionProblem> {
    if raw.get_ref().len() > MAX_RATE_STEPS {
        let message = format!("{} changes of the rate are more than {MAX_RATE_STEPS}", raw.get_ref().len());
        return Err(DescriptionProblem::new(raw.span(), message, "write fewer"));
    }
    let mut steps: Vec<RateStep> = Vec::with_capacity(raw.get_ref().len());
    for RawRateStep { at, rate } in raw.get_ref() {
        let time = NamedQuantity { what: "the time", text: at }.positive_time()?;
        if time.subsec_nanos() % 1_000_000 != 0 {
            return Err(DescriptionProblem::new(at.span(), "the time is not in whole milliseconds", "write \"1.5 s\""));
        }
        if steps.last().is_some_and(|last| last.at >= time) {
            let advice = "write the changes in the order of time, each once";
            return Err(DescriptionProblem::new(at.span(), "the rate already changes at this time, or later", advice));
        }
        steps.push(RateStep { at: time, rate: NamedQuantity { what: "the rate", text: rate }.rate()? });
    }
    Ok(steps)
}

/// Trace of a direction.
fn trace(
    raw: &RawDirection,
    file: &Spanned<String>,
    read: &mut FileReader<'_>,
) -> Result<DeliveryTrace, DescriptionProblem> {
    let name = file.get_ref();
    let problem = |message: String, advice: &str| DescriptionProblem::new(file.span(), message, advice);
    if raw.rate.is_some() || raw.steps.is_some() || raw.link_layer.is_some() {
        return Err(problem(
            "a trace is the rate of its link".to_owned(),
            "remove the trace, or rate, steps and link_layer of this direction",
        ));
    }
    let text = read(name).map_err(|cause| {
        problem(format!("the trace {name} cannot be read: {cause}"), "name a file next to this one")
    })?;
    DeliveryTrace::parse(&text).map_err(|error| {
        let advice = "a line of a trace is the millisecond at which a packet of 1500 bytes can be sent, none less than \
                      the one before";
        problem(format!("the trace {name}, {error}"), advice)
    })
}

/// Gives the direction the rates of a trace; its mean determines the size of a buffer in time.
fn follow(direction: &mut LinkDirection, trace: &DeliveryTrace) {
    let packet = direction.layer.counted(OPPORTUNITY);
    direction.rate = Some(trace.mean_rate(packet));
    direction.steps = trace.steps(packet);
    for step in &mut direction.steps {
        step.rate = step.rate.max(BitRate::from_bits_per_second(MIN_STEP_RATE));
    }
    direction.steps_period = Some(trace.length());
}

/// A rate that changes is enforced by the shaper alone, which exists only with a queue.
fn check_steps(raw: &RawDirection, direction: &LinkDirection) -> Result<(), DescriptionProblem> {
    let spans = [raw.steps.as_ref().map(Spanned::span), raw.trace.as_ref().map(Spanned::span)];
    let Some(span) = spans.into_iter().flatten().next().filter(|_| !direction.steps.is_empty()) else { return Ok(()) };
    let problem = |message: &str, advice: &str| Err(DescriptionProblem::new(span.clone(), message, advice));
    if direction.rate.is_none() {
        return problem("the rate changes, but there is none to begin with", "add the link's rate");
    }
    match (direction.queue, direction.buffer) {
        (BottleneckQueue::Fifo, None) => {
            problem("a rate that changes needs a buffer", "add a buffer, such as \"500 ms\", or a queue")
        }
        // A shaper whose rate changes would give this queue its own limit in bytes.
        (BottleneckQueue::Fifo, Some(BufferSize::Packets(_))) => {
            problem("where the rate changes, the lab's fifo counts bytes", "write the buffer as a size or as a time")
        }
        _ => Ok(()),
    }
}

fn policer(raw: &RawPolicer) -> Result<PolicerDescription, DescriptionProblem> {
    let rate = NamedQuantity { what: "the policer's rate", text: &raw.rate }.rate()?;
    let burst = NamedQuantity { what: "the policer's burst", text: &raw.burst }.size()?;
    if burst.get() > MAX_BUFFER {
        return Err(DescriptionProblem::new(
            raw.burst.span(),
            "the policer's burst exceeds 4 GiB",
            "write a smaller one",
        ));
    }
    if burst / rate > Some(MAX_BURST_TIME) {
        let message =
            format!("the policer's bucket of {burst} takes longer to fill at {rate} than the kernel counts (270 s)");
        return Err(DescriptionProblem::new(raw.burst.span(), message, "write a smaller burst, or a higher rate"));
    }
    Ok(PolicerDescription { rate, burst })
}

fn queue(text: &Spanned<String>) -> Result<BottleneckQueue, DescriptionProblem> {
    BottleneckQueue::ALL
        .into_iter()
        .find(|queue| queue.name() == text.get_ref())
        .ok_or_else(|| unknown(text, "queue", BottleneckQueue::ALL.iter().map(|queue| queue.name())))
}

fn jitter(raw: &RawDirection) -> Result<Option<DelayJitter>, DescriptionProblem> {
    let distribution = raw.distribution.as_ref().map(distribution).transpose()?;
    match (&raw.jitter, &raw.distribution) {
        (None, Some(text)) => {
            Err(DescriptionProblem::new(text.span(), "a distribution without jitter", "add jitter, or remove this"))
        }
        (None, None) => Ok(None),
        (Some(text), _) => {
            let by = NamedQuantity { what: "the jitter", text }.delay()?;
            Ok((!by.is_zero()).then_some(DelayJitter { by, distribution: distribution.unwrap_or_default() }))
        }
    }
}

fn distribution(text: &Spanned<String>) -> Result<JitterDistribution, DescriptionProblem> {
    JitterDistribution::ALL.into_iter().find(|distribution| distribution.name() == text.get_ref()).ok_or_else(|| {
        unknown(text, "distribution", JitterDistribution::ALL.iter().map(|distribution| distribution.name()))
    })
}

fn loss(raw: &Spanned<RawLoss>) -> Result<Option<LossModel>, DescriptionProblem> {
    match raw.get_ref() {
        RawLoss::Share(quantity) => {
            let text = Spanned::new(raw.span(), quantity.clone());
            let share = NamedQuantity { what: "the loss", text: &text }.share()?;
            Ok((share.get() > 0.0).then_some(LossModel::Random(share)))
        }
        RawLoss::Model(RawLossModel { gilbert_elliott: Some(model), every: None }) => gilbert_elliott(model).map(Some),
        RawLoss::Model(RawLossModel { gilbert_elliott: None, every: Some(count) }) => every(count).map(Some),
        RawLoss::Model(_) => Err(DescriptionProblem::new(
            raw.span(),
            "the loss follows one model",
            "write either { gilbert_elliott = { good_to_bad = \"0.1 %\", bad_to_good = \"10 %\" } } or { every = 36000 }",
        )),
    }
}

fn gilbert_elliott(raw: &RawGilbertElliott) -> Result<LossModel, DescriptionProblem> {
    let share = |what, text| NamedQuantity { what, text }.share();
    let optional = |what, text: Option<_>, default| text.map_or(Ok(default), |text| share(what, text));
    let certain = Ratio::from_percent(100.0).unwrap_or_default();
    Ok(LossModel::GilbertElliott {
        good_to_bad: share("the probability", &raw.good_to_bad)?,
        bad_to_good: share("the probability", &raw.bad_to_good)?,
        loss_in_bad: optional("the loss", raw.loss_in_bad.as_ref(), certain)?,
        loss_in_good: optional("the loss", raw.loss_in_good.as_ref(), Ratio::ZERO)?,
    })
}

fn every(count: &Spanned<i64>) -> Result<LossModel, DescriptionProblem> {
    let number = u64::try_from(*count.get_ref()).unwrap_or_default();
    let problem = |message: String, advice: String| Err(DescriptionProblem::new(count.span(), message, advice));
    if !(2..=MAX_COUNTER * MAX_COUNTER).contains(&number) {
        let message = format!("the lab cannot lose one of {} packets", count.get_ref());
        return problem(message, "write a number from 2 to 100000000".to_owned());
    }
    if count_factors(number).is_some() {
        return Ok(LossModel::Every(PacketCount::new(number)));
    }
    let below = (2..number).rev().find(|number| count_factors(*number).is_some()).unwrap_or(MAX_COUNTER);
    problem(
        format!("{number} is not the product of two numbers up to {MAX_COUNTER}, to which the kernel's counters count"),
        format!("write {below}"),
    )
}

/// Counts of two counters, of which the second counts the hits of the first, that find each packet whose number is a
/// multiple of `number`; the second is 1 where one counter is enough. `None` where two are not.
pub(crate) fn count_factors(number: u64) -> Option<(u64, u64)> {
    let second = (1..=MAX_COUNTER).find(|second| number.is_multiple_of(*second) && number / second <= MAX_COUNTER)?;
    Some((number / second, second))
}

fn reorder(raw: &RawReorder) -> Result<Option<LinkReordering>, DescriptionProblem> {
    let share = NamedQuantity { what: "the share that overtakes", text: &raw.share }.share()?;
    let by = NamedQuantity { what: "the time", text: &raw.by }.delay()?;
    if by.is_zero() {
        return Err(DescriptionProblem::new(raw.by.span(), "the time to overtake by is zero", "write \"1 ms\""));
    }
    Ok((share.get() > 0.0).then_some(LinkReordering { share, by }))
}

/// Checks that no packet arrives before it was sent.
fn check_delays(raw: &RawDirection, direction: &LinkDirection) -> Result<(), DescriptionProblem> {
    let delay = direction.delay;
    if let (Some(jitter), Some(text)) = (direction.jitter, &raw.jitter)
        && jitter.by > delay
    {
        let message = format!(
            "a jitter of {:?} exceeds the delay of {delay:?}: packets would arrive before they left",
            jitter.by
        );
        return Err(DescriptionProblem::new(text.span(), message, "write a jitter no larger than the delay"));
    }
    if let (Some(reorder), Some(text)) = (direction.reorder, &raw.reorder)
        && reorder.by + direction.jitter.map_or_else(Default::default, |jitter| jitter.by) > delay
    {
        let message = format!("packets cannot overtake by {:?} on a link with a delay of {delay:?}", reorder.by);
        return Err(DescriptionProblem::new(
            text.span(),
            message,
            "write a 'by' that, with the jitter, is no larger than the delay",
        ));
    }
    Ok(())
}

/// Checks that a queue has a rate at which packets wait.
fn check_queue(raw: &RawDirection, direction: &LinkDirection) -> Result<(), DescriptionProblem> {
    let needs_rate = "add the link's rate: packets wait only where the rate is limited";
    if direction.rate.is_none() {
        let places = [
            (direction.buffer.is_some(), "buffer", raw.buffer.as_ref().map(Spanned::span)),
            (direction.queue != BottleneckQueue::Fifo, "queue", raw.queue.as_ref().map(Spanned::span)),
            (direction.ecn_threshold.is_some(), "threshold", raw.ecn_threshold.as_ref().map(Spanned::span)),
        ];
        if let Some((_, what, Some(span))) = places.into_iter().find(|(is_there, _, span)| *is_there && span.is_some())
        {
            return Err(DescriptionProblem::new(span, format!("a {what} without a rate"), needs_rate));
        }
    }
    if let (BottleneckQueue::Red, None, Some(text)) = (direction.queue, direction.buffer, &raw.queue) {
        let advice = "add a buffer: its thresholds are parts of that";
        return Err(DescriptionProblem::new(text.span(), "random early detection needs a buffer", advice));
    }
    if let (BottleneckQueue::DualPi2, Some(_), Some(text)) = (direction.queue, direction.buffer, &raw.buffer) {
        let advice = "remove the buffer: its size is the kernel's default, 10000 packets";
        return Err(DescriptionProblem::new(text.span(), "the lab does not size the buffer of dualpi2", advice));
    }
    match (direction.ecn_threshold, &raw.ecn_threshold) {
        (Some(_), Some(text)) if !direction.queue.has_threshold() => Err(DescriptionProblem::new(
            text.span(),
            format!("a {} queue has no threshold above which it marks", direction.queue.name()),
            "write queue = \"red\", \"codel\" or \"fq_codel\"",
        )),
        (Some(threshold), Some(text)) if threshold > MAX_ECN_THRESHOLD => {
            let message = format!("the kernel cannot average a queue of {threshold}");
            Err(DescriptionProblem::new(text.span(), message, "write at most \"100 MB\""))
        }
        (Some(threshold), Some(text)) if direction.rate.and_then(|rate| threshold / rate) > Some(MAX_BURST_TIME) => {
            let message = format!("{threshold} take longer to drain than the 270 s that the kernel counts");
            Err(DescriptionProblem::new(text.span(), message, "write a smaller threshold"))
        }
        _ => Ok(()),
    }
}
