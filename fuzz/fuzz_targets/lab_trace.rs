#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_lab::fuzzing::lab_trace(data));
