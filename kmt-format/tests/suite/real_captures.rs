//! Slices of real captures: every event comes back, and prints as the kernel that recorded it printed it.

use std::fs;

use crate::support::{captures, naive};
use kmt_format::print::Printer;
use kmt_format::read::{Event, Trace};

/// The kernel's text behind the time stamp, without the `page=` pointer, which the ring buffer does not hold.
fn kernel_texts(name: &str) -> Vec<String> {
    let text = fs::read_to_string(captures::dir(name).join("trace.txt")).unwrap();
    text.lines().map(|l| without_page(l.split_once(": ").unwrap().1)).collect()
}

fn without_page(text: &str) -> String {
    text.split(' ').map(|w| if w.starts_with("page=") { "page=*" } else { w }).collect::<Vec<_>>().join(" ")
}

#[test]
fn events_print_as_the_kernel_printed_them() {
    for name in captures::NAMES {
        let capture = captures::convert(name);
        let trace = Trace::open(&capture.file).unwrap();
        let mut printer = Printer::new(&trace);
        let printed = trace.events().unwrap().map(|event| printer.text(&event));
        let ours: Vec<String> = printed.map(|text| without_page(text.trim_end_matches('\n'))).collect();
        let kernel = kernel_texts(name);
        assert_eq!(ours.len(), kernel.len(), "{name}");
        for (number, (ours, kernel)) in ours.iter().zip(&kernel).enumerate() {
            assert_eq!(ours, kernel, "{name}, line {}", number + 1);
        }
    }
}

#[test]
fn naive_reader_and_library_agree_with_the_sub_buffers() {
    for name in captures::NAMES {
        let capture = captures::convert(name);
        let trace = Trace::open(&capture.file).unwrap();
        let read = naive::read(&capture.file);
        for (cpu, raw) in &capture.raw {
            let by_naive = &read.events[cpu];
            assert_eq!(by_naive.len(), raw.len());
            let chunks = &trace.streams()[cpu].chunks;
            let mut number = 0;
            for (chunk, _) in chunks {
                let chunk = trace.read(chunk).unwrap();
                for index in 0..chunk.records().len() {
                    let event = Event::new(trace.schema(), &chunk, index).unwrap();
                    let (time, record) = &raw[number];
                    let other = &by_naive[number];
                    assert_eq!((event.time(), other.time), (*time, *time));
                    for (i, field) in event.class().fields.iter().enumerate() {
                        let Some(value) = event.uint(i) else {
                            let bytes = naive::Value::Bytes(event.bytes(i).unwrap().to_vec());
                            assert_eq!(other.fields[i].1, bytes);
                            continue;
                        };
                        let size = field.size as usize;
                        let kernel = capture.order.uint_at(record, field.offset as usize, size).unwrap();
                        let mask = u64::MAX >> (64 - 8 * size);
                        assert_eq!(value & mask, kernel, "{name} {}", field.name);
                        assert_eq!(other.fields[i], (field.name.clone(), naive::Value::Number(value)));
                    }
                    number += 1;
                }
            }
            assert_eq!(number, raw.len());
        }
    }
}
