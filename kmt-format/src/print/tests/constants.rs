//! Names in print fmts whose values the file keeps.

use super::COMMON;
use crate::kernel::ByteOrder;
use crate::print::{EventText, PrintEnv, Printer};
use crate::read::Trace;
use crate::write::{Writer, WriterOptions};

const FORMAT: &str = "\tfield:int state;\toffset:8;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%s %s\", __print_flags(REC->state, \"|\", {I_NEW, \"NEW\"}, {I_OLD, \"OLD\"}), \
    __print_symbolic(REC->state, {I_BOTH, \"both\"})\n";

/// Text of an event of that state.
fn printed(constants: &str, state: i64) -> String {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Big, 8).trace_uuid([0; 16])).unwrap();
    writer.add_format("sys", &format!("name: ev\nID: 700\nformat:\n{COMMON}{FORMAT}")).unwrap();
    writer.add_metadata(&[("constants", constants.as_bytes())]).unwrap();
    let mut record = vec![0x02, 0xbc, 0, 0, 0, 0, 0, 7];
    ByteOrder::Big.push(&mut record, state as u64, 4);
    writer.add_event(0, 1_000, &record).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let event = trace.events().unwrap().next().unwrap();
    Printer::new(&trace).text(&event)
}

#[test]
fn names_have_the_values_that_the_file_keeps() {
    let all = "I_NEW=1 I_OLD=-2147483648 I_BOTH=-2147483647 I_BAD=x =3 \u{1}";
    assert_eq!(printed(all, -2_147_483_647), "ev: NEW|OLD both\n");
    assert_eq!(printed("I_NEW=1", 3), "ev: NEW|0x2 0x3\n", "what has no value stays a number");
}

/// A file cannot make a reader keep millions of names.
#[test]
fn a_reader_takes_4096_names_and_no_more() {
    let many = |before: usize| {
        let others: String = (0..before).map(|i| format!("N{i}=7 ")).collect();
        printed(&format!("{others}I_NEW=1"), 1)
    };
    assert!(many(4_095).starts_with("ev: NEW "));
    assert!(many(4_096).starts_with("ev: 0x1 "));
}

#[test]
fn names_without_values_are_known_to_a_recorder() {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Big, 8).trace_uuid([0; 16])).unwrap();
    writer.add_format("sys", &format!("name: ev\nID: 700\nformat:\n{COMMON}{FORMAT}")).unwrap();
    writer.declare(700).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let env = PrintEnv::new(ByteOrder::Big, 8).with_constant("I_NEW", 1);
    trace.schema().classes().for_each(|(_, class)| drop(EventText::new(class, &env)));
    assert_eq!(env.unknown_names().into_iter().collect::<Vec<_>>(), ["I_BOTH", "I_OLD"]);
}
