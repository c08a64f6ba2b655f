#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_engine::tls::fuzzing::tls_pin(data));
