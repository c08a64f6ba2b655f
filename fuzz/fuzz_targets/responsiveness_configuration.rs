#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_web::responsiveness::config::fuzz(data));
