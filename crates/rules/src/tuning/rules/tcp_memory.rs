//! All connections together may not hold what the buffers of this transfer need.

use linerate_model::change::{Group, TakesEffect};
use linerate_model::diagnosis::Cause;
use linerate_model::formulas::{PageCount, memory_of_pages, pages_of_memory};
use linerate_units::{ByteCount, display};

use super::super::buffers::{Buffer, CAUSES, held};
use super::super::cases::{host, rhel};
use super::super::inputs::Host;
use super::super::support::{Setting, exact, refuse, rounded_up};
use super::super::{Answer, End, Inputs, TuningRule};

const ID: &str = "tcp-memory";
const KEY: &str = "net.ipv4.tcp_mem";

pub(super) const RULE: TuningRule = TuningRule {
    id: ID,
    group: Group::Buffers,
    explanation: "tcp_mem bounds what all TCP sockets of a kernel hold, in pages: beyond the second number the kernel takes \
                  from buffers, beyond the third it drops. A buffer for a long path without a total to match stalls: \
                  measured at 10 Gbit/s and 117 ms with the kernel's total of a host with 6 GiB.\n\nIt is only raised \
                  where the buffers of a plan do not fit, or where the kernel was seen to run short, and never beyond a \
                  quarter of the memory.",
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

fn propose(inputs: &Inputs) -> Vec<Answer> {
    let raised = inputs.cause().is_none_or(|cause| CAUSES.contains(&cause));
    if inputs.one_kernel {
        let all: Vec<Hold> = [End::Near, End::Far].into_iter().flat_map(|end| holds(inputs, end, raised)).collect();
        let with_total = inputs.ends().find(|(_, host)| host.three(KEY).is_some());
        let end = with_total.map_or(End::Near, |(end, _)| end);
        let sum = all.iter().map(|hold| hold.size).sum();
        return of_kernel(inputs, end, &all, sum);
    }
    let ends: Vec<End> = inputs.ends().map(|(end, _)| end).collect();
    ends.into_iter()
        .flat_map(|end| {
            let all = holds(inputs, end, raised);
            // One way after the other: the larger of the two is what must fit.
            let sum = all.iter().map(|hold| hold.size).max().unwrap_or(ByteCount::ZERO);
            of_kernel(inputs, end, &all, sum)
        })
        .collect()
}

/// What one buffer of one direction may hold, all connections together.
struct Hold {
    size: ByteCount,
    grows: bool,
}

fn holds(inputs: &Inputs, end: End, raised: bool) -> Vec<Hold> {
    let transfers = inputs.transfers();
    let pairs = transfers.iter().flat_map(|transfer| Buffer::ALL.map(|buffer| (transfer, buffer)));
    pairs
        .filter(|(transfer, buffer)| buffer.end(transfer) == end)
        .filter_map(|(transfer, buffer)| {
            let now = inputs.host(end)?.three(buffer.key())?[2];
            let grows = raised && buffer.target(inputs, transfer).is_some_and(|target| target.get() > now);
            Some(Hold { size: held(inputs, transfer, buffer, raised)?, grows })
        })
        .collect()
}

fn of_kernel(inputs: &Inputs, end: End, holds: &[Hold], sum: ByteCount) -> Vec<Answer> {
    let is_short = inputs.cause() == Some(Cause::KernelMemory);
    let Some(host) = inputs.host(end).filter(|_| is_short || holds.iter().any(|hold| hold.grows)) else {
        return Vec::new();
    };
    let wanted = rounded_up(ByteCount::from_f64(sum.as_f64() * 1.5));
    let Some(now) = host.three(KEY) else {
        let text = format!(
            "net.ipv4.tcp_mem is not visible there (it is one for the whole kernel): see that its second number is at \
             least {} pages ({}).",
            wanted.get().div_ceil(host.page().get()),
            display::size_binary(wanted)
        );
        return vec![refuse(ID, Some(end), inputs, text)];
    };
    let pressure = memory_of_pages(PageCount::new(now[1]), host.page());
    if pressure >= wanted && !(is_short && below_default(host, now)) {
        return Vec::new();
    }
    let Some(memory) = host.memory else {
        let text = format!("{} of TCP memory would be needed, but the host's memory is not known.", exact(wanted));
        return vec![refuse(ID, Some(end), inputs, text)];
    };
    raise(inputs, end, host, now, (sum, wanted, memory)).unwrap_or_default()
}

/// Whether it is less than the kernel sets by itself, by more than how it counts its memory.
fn below_default(host: &Host, now: [u64; 3]) -> bool {
    host.default_three(KEY).is_some_and(|usual| now[1] < usual[1] / 100 * 95)
}

fn raise(
    inputs: &Inputs,
    end: End,
    host: &Host,
    now: [u64; 3],
    (sum, wanted, memory): (ByteCount, ByteCount, ByteCount),
) -> Option<Vec<Answer>> {
    let pages = |bytes: ByteCount| pages_of_memory(bytes, host.page()).map(PageCount::get);
    // Three sixteenths for pressure and a quarter in all leave the rest to everything else.
    let (quarter, part) = (pages(memory)? / 4, pages(memory)? / 16 * 3);
    let usual = host.default_three(KEY).unwrap_or_default();
    let pressure = pages(wanted)?.max(usual[1]).min(part);
    let mut answers = Vec::new();
    if pages(wanted)? > part.max(now[1]) {
        let text = format!(
            "All connections together should have {} before the kernel comes under pressure, but 3/16 of the memory of {} \
             is the most that is proposed: use fewer connections, or a host with more memory.",
            display::size_binary(wanted),
            display::size_binary(memory),
        );
        answers.push(refuse(ID, Some(end), inputs, text));
    }
    if pressure <= now[1] {
        return Some(answers);
    }
    let most = (pressure + pressure / 2).min(quarter).max(now[2]);
    let own = if usual[1] >= pressure { "; the kernel's own default is more" } else { "" };
    let setting = Setting {
        rule: ID,
        end,
        key: KEY,
        to: format!("{} {pressure} {most}", (pressure / 4 * 3).max(now[0])),
        group: Group::Buffers,
        takes_effect: TakesEffect::Now,
        text: format!(
            "All connections together come under pressure at {}: the buffers of this transfer do not fit, and it would stall.",
            display::size_binary(host.page() * now[1])
        ),
        arithmetic: Some(format!(
            "1.5 x {} of buffers / {} B = {} pages{own}; in all at most 1.5 times that and 1/4 of {}",
            display::size_binary(sum),
            host.page().get(),
            wanted.get().div_ceil(host.page().get()),
            display::size_binary(memory)
        )),
        evidence: Vec::new(),
        risk: "as much memory may be held by the kernel and cannot be swapped out",
    };
    answers.extend(setting.answer(inputs));
    Some(answers)
}
