#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_units::fuzzing::units_parse(data));
