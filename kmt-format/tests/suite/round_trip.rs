//! Any sequence of events, losses and flushes comes back as it was written: by the library and by the naive reader.

use crate::support::model::{self, FieldValue, ModelEvent, Op};
use crate::support::naive;
use kmt_format::kernel::ByteOrder;
use kmt_format::read::{Event, Trace};
use kmt_format::write::Loss;
use proptest::prelude::*;

fn fields(event: &Event<'_>) -> Vec<FieldValue> {
    (0..event.class().fields.len())
        .map(|i| match event.uint(i) {
            Some(number) => FieldValue::Number(number),
            None => FieldValue::Bytes(event.bytes(i).unwrap().to_vec()),
        })
        .collect()
}

fn check(ops: &[Op], order: ByteOrder, long: usize) {
    let (file, events, losses) = model::write(ops, order, long);
    let trace = Trace::open(&file).unwrap();
    assert!(trace.is_finished() && trace.damage_count() == 0);
    assert_eq!(trace.event_count(), events.iter().map(|e| e.len() as u64).sum::<u64>());
    check_streams(&trace, &events, &losses);
    check_merge(&trace, &events, &losses);
    check_naive(&file, &events, &losses);
}

/// Losses at one place joined: a flush between two of them makes them two chunks.
fn joined(losses: Vec<(u64, Loss)>) -> Vec<(u64, Loss)> {
    let mut out: Vec<(u64, Loss)> = Vec::new();
    for (at, loss) in losses {
        match out.last_mut() {
            Some((last, sum)) if *last == at => *sum = sum.and(loss),
            _ => out.push((at, loss)),
        }
    }
    out
}

fn check_streams(trace: &Trace<'_>, events: &[Vec<ModelEvent>], losses: &[Vec<(u64, Loss)>]) {
    for (cpu, stream) in trace.streams() {
        let mut read = Vec::new();
        let mut lost = Vec::new();
        for (chunk, info) in &stream.chunks {
            if info.loss != Loss::default() {
                lost.push((read.len() as u64, info.loss));
            }
            let chunk = trace.read(chunk).unwrap();
            for index in 0..chunk.records().len() {
                let event = Event::new(trace.schema(), &chunk, index).unwrap();
                let name = model::CLASSES.iter().find(|c| c.name == event.class().name).unwrap().name;
                read.push(ModelEvent { time: event.time(), name, fields: fields(&event) });
            }
        }
        assert_eq!(read, events[*cpu as usize]);
        assert_eq!(joined(lost), losses[*cpu as usize]);
    }
}

/// The merge gives the kernel's order: always the oldest head, the lowest CPU where several are equal.
fn check_merge(trace: &Trace<'_>, events: &[Vec<ModelEvent>], losses: &[Vec<(u64, Loss)>]) {
    let mut heads = [0usize; 3];
    let mut lost = vec![Vec::new(); 3];
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        let cpu = run.cpu as usize;
        if let Some(gap) = run.gap {
            lost[cpu].push((heads[cpu] as u64, gap.loss));
        }
        for index in run.range {
            let time = run.chunk.time(index).unwrap();
            let expected = (0..3)
                .filter(|&c| heads[c] < events[c].len())
                .min_by_key(|&c| (events[c][heads[c]].time, c))
                .unwrap();
            assert_eq!((cpu, time), (expected, events[expected][heads[expected]].time));
            heads[cpu] += 1;
        }
    }
    assert!((0..3).all(|c| heads[c] == events[c].len()));
    let lost: Vec<_> = lost.into_iter().map(joined).collect();
    assert_eq!(lost, losses);
}

fn check_naive(file: &[u8], events: &[Vec<ModelEvent>], losses: &[Vec<(u64, Loss)>]) {
    let read = naive::read(file);
    for (cpu, expected) in events.iter().enumerate() {
        let got: Vec<ModelEvent> = read
            .events
            .get(&(cpu as u32))
            .into_iter()
            .flatten()
            .map(|event| ModelEvent {
                time: event.time,
                name: model::CLASSES.iter().find(|c| c.name == event.name).unwrap().name,
                fields: event
                    .fields
                    .iter()
                    .map(|(_, value)| match value {
                        naive::Value::Number(n) => FieldValue::Number(*n),
                        naive::Value::Bytes(b) => FieldValue::Bytes(b.clone()),
                        naive::Value::Opaque => panic!("a field that the library wrote"),
                    })
                    .collect(),
            })
            .collect();
        assert_eq!(&got, expected);
        let got = read.losses.iter().filter(|l| l.cpu as usize == cpu);
        let got = got.map(|l| {
            let (counted, uncounted) = (if l.flags & 1 == 1 { l.count } else { 0 }, l.flags & 2 == 2);
            let mut loss = Loss::counted(counted);
            (loss.uncounted, loss.damaged_input) = (uncounted, l.flags & 4 == 4);
            (l.at, loss)
        });
        assert_eq!(joined(got.collect()), losses[cpu]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(ops in model::ops(), big in any::<bool>(), wide in any::<bool>()) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        check(&ops, order, if wide { 8 } else { 4 });
    }

    /// The oldest of the CPUs' next events comes first, of equal ones the lowest CPU's; nothing is left out.
    #[test]
    fn merged_is_the_oldest_first(ops in model::ops(), big in any::<bool>()) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let (file, events, _) = model::write(&ops, order, 8);
        let mut left: Vec<_> = events.iter().map(|e| e.iter().map(|e| e.time).peekable()).collect();
        let trace = Trace::open(&file).unwrap();
        let mut merge = trace.merge();
        while let Some(run) = merge.next_run() {
            for index in run.range {
                let heads = left.iter_mut().enumerate().filter_map(|(cpu, e)| Some((*e.peek()?, cpu)));
                let (time, cpu) = heads.min().expect("no more than were written");
                left[cpu].next();
                prop_assert_eq!((run.chunk.time(index), run.cpu as usize), (Some(time), cpu));
            }
        }
        prop_assert!(left.iter_mut().all(|e| e.peek().is_none()));
    }
}

#[test]
fn a_class_that_never_repeats_moves_into_the_payload() {
    let ops: Vec<Op> =
        (0..3_000).map(|i| Op::Event { cpu: 0, class: 5, step: 1, seed: i * 77, repeat: false }).collect();
    check(&ops, ByteOrder::Big, 8);
    let (file, _, _) = model::write(&ops, ByteOrder::Big, 8);
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.read(&trace.streams()[&0].chunks[0].0).unwrap();
    assert!(chunk.descriptor_count() < 1_000, "{} descriptors for 3,000 events", chunk.descriptor_count());
}

#[test]
fn a_full_chunk_is_followed_by_another() {
    let ops: Vec<Op> =
        (0..70_000).map(|i| Op::Event { cpu: 1, class: 0, step: 3, seed: i, repeat: true }).collect();
    check(&ops, ByteOrder::Little, 4);
    let (file, _, _) = model::write(&ops, ByteOrder::Little, 4);
    let trace = Trace::open(&file).unwrap();
    assert_eq!(trace.streams()[&1].chunks.len(), 2);
}

#[test]
fn stale_bytes_never_reach_the_file() {
    let ops: Vec<Op> = (0..200)
        .map(|i| Op::Event { cpu: 0, class: (i % 5) as usize, step: 1, seed: i % 4, repeat: true })
        .collect();
    for long in [4, 8] {
        let (file, _, _) = model::write(&ops, ByteOrder::Little, long);
        assert!(!file.windows(3).any(|w| w == [0xa5; 3]), "padding of the kernel's records is in the file");
    }
}

#[test]
fn time_slices_hold_what_they_should() {
    let ops: Vec<Op> = (0..500)
        .map(|i| Op::Event { cpu: (i % 3) as u32, class: 0, step: 1 << 30, seed: i, repeat: true })
        .collect();
    let (file, events, _) = model::write(&ops, ByteOrder::Little, 8);
    let trace = Trace::open(&file).unwrap();
    let all: Vec<u64> = events.iter().flatten().map(|e| e.time).collect();
    let (first, last) = (all[100], all[140]);
    let mut merge = trace.merge_between(first, last);
    let mut got = 0;
    while let Some(run) = merge.next_run() {
        for index in run.range {
            assert!((first..=last).contains(&run.chunk.time(index).unwrap()));
            got += 1;
        }
    }
    assert_eq!(got, all.iter().filter(|t| (first..=last).contains(t)).count());
}

/// A window has the gaps that reach into it, also one behind its last event, and no others.
#[test]
fn time_slices_have_the_gaps_within_them() {
    let event = |step| Op::Event { cpu: 0, class: 0, step, seed: 1, repeat: true };
    let lose = |counted| Op::Lost { cpu: 0, counted, uncounted: false };
    // Events at 10, 20, 30, 40 and 50: 1 lost before them, 2 between 20 and 30, 4 between 40 and 50, 8 behind them.
    let ops = [lose(1), event(10), event(10), lose(2), event(10), event(10), lose(4), event(10), lose(8)];
    let (file, events, _) = model::write(&ops, ByteOrder::Little, 8);
    let trace = Trace::open(&file).unwrap();
    let times: Vec<u64> = events[0].iter().map(|event| event.time).collect();
    for (first, last, expected) in [
        (0, u64::MAX, 15),
        (times[0], times[1], 1 + 2),
        (times[1] + 1, times[2] - 1, 2),
        (times[2] + 1, times[3] - 1, 0),
        (times[2] + 1, times[3], 4),
        (times[3] + 1, times[3] + 2, 4),
        (times[4] + 1, u64::MAX, 8),
    ] {
        let mut merge = trace.merge_between(first, last);
        let mut lost = 0;
        while let Some(run) = merge.next_run() {
            lost += run.gap.map_or(0, |gap| gap.counted());
        }
        assert_eq!(lost, expected, "{first}..={last} of {times:?}");
    }
}

/// Found by fuzzing: a kernel whose only common field is the id has contexts of no bytes.
#[test]
fn events_without_common_fields_are_read() {
    let format = "name: bare\nID: 9\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:u16 x;\toffset:2;\tsize:2;\tsigned:0;\n\nprint fmt: \"\"\n";
    let mut writer = crate::support::model::writer(ByteOrder::Big, 4);
    writer.add_format("odd", format).unwrap();
    writer.add_event(0, 5, &[0, 9, 0, 77]).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.read(&trace.streams()[&0].chunks[0].0).unwrap();
    assert_eq!(Event::new(trace.schema(), &chunk, 0).unwrap().uint(1), Some(77));
}

/// `ftrace:kernel_stack` claims 8 callers in its format and has as many as `size` says: fewer, or more.
#[test]
fn stacks_have_their_real_length() {
    let format = "name: kernel_stack\nID: 4\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\nprint fmt: \"\"\n";
    let mut writer = crate::support::model::writer(ByteOrder::Little, 8);
    writer.add_format("ftrace", format).unwrap();
    let depths = [1u32, 3, 20, 8, 3];
    for (time, depth) in depths.iter().enumerate() {
        let mut record = vec![4, 0, 0, 0, 7, 0, 0, 0];
        record.extend(depth.to_le_bytes());
        record.extend([0xff; 4]);
        (0..*depth).for_each(|i| record.extend((0x1000 + u64::from(i)).to_le_bytes()));
        writer.add_event(0, time as u64, &record).unwrap();
    }
    // 4.4 reserves more than it fills.
    let mut roomy = vec![4, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    roomy.extend([0x11; 80]);
    writer.add_event(0, 100, &roomy).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.read(&trace.streams()[&0].chunks[0].0).unwrap();
    let lengths: Vec<usize> = (0..chunk.records().len())
        .map(|i| Event::new(trace.schema(), &chunk, i).unwrap().bytes(3).unwrap().len() / 8)
        .collect();
    assert_eq!(lengths, [1, 3, 20, 8, 3, 2]);
    assert_eq!(chunk.descriptor_count(), 5, "equal stacks are kept once");
    let event = |i| Event::new(trace.schema(), &chunk, i).unwrap();
    let ids: Vec<u64> = (0..6).map(|i| event(i).stack().unwrap().id()).collect();
    assert_eq!((ids[1], ids[4]), (ids[4], ids[1]), "equal stacks have one id");
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 5);
    let addresses: Vec<u64> = event(1).stack().unwrap().addresses().collect();
    assert_eq!(addresses, [0x1000, 0x1001, 0x1002]);
}

/// Kernels give all events the same common fields, but nothing says that they must.
#[test]
fn classes_may_differ_in_their_common_fields() {
    let format = |name: &str, id: u16, commons: &[(&str, u32, u32)]| {
        let mut text = format!("name: {name}\nID: {id}\nformat:\n");
        text += "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
        for (name, offset, size) in commons {
            text += &format!("\tfield:u32 {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
        }
        text + "\n\nprint fmt: \"\"\n"
    };
    let mut writer = crate::support::model::writer(ByteOrder::Little, 8);
    writer.add_format("a", &format("short", 1, &[("common_x", 4, 4)])).unwrap();
    writer.add_format("a", &format("long", 2, &[("common_x", 4, 4), ("common_y", 8, 2)])).unwrap();
    for (time, id) in [1u8, 2, 1, 2].into_iter().enumerate() {
        writer.add_event(0, time as u64, &[id, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    }
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.read(&trace.streams()[&0].chunks[0].0).unwrap();
    let values: Vec<_> = (0..4)
        .map(|i| {
            let event = Event::new(trace.schema(), &chunk, i).unwrap();
            (event.uint(1), event.uint(2))
        })
        .collect();
    assert_eq!(values, [(Some(9), None), (Some(9), Some(0)), (Some(9), None), (Some(9), Some(0))]);
}

/// An interrupt, and another task on another CPU, come between events and their stacks.
#[test]
fn stacks_are_joined_to_their_events() {
    let format = |system: &str, name: &str, id: u16| {
        let mut text = format!(
            "name: {name}\nID: {id}\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
        );
        if system == "ftrace" {
            text += "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
                \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";
        }
        text + "\nprint fmt: \"\"\n"
    };
    let mut writer = crate::support::model::writer(ByteOrder::Little, 8);
    writer.add_format("kmem", &format("kmem", "kmalloc", 9)).unwrap();
    writer.add_format("ftrace", &format("ftrace", "kernel_stack", 4)).unwrap();
    let mut time = 0;
    let mut add = |writer: &mut kmt_format::write::Writer, cpu: u32, id: u8, flags: u8, pid: u8| {
        let mut record = vec![id, 0, flags, 0, pid, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        record.extend([1; 8]);
        time += 1;
        writer.add_event(cpu, time, &record).unwrap();
    };
    const EVENT: u8 = 9;
    const STACK: u8 = 4;
    const HARDIRQ: u8 = 0x08;
    for (cpu, id, flags, pid) in [
        (0, EVENT, 0, 50),       // 1
        (1, EVENT, 0, 60),       // 2
        (0, EVENT, HARDIRQ, 50), // 3, in an interrupt before 1 has its stack
        (0, STACK, HARDIRQ, 50), // 4: of 3
        (0, STACK, 0x01, 50),    // 5: of 1; interrupts are off, which does not matter
        (0, STACK, 0, 50),       // 6: of nothing, 1 has its stack
        (1, STACK, 0, 60),       // 7: of 2
        (0, EVENT, 0, 50),       // 8
        (0, EVENT, 0, 51),       // 9: another task now
        (0, STACK, 0, 50),       // 10: of nothing, 8 is over
        (0, STACK, 0, 51),       // 11: of 9
        (0, EVENT, 0, 51),       // 12
    ] {
        add(&mut writer, cpu, id, flags, pid);
    }
    writer.add_loss(0, kmt_format::write::Loss::counted(3)).unwrap();
    add(&mut writer, 0, STACK, 0, 51); // 13: of one that was lost
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let mut joiner = kmt_format::read::StackJoiner::default();
    let mut joined = Vec::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        if run.gap.is_some_and(|gap| !gap.is_empty()) {
            joiner.gap(run.cpu);
        }
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            if let Some(of) = joiner.see(&event, event.time()) {
                joined.push((event.time(), of));
            }
        }
    }
    assert_eq!(joined, [(4, 3), (5, 1), (7, 2), (11, 9)]);
}
