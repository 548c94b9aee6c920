//! Any text as the print fmt of a class with every kind of field.

use kmt_format::kernel::ByteOrder;

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

pub fn run(data: &[u8]) {
    let text = format!("{FIELDS}{}\n", String::from_utf8_lossy(data));
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut record = vec![0; 40];
        let put = |record: &mut Vec<u8>, at: usize, value: u64, len: usize| {
            let mut bytes = Vec::new();
            order.push(&mut bytes, value, len);
            record[at..at + len].copy_from_slice(&bytes);
        };
        put(&mut record, 8, 0xffff_8880_0123_4567, 8);
        put(&mut record, 16, 0xffff_fff0, 4);
        record[20..25].copy_from_slice(b"text\0");
        put(&mut record, 28, 5 << 16 | 40, 4);
        put(&mut record, 32, 8 << 16 | 12, 4);
        record[36] = 3;
        record.extend(b"data\0\0\0\0");
        order.push(&mut record, 7, 4);
        order.push(&mut record, 9, 4);
        event_format::event(order, 8, &text, &record);
    }
}
