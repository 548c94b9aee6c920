#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| kmt_fuzz::import::perfetto(data));
