#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_export::fuzzing::export_http_request(data));
