#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_model::fuzzing::model_autonomous_systems(data));
