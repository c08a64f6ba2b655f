#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_shape::fuzzing::shape_wondershaper(data));
