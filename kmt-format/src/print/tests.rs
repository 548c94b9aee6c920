//! One event at a time, through a whole file: the evaluator sees what a reader would give it.

mod built_in;
mod constants;
mod flags;
mod system_calls;

use super::{EventText, PrintEnv, PrintLimits};
use crate::kernel::{ByteOrder, parse_kallsyms};
use crate::read::{Event, Trace};
use crate::write::{Writer, WriterOptions};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// Fields of the test event: offset 8 and on.
const FIELDS: &str = "\tfield:unsigned long addr;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:int num;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:u8 small;\toffset:20;\tsize:1;\tsigned:0;\n\
    \tfield:bool yes;\toffset:21;\tsize:1;\tsigned:0;\n\
    \tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:1;\n\
    \tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc unsigned long[] words;\toffset:36;\tsize:4;\tsigned:0;\n\
    \tfield:u8 ip[16];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:const char * text;\toffset:56;\tsize:8;\tsigned:0;\n";

const KALLSYMS: &[u8] = b"ffffffff81000000 T _stext\nffffffff81000100 t func_a\nffffffff81000200 T func_b\n\
    ffffffff81001000 B _end\nffffffffc0000000 t mod_func\t[mod]\nffffffffc0000040 t mod_next\t[mod]\n";

fn record(order: ByteOrder) -> Vec<u8> {
    let mut out = Vec::new();
    for (value, size) in [(700, 2), (0x18, 1), (0x21, 1), (4321, 4), (0xffff_ffff_8100_0123, 8)] {
        order.push(&mut out, value, size);
    }
    order.push(&mut out, -5i64 as u64, 4);
    out.extend([200, 1, 0xee, 0xee]);
    out.extend(b"task\0\xee\xee\xee");
    order.push(&mut out, 6 << 16 | 64, 4);
    order.push(&mut out, 16 << 16 | 72, 4);
    out.extend([10, 0, 0, 1, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    order.push(&mut out, 0xffff_ffff_8200_0000, 8);
    out.extend(b"cache\0\xee\xee");
    order.push(&mut out, 5, 8);
    order.push(&mut out, 1 << 40, 8);
    out
}

/// Text of the event, and unresolved names.
fn printed(print_fmt: &str, order: ByteOrder) -> (String, Vec<String>) {
    let options = WriterOptions::new(order, 8).trace_uuid([0; 16]);
    let mut writer = Writer::new(options).unwrap();
    let format = format!("name: ev\nID: 700\nformat:\n{COMMON}{FIELDS}\nprint fmt: {print_fmt}\n");
    writer.add_format("sys", &format).unwrap();
    writer.add_symbols(&parse_kallsyms(KALLSYMS, &[], 4096), &[]).unwrap();
    writer.add_event(0, 1_000, &record(order)).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.read(&trace.streams()[&0].chunks[0].0).unwrap();
    let event = Event::new(trace.schema(), &chunk, 0).unwrap();
    let env = PrintEnv::new(order, 8)
        .with_symbols(trace.symbols())
        .with_printk_formats(b"0xffffffff82000000 : \"said\\n\\\"it\\\"\"\n")
        .with_constant("pageblock_order", 9);
    let mut out = Vec::new();
    EventText::new(event.class(), &env).write(&mut out, &event, &env);
    let text = String::from_utf8(out).unwrap();
    let text = text.strip_prefix("ev: ").unwrap().strip_suffix('\n').unwrap().to_owned();
    (text, env.unresolved().into_iter().collect())
}

fn check(print_fmt: &str, expected: &str) {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let (text, unresolved) = printed(print_fmt, order);
        assert_eq!(text, expected, "{print_fmt}");
        assert!(unresolved.is_empty(), "{print_fmt}: {unresolved:?}");
    }
}

#[test]
fn numbers_print_as_c_prints_them() {
    check(
        r#""%d %u %x %#x %o", REC->num, REC->num, REC->small, REC->small, REC->small"#,
        "-5 4294967291 c8 0xc8 310",
    );
    check(
        r#""%5d|%-5d|%05d|%+d|% d", REC->small, REC->small, REC->small, REC->small, REC->small"#,
        "  200|200  |00200|+200| 200",
    );
    check(
        r#""%lx %llu %zu %hhd %hx", REC->addr, REC->addr, REC->addr, REC->small, REC->num"#,
        "ffffffff81000123 18446744071578845475 18446744071578845475 -56 fffb",
    );
    check(r#""%.3d %08lx %c%% %*d|", REC->num, 0x1fUL, 'A', 4, REC->num"#, "-005 0000001f A%   -5|");
    check(r#""%#x %#o", 0, 0"#, "0x0 0");
}

#[test]
fn c_types_decide() {
    check(r#""%d %lu", REC->num < 0, REC->num + 0UL"#, "1 18446744073709551611");
    check(r#""%u", (unsigned int)REC->num >> 28"#, "15");
    check(r#""%d %d", REC->num >> 1, REC->num / 2"#, "-3 -2");
    check(r#""%d", REC->num != -5 ? 1 : REC->addr == -1UL ? 2 : 3"#, "3");
    check(r#""%lx %x", (u64)(u32)REC->addr, (u8)REC->addr"#, "81000123 23");
    check(r#""%d %d", 10 - 4 - 3, 2 + 3 * 4 << 1"#, "3 28");
    check(r#""%d", (( gfp_t)0x40u) | ((((1UL))) << (10))"#, "1088");
    check(r#""%d %d", REC->yes && REC->num, !REC->yes || 0"#, "1 0");
    check(r#""%d", ((unsigned int) ((REC->addr) & ((1U << 20) - 1)))"#, "291");
    check(r#""%d", __builtin_expect(!!(REC->addr >= (unsigned long)-4095), 0) ? 1 : 2"#, "2");
    check(r#""%d", sizeof(unsigned long) * pageblock_order"#, "72");
    check(r#""%d", (((unsigned int)((21 - 12))) < ((unsigned int)(10)) ? 7 : 8)"#, "7");
}

#[test]
fn strings_and_arrays() {
    check(
        r#""%s|%8s|%-8s|%.3s", REC->comm, REC->comm, __get_str(name), __get_str(name)"#,
        "task|    task|cache   |cac",
    );
    check(r#""a" "b %s", REC->yes ? "yes" : "no""#, "ab yes");
    check(r#""%s", (char *)REC->text"#, "said\n\"it\"");
    check(
        r#""%d %lu", __get_dynamic_array_len(words), ((unsigned long *)__get_dynamic_array(words))[1]"#,
        "16 1099511627776",
    );
    check(r#""%s", __print_array(__get_dynamic_array(words), 2, 8)"#, "{0x5,0x10000000000}");
    check(r#""%s %s", __print_hex(REC->ip, 4), __print_hex_str(REC->ip, 2)"#, "0a 00 00 01 0a00");
    check(r#""%d %s", REC->ip[3], __get_bitmask(words)"#, "1 00000100,00000000,00000000,00000005");
    check(r#""%pI4 %*phC", REC->ip, 3, REC->ip"#, "10.0.0.1 0a:00:00");
    check(r#""%*pbl", 128, __get_dynamic_array(words)"#, "0,2,104");
}

#[test]
fn flags_and_symbols() {
    let list = r#"{ 0x18, "BOTH" }, { 0x8UL, "EIGHT" }, { (1 << 5), "BIT" }"#;
    check(&format!(r#""%s", __print_flags(0x3b, "|", {list})"#), "BOTH|BIT|0x3");
    check(&format!(r#""%s", (REC->num) ? __print_flags(REC->small, "|", {list}) : "none""#), "EIGHT|0xc0");
    check(
        r#""%s", __print_flags(REC->small, "", { 0x80, "a" }, { 0x40, "b" }, { 0x8, "c" }, { 0, ((void *)0) })"#,
        "abc",
    );
    check(
        r#""%s %s", __print_symbolic(REC->num, { -5, "five" }), __print_symbolic(REC->small, { 1, "one" })"#,
        "five 0xc8",
    );
    check(r#""%s", __print_symbolic(REC->num, { 5, "five" })"#, "0xfffffffffffffffb");
    check(
        r#""%s", __print_symbolic(REC->small, { 300, "c" }, { 200, "first" }, { 7, "a" }, { 200, "second" })"#,
        "first",
    );
    let long = |last: &str| {
        let others: String = (0..1023).map(|i| format!("{{ {}, \"other\" }}, ", 256 + i)).collect();
        format!(r#""%s", __print_flags(REC->small, "|", {others}{last})"#)
    };
    check(&long(r#"{ 0x80, "TOP" }, { 0x40, "MORE" }"#), "TOP|0x48");
    // Bits with an unknown name stay in hex.
    check(r#""%s", __print_flags(REC->small, "|", { KERNEL_ENUM, "X" }, { 0x80, "TOP" })"#, "TOP|0x48");
    check(r#""%d", __event_in_hardirq()"#, "1");
}

#[test]
fn addresses_are_named() {
    check(
        r#""%pS %ps %p", (void *)REC->addr, (void *)REC->addr, (void *)REC->addr"#,
        "func_a+0x23/0x100 func_a ffffffff81000123",
    );
    check(
        r#""%pB %pS", (void *)0xffffffff81000200, (void *)0xffffffffc0000008"#,
        "func_a+0x100/0x100 mod_func+0x8/0x40 [mod]",
    );
    check(
        r#""%pS %p %px", (void *)0x1234, ((void *)0), (void *)0x1f"#,
        "0x1234 0000000000000000 000000000000001f",
    );
}

#[test]
fn what_the_file_does_not_tell_is_a_question_mark() {
    let check = |print_fmt: &str, expected: &str, what: &str| {
        let (text, unresolved) = printed(print_fmt, ByteOrder::Little);
        assert_eq!(text, expected, "{print_fmt}");
        assert!(unresolved.iter().any(|u| u.contains(what)), "{unresolved:?}");
    };
    check(
        r#""page=%p n=%d", (((struct page *)vmemmap_base) + (REC->addr)), REC->num"#,
        "page=? n=-5",
        "vmemmap_base",
    );
    check(r#""%d %d", some_function(REC->num), REC->num"#, "? -5", "some_function");
    check(r#""%p %d", ({ unsigned long __pfn = 1; __pfn; }), REC->num"#, "? -5", "({");
    check(r#""%d", REC->num / (REC->small - 200)"#, "?", "division by zero");
    check(r#""%d %d", REC->missing, REC->num"#, "? -5", "missing");
    check(r#""%s", REC->addr"#, "?", "%s");
    check(r#""%d %d", REC->num"#, "-5 ?", "missing argument");
}

#[test]
fn hostile_formats_do_not_hang_or_overflow() {
    let deep = format!(r#""%d", {}REC->num{}"#, "(".repeat(50_000), ")".repeat(50_000));
    assert_eq!(printed(&deep, ByteOrder::Little).0, "?");
    let operators = format!(r#""%d", {}REC->num"#, "-~!".repeat(20_000));
    assert_eq!(printed(&operators, ByteOrder::Little).0, "?");
    assert!(printed(r#""%999999999d", REC->num"#, ByteOrder::Little).0.len() <= 1 << 16);
    for odd in
        ["", "\"", "\"%\"", "\"%d", "\"%d\",", "\"%d\", ,", "\"%d\", )", "\"%l\"", "\"%*\"", "x", "\"%p\", &"]
    {
        printed(odd, ByteOrder::Big);
    }
}

/// A kallsyms cut by hand has no `_end`: what is between two symbols is named all the same.
#[test]
fn symbols_without_the_bounds_of_the_image() {
    let options = WriterOptions::new(ByteOrder::Big, 4).trace_uuid([0; 16]);
    let mut writer = Writer::new(options).unwrap();
    writer
        .add_symbols(&parse_kallsyms(b"c0000000 T _stext\nc0000100 t a\nc0000200 t b\n", &[], 4096), &[])
        .unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let resolve =
        |address| trace.symbols().unwrap().resolve(address).map(|r| (r.name.into_owned(), r.offset));
    assert_eq!(resolve(0xc000_0104), Some((b"a".to_vec(), 4)));
    assert_eq!(resolve(0xc000_0204), None, "the end of the last symbol is unknown");
    assert_eq!(resolve(0xbfff_ffff), None);
}

#[test]
fn escapes_and_constants() {
    check(r#""a\tb\x41\101\e[0m\q%d", REC->small"#, "a\tbAA\u{1b}[0mq200");
    check(r#""\a\b\f\v\r|%d", 010"#, "\u{7}\u{8}\u{c}\u{b}\r|8");
    check(r#""%X %#X", REC->small, REC->small"#, "C8 0XC8");
    check(r#""%u %u %u", REC->small / 3u, REC->small % 7u, 5 ^ 3"#, "66 4 6");
    check(r#""%d %d %d", 3 <= 3, !NULL, +REC->small"#, "1 1 200");
    check(r#""%d %d", REC->small && 0, REC->small || 0"#, "0 1");
    check(r#""%lld %lu", __print_ns_to_secs(5000000007ULL), __print_ns_without_secs(5000000007ULL)"#, "5 7");
    check(r#""%x %x", __builtin_bswap16(0x1234), __swab32(0x12345678)"#, "3412 78563412");
    check(r#""%d %d %d", sizeof(bool), sizeof(void *), sizeof(u16)"#, "1 8 2");
    check(r#""%d %d %d", __event_in_hardirq(), __event_in_softirq(), __event_in_irq()"#, "1 1 1");
    check(r#""%d %d", (bool)REC->small, (enum x)3"#, "1 3");
    check(r#""%u", *REC->ip"#, "10");
    check(r#""%s", REC->yes ? "yes" : "no""#, "yes");
}

/// Deep trees cost stack where they are parsed, evaluated and dropped; constants are worked out and are no tree.
#[test]
fn long_print_fmts_are_not_parsed() {
    let long = format!("\"%d\", 1{} + 1", " ".repeat(300_000));
    let (text, unresolved) = printed(&long, ByteOrder::Little);
    assert_eq!(text, "?");
    assert!(
        format!("{unresolved:?}").contains("more than 262144 bytes (the limit `print_fmt`)"),
        "{unresolved:?}"
    );
    let env = PrintEnv::new(ByteOrder::Little, 8);
    let format = format!(
        "name: x\nID: 7\n\tfield:u16 common_type;\toffset:0;\tsize:2;\tsigned:0;\nprint fmt: \"%d\", {}1\n",
        "1 + ".repeat(60_000)
    );
    let class = crate::schema::EventClass::from_format("x", &format, 8).unwrap();
    // Each has 240,000 bytes.
    (0..40).for_each(|_| drop(EventText::new(&class, &env)));
    let raised = |print_fmt, print_fmts| {
        let env = PrintEnv::new(ByteOrder::Little, 8).with_limits(PrintLimits { print_fmt, print_fmts });
        (0..6).for_each(|_| drop(EventText::new(&class, &env)));
        !env.unresolved().iter().any(|what| what.contains("the limit"))
    };
    assert_eq!(
        [raised(100, 1 << 30), raised(1 << 20, 1 << 20), raised(1 << 20, 1 << 30)],
        [false, false, true]
    );
    assert!(env.unresolved().iter().any(|what| what.contains("8388608 with the others")));
}

#[test]
fn depth_is_bounded() {
    let many = 100_000;
    let chain = |term: &str, operator: &str| vec![term; many].join(operator);
    let value = chain("REC->num", "+");
    assert_eq!(printed(&format!("\"%d\", {value}"), ByteOrder::Little).0, "?");
    let value = chain("1", "+");
    check(&format!("\"%d\", {value}"), &many.to_string());
    let value = chain("REC->num", " ? 1 : ");
    assert_eq!(printed(&format!("\"%d\", {value}"), ByteOrder::Little).0, "?");
    let mut nested = "REC->num".to_owned();
    for _ in 0..60 {
        nested = format!("({}", [nested.as_str(), "1"].join(" + ")) + &" + 1".repeat(20) + ")";
    }
    assert_eq!(printed(&format!("\"%d\", {nested}"), ByteOrder::Little).0, "?");
    let mut nested = "REC->num".to_owned();
    for _ in 0..40 {
        nested = format!("likely({nested}{})", " + 1".repeat(20));
    }
    assert_eq!(printed(&format!("\"%d\", {nested}"), ByteOrder::Little).0, "?");
    let value = format!("REC->num{}", " + 1".repeat(200));
    check(&format!("\"%d\", {value}"), "195");
    for opening in ["(", "-", "!", "*", "(int)", "likely(", "REC->words["] {
        let value = opening.repeat(many);
        assert_eq!(printed(&format!("\"%d\", {value}"), ByteOrder::Little).0, "?", "{opening}");
    }
}

/// Each conversion of a width of thousands is a few bytes of the file.
#[test]
fn text_of_an_event_is_bounded() {
    for format in ["%4096d".repeat(1_000), "%*d".repeat(1_000), "literal".repeat(30_000)] {
        let print_fmt = format!("\"{format}\"{}", ", 65536".repeat(2_000));
        let text = printed(&print_fmt, ByteOrder::Little).0;
        assert_eq!(text.len(), 128 << 10);
    }
}

#[test]
fn pointers_to_bytes() {
    check(
        r#""%pI6 %pi6", REC->ip, REC->ip"#,
        "0a00:0001:2000:0000:0000:0000:0000:0001 0a000001200000000000000000000001",
    );
    check(r#""%pI6c %pI4 %pi4", REC->ip, REC->ip, REC->ip"#, "a00:1:2000::1 10.0.0.1 010.000.000.001");
    check(
        r#""%pM %pm %pMR %pMF", REC->ip, REC->ip, REC->ip, REC->ip"#,
        "0a:00:00:01:20:00 0a0000012000 00:20:01:00:00:0a 0a-00-00-01-20-00",
    );
    check(r#""%pU", REC->ip"#, "0a000001-2000-0000-0000-000000000001");
    check(
        r#""%pUl %pUB", REC->ip, REC->ip"#,
        "0100000a-0020-0000-0000-000000000001 0A000001-2000-0000-0000-000000000001",
    );
    check(
        r#""%4ph %4phC %4phD %4phN", REC->ip, REC->ip, REC->ip, REC->ip"#,
        "0a 00 00 01 0a:00:00:01 0a-00-00-01 0a000001",
    );
    check(r#""%px %pS %ps", REC->addr, REC->addr, REC->addr"#, "ffffffff81000123 func_a+0x23/0x100 func_a");
    check(r#""%-20px| %20px|", REC->addr, REC->addr"#, "ffffffff81000123    |     ffffffff81000123|");
}

/// Offsets in the per-CPU area and addresses of user space are in no symbol.
#[test]
fn addresses_that_are_no_places_of_the_kernel() {
    let options = WriterOptions::new(ByteOrder::Little, 8).trace_uuid([0; 16]);
    let text = b"0000000000032b40 A pcpu_hot\nffffffff81000000 T _text\nffffffff81000100 t f\n\
        ffffffff82000000 B _end\n0000606000000040 d brnf_frag_data_storage\t[br_netfilter]\n\
        ffffffffc0000000 t br_init\t[br_netfilter]\n";
    for text in [&text[..], &text[text.iter().position(|&b| b == b'\n').unwrap() + 1..]] {
        let mut writer = Writer::new(options).unwrap();
        writer.add_symbols(&parse_kallsyms(text, &[], 4096), &[]).unwrap();
        let file = writer.finish().unwrap();
        let trace = Trace::open(&file).unwrap();
        let resolve = |address| trace.symbols().unwrap().resolve(address).map(|r| r.name.into_owned());
        assert_eq!(resolve(0xffff_ffff_8100_0108), Some(b"f".to_vec()));
        assert_eq!(resolve(0xffff_ffff_c000_0010), Some(b"br_init".to_vec()));
        for address in [0x7fff_1234_5678, 0x5555_0000_1000, 0x3_2b48, 0x40_0000, 0xffff_8881_0000_1000] {
            assert_eq!(resolve(address), None, "{address:#x}");
        }
    }
}
