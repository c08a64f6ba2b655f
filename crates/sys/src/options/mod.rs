//! Socket options as typed functions: one per option, each over anything that has a file descriptor.

mod buffers;
mod ip;
mod packets;
mod probing;
mod tcp;
mod udp;

pub use buffers::{
    force_receive_buffer, force_send_buffer, receive_buffer, send_buffer, set_receive_buffer, set_receive_low_water,
    set_send_buffer, unacknowledged_bytes, unread_bytes,
};
pub use ip::{
    bind_to_device, check_interface_name, interface_index, is_datagram, is_ipv6, path_mtu, set_dont_fragment,
    set_flow_label, set_ipv6_only, set_path_mtu_probing, set_type_of_service, type_of_service, unset_path_mtu_probing,
};
pub use packets::{
    set_error_extensions, set_hop_limit, set_packet_timestamps, set_path_errors, set_receive_destination,
    set_receive_hop_limit, set_receive_type_of_service,
};
pub use probing::{set_close_by_reset, set_not_sent_low_water};
pub use tcp::{
    KeepaliveSettings, check_congestion, congestion, mss, saved_syn, set_congestion, set_keepalive,
    set_max_pacing_rate, set_mss, set_no_delay, set_receive_timeout, set_reuse_address, set_reuse_port, set_save_syn,
    set_send_timeout, set_user_timeout, set_zero_copy,
};
pub use udp::{
    set_busy_poll, set_receive_queue_overflow_counter, set_receive_timestamps, set_udp_gro, set_udp_segment,
};

#[cfg(test)]
mod tests;
