//! System calls as kernels print them.

use super::COMMON;
use crate::kernel::{ByteOrder, KernelVersion};
use crate::print::{EventText, PrintEnv};
use crate::read::Trace;
use crate::write::{Writer, WriterOptions};

/// Line of an event with these fields after the number of the call, by a kernel of that version.
fn line(name: &str, fields: &[(&str, u64)], (long_size, version): (usize, (u32, u32))) -> String {
    let order = ByteOrder::Big;
    let mut format = format!(
        "name: {name}\nID: 700\nformat:\n{COMMON}\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
    );
    let mut record = Vec::new();
    for (value, size) in [(700, 2), (0, 1), (0, 1), (4321, 4), (33, 4)] {
        order.push(&mut record, value, size);
    }
    record.resize(8 + 4 + (long_size - 4), 0);
    for (number, (field, value)) in fields.iter().enumerate() {
        let offset = 8 + long_size * (number + 1);
        let signed = u8::from(field.starts_with("long "));
        format += &format!("\tfield:{field};\toffset:{offset};\tsize:{long_size};\tsigned:{signed};\n");
        order.push(&mut record, *value, long_size);
    }
    format += "\nprint fmt: \"0x%lx\", 1\n";
    let mut writer = Writer::new(WriterOptions::new(order, long_size).trace_uuid([0; 16])).unwrap();
    writer.add_format("syscalls", &format).unwrap();
    writer.add_event(0, 1_000, &record).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let event = trace.events().unwrap().next().unwrap();
    let env = PrintEnv::new(order, long_size).with_version(Some(KernelVersion::new(version.0, version.1)));
    let mut out = Vec::new();
    EventText::new(event.class(), &env).write(&mut out, &event, &env);
    String::from_utf8(out).unwrap()
}

#[test]
fn system_calls_print_as_the_kernels_code_prints_them() {
    let dup2 = [("unsigned int oldfd", 11), ("unsigned int newfd", 1)];
    assert_eq!(line("sys_enter_dup2", &dup2, (8, (6, 18))), "sys_dup2(oldfd: 0xb, newfd: 1)\n");
    assert_eq!(line("sys_enter_dup2", &dup2, (4, (6, 17))), "sys_dup2(oldfd: b, newfd: 1)\n");
    assert_eq!(line("sys_enter_getpid", &[], (8, (6, 18))), "sys_getpid()\n");
    let failed = [("long ret", (-2i64) as u64)];
    assert_eq!(line("sys_exit_openat", &failed, (8, (4, 4))), "sys_openat -> 0xfffffffffffffffe\n");
    assert_eq!(line("sys_exit_openat", &failed, (4, (6, 18))), "sys_openat -> 0xfffffffe\n");
    assert_eq!(line("sys_exit_dup2", &[("long ret", 1)], (8, (6, 18))), "sys_dup2 -> 0x1\n");
}

/// A line is not longer than names of arguments are, of which there is a limit.
#[test]
fn long_names_of_arguments_do_not_make_lines_without_end() {
    let lines = |name_len: usize| {
        let fields: Vec<(String, u64)> =
            (10..99).map(|i| (format!("int {}{i}", "a".repeat(name_len - 2)), 11)).collect();
        let fields: Vec<(&str, u64)> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        std::panic::catch_unwind(|| line("sys_enter_long", &fields, (8, (6, 18))))
    };
    let text = lines(180).unwrap();
    assert!((16_000..18_000).contains(&text.len()) && text.ends_with(": 0xb)\n"), "{}", text.len());
    assert!(lines(190).is_err(), "89 * 190 bytes and those of the other names");
}

/// Arguments with texts from user space, since 6.19, have rules of each call.
#[test]
fn calls_with_texts_print_by_their_print_fmt() {
    let texts = [("unsigned long path", 11), ("__data_loc char[] __path_val", 0)];
    assert_eq!(line("sys_enter_acct", &texts, (4, (7, 0))), "sys_enter_acct: 0x1\n");
}
