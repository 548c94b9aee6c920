//! Drives the library's writer with what a vector was made of.

use kmt_format::Compression;
use kmt_format::fold::{FoldedInterval, FoldedRow, FoldedSums};
use kmt_format::kernel::{
    ByteOrder, CpuStats, HeaderPage, KernelSymbols, Module, Symbol, SymbolOwner, TraceClock,
};
use kmt_format::schema::Meaning;
use kmt_format::tables::{CgroupRecord, SiteSums, SourceLine};
use kmt_format::write::{Keep, Loss, StatsTaken, Task, Writer, WriterOptions, WriterStats};
use vector_builder::{classes, file, kernel, model};

pub fn write(layout: &model::Layout, ops: &[model::Op]) -> Vec<u8> {
    let options =
        WriterOptions::new(if layout.big { ByteOrder::Big } else { ByteOrder::Little }, layout.long)
            .align_u64(8)
            .page_size(4096)
            .trace_uuid(file::UUID)
            .folded(ops.iter().any(|op| matches!(op, model::Op::Fold(_))));
    let mut writer = Writer::new(options).unwrap();
    add_classes(&mut writer, layout.long);
    let mut done = Vec::new();
    for op in ops {
        if matches!(op, model::Op::Append) {
            done.extend(writer.finish().unwrap());
            writer = Writer::append_to(&done, kmt_format::Limits::default(), Compression::None).unwrap();
            add_classes(&mut writer, layout.long);
        } else {
            run(&mut writer, op, layout);
        }
    }
    done.extend(writer.finish().unwrap());
    done
}

fn add_classes(writer: &mut Writer, long: usize) {
    for class in classes::ALL {
        writer.add_format(class.system, &class.format_text(long)).unwrap();
    }
}

fn loss(loss: &model::Loss) -> Loss {
    let mut made = Loss::counted(loss.counted);
    (made.uncounted, made.damaged_input, made.overwritten) = (loss.uncounted, loss.damaged, loss.overwritten);
    made
}

fn run(writer: &mut Writer, op: &model::Op, layout: &model::Layout) {
    let model::Layout { big, long, sub_buffer_len, .. } = *layout;
    match op {
        model::Op::Event(cpu, event) => {
            writer.add_event(*cpu, event.time, &kernel::record(event, big, long)).unwrap();
        }
        model::Op::Lost(cpu, lost) => writer.add_loss(*cpu, loss(lost)).unwrap(),
        model::Op::Flush(cpu) => writer.flush(*cpu).unwrap(),
        model::Op::SubBuffer(cpu, events, lost) => {
            let how = model::How::default();
            run(writer, &model::Op::SubBufferWith(*cpu, events.clone(), *lost, how), layout);
        }
        model::Op::SubBufferWith(cpu, events, lost, how) => {
            let page = HeaderPage {
                timestamp_offset: 0,
                commit_offset: 8,
                commit_size: long,
                data_offset: 8 + long,
                data_size: sub_buffer_len - 8 - long,
            };
            let bytes = kernel::sub_buffer(events, *lost, *how, layout);
            let summary = writer.add_sub_buffer(*cpu, &bytes, &page, Keep::Verbatim, |_, _| true).unwrap();
            assert_eq!((summary.events, summary.loss), (events.len() as u64, loss(lost)));
        }
        model::Op::Clock(name, ..) => writer.add_clock(&TraceClock::named(name)).unwrap(),
        model::Op::Meta(pairs) => writer.add_metadata(pairs).unwrap(),
        model::Op::File(name, contents, None) => writer.add_file(name, contents).unwrap(),
        model::Op::File(name, contents, Some(times)) => writer.add_file_at(name, contents, *times).unwrap(),
        model::Op::Lines(..) | model::Op::Cgroups(..) | model::Op::Sums(..) => table(writer, op),
        model::Op::Tasks(tasks) => {
            let task = |&(time, pid, tgid, comm): &(u64, i32, i32, &str)| {
                Task::new(pid, comm).tgid(tgid).since(time)
            };
            writer.add_tasks(&tasks.iter().map(task).collect::<Vec<_>>()).unwrap();
        }
        model::Op::Stats(rows) => stats(writer, rows),
        model::Op::Symbols(owners, rows, _) => {
            let symbol = |&(address, size, kind, owner, name): &model::Symbol| {
                let owner = owner.checked_sub(1).map_or(SymbolOwner::Core, SymbolOwner::Owner);
                Symbol { address, size, kind, owner, name: name.as_bytes() }
            };
            let symbols = KernelSymbols {
                symbols: rows.iter().map(symbol).collect(),
                owners: owners.iter().map(|(name, ..)| name.as_bytes()).collect(),
                all_zero: false,
            };
            let modules: Vec<Module> =
                owners.iter().map(|&(name, base, size)| Module { name: name.into(), base, size }).collect();
            writer.add_symbols(&symbols, &modules).unwrap();
        }
        model::Op::Fold(made) => writer.add_fold(&fold(made, big, long)).unwrap(),
        model::Op::Unknown(..) | model::Op::Append => unreachable!("not for this writer"),
    }
}

fn fold(made: &model::Fold, big: bool, long: usize) -> FoldedInterval {
    let mut interval = FoldedInterval::default();
    (interval.number, interval.t_begin, interval.t_end) = (made.number, made.begin, made.end);
    (interval.threshold, interval.written_through) = (made.threshold, made.written_through);
    interval.cpus.clone_from(&made.cpus);
    let row = |lives: &model::Lives| {
        let [count, cross_cpu, elsewhere, length_sum, length_max, over_ms, over_s] = lives.sums;
        let sums = FoldedSums { count, cross_cpu, elsewhere, length_sum, length_max, over_ms, over_s };
        let record = |event| kernel::record(event, big, long);
        let (alloc, free) = (lives.alloc.as_ref().map(record), record(&lives.free));
        FoldedRow { alloc, free, sums, bins: lives.bins.clone() }
    };
    interval.rows = made.rows.iter().map(row).collect();
    interval
}

fn table(writer: &mut Writer, op: &model::Op) {
    match op {
        model::Op::Lines(lines) => {
            let line =
                |&(address, function, file, line, depth): &(u64, &'static str, &'static str, u64, u64)| {
                    let mut row = SourceLine::new(address);
                    (row.function, row.file) = (function.as_bytes().into(), file.as_bytes().into());
                    (row.line, row.depth) = (line as u32, depth as u16);
                    row
                };
            writer.add_lines(&lines.iter().map(line).collect::<Vec<_>>()).unwrap();
        }
        model::Op::Cgroups(cgroups) => {
            let cgroup = |&(time, id, pid, hierarchy, path): &(u64, u64, i32, u64, &'static str)| {
                let mut row = CgroupRecord::new(pid, path.as_bytes());
                (row.time, row.id, row.hierarchy) = (time, id, hierarchy as u32);
                row
            };
            writer.add_cgroups(&cgroups.iter().map(cgroup).collect::<Vec<_>>()).unwrap();
        }
        model::Op::Sums(sums) => {
            let sums =
                sums.iter().map(|&([time_first, time_last], call_site, function, meaning, numbers)| {
                    let mut row = SiteSums::new(Meaning(meaning as u16), time_first, time_last);
                    (row.call_site, row.function) = (call_site, function.as_bytes().into());
                    [row.events, row.bytes_req, row.bytes_alloc] = numbers;
                    row
                });
            writer.add_sums(&sums.collect::<Vec<_>>()).unwrap();
        }
        _ => unreachable!("no table"),
    }
}

/// One chunk for each run of rows with the same `taken`, as the vectors have them.
fn stats(writer: &mut Writer, rows: &[(u32, u64, [Option<u64>; 11])]) {
    for group in rows.chunk_by(|a, b| a.1 == b.1) {
        let kernel = |n: &[Option<u64>; 11]| {
            let mut stats = CpuStats::default();
            (stats.entries, stats.overrun, stats.commit_overrun, stats.bytes) = (n[0], n[1], n[2], n[3]);
            (stats.dropped, stats.read, stats.oldest_time, stats.now_time) = (n[4], n[5], n[6], n[7]);
            stats
        };
        let own = |n: &[Option<u64>; 11]| {
            let mut stats = WriterStats::default();
            (stats.events, stats.bytes) = (n[0].unwrap(), n[3].unwrap());
            (stats.sub_buffers, stats.sub_buffers_damaged) = (n[8].unwrap(), n[9].unwrap());
            stats.discarded = n[10].unwrap();
            stats
        };
        match group[0].1 {
            2 => writer.add_writer_stats(&group.iter().map(|(cpu, _, n)| (*cpu, own(n))).collect::<Vec<_>>()),
            taken => {
                let taken = if taken == 0 { StatsTaken::Before } else { StatsTaken::After };
                writer
                    .add_stats(taken, &group.iter().map(|(cpu, _, n)| (*cpu, kernel(n))).collect::<Vec<_>>())
            }
        }
        .unwrap();
    }
}
