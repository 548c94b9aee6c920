//! Any text as a format file, and any bytes as a record of it: written, kept verbatim, read back the same, printed.
//!
//! The input is a byte of choices, the text, two NUL, and the record.

use kmt_format::Compression;
use kmt_format::kernel::{ByteOrder, FieldKind, HeaderPage};
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, Trace};
use kmt_format::write::{Keep, Writer, WriterOptions};

pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let split = rest.windows(2).position(|w| w == [0, 0]).unwrap_or(rest.len());
    let text = String::from_utf8_lossy(&rest[..split]);
    let record = rest.get(split + 2..).unwrap_or_default();
    let order = if kind & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let long_size = if kind & 2 == 0 { 8 } else { 4 };
    event(order, long_size, &text, record);
}

pub fn writer(order: ByteOrder, long_size: usize) -> Writer {
    let (align_u64, page_size, trace_uuid, compression) = (None, None, [1; 16], Compression::None);
    Writer::new(
        WriterOptions::new(order, long_size)
            .align_u64(align_u64)
            .page_size(page_size)
            .trace_uuid(trace_uuid)
            .compression(compression),
    )
    .expect("good options")
}

pub fn event(order: ByteOrder, long_size: usize, text: &str, record: &[u8]) {
    let mut plain = writer(order, long_size);
    let Ok(id) = plain.add_format("kmem", text) else { return };
    let mut record = record.to_vec();
    if record.len() < 2 {
        return;
    }
    record.truncate(4_000);
    record.resize(record.len().next_multiple_of(4), 0);
    let mut bytes = Vec::new();
    order.push(&mut bytes, u64::from(id), 2);
    record[..2].copy_from_slice(&bytes);
    if plain.add_event(3, 1 << 33, &record).is_err() {
        return;
    }
    let mut verbatim = writer(order, long_size);
    verbatim.add_format("kmem", text).expect("it was good before");
    let page = HeaderPage {
        timestamp_offset: 0,
        commit_offset: 8,
        commit_size: 8,
        data_offset: 16,
        data_size: 4080,
    };
    let found = verbatim.add_sub_buffer(3, &sub_buffer(&record, order), &page, Keep::Verbatim, |_, _| true);
    assert_eq!(found.expect("the same event").damage, None);
    let (plain, verbatim) = (plain.finish().expect("no codec"), verbatim.finish().expect("no codec"));
    assert_eq!(fields(&plain, order, &record), fields(&verbatim, order, &record));
}

fn sub_buffer(record: &[u8], order: ByteOrder) -> Vec<u8> {
    let mut out = Vec::new();
    order.push(&mut out, 1 << 33, 8);
    order.push(&mut out, record.len() as u64 + 8, 8);
    order.push(&mut out, 0, 4);
    order.push(&mut out, record.len() as u64 + 4, 4);
    out.extend(record);
    out.resize(4096, 0);
    out
}

fn fields(file: &[u8], order: ByteOrder, record: &[u8]) -> String {
    let trace = Trace::open(file).expect("what was written can be opened");
    assert_eq!(trace.damages(), []);
    let chunk = trace.read(&trace.streams()[&3].chunks[0].0).expect("what was written can be read");
    let event = Event::new(trace.schema(), &chunk, 0).expect("one event");
    let mut out = format!("{} ", event.time());
    for (index, field) in event.class().fields.iter().enumerate() {
        if field.kind == FieldKind::Scalar {
            let size = field.size as usize;
            let kernel = order.uint_at(record, field.offset as usize, size);
            let mask = u64::MAX >> (64 - 8 * size);
            assert_eq!(event.uint(index).map(|v| v & mask), kernel);
        }
        out += &format!("{:?} {:?} ", event.uint(index), event.bytes(index));
    }
    let env = PrintEnv::new(order, trace.header().long_size);
    let mut line = Vec::new();
    EventText::new(event.class(), &env).write(&mut line, &event, &env);
    out + &String::from_utf8_lossy(&line)
}
