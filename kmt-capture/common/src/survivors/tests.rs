//! Which lives are folded, in which order events leave, and within which memory. That reports have the same numbers as of all
//! events is shown by the tests of kmt-analyze.

use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;
use kmt_format::write::{Writer, WriterOptions};

use super::*;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

";
const SLAB: &str = "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;
\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;
";
const SIZES: &str = "\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;
\tfield:size_t bytes_alloc;\toffset:32;\tsize:8;\tsigned:0;
\tfield:unsigned long gfp_flags;\toffset:40;\tsize:8;\tsigned:0;
";
const PAGE: &str = "\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;
\tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;
";
const REQUEST: &str = "\tfield:unsigned long gfp_flags;\toffset:24;\tsize:8;\tsigned:0;
\tfield:int migratetype;\toffset:32;\tsize:4;\tsigned:1;
";
const PAGE_ALLOC: u16 = 22;
const PAGE_FREE: u16 = 23;
const ALLOC: u16 = 20;
const FREE: u16 = 21;
const MEMORY: usize = 8 << 20;

/// A recording; [`Recording::new`] folds lives of up to 100 ns, in intervals of 1,000 ns.
struct Recording {
    writer: Writer,
    survivors: Survivors,
    events: u64,
    /// Greatest memory of what waits, in bytes.
    memory_max: usize,
}

impl Recording {
    fn new() -> Self {
        Self::with(MEMORY, 100, 1_000)
    }

    fn with(memory: usize, threshold: u64, interval: u64) -> Self {
        let options = WriterOptions::new(ByteOrder::Little, 8).page_size(4_096).folded(true);
        let mut writer = Writer::new(options).unwrap();
        let print = "\nprint fmt: \"%p\", REC->ptr\n";
        for (name, id, fields) in [("kmalloc", ALLOC, SIZES), ("kfree", FREE, "")] {
            let format = format!("name: {name}\nID: {id}\nformat:\n{COMMON}{SLAB}{fields}{print}");
            writer.add_format("kmem", &format).unwrap();
        }
        for (name, id, fields) in [("mm_page_alloc", PAGE_ALLOC, REQUEST), ("mm_page_free", PAGE_FREE, "")] {
            let format = format!(
                "name: {name}\nID: {id}\nformat:\n{COMMON}{PAGE}{fields}\nprint fmt: \"%lu\", REC->pfn\n"
            );
            writer.add_format("kmem", &format).unwrap();
        }
        let survivors = Survivors::new(SurvivorOptions {
            threshold,
            interval,
            millisecond: 1_000_000,
            memory,
            order: ByteOrder::Little,
            long_size: 8,
            page_shift: 12,
            map: KnownMap::None,
            narrowed: Narrowed::default(),
        });
        Self { writer, survivors, events: 0, memory_max: 0 }
    }

    fn event_with(&mut self, id: u16, cpu: u32, time: u64, ptr: u64, is_edge: bool) {
        let words: &[u64] = match id {
            ALLOC => &[7, ptr, 60, 64, 0],
            FREE => &[9, ptr],
            // Of order 0.
            PAGE_ALLOC => &[ptr, 0, 0, 0],
            _ => &[ptr, 0],
        };
        let mut record = [&id.to_le_bytes()[..], &[0, 0], &5i32.to_le_bytes()].concat();
        words.iter().for_each(|word| record.extend(word.to_le_bytes()));
        self.survivors.event(&mut self.writer, cpu, time, &record, is_edge).unwrap();
        self.events += 1;
        self.memory_max = self.memory_max.max(self.survivors.nodes.memory());
    }

    fn event(&mut self, id: u16, cpu: u32, time: u64, ptr: u64) {
        self.event_with(id, cpu, time, ptr, false);
    }

    /// The first event of each CPU, which is never folded.
    fn begin(mut self) -> Self {
        (0..2).for_each(|cpu| self.event(ALLOC, cpu, 1, 0x10_0000 + 64 * u64::from(cpu)));
        self
    }

    fn finish(mut self) -> Finished {
        let left_out: u64 = self.survivors.left_out().map(|(_, events)| events).sum();
        self.survivors.finish(&mut self.writer).unwrap();
        let bytes = self.writer.finish().unwrap();
        let trace = Trace::open(&bytes).unwrap();
        assert!(trace.damages().is_empty());
        let written = trace.events().unwrap().map(|event| (event.cpu(), event.time())).collect();
        let folds = trace.folds().iter().map(|(chunk, _)| trace.read_fold(chunk).unwrap());
        let mut finished = Finished { written, lives: Vec::new(), written_through: false, left_out };
        let mut folded = 0;
        for fold in folds {
            let info = fold.info();
            let counts = fold.lives().map(|row| row.sums().count);
            finished.lives.push((info.t_begin, info.t_end, counts.sum()));
            finished.written_through |= info.written_through;
            folded += fold.cpus().iter().map(|(_, events)| events).sum::<u64>();
        }
        assert_eq!(finished.written.len() as u64 + folded + left_out, self.events);
        finished
    }
}

/// A file, read again.
struct Finished {
    /// CPU and time of each event.
    written: Vec<(u32, u64)>,
    /// Begin and end of each interval, and the lives and frees of NULL in it.
    lives: Vec<(u64, u64, u64)>,
    written_through: bool,
    /// Events that are counted only.
    left_out: u64,
}

#[test]
fn short_lives_become_sums_and_long_ones_stay() {
    let mut all = Recording::new().begin();
    all.event(ALLOC, 0, 10, 0x1000);
    all.event(ALLOC, 0, 11, 0x2000);
    all.event(FREE, 1, 110, 0x1000);
    all.event(FREE, 0, 112, 0x2000);
    let file = all.finish();
    assert_eq!(file.written, [(0, 1), (1, 1), (0, 11), (0, 112)], "100 ns are folded, 101 are not");
    assert_eq!(file.lives, [(0, 1_000, 1)]);
    assert!(!file.written_through);
}

#[test]
fn a_life_that_may_touch_a_loss_stays() {
    for (lost_at, folded) in [(None, 1), (Some(20), 0), (Some(40), 0), (Some(60), 1)] {
        let mut all = Recording::new().begin();
        if lost_at == Some(20) {
            all.survivors.begin_loss();
        }
        all.event(ALLOC, 0, 30, 0x1000);
        if lost_at == Some(40) {
            all.survivors.begin_loss();
        }
        all.event(FREE, 0, 50, 0x1000);
        if lost_at == Some(60) {
            all.survivors.begin_loss();
        }
        if lost_at.is_some() {
            all.survivors.end_loss(1, Loss::counted(3), true);
            all.event_with(ALLOC, 1, 70, 0x9000, true);
        }
        let file = all.finish();
        let lives: u64 = file.lives.iter().map(|interval| interval.2).sum();
        assert_eq!(lives, folded, "events of the other CPU are missing from {lost_at:?} to 70");
    }
}

#[test]
fn the_last_event_before_a_loss_stays() {
    for is_edge in [false, true] {
        let mut all = Recording::new().begin();
        all.event(ALLOC, 0, 30, 0x1000);
        all.event_with(FREE, 0, 50, 0x1000, is_edge);
        assert_eq!(all.finish().lives, [(0, 1_000, u64::from(!is_edge))]);
    }
}

#[test]
fn an_allocation_over_a_live_object_stays_and_so_does_its_free() {
    let mut all = Recording::new().begin();
    all.event(ALLOC, 0, 30, 0x1000);
    all.event(ALLOC, 0, 40, 0x1000);
    all.event(FREE, 0, 50, 0x1000);
    all.event(FREE, 0, 60, 0x1000);
    let file = all.finish();
    assert_eq!(file.written.len(), 6, "what the ledger makes of it needs each of them");
    assert_eq!(file.lives, [(0, 1_000, 0)]);
}

#[test]
fn a_life_across_intervals_stays() {
    let mut all = Recording::new().begin();
    for (born, freed) in [(950, 999), (960, 1_000), (1_000, 1_050)] {
        all.event(ALLOC, 0, born, 0x1000 + 64 * born);
        all.event(FREE, 0, freed, 0x1000 + 64 * born);
    }
    // Its first event tells that the second interval is over, however late it is.
    all.event(ALLOC, 1, 7_500, 0x8000);
    let file = all.finish();
    assert_eq!(file.lives, [(0, 1_000, 1), (1_000, 2_000, 1), (2_000, 8_000, 0)]);
    assert_eq!(file.written, [(0, 1), (1, 1), (0, 960), (0, 1_000), (1, 7_500)]);
}

#[test]
fn frees_of_null_are_counted_but_not_in_a_loss() {
    let mut all = Recording::new().begin();
    (10..20).for_each(|time| all.event(FREE, 0, time, 0));
    all.survivors.begin_loss();
    all.event(FREE, 0, 20, 0);
    all.survivors.end_loss(1, Loss::counted(1), true);
    all.event_with(FREE, 1, 21, 0, true);
    all.event(FREE, 0, 22, 16);
    let file = all.finish();
    assert_eq!(file.lives, [(0, 1_000, 10)]);
    assert_eq!(file.written, [(0, 1), (1, 1), (0, 20), (1, 21), (0, 22)], "nor is ZERO_SIZE_PTR");
}

#[test]
fn events_of_a_cpu_keep_their_order_within_the_memory() {
    for memory in [MEMORY, 512 << 10] {
        let (mut all, mut seed, mut live) =
            (Recording::with(memory, 40_000, 1 << 20).begin(), 5u64, Vec::new());
        for time in 2..60_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let cpu = (seed >> 40 & 1) as u32;
            let is_free = live.len() > 4_000 && seed >> 60 < 9;
            let ptr =
                if is_free { live.swap_remove(seed as usize >> 20 & 511) } else { 0x10_0000 + 64 * time };
            all.event(if is_free { FREE } else { ALLOC }, cpu, time, ptr);
            if !is_free {
                live.push(ptr);
            }
        }
        let memory_max = all.memory_max;
        let file = all.finish();
        assert!(memory_max <= memory / 2 + 256, "{memory_max} of {memory}");
        assert_eq!(file.written_through, memory < MEMORY);
        assert!(file.lives.iter().map(|interval| interval.2).sum::<u64>() > 1_000);
        for cpu in 0..2 {
            let of_cpu = file.written.iter().filter(|event| event.0 == cpu);
            assert!(of_cpu.map(|event| event.1).is_sorted_by(|a, b| a < b));
        }
    }
}

/// Without a filter on allocations, such a free is of an object that was allocated before.
#[test]
fn frees_without_an_allocation_are_counted_only_where_allocations_are_filtered() {
    for (objects, pages) in [(false, false), (true, false), (false, true)] {
        let mut all = Recording::new();
        all.survivors.options.narrowed = Narrowed { objects, pages };
        let mut all = all.begin();
        for (alloc, free, at) in [(ALLOC, FREE, 0x2000), (PAGE_ALLOC, PAGE_FREE, 0x5000)] {
            let base = if free == FREE { 0 } else { 500 };
            all.event(free, 0, base + 10, at + 64);
            all.event(alloc, 0, base + 20, at);
            all.event(free, 1, base + 30, at);
            all.event(free, 1, base + 40, at);
            all.event(alloc, 0, base + 50, at + 8);
            all.event(free, 0, base + 400, at + 8);
            all.event_with(free, 1, base + 410, at + 64, true);
        }
        let file = all.finish();
        let times: Vec<u64> = file.written.iter().map(|event| event.1).collect();
        let expected = |base: u64, is_narrowed: bool| {
            let times: &[u64] = if is_narrowed { &[50, 400, 410] } else { &[10, 40, 50, 400, 410] };
            times.iter().map(|time| base + time).collect::<Vec<_>>()
        };
        let mut sorted = times;
        sorted.sort_unstable();
        assert_eq!(sorted, [vec![1, 1], expected(0, objects), expected(500, pages)].concat());
        assert_eq!(file.left_out, if objects || pages { 2 } else { 0 });
        assert_eq!(file.lives.iter().map(|interval| interval.2).sum::<u64>(), 2, "both short lives");
    }
}
