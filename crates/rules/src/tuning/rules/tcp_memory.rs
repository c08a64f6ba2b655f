//! The memory limit of all TCP sockets is too small for the buffers of this transfer.

use linerate_analysis::formulas::{PageCount, memory_of_pages, pages_of_memory};
use linerate_model::change::{ChangeGroup, EffectTiming};
use linerate_model::diagnosis::Cause;
use linerate_units::{ByteCount, display};

use super::super::buffers::{BUFFER_CAUSES, SocketBuffer, held_memory};
use super::super::inputs::TuningHost;
use super::super::support::{SettingProposal, exact_size, refuse, rounded_up};
use super::super::test_cases::{host, rhel};
use super::super::{HostEnd, RuleAnswer, TuningInputs, TuningRule};

const ID: &str = "tcp-memory";
const KEY: &str = "net.ipv4.tcp_mem";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: ChangeGroup::Buffers,
    explanation: "tcp_mem limits the memory of all TCP sockets of a kernel, in pages: above the second number the \
    kernel shrinks buffers, above the third it drops. A buffer for a long path without a matching total stalls: \
    measured at 10 Gbit/s and 117 ms with the kernel's total of a host with 6 GiB.\n\nIt is only raised where the \
    buffers of a plan do not fit, or where the kernel ran short, and never above a quarter of the memory.",
    citation: "Documentation/networking/ip-sysctl.rst (tcp_mem); lab:rhel-10g-117ms-default-memory",
    causes: &[Cause::ReceiveWindow, Cause::SendBuffer, Cause::KernelMemory],
    unmeasured: true,
    propose,
    fires: || {
        let values = [
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            (KEY, "72132 96179 144264"),
        ];
        rhel(host(&values))
    },
    silent: || {
        let values = [
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            (KEY, "190000 255000 380000"),
        ];
        rhel(host(&values))
    },
};

fn propose(inputs: &TuningInputs) -> Vec<RuleAnswer> {
    let raised = inputs.cause().is_none_or(|cause| BUFFER_CAUSES.contains(&cause));
    if inputs.one_kernel {
        let all: Vec<BufferDemand> =
            [HostEnd::Near, HostEnd::Far].into_iter().flat_map(|end| holds(inputs, end, raised)).collect();
        let with_total = inputs.known_hosts().find(|(_, host)| host.triple(KEY).is_some());
        let end = with_total.map_or(HostEnd::Near, |(end, _)| end);
        let sum = all.iter().map(|hold| hold.size).sum();
        return kernel_answers(inputs, end, &all, sum);
    }
    let ends: Vec<HostEnd> = inputs.known_hosts().map(|(end, _)| end).collect();
    ends.into_iter()
        .flat_map(|end| {
            let all = holds(inputs, end, raised);
            // One direction after the other: the larger of the two must fit.
            let sum = all.iter().map(|hold| hold.size).max().unwrap_or(ByteCount::ZERO);
            kernel_answers(inputs, end, &all, sum)
        })
        .collect()
}

/// Memory that one buffer of one direction may hold, over all connections.
struct BufferDemand {
    size: ByteCount,
    grows: bool,
}

fn holds(inputs: &TuningInputs, end: HostEnd, raised: bool) -> Vec<BufferDemand> {
    let transfers = inputs.transfers();
    let pairs = transfers.iter().flat_map(|transfer| SocketBuffer::ALL.map(|buffer| (transfer, buffer)));
    pairs
        .filter(|(transfer, buffer)| buffer.end(transfer) == end)
        .filter_map(|(transfer, buffer)| {
            let now = inputs.host(end)?.triple(buffer.key())?[2];
            let grows = raised && buffer.recommended_size(inputs, transfer).is_some_and(|target| target.get() > now);
            Some(BufferDemand { size: held_memory(inputs, transfer, buffer, raised)?, grows })
        })
        .collect()
}

fn kernel_answers(inputs: &TuningInputs, end: HostEnd, holds: &[BufferDemand], sum: ByteCount) -> Vec<RuleAnswer> {
    let is_short = inputs.cause() == Some(Cause::KernelMemory);
    let Some(host) = inputs.host(end).filter(|_| is_short || holds.iter().any(|hold| hold.grows)) else {
        return Vec::new();
    };
    let wanted = rounded_up(ByteCount::from_f64(sum.as_f64() * 1.5));
    let Some(now) = host.triple(KEY) else {
        let text = format!(
            "net.ipv4.tcp_mem is not visible there (one setting for the whole kernel): make sure that its second \
            number is at least {} pages ({}).",
            wanted.get().div_ceil(host.page_size().get()),
            display::size_binary(wanted)
        );
        return vec![refuse(ID, Some(end), inputs, text)];
    };
    let pressure = memory_of_pages(PageCount::new(now[1]), host.page_size());
    if pressure >= wanted && !(is_short && is_below_default(host, now)) {
        return Vec::new();
    }
    let Some(memory) = host.memory else {
        let text = format!("{} of TCP memory would be needed, but the host's memory is unknown.", exact_size(wanted));
        return vec![refuse(ID, Some(end), inputs, text)];
    };
    raise(inputs, end, host, now, (sum, wanted, memory)).unwrap_or_default()
}

/// True when the limit is below the kernel's default, beyond the accuracy of its memory size.
fn is_below_default(host: &TuningHost, now: [u64; 3]) -> bool {
    host.default_triple(KEY).is_some_and(|usual| now[1] < usual[1] / 100 * 95)
}

fn raise(
    inputs: &TuningInputs,
    end: HostEnd,
    host: &TuningHost,
    now: [u64; 3],
    (sum, wanted, memory): (ByteCount, ByteCount, ByteCount),
) -> Option<Vec<RuleAnswer>> {
    let pages = |bytes: ByteCount| pages_of_memory(bytes, host.page_size()).map(PageCount::get);
    // Three sixteenths for pressure and a quarter in all leave the remainder to other users.
    let (quarter, part) = (pages(memory)? / 4, pages(memory)? / 16 * 3);
    let usual = host.default_triple(KEY).unwrap_or_default();
    let pressure = pages(wanted)?.max(usual[1]).min(part);
    let mut answers = Vec::new();
    if pages(wanted)? > part.max(now[1]) {
        let text = format!(
            "All connections together should have {} before the kernel comes under pressure, but 3/16 of the memory of \
             {} is the largest proposed value: use fewer connections, or a host with more memory.",
            display::size_binary(wanted),
            display::size_binary(memory),
        );
        answers.push(refuse(ID, Some(end), inputs, text));
    }
    if pressure <= now[1] {
        return Some(answers);
    }
    // A present limit beyond the memory was written in bytes, and does not stay.
    let kept = Some(now[2]).filter(|pages| *pages <= quarter * 8).unwrap_or_default();
    let most = (pressure + pressure / 2).min(quarter).max(kept);
    let own = if usual[1] >= pressure { "; the kernel's default is more" } else { "" };
    let setting = SettingProposal {
        rule: ID,
        end,
        key: KEY,
        to: format!("{} {pressure} {most}", (pressure / 4 * 3).max(now[0])),
        group: ChangeGroup::Buffers,
        takes_effect: EffectTiming::Now,
        text: format!(
            "All connections together come under pressure at {}: the buffers of this transfer do not fit, and it would \
                stall.",
            display::size_binary(host.page_size() * now[1])
        ),
        arithmetic: Some(format!(
            "1.5 x {} of buffers / {} B = {} pages{own}; in all at most 1.5 times that and 1/4 of {}",
            display::size_binary(sum),
            host.page_size().get(),
            wanted.get().div_ceil(host.page_size().get()),
            display::size_binary(memory)
        )),
        evidence: Vec::new(),
        risk: "the kernel may hold this memory, and it cannot be swapped out",
    };
    answers.extend(setting.answer(inputs));
    Some(answers)
}
