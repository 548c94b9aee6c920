//! The plain path against the general one: equal sums, and equal results of collectors, of random operations that are entered
//! in batches.
//!
//! The plain path skips the general rules where they cannot apply, so that its results must be those of the general
//! path. Operations are random (proptest) and on few pages; losses and a direct map are varied. The collectors run on
//! both paths, and their results are compared.

use std::fmt::Debug;

use proptest::prelude::*;

use super::*;
use crate::collect::replay::Layout;
use crate::collect::{
    Anomalies, Collector, CrossCpu, Groups, Growth, Lifetimes, Moments, Occupancy, PassFacts, Peak, Replay,
    Stalls, TaskKmalloc, Tasks, Timeline,
};
use crate::stream::op::OpCode;
use crate::stream::{FreeSite, NameId};

/// Sites of frees that name a cache: more than are searched one by one.
const CACHES: u8 = 12;
/// Number of CPUs and tasks.
const ORIGINS: u8 = 5;

/// Random numbers of an operation: time since the last one, kind, page, offset, origin.
type Numbers = (u8, u8, u8, u8, u8);

/// One operation. Most are on objects of few pages; the offsets of a page have one alignment, or several.
fn op(time: u64, (_, kind, page, offset, origin): Numbers) -> Op {
    let frame = 0x40 + u64::from(page % 8);
    let step = [8, 96, 192, 512][usize::from(page % 4)];
    let address = BASE + (frame << 12) + u64::from(offset) * step % 4096;
    // R1: the upper byte does not count.
    let address = address ^ u64::from(origin & 1) << 60;
    let site = if page % 4 < 2 { SMALL } else { CACHE };
    let none = [0, 1, 16, 16][usize::from(offset % 4)];
    let (code, value) = match kind % 34 {
        0..=11 => (OpCode::new(Kind::Alloc, site), address),
        12..=17 => (OpCode::new(Kind::Kfree, 0), address),
        18..=23 => (OpCode::new(Kind::CacheFree, 1 + u32::from(offset % (CACHES + 1))), address),
        24 | 25 => (OpCode::new(Kind::Kfree, 0), none),
        26 => (OpCode::new(Kind::CacheFree, 1), none),
        27 => (OpCode::new(Kind::Alloc, site), none),
        28 => (OpCode::new(Kind::Alloc, LARGE_INNER + u32::from(offset % 2)), address & !0x3fff),
        29 => (OpCode::new(Kind::PageAlloc, 0), frame),
        30 => (OpCode::new(Kind::PageFree, 0), frame),
        31 => (OpCode::new(Kind::FreeRcu, 0), address),
        32 => (OpCode::new(Kind::SideEvent, SideEventKind::DirectBegin as u32), 0),
        _ => (OpCode::new(Kind::SideEvent, SideEventKind::DirectEnd as u32), 0),
    };
    Op { time, value, code, origin: u32::from(origin % ORIGINS) }
}

/// Sums of a ledger: by site and cache, failures, counts, plain sums.
type Sums = (Vec<SiteTotals>, Vec<u64>, [EventCounts; 2], RawSums);

/// What is known beside the operations: losses, and whether there is a direct map.
struct Known {
    losses: Losses,
    has_map: bool,
}

/// The sums of a ledger, and what a collector has of it.
fn outcome<C: Collector>(
    ops: &[Op],
    collector: &C,
    known: &Known,
    choice: &Choice<'static>,
) -> (Sums, C::Output) {
    let mut interner = interner();
    for number in 0..ORIGINS {
        let (cpu, pid) = (u32::from(number % 2), i32::from(number));
        interner.origins.number(&Origin { cpu, pid, ..Origin::default() });
    }
    for number in 0..u32::from(CACHES) {
        let cache = Some(NameId(number));
        interner.frees.number(&FreeSite { api: Api::Cache, class: 0, call_site: 10, cache });
    }
    let direct_map = known.has_map.then(direct_map);
    let rules = Rules { late_bound: 40, deferred_max: 60, direct_map, ..rules((0, u64::MAX)) };
    let state = collector.begin(&PassFacts { rules, has_stacks: false });
    let mut ledger = Ledger::new(rules, &known.losses, *choice, C::INTERESTS, state, None);
    ledger.learn(&NewItems::all(&interner));
    ops.chunks(100).for_each(|ops| ledger.enter(ops));
    let (mut balance, state) = ledger.finish();
    balance.sites.iter_mut().for_each(|parts| parts.sort_by_key(|part| part.0));
    ((balance.sites, balance.failures, balance.counts, balance.raw), C::finish(state))
}

/// Checks that both paths have equal sums, and equal results of a collector.
fn check_collector<C: Collector<Output: Debug + PartialEq>>(ops: &[Op], collector: &C, known: &Known) {
    check_as(ops, collector, known, |output| output);
}

/// Checks that both paths have equal sums, and equal results of a collector in another form.
fn check_as<C: Collector, T: Debug + PartialEq>(
    ops: &[Op],
    collector: &C,
    known: &Known,
    form: impl Fn(C::Output) -> T,
) {
    let short = outcome(ops, collector, known, &SHORT_WAY);
    let long = outcome(ops, collector, known, &LONG_WAY);
    assert_eq!(short.0, long.0);
    assert_eq!(form(short.1), form(long.1));
}

/// Checks the collectors of `all`.
fn check_all(ops: &[Op], known: &Known) {
    let window = (0, 20_000);
    check_collector(ops, &Tasks, known);
    check_as(ops, &TaskKmalloc(2), known, |sums| sums.callers);
    check_as(ops, &Groups, known, |sums| {
        let mut groups: Vec<_> = sums.iter().map(|(group, totals)| (*group, *totals)).collect();
        groups.sort_unstable_by_key(|(group, _)| *group);
        groups
    });
    check_collector(ops, &CrossCpu, known);
    check_collector(ops, &Anomalies, known);
    check_collector(ops, &Moments { times: vec![100, 5_000] }, known);
    check_collector(ops, &Peak { window }, known);
    check_collector(ops, &Occupancy { window, steps: 9 }, known);
    check_collector(ops, &Stalls::default(), known);
    let added = Layout { added: vec![112], ..Layout::default() };
    check_collector(ops, &Replay { layouts: vec![Layout::default(), added], end: window.1 }, known);
    for by_origin in [true, false] {
        check_as(ops, &Timeline::new(window.0, window.1, 12, by_origin), known, |sums| {
            let rows = sums.slab.iter().zip(0u32..);
            let steps = rows.flat_map(|(row, number)| row.iter().map(move |(at, step)| (number, at, *step)));
            steps.filter(|(.., step)| *step != Default::default()).collect::<Vec<_>>()
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn both_paths_have_equal_results(
        numbers in proptest::collection::vec(any::<Numbers>(), 0..2_000),
        spans in proptest::collection::vec((0u64..20_000, 0u64..300), 0..4),
        until in proptest::option::of(0u64..20_000),
        has_map in any::<bool>(),
    ) {
        let mut time = 0;
        let op_of = |numbers: &Numbers| {
            time += u64::from(numbers.0 % 24);
            op(time, *numbers)
        };
        let ops: Vec<Op> = numbers.iter().map(op_of).collect();
        let losses = Losses::between(spans.iter().map(|&(from, length)| (from, from + length)).collect());
        let known = Known { losses, has_map };
        check_collector(&ops, &Lifetimes { temporary_bound: Some(90), outlive: Some([40, 2_000]) }, &known);
        check_collector(&ops, &Growth::new(0, 20_000, until).without(vec![2]), &known);
        check_all(&ops, &known);
    }
}
