#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_sys::kernel_events::fuzzing::sys_symbols(data));
