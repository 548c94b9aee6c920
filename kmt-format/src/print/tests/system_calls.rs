//! System calls as kernels print them.

use super::COMMON;
use crate::kernel::{ByteOrder, KernelVersion};
use crate::print::{EventText, PrintEnv};
use crate::read::Trace;
use crate::schema::EventClass;
use crate::write::{Writer, WriterOptions};

/// The format of an event with these fields after the number of the call.
fn format(name: &str, fields: &[(&str, u64)], long_size: usize) -> String {
    let mut format = format!(
        "name: {name}\nID: 700\nformat:\n{COMMON}\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
    );
    for (number, (field, _)) in fields.iter().enumerate() {
        let offset = 8 + long_size * (number + 1);
        let signed = u8::from(field.starts_with("long "));
        format += &format!("\tfield:{field};\toffset:{offset};\tsize:{long_size};\tsigned:{signed};\n");
    }
    format + "\nprint fmt: \"0x%lx\", 1\n"
}

/// Line of such an event, by a kernel of that version.
fn line(name: &str, fields: &[(&str, u64)], (long_size, version): (usize, (u32, u32))) -> String {
    let order = ByteOrder::Big;
    let mut record = Vec::new();
    for (value, size) in [(700, 2), (0, 1), (0, 1), (4321, 4), (33, 4)] {
        order.push(&mut record, value, size);
    }
    record.resize(8 + 4 + (long_size - 4), 0);
    fields.iter().for_each(|(_, value)| order.push(&mut record, *value, long_size));
    let mut writer = Writer::new(WriterOptions::new(order, long_size).trace_uuid([0; 16])).unwrap();
    writer.add_format("syscalls", &format(name, fields, long_size)).unwrap();
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

fn arguments(names: &[String]) -> Vec<(&str, u64)> {
    names.iter().map(|name| (name.as_str(), 11)).collect()
}

/// A line is not longer than names of arguments are, of which there is a limit.
#[test]
fn long_names_of_arguments_do_not_make_lines_without_end() {
    let names = |len: usize| (10..99).map(|i| format!("int {}{i}", "a".repeat(len - 2))).collect();
    let (names, longer): (Vec<String>, Vec<String>) = (names(180), names(190));
    let text = line("sys_enter_long", &arguments(&names), (8, (6, 18)));
    assert!((16_000..18_000).contains(&text.len()) && text.ends_with(": 0xb)\n"), "{}", text.len());
    let format = format("sys_enter_long", &arguments(&longer), 8);
    let refused = EventClass::from_format("syscalls", &format, 8).unwrap_err().to_string();
    assert!(refused.contains("more than 16,384 bytes"), "{refused}");
}

/// Arguments with texts from user space, since 6.19, have rules of each call.
#[test]
fn calls_with_texts_print_by_their_print_fmt() {
    let texts = [("unsigned long path", 11), ("__data_loc char[] __path_val", 0)];
    assert_eq!(line("sys_enter_acct", &texts, (4, (7, 0))), "sys_enter_acct: 0x1\n");
}
