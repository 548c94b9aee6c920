//! Any bytes as a file: opened, every chunk read, merged, every field of every event asked for.
//!
//! Checksums keep random changes out, so they are made right first: the parsers behind them are what is tested.
#![no_main]

use kmt_format::Limits;
use kmt_format::kernel::ByteOrder;
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    look_at(data);
    let mut repaired = data.to_vec();
    repair(&mut repaired);
    look_at(&repaired);
});

fn look_at(data: &[u8]) {
    let Ok(trace) = Trace::open(data, Limits::default()) else { return };
    let header = trace.header();
    let env = PrintEnv::new(header.order, header.long_size).with_symbols(trace.symbols());
    let mut merge = trace.merge();
    let mut line = Vec::new();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let Some(event) = Event::new(trace.schema(), run.chunk, index) else { continue };
            for field in 0..event.class().fields.len() {
                let _ = (event.uint(field), event.bytes(field));
            }
            if line.len() < 1 << 16 {
                EventText::new(event.class(), &env).write(&mut line, &event, &env);
            }
        }
    }
    if let Some(symbols) = trace.symbols() {
        let _ = symbols.resolve(0xffff_ffff_8100_0000);
    }
}

/// Stamps the checksums of the header and of every chunk that the lengths lead to.
fn repair(data: &mut [u8]) {
    let order = if data.get(8) == Some(&1) { ByteOrder::Big } else { ByteOrder::Little };
    let stamp = |data: &mut [u8], at: usize, crc: u32| {
        let bytes = if order == ByteOrder::Big { crc.to_be_bytes() } else { crc.to_le_bytes() };
        if let Some(place) = data.get_mut(at..at + 4) {
            place.copy_from_slice(&bytes);
        }
    };
    if data.len() < 64 {
        return;
    }
    let crc = crc32(&data[..60]);
    stamp(data, 60, crc);
    let salt: [u8; 4] = [data[40], data[41], data[42], data[43]];
    let mut at = 64;
    while at + 64 <= data.len() {
        data[at..at + 4].copy_from_slice(b"KMTC");
        data[at + 4..at + 8].copy_from_slice(&salt);
        let total = order.uint_at(data, at + 16, 8).unwrap_or(0).min(1 << 20) as usize;
        let total = total.max(64).next_multiple_of(64);
        if let Some(body) = data.get(at + 64..at + total) {
            let crc = crc32(body);
            stamp(data, at + 48, crc);
        }
        let crc = crc32(&data[at..at + 60]);
        stamp(data, at + 60, crc);
        at += total;
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}
