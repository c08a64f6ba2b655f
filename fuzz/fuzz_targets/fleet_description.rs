#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fleet::fuzzing::fleet_description(data));
