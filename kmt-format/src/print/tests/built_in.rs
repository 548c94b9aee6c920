//! The events of the kernel itself, which it prints in C: `print`, `bprint`, `bputs`, `raw_data`, stacks of user space.

use super::{COMMON, KALLSYMS};
use crate::kernel::{ByteOrder, KernelVersion, parse_kallsyms};
use crate::print::{EventText, PrintEnv};
use crate::read::{Event, Trace};
use crate::write::{Writer, WriterOptions};

const ORDER: ByteOrder = ByteOrder::Big;

/// Text of an event of `ftrace:NAME` after its name.
fn printed(name: &str, fields: &str, rest: &[u8], change: impl Fn(PrintEnv<'_>) -> PrintEnv<'_>) -> String {
    let options = WriterOptions::new(ORDER, 8).trace_uuid([0; 16]);
    let mut writer = Writer::new(options).unwrap();
    let format = format!("name: {name}\nID: 5\nformat:\n{COMMON}{fields}\nprint fmt: \"x\"\n");
    writer.add_format("ftrace", &format).unwrap();
    writer.add_symbols(&parse_kallsyms(KALLSYMS, &[], 4096), &[]).unwrap();
    writer.add_event(0, 1, &[&[0, 5, 0, 0, 0, 0, 0, 7], rest].concat()).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.read(&trace.streams()[&0].chunks[0].0).unwrap();
    let event = Event::new(trace.schema(), &chunk, 0).unwrap();
    let env = PrintEnv::new(ORDER, 8).with_symbols(trace.symbols()).with_printk_formats(
        b"0xffffffff82000000 : \"n=%d w=%*d s=%s c=%c p=%p f=%pS l=%llx\\n\"\n0xffffffff82000040 : \"put\\n\"\n",
    );
    let env = change(env);
    let mut out = Vec::new();
    EventText::new(event.class(), &env).write(&mut out, &event, &env);
    String::from_utf8(out).unwrap()
}

const IP: &str = "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n";

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_be_bytes()).collect()
}

#[test]
fn marker_and_puts() {
    let fields = format!("{IP}\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n");
    let rest = [words(&[0xffff_ffff_8100_0104]), b"hello\n\0\0".to_vec()].concat();
    assert_eq!(printed("print", &fields, &rest, |e| e), "func_a: hello\n");
    let with = printed("print", &fields, &rest, |e| e.with_symbol_options(true, true));
    assert_eq!(with, "func_a+0x4/0x100 <ffffffff81000104>: hello\n");
    let zero = [words(&[0]), b"x\n\0\0".to_vec()].concat();
    assert_eq!(printed("print", &fields, &zero, |e| e), "0: x\n");
    let fields = format!("{IP}\tfield:const char * str;\toffset:16;\tsize:8;\tsigned:0;\n");
    let puts = |text: u64| printed("bputs", &fields, &words(&[0x1234, text]), |e| e);
    assert_eq!(puts(0xffff_ffff_8200_0040), "0x00001234: put\n");
    assert_eq!(puts(1), "0x00001234: ?\n");
}

#[test]
fn binary_arguments_of_trace_printk() {
    let fields = format!(
        "{IP}\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n"
    );
    let mut arguments = Vec::new();
    for number in [7u32, 4, 9] {
        arguments.extend(number.to_be_bytes());
    }
    arguments.extend(b"text\0C\0\0");
    arguments.extend(words(&[0xffff_8880_0000_1000, 0xffff_ffff_8100_0104, 0xabc]));
    let rest = [words(&[0xffff_ffff_8100_0104, 0xffff_ffff_8200_0000]), arguments].concat();
    let text = printed("bprint", &fields, &rest, |e| e);
    assert_eq!(text, "func_a: n=7 w=   9 s=text c=C p=ffff888000001000 f=func_a+0x4/0x100 l=abc\n");
    let old = printed("bprint", &fields, &rest, |e| e.with_version(Some(KernelVersion::new(4, 9))));
    assert_eq!(old, text);
    // Without the format, and with arguments that end too early.
    let unknown = [words(&[0, 1]), vec![0; 4]].concat();
    assert_eq!(printed("bprint", &fields, &unknown, |e| e), "0: ?\n");
    let short = [words(&[0, 0xffff_ffff_8200_0000]), vec![0, 0, 0, 7]].concat();
    assert_eq!(printed("bprint", &fields, &short, |e| e), "0: n=7 w=? s=? c=? p=? f=? l=?\n");
}

#[test]
fn stacks_of_user_space_and_raw_data() {
    let fields = "\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";
    let mut rest = vec![0; 8];
    rest.extend(words(&[0x40_1000, 0x40_2000, 0, 0, 0, 0, 0, 0]));
    let text = printed("user_stack", fields, &rest, |e| e);
    assert!(
        text.ends_with("<user stack trace>\n =>  <0000000000401000>\n =>  <0000000000402000>\n"),
        "{text}"
    );
    let fields = "\tfield:unsigned int id;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char buf[];\toffset:12;\tsize:0;\tsigned:0;\n";
    let raw = printed("raw_data", fields, &[0, 0, 0, 9, 1, 2, 3, 4], |e| e);
    assert!(raw.contains("# 9 buf: 01 02 03 04"), "{raw}");
}

#[test]
fn symbols_by_themselves() {
    let mut writer = crate::write::Writer::new(WriterOptions::new(ORDER, 8).trace_uuid([0; 16])).unwrap();
    writer.add_symbols(&parse_kallsyms(KALLSYMS, &[], 4096), &[]).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let env = PrintEnv::new(ORDER, 8).with_symbols(trace.symbols());
    assert_eq!(env.symbol_with_offset(0xffff_ffff_c000_0010), b"mod_func+0x10/0x40 [mod]");
    assert_eq!(env.symbol_with_offset(0x10), b"0x10");
}

#[test]
fn a_stack_of_the_kernel_is_bounded() {
    let fields = "\tfield:unsigned long caller[];\toffset:8;\tsize:0;\tsigned:0;\n";
    let frames: Vec<u8> = (1..=8_000u64).flat_map(|i| (i << 40).to_be_bytes()).collect();
    let text = printed("kernel_stack", fields, &frames, |env| env);
    assert!(text.starts_with("<stack trace>\n => 0x10000000000\n"), "{}", &text[..40]);
    assert!((128 << 10..132 << 10).contains(&text.len()), "{} bytes", text.len());
}
