//! Any text as a format file, and any bytes as a record of it: written, read back the same, and printed.
#![no_main]

use kmt_format::Compression;
use kmt_format::Limits;
use kmt_format::kernel::{ByteOrder, FieldKind};
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, Trace};
use kmt_format::write::{Writer, WriterOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, bool, &str, &[u8])| {
    let (big, wide, text, record) = input;
    let order = if big { ByteOrder::Big } else { ByteOrder::Little };
    let long_size = if wide { 8 } else { 4 };
    let options = WriterOptions { order, long_size, align_u64: None, page_size: None, trace_uuid: [1; 16], compression: Compression::None };
    let Ok(mut writer) = Writer::new(options) else { return };
    let Ok(id) = writer.add_format("kmem", text) else { return };
    let mut record = record.to_vec();
    if record.len() < 2 {
        return;
    }
    let mut bytes = Vec::new();
    order.push(&mut bytes, u64::from(id), 2);
    record[..2].copy_from_slice(&bytes);
    if writer.event(3, 1 << 33, &record).is_err() {
        return;
    }
    let file = writer.finish().expect("no codec");
    let trace = Trace::open(&file, Limits::default()).expect("what was written can be opened");
    assert_eq!(trace.damage_count(), 0, "{:?}", trace.damages());
    let chunk = trace.read(&trace.streams()[&3].chunks[0].0).expect("what was written can be read");
    let event = Event::new(trace.schema(), &chunk, 0).expect("one event");
    for (index, field) in event.class().fields.iter().enumerate() {
        if field.kind == FieldKind::Scalar {
            let size = field.size as usize;
            let kernel = order.uint_at(&record, field.offset as usize, size);
            let mask = u64::MAX >> (64 - 8 * size);
            assert_eq!(event.uint(index).map(|v| v & mask), kernel);
        }
    }
    let env = PrintEnv::new(order, long_size);
    let mut out = Vec::new();
    EventText::new(event.class(), &env).write(&mut out, &event, &env);
});
