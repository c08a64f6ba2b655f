//! Sizes of buffers and of the memory of all sockets.

use linerate_model::host::HostFacts;
use linerate_model::host::defaults::{KernelDefault, default_of};
use linerate_model::host::memory::HostMemory;
use linerate_model::host::settings::numbers;
use linerate_units::ByteCount;

use super::ValueContext;

/// Largest first buffer of a connection, in bytes.
pub(crate) const MAX_INITIAL_BUFFER: i64 = 524_288;
/// Accuracy of defaults that the kernel computes from its memory, as a share.
const MIN_SHARE_OF_DEFAULT: f64 = 0.95;
/// Part of a host's memory that TCP or one limit may take.
const MEMORY_PARTS: u64 = 4;
const TOTAL: &str = "net.ipv4.tcp_mem";

/// Reason against a size of a buffer or of the memory of all sockets.
pub(super) fn unsuitable(context: &ValueContext, key: &str, value: &str) -> Option<String> {
    let found = numbers(value)?;
    match key {
        "net.core.rmem_default" | "net.core.wmem_default" => unused_by_tcp(context, key, &found),
        "net.ipv4.tcp_mem" | "net.ipv4.udp_mem" => in_bytes(&context.memory, &found)
            .map(|pages| format!("it is written in bytes, but counts pages: {pages}"))
            .or_else(|| too_many_pages(context, key, &found))
            .or_else(|| below_default(context, key, &found)),
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => below_default(context, key, &found)
            .or_else(|| large_first_buffer(&found))
            .or_else(|| too_large(context, key, &found)),
        "net.core.rmem_max" | "net.core.wmem_max" | "net.core.optmem_max" | "net.ipv4.tcp_limit_output_bytes" => {
            below_default(context, key, &found).or_else(|| too_large(context, key, &found))
        }
        _ => None,
    }
}

/// Memory of all TCP sockets at which pressure begins, by a running value that is right; else by the kernel's default.
pub(super) fn plausible_pressure(host: &HostFacts) -> Option<ByteCount> {
    let running = host.settings.numbers(TOTAL).filter(|found| found.len() == 3);
    let running = running.filter(|found| in_bytes(&host.memory, found).is_none());
    let usual = default_of(TOTAL, host.kernel.version()?, &host.memory).and_then(|usual| numbers(&usual.value));
    let pages = |found: Vec<i64>| host.memory.pages(u64::try_from(found[1]).ok()?);
    running.and_then(pages).max(usual.and_then(pages))
}

/// Limit of the memory of all TCP sockets, if the numbers are plausible.
pub(super) fn plausible_limit(memory: &HostMemory, found: &[i64]) -> Option<ByteCount> {
    let plausible = found.len() == 3 && in_bytes(memory, found).is_none();
    memory.pages(u64::try_from(*found.last().filter(|_| plausible)?).ok()?)
}

/// True when a limit is smaller than the kernel's. The first of three numbers only applies under memory pressure.
pub(crate) fn is_below(found: &[i64], standard: &[i64], exact: bool) -> bool {
    let pairs = found.iter().zip(standard).skip(usize::from(standard.len() == 3));
    let mut pairs = pairs.filter(|(_, standard)| **standard > 0);
    let small = |found: i64, standard: i64| if exact { found < standard } else { is_below_share(found, standard) };
    pairs.any(|(found, standard)| small(*found, *standard))
}

#[expect(clippy::cast_precision_loss, reason = "both are far below 2^52")]
fn is_below_share(found: i64, standard: i64) -> bool {
    (found as f64) < standard as f64 * MIN_SHARE_OF_DEFAULT
}

/// Description of three numbers as pages, if they are implausible as such.
pub(crate) fn in_bytes(memory: &HostMemory, found: &[i64]) -> Option<String> {
    let [low, pressure, most] = *found else { return None };
    let total = memory.total.known()?;
    let size = |pages: i64| memory.pages(u64::try_from(pages).unwrap_or_default());
    let (begins, limit): (ByteCount, ByteCount) = (size(pressure)?, size(most)?);
    let absurd = limit.get() > total.get().saturating_mul(2) && low.saturating_mul(4) < most;
    absurd.then(|| format!("pressure begins at {begins}, and the limit is {limit} on a host with {total}"))
}

fn usual(context: &ValueContext, key: &str) -> Option<(KernelDefault, Vec<i64>)> {
    let default = default_of(key, context.version?, &context.memory)?;
    let values = numbers(&default.value)?;
    Some((default, values))
}

fn below_default(context: &ValueContext, key: &str, found: &[i64]) -> Option<String> {
    let (default, values) = usual(context, key).filter(|_| !context.is_measured)?;
    is_below(found, &values, default.exact)
        .then(|| format!("it is below this kernel's default {} ({})", default.value, default.reason))
}

fn unused_by_tcp(context: &ValueContext, key: &str, found: &[i64]) -> Option<String> {
    let (default, values) = usual(context, key)?;
    (found != values).then(|| format!("TCP does not use it, and {} is enough for other sockets", default.value))
}

fn large_first_buffer(found: &[i64]) -> Option<String> {
    let first = *found.get(1)?;
    (first > MAX_INITIAL_BUFFER).then(|| format!("every connection would begin with {first} bytes"))
}

/// Reason against a buffer that all sockets together cannot have.
fn too_large(context: &ValueContext, key: &str, found: &[i64]) -> Option<String> {
    let most = u64::try_from(*found.last()?).ok()?;
    let default = usual(context, key).and_then(|(_, values)| u64::try_from(*values.last()?).ok()).unwrap_or(0);
    let by_memory = context.memory.total.known().map(|total| total.get() / MEMORY_PARTS);
    let by_pressure = context.pressure.filter(|_| key.contains(".tcp_")).map(|pressure| pressure.get() / 2);
    let bound = [by_memory, by_pressure].into_iter().flatten().min()?.max(default);
    (most > bound).then(|| {
        format!(
            "one connection could take {}; this host has memory for {}",
            ByteCount::new(most),
            ByteCount::new(bound)
        )
    })
}

fn too_many_pages(context: &ValueContext, key: &str, found: &[i64]) -> Option<String> {
    let limit = context.memory.pages(u64::try_from(*found.last()?).ok()?)?;
    let total = context.memory.total.known()?;
    let default =
        usual(context, key).and_then(|(_, values)| context.memory.pages(u64::try_from(*values.last()?).ok()?));
    let present = context.limit.filter(|_| key == TOTAL);
    let kept = default.max(present).unwrap_or_default();
    let bound = ByteCount::new(total.get() / MEMORY_PARTS).max(kept);
    (limit > bound).then(|| format!("the limit would be {limit} on a host with {total}: at most a quarter"))
}
