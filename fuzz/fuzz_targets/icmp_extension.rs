#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_wire::fuzzing::icmp_extension(data));
