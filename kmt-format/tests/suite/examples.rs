//! The examples do what they say.
#![allow(dead_code)]

use std::fs;
use std::path::Path;

use kmt_format::read::Trace;

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
    let text = reader::run(&file).unwrap();
    assert_eq!(text, "CPU 0: 3 events are missing here\n0 bytes by kmalloc in 2 events\n");
}

#[test]
fn what_the_converter_writes_is_what_the_kernel_prints() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["x86_64-6.1", "s390x-6.1", "armhf-6.1"] {
        let file = converter::run(&data.join(name).join("tracefs")).unwrap();
        let text = reader::run(&file).unwrap();
        let kernel = fs::read_to_string(data.join(name).join("trace.txt")).unwrap();
        let of_cpu: Vec<&str> = kernel.lines().filter(|l| l.contains("[000]")).collect();
        let bytes = of_cpu.iter().filter(|l| l.contains(" kmalloc: ")).map(|l| {
            let size = l.split("bytes_alloc=").nth(1).unwrap().split(' ').next().unwrap();
            size.parse::<u64>().unwrap()
        });
        let said = format!("{} bytes by kmalloc in {} events\n", bytes.sum::<u64>(), of_cpu.len());
        assert!(text.ends_with(&said), "{name}: {said}{text}");
    }
}
