//! The examples do what they say.
#![allow(dead_code)]

use std::fs;
use std::path::Path;

use kmt_format::read::{Item, Trace};

#[path = "../../examples/converter.rs"]
mod converter;
#[path = "../../examples/reader.rs"]
mod reader;
#[path = "../../examples/writer.rs"]
mod writer;

#[test]
fn what_the_writer_writes_can_be_read() {
    let file = writer::run().unwrap();
    let trace = Trace::open(&file).unwrap();
    assert_eq!((trace.event_count(), trace.is_finished(), trace.damage_count()), (2, true, 0));
    let losses = trace.items().filter(|item| matches!(item, Item::Loss(gap) if gap.loss.counted == 3));
    assert_eq!(losses.count(), 1);
    assert_eq!(trace.events().unwrap().next().unwrap().comm(), Some(&b"init"[..]));
    assert_eq!(reader::run(&file).unwrap(), "", "no allocation");
}

#[test]
fn the_reader_adds_up_what_was_not_asked_for() {
    let text = reader::run(&kmt_format::example().unwrap()).unwrap();
    assert_eq!(text, "          30 alloc_file+0x10/0x100\n           0 do_open+0x20/0x100\n");
}

#[test]
fn what_the_converter_writes_is_what_the_kernel_prints() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["x86_64-6.1", "s390x-6.1", "armhf-6.1"] {
        let file = converter::run(&data.join(name).join("tracefs")).unwrap();
        let text = reader::run(&file).unwrap();
        let kernel = fs::read_to_string(data.join(name).join("trace.txt")).unwrap();
        let allocations: Vec<&str> =
            kernel.lines().filter(|l| l.contains("[000]") && l.contains(" bytes_alloc=")).collect();
        let number = |line: &str, name: &str| {
            line.split(name).nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        let waste = |line: &&str| number(line, " bytes_alloc=") - number(line, " bytes_req=");
        let sites = text.lines().map(|l| l.split_whitespace().next().unwrap().parse::<u64>().unwrap());
        assert!(allocations.len() > 10, "{name}");
        assert_eq!(sites.sum::<u64>(), allocations.iter().map(waste).sum::<u64>(), "{name}");
    }
}
