//! JSON document of one interval.

use linerate_documents::watch::{SCHEMA, WatchDocument, WatchFlow, WatchLimit, WatchMemory, WatchProcess, WatchShares};
use linerate_model::flow::{BufferOrigin, FlowState};
use linerate_model::limit::LimitShares;
use linerate_sys::clock;
use linerate_units::serde::nanoseconds;
use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount};

use super::events::FlowEventTrace;
use super::flows::{FlowEntry, FlowRow, FlowTable};
use super::limit;

/// Assembles the document.
pub(crate) fn document(flows: &FlowTable, rows: &[FlowRow<'_>]) -> WatchDocument {
    WatchDocument {
        schema: SCHEMA,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        at_unix_ns: nanoseconds(clock::realtime_now().since_unix_epoch()),
        interval_ns: nanoseconds(flows.elapsed),
        flows: rows.iter().map(flow).collect(),
        kernel_events: flows.events.as_ref().map(FlowEventTrace::document),
    }
}

fn flow(row: &FlowRow<'_>) -> WatchFlow {
    let reading = &row.flow.reading;
    let info = reading.info.clone().unwrap_or_default();
    let change = row.flow.change.unwrap_or_default();
    let rate = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
    let bytes = |size: Option<ByteCount>| size.map(ByteCount::get);
    WatchFlow {
        local: reading.key.local.to_string(),
        remote: reading.key.remote.to_string(),
        cookie: format!("{:x}", reading.key.cookie.0),
        state: reading.state,
        process: row.owner.known().map(|owner| WatchProcess { id: owner.process.0, name: owner.name.clone() }),
        process_unknown_because: row.owner.unread().map(|unread| unread.reason.clone()),
        user: reading.user.0,
        control_group: reading.control_group.map(|group| group.0),
        mark: reading.mark.map(|mark| mark.0),
        type_of_service: reading.type_of_service.map(linerate_units::TypeOfService::get),
        send_bits_per_second: rate(change.send_rate),
        receive_bits_per_second: rate(change.receive_rate),
        acknowledged_bytes: bytes(change.acknowledged),
        received_bytes: bytes(change.received),
        retransmitted_segments: change.retransmitted.map(SegmentCount::get),
        retransmission_share: change.retransmission_share.map(Ratio::get),
        rtt_ns: info.rtt.map(nanoseconds),
        min_rtt_ns: info.min_rtt.map(nanoseconds),
        queueing_ns: change.queueing.map(nanoseconds),
        congestion_window_bytes: bytes(info.congestion_window),
        in_flight_bytes: bytes(reading.in_flight()),
        delivery_bits_per_second: rate(info.delivery_rate),
        pacing_bits_per_second: rate(info.pacing_rate),
        send_window_bytes: bytes(info.send_window),
        receive_window_bytes: bytes(info.receive_window),
        receive_queue: reading.receive_queue.get(),
        send_queue: reading.send_queue.get(),
        congestion_control: reading.congestion_control.map(|name| name.to_string()),
        memory: memory(row.flow),
        kernel_events: row.event_document(),
        limit: row.flow.state.as_ref().map(|state| limited(row.flow, state)),
    }
}

fn memory(flow: &FlowEntry) -> Option<WatchMemory> {
    let memory = flow.reading.memory?;
    let set = |origin: fn(&FlowState) -> Option<BufferOrigin>| {
        flow.state.as_ref().and_then(origin).map(|origin| origin == BufferOrigin::SetByApplication)
    };
    Some(WatchMemory {
        receive_allocated_bytes: memory.receive_allocated.get(),
        receive_buffer_bytes: memory.receive_buffer.get(),
        send_queued_bytes: memory.send_queued.get(),
        send_buffer_bytes: memory.send_buffer.get(),
        drops: memory.drops.map(linerate_units::PacketCount::get),
        send_buffer_set: set(|state| state.send_buffer),
        receive_buffer_set: set(|state| state.receive_buffer),
    })
}

fn limited(flow: &FlowEntry, state: &FlowState) -> WatchLimit {
    WatchLimit {
        by: state.limit.kind(),
        summary: limit::short(&state.limit),
        explanation: limit::explanation(flow, state),
        shares: flow.change.and_then(|change| change.limits).map(|limits| shares(&limits)),
    }
}

fn shares(limits: &LimitShares) -> WatchShares {
    WatchShares {
        application: limits.application.get(),
        send_buffer: limits.send_buffer.get(),
        receive_window: limits.receive_window.get(),
        network: limits.network.get(),
    }
}
