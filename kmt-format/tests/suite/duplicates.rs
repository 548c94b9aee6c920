//! Large allocations of kmalloc with two events are found, and nothing else is taken for one.

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::read::{DuplicateKmallocs, Trace};
use kmt_format::write::{Writer, WriterOptions};

const COMMON: &str = "format:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// Events with their ids and the numbers behind the common fields.
const EVENTS: [(&str, &str, u16, &[&str]); 5] = [
    ("kmem", "kmalloc", KMALLOC, &["ptr", "bytes_req", "bytes_alloc", "call_site"]),
    ("kmem", "kfree", KFREE, &["ptr", "call_site"]),
    ("kmem", "kmem_cache_alloc", CACHE_ALLOC, &["ptr", "bytes_req", "bytes_alloc", "call_site"]),
    ("kmem", "kmem_cache_free", CACHE_FREE, &["ptr", "call_site"]),
    ("kmt", "kvfree_call_rcu", FREE_RCU, &["head", "object", "call_site"]),
];
const KMALLOC: u16 = 11;
const KFREE: u16 = 12;
const CACHE_ALLOC: u16 = 13;
const CACHE_FREE: u16 = 14;
const FREE_RCU: u16 = 15;

const PTR: u64 = 0xffff_8880_0123_4000;
const MS: u64 = 1_000_000;

fn format(name: &str, id: u16, fields: &[&str]) -> String {
    let line = |(index, field): (usize, &&str)| {
        format!("\tfield:unsigned long {field};\toffset:{};\tsize:8;\tsigned:0;\n", 8 + 8 * index)
    };
    let fields: String = fields.iter().enumerate().map(line).collect();
    format!("name: {name}\nID: {id}\n{COMMON}{fields}\nprint fmt: \"\"\n")
}

/// One event: time, CPU, task, id, numbers.
#[derive(Clone)]
struct Line(u64, u32, i32, u16, Vec<u64>);

/// Two pages and a half of 4 KiB, by task 77 on CPU 0.
fn large(time: u64) -> Line {
    Line(time, 0, 77, KMALLOC, vec![PTR, 10_000, 16_384, time])
}

fn file(options: WriterOptions, clock: &TraceClock, lines: &[Line]) -> Vec<u8> {
    let mut writer = Writer::new(options).unwrap();
    for (system, name, id, fields) in EVENTS {
        writer.add_format(system, &format(name, id, fields)).unwrap();
    }
    writer.add_clock(clock).unwrap();
    for Line(time, cpu, pid, id, numbers) in lines {
        let mut record = id.to_le_bytes().to_vec();
        record.extend([0, 0]);
        record.extend(pid.to_le_bytes());
        record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        writer.add_event(*cpu, *time, &record).unwrap();
    }
    writer.finish().unwrap()
}

/// Times of second events with those of the events before them.
fn found_in(file: &[u8]) -> Vec<(u64, u64)> {
    let trace = Trace::open(file).unwrap();
    let mut duplicates = DuplicateKmallocs::new(&trace);
    let events = trace.events().unwrap();
    events.filter_map(|event| Some((duplicates.see(&event, event.time())?, event.time()))).collect()
}

fn options() -> WriterOptions {
    WriterOptions::new(ByteOrder::Little, 8).page_size(4096)
}

fn found(lines: &[Line]) -> Vec<(u64, u64)> {
    found_in(&file(options(), &TraceClock::named("mono"), lines))
}

#[test]
fn a_second_event_of_a_large_kmalloc_is_found() {
    assert_eq!(found(&[large(100), large(5_100)]), [(100, 5_100)]);
    assert_eq!(found(&[large(100), large(100 + MS)]), [(100, 100 + MS)], "a millisecond later");
    // Each may have another one, counted from the last.
    let three = [large(100), large(MS), large(2 * MS - 1)];
    assert_eq!(found(&three), [(100, MS), (MS, 2 * MS - 1)]);
    // Other events do not end the wait: of another address, or page events, which have none.
    let other = Line(200, 1, 5, KFREE, vec![PTR + 4096, 1]);
    assert_eq!(found(&[large(100), other, large(300)]), [(100, 300)]);
    // The tag of an address is no part of it.
    let tagged = Line(200, 0, 77, KMALLOC, vec![PTR & !(0xf << 56), 10_000, 16_384, 2]);
    assert_eq!(found(&[large(100), tagged]), [(100, 200)]);
}

#[test]
fn two_allocations_are_not_one() {
    let second = large(200);
    let changed = |change: &dyn Fn(&mut Line)| {
        let mut line = second.clone();
        change(&mut line);
        found(&[large(100), line])
    };
    assert_eq!(changed(&|_| ()), [(100, 200)], "without a change it is found");
    assert_eq!(changed(&|line| line.0 = 101 + MS), [], "too late");
    assert_eq!(changed(&|line| line.1 = 1), [], "another CPU");
    assert_eq!(changed(&|line| line.2 = 78), [], "another task");
    assert_eq!(changed(&|line| line.3 = CACHE_ALLOC), [], "of a cache");
    assert_eq!(changed(&|line| line.4[0] += 0x1000), [], "another address");
    assert_eq!(changed(&|line| line.4[3] = 100), [], "the same call site: a free is not in the file");
    assert_eq!(changed(&|line| line.4[1] += 1), [], "another size requested");
    assert_eq!(changed(&|line| line.4[2] *= 2), [], "another size handed out");
}

#[test]
fn small_and_failed_allocations_are_reported_once() {
    let of =
        |ptr: u64, size: u64| [100, 200].map(|time| Line(time, 0, 77, KMALLOC, vec![ptr, size, size, time]));
    assert_eq!(found(&of(PTR, 8_192)), []);
    assert_eq!(found(&of(PTR, 8_193)), [(100, 200)]);
    assert_eq!(found(&of(0, 16_384)), [], "failed");
    // With larger pages.
    let on_64k =
        |size| found_in(&file(options().page_size(65_536), &TraceClock::named("mono"), &of(PTR, size)));
    assert_eq!((on_64k(131_072), on_64k(131_073)), (vec![], vec![(100, 200)]));
}

#[test]
fn whatever_ends_the_object_ends_the_wait() {
    let ends = [
        Line(150, 1, 5, KFREE, vec![PTR, 1]),
        Line(150, 1, 5, CACHE_FREE, vec![PTR, 1]),
        Line(150, 0, 77, CACHE_ALLOC, vec![PTR, 64, 64, 1]),
        Line(150, 0, 77, KMALLOC, vec![PTR, 64, 64, 1]),
        Line(150, 0, 77, KMALLOC, vec![PTR, 9_999, 16_384, 1]),
        Line(150, 0, 77, FREE_RCU, vec![PTR + 16, PTR, 1]),
        Line(150, 0, 77, FREE_RCU, vec![PTR + 16, 16, 1]),
    ];
    for end in ends {
        let what = format!("event {} {:?}", end.3, end.4);
        assert_eq!(found(&[large(100), end, large(200)]), [], "{what}");
    }
    let other = Line(150, 0, 77, FREE_RCU, vec![PTR + 64, PTR + 48, 1]);
    assert_eq!(found(&[large(100), other, large(200)]), [(100, 200)]);
}

#[test]
fn a_clock_of_ticks_has_its_own_millisecond() {
    let lines = [large(100), large(100 + 3 * MS)];
    assert_eq!(found_in(&file(options(), &TraceClock::named("x86-tsc"), &lines)), [(100, 100 + 3 * MS)]);
    assert_eq!(found_in(&file(options(), &TraceClock::named("mono"), &lines)), []);
}

#[test]
fn many_allocations_at_a_time_are_found() {
    let at =
        |time: u64, number: u64| Line(time, 0, 77, KMALLOC, vec![PTR + (number << 14), 10_000, 16_384, time]);
    // 2,000 within a millisecond, then the second events of all of them.
    let lines: Vec<Line> = (0..4_000).map(|number| at(number, number % 2_000)).collect();
    assert_eq!(found(&lines).len(), 2_000);
    // More than any kernel has: those before are forgotten, later ones found.
    let mut lines: Vec<Line> = (0..100_000).map(|number| at(number, number)).collect();
    lines.extend([at(100_000, 200_000), at(100_001, 200_000)]);
    assert_eq!(found(&lines), [(100_000, 100_001)]);
}
