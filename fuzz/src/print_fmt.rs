//! Any text as the print fmt of a class with every kind of field.

use std::sync::OnceLock;

use kmt_format::kernel::ByteOrder;
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, EventChunk, Trace};
use kmt_format::schema::EventClass;

use super::event_format;

const FIELDS: &str = "name: fuzzed\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long a;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:int b;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:char c[8];\toffset:20;\tsize:8;\tsigned:1;\n\
    \tfield:__data_loc char[] d;\toffset:28;\tsize:4;\tsigned:0;\n\
    \tfield:__rel_loc u32 e[];\toffset:32;\tsize:4;\tsigned:0;\n\
    \tfield:u8 f;\toffset:36;\tsize:1;\tsigned:0;\n\n\
    print fmt: ";

/// Longest text of an event in bytes, its name apart.
const TEXT_MAX: usize = 128 << 10;

/// Prints one event of each byte order, whose file is made once: only its class has the `print fmt` of the input.
pub fn run(data: &[u8]) {
    static OPENED: OnceLock<[(Trace<'static>, EventChunk<'static>); 2]> = OnceLock::new();
    let text = format!("{FIELDS}{}\n", String::from_utf8_lossy(data));
    let Ok(class) = EventClass::from_format("kmem", &text, 8) else { return };
    let env = PrintEnv::new(ByteOrder::Little, 8);
    let printed = EventText::new(&class, &env);
    let mut line = Vec::new();
    for (trace, chunk) in OPENED.get_or_init(|| [ByteOrder::Little, ByteOrder::Big].map(opened)) {
        let event = Event::new(trace.schema(), chunk, 0).expect("one event");
        let env = PrintEnv::new(trace.header().order, 8);
        line.clear();
        printed.write(&mut line, &event, &env);
        assert!(line.len() <= TEXT_MAX + 16);
        for field in 0..class.fields.len() {
            let _ = printed.field_text(field, &event, &env);
        }
    }
}

/// The same event of each byte order, which stays open: opening a file costs more than a text.
fn opened(order: ByteOrder) -> (Trace<'static>, EventChunk<'static>) {
    let file: &'static [u8] = file(order).leak();
    let trace = Trace::open(file).expect("our own file");
    let chunk = trace.read(&trace.streams()[&3].chunks[0].0).expect("our own file");
    (trace, chunk)
}

/// A file of one event, which prints nothing.
fn file(order: ByteOrder) -> Vec<u8> {
    let mut writer = event_format::writer(order, 8);
    writer.add_format("kmem", &format!("{FIELDS}\"x\"\n")).expect("a good format");
    writer.add_event(3, 1 << 33, &record(order)).expect("a good record");
    writer.finish().expect("no codec")
}

fn record(order: ByteOrder) -> Vec<u8> {
    let mut record = vec![0; 40];
    let put = |record: &mut Vec<u8>, at: usize, value: u64, len: usize| {
        let mut bytes = Vec::new();
        order.push(&mut bytes, value, len);
        record[at..at + len].copy_from_slice(&bytes);
    };
    put(&mut record, 0, 77, 2);
    put(&mut record, 8, 0xffff_8880_0123_4567, 8);
    put(&mut record, 16, 0xffff_fff0, 4);
    record[20..25].copy_from_slice(b"text\0");
    put(&mut record, 28, 5 << 16 | 40, 4);
    put(&mut record, 32, 8 << 16 | 12, 4);
    record[36] = 3;
    record.extend(b"data\0\0\0\0");
    order.push(&mut record, 7, 4);
    order.push(&mut record, 9, 4);
    record
}
