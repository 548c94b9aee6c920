//! Every collector gives the same result in one part and in several, on random events of a real ledger.

use std::collections::BTreeSet;
use std::fmt::Debug;

use proptest::prelude::*;

use super::collector::part_of;
use super::replay::Layout;
use super::tests::{BASE, rules};
use super::*;
use crate::ledger::batch::{Batch, Batched};
use crate::ledger::lives::{Free, Life, NoLife};
use crate::ledger::receiver::{event_enum, event_pushes, for_each_event};
use crate::ledger::{
    AreaKind, Change, Choice, Closed, ClosedArea, ClosedFrames, Interests, Ledger, PageEvent, PageGroup,
    PlainLife, Receiver, Rules, SideEvent,
};
use crate::stream::op::{Kind, OpCode};
use crate::stream::{
    Api, FreeSite, Interner, NameId, News, Op, Origin, PageSite, SideEventKind, SideNumbers, Site, StackOf,
};
use crate::trace::losses::Losses;

macro_rules! all_events {
    ({ $($own:tt)* } { $($others:tt)* }) => {
        event_enum!(Logged { $($own)* $($others)* });
    };
}
for_each_event!(all_events);

/// Records all events.
#[derive(Debug, Default)]
struct Log(Vec<Logged>);

impl Log {
    fn push(&mut self, event: Logged) {
        self.0.push(event);
    }
}

macro_rules! push_all {
    ({ $($own:tt)* } { $($others:tt)* }) => {
        event_pushes!(Logged { $($own)* $($others)* });
    };
}

impl Receiver for Log {
    for_each_event!(push_all);
}

impl Logged {
    /// The part that gets it, of `of` parts; `None`: all of them.
    fn part(&self, route: Route, number: usize, of: u32) -> Option<u32> {
        match (route, self) {
            (Route::All, _) => None,
            (Route::Whole, _) => Some(0),
            (Route::Any, Self::Changed(change)) => Some(part_of(change.address, of)),
            // Any part: not even by address.
            (Route::Any, _) => Some(part_of(number as u64, of)),
            (Route::Task, Self::SlabAlloc(_, origin, _)) => Some(part_of(origin.pid as u64, of)),
            (
                Route::Task,
                Self::PageAlloc(PageEvent { origin, .. }) | Self::PageFree(PageEvent { origin, .. }),
            ) => Some(part_of(origin.pid as u64, of)),
            (Route::Task, Self::Side(event)) => Some(part_of(event.origin.pid as u64, of)),
            (Route::Task, event) => panic!("{event:?} has no task"),
        }
    }
}

/// The result of a collector in `of` parts.
fn in_parts<C: Collector>(collector: &C, log: &[Logged], of: u32) -> C::Output {
    let share = |index| Share { rules: rules_here(), has_stacks: true, index, of };
    let mut parts: Vec<C::Part> = (0..of).map(|index| collector.partition(&share(index))).collect();
    let wanted = C::INTERESTS;
    for (number, event) in log.iter().enumerate().filter(|(_, event)| wanted.intersects(event.wanted_for())) {
        match event.part(C::ROUTE, number, of) {
            Some(part) => event.deliver(wanted, &mut parts[part as usize]),
            None => parts.iter_mut().for_each(|part| event.deliver(wanted, part)),
        }
    }
    let first = parts.remove(0);
    collector.merge(first, parts)
}

fn check<C: Collector>(collector: &C, log: &[Logged])
where
    C::Output: PartialEq + Debug,
{
    let whole = in_parts(collector, log, 1);
    for of in [2, 7] {
        assert_eq!(whole, in_parts(collector, log, of), "{} in {of} parts", std::any::type_name::<C>());
    }
}

const LAST: u64 = 3_000;
const SITES: [(Api, u64, u64); 5] = [
    (Api::Kmalloc, 60, 64),
    (Api::Kmalloc, 100, 128),
    (Api::Cache, 200, 256),
    (Api::Cache, 500, 512),
    (Api::Kmalloc, 16_000, 16_384),
];
const ORIGINS: u8 = 9;

fn rules_here() -> Rules {
    Rules { late_bound: 40, last: LAST, deferred_max: 60, window: (200, 2_500), ..rules() }
}

/// Numbers of the tables: sites, frees of both interfaces, kinds of pages, tasks on three CPUs.
fn interner() -> Interner {
    let mut interner = Interner::default();
    let name = NameId(interner.names.number(&b"a_cache".to_vec()));
    for (number, (api, bytes_req, bytes_alloc)) in (1u64..).zip(SITES) {
        let cache = (number == 4).then_some(name);
        // Two sites share a call site.
        let call_site = number.min(3);
        let class = 0;
        interner.sites.number(&Site {
            api,
            class,
            call_site,
            bytes_req,
            bytes_alloc,
            gfp_flags: 0,
            node: -1,
            accounted: None,
            cache,
        });
    }
    for (number, api) in [Api::Kmalloc, Api::Cache, Api::Kmalloc, Api::Cache].into_iter().enumerate() {
        interner.frees.number(&FreeSite { api, class: 0, call_site: 9 + number as u64, cache: None });
    }
    for number in 0..8 {
        let site = PageSite { order: number % 4, migratetype: i32::from(number / 4), ..PageSite::default() };
        interner.pages.number(&site);
    }
    for number in 0..ORIGINS {
        // Task 0 runs on every CPU.
        let (cpu, pid) = (u32::from(number % 3), i32::from(number / 3));
        interner.origins.number(&Origin { cpu, pid, ..Origin::default() });
    }
    interner
}

/// One operation from five random numbers; addresses and frames lie in four blocks of the largest order.
fn op(side_numbers: &mut Vec<(u64, SideNumbers)>, time: u64, (kind, a, b, c): (u8, u8, u8, u8)) -> Op {
    let frame = (u64::from(a % 4) << 15) + 0x40 + u64::from(b % 16);
    let address = BASE + (frame << 12) + u64::from(c % 8) * 512;
    let origin = u32::from(b % ORIGINS);
    let at = |code, value| Op { time, value, code, origin };
    match kind % 16 {
        0..=4 => {
            let site = u32::from(c) % SITES.len() as u32;
            let address = if SITES[site as usize].2 > 8192 { address & !0x3fff } else { address };
            at(OpCode::new(Kind::Alloc, site), if a == 255 { 0 } else { address })
        }
        5 | 6 => at(OpCode::new(Kind::Kfree, 2 * u32::from(a % 2)), address),
        7 | 8 => at(OpCode::new(Kind::CacheFree, 1 + 2 * u32::from(a % 2)), address),
        9 => at(OpCode::new(Kind::FreeRcu, 0), address),
        10 | 11 => {
            let number = c % 8;
            let frame = frame >> (number % 4) << (number % 4);
            at(OpCode::new(Kind::PageAlloc, number.into()), if a == 255 { u64::MAX } else { frame })
        }
        12 => at(OpCode::new(Kind::PageFree, u32::from(c % 4)), frame >> (c % 4) << (c % 4)),
        13 => {
            let of = if a % 2 == 0 { StackOf::Slab } else { StackOf::Pages };
            at(OpCode::new(Kind::Stack, u32::from(c % 6)), of.value())
        }
        _ => {
            let kind = (0u32..).map_while(SideEventKind::of).nth(usize::from(c) % 29);
            let kind = kind.unwrap_or(SideEventKind::DirectBegin);
            let small = |n: u8| if n == 7 { None } else { Some(u64::from(n % 10)) };
            let mut numbers =
                [small(a % 8), small(b % 5), small(a % 3), small(b % 4), small(c % 3), small(a % 2)];
            if kind == SideEventKind::Fallback {
                numbers[0] = Some(frame);
            }
            let value = side_numbers.len() as u64;
            if kind.has_fields() {
                side_numbers.push((value, numbers));
            }
            at(OpCode::new(Kind::SideEvent, kind as u32), value)
        }
    }
}

/// Time to the next operation, and the numbers that determine it.
type Numbers = (u8, (u8, u8, u8, u8));

/// Events of a ledger for random operations; `lives`: with each life.
fn log_of(numbers: &[Numbers], lives: bool) -> Vec<Logged> {
    let mut news = News::all(&interner());
    let mut time = 0;
    let ops: Vec<Op> = numbers
        .iter()
        .map(|&(step, numbers)| {
            time += u64::from(step % 32);
            op(&mut news.side_numbers, time, numbers)
        })
        .collect();
    let (losses, rules) = (Losses::default(), rules_here());
    let rules = if lives { rules } else { Rules { window: (0, u64::MAX), ..rules } };
    let plain = Interests::PLAIN_LIVES | Interests::UNMATCHED;
    let interests = if lives { Interests::all() } else { plain };
    let mut ledger = Ledger::new(rules, &losses, Choice::ALL, interests, Log::default(), None);
    ledger.learn(&news);
    ops.chunks(16).for_each(|ops| ledger.enter(ops));
    ledger.finish().1.0
}

fn numbers() -> impl Strategy<Value = Vec<Numbers>> {
    proptest::collection::vec((any::<u8>(), any::<(u8, u8, u8, u8)>()), 0..600)
}

/// Checks that batches have the events of a log that a receiver wants: in order, or those of each method in order.
fn check_batches(log: &[Logged], wanted: Interests) {
    let (mut in_order, mut by_method) = (Log::default(), Log::default());
    let mut batches = Batched::new(|batch: &mut Batch| {
        batch.deliver(wanted, true, &mut in_order);
        batch.deliver(wanted, false, &mut by_method);
        batch.clear();
    });
    log.iter().for_each(|event| event.deliver(Interests::all(), &mut batches));
    batches.finish();
    let lines = |log: &mut dyn Iterator<Item = &Logged>| log.map(|e| format!("{e:?}")).collect::<Vec<_>>();
    let expected = lines(&mut log.iter().filter(|event| wanted.intersects(event.wanted_for())));
    assert_eq!(lines(&mut in_order.0.iter()), expected);
    for kind in expected.iter().map(|line| kind_of(line)).collect::<BTreeSet<_>>() {
        let of_kind = |lines: &[String]| -> Vec<String> {
            lines.iter().filter(|line| kind_of(line) == kind).cloned().collect()
        };
        assert_eq!(of_kind(&lines(&mut by_method.0.iter())), of_kind(&expected));
    }
    assert_eq!(by_method.0.len(), expected.len());
}

/// Name of the kind of an event that is printed so.
fn kind_of(line: &str) -> &str {
    line.split('(').next().unwrap_or(line)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn batches_have_all_events(numbers in numbers(), bits in any::<u16>(), lives in any::<bool>()) {
        let log = log_of(&numbers, lives);
        check_batches(&log, Interests::from_bits_truncate(bits));
        check_batches(&log, Interests::all());
        // Several batches.
        check_batches(&log.iter().cycle().take(5_000).cloned().collect::<Vec<_>>(), Interests::all());
    }

    #[test]
    fn collectors_give_the_same_whole_and_in_partitions(numbers in numbers()) {
        let log = log_of(&numbers, true);
        let window = (200, 2_500);
        check(&Anomalies, &log);
        check(&Calls::default(), &log);
        check(&CrossCpu, &log);
        check(&Fallbacks, &log);
        check(&Groups, &log);
        check(&Growth::new(window.0, window.1, None), &log);
        check(&Growth::new(window.0, window.1, Some(window.0.midpoint(window.1))).without(vec![7, 2]), &log);
        check(&LifeGroups { outlive: Some([50, 500]) }, &log);
        check(&Lifetimes { temporary_bound: Some(50), outlive: Some([50, 500]) }, &log);
        check(&Mixing { pageblock_order: 9 }, &log);
        check(&Moments { times: vec![300, 900, 2_000] }, &log);
        check(&Occupancy { window, steps: 10 }, &log);
        check(&PageFailures, &log);
        check(&PageGroups, &log);
        check(&PageStacks, &log);
        check(&WhoFrame { pfn: 0x44 }, &log);
        check(&PageUse { pageblock_order: 9 }, &log);
        check(&Peak { window }, &log);
        check(&Reasons, &log);
        let added = Layout { name: "b".into(), added: vec![80, 96], ..Layout::default() };
        let dropped = Layout { name: "c".into(), dropped: vec![128], ..Layout::default() };
        check(&Replay { layouts: vec![Layout::default(), added, dropped], end: LAST }, &log);
        check(&Stalls { threshold: Some(5), ..Stalls::default() }, &log);
        check(&Tasks, &log);
        check(&Steps { start: window.0, step: 90, steps: 11, kept_max: usize::MAX }, &log);
        check(&Timeline::new(window.0, window.1, 7, false), &log);
        check(&Timeline { keeps_before: true, ..Timeline::new(window.0, window.1, 7, true) }, &log);
        check(&Unmatched, &log);
        check(&Who { address: BASE + (0x48 << 12) }, &log);
        check(&Lifetimes::default(), &log_of(&numbers, false));
    }
}

/// Random events are of all kinds: a check of the test.
#[test]
fn random_events_are_of_all_kinds() {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    };
    let numbers: Vec<Numbers> = (0..5_000).map(|_| (next(), (next(), next(), next(), next()))).collect();
    let numbers: Vec<_> = numbers.into_iter().map(|(step, rest)| (step % 2, rest)).collect();
    let log = log_of(&numbers, true);
    let has = |is: fn(&Logged) -> bool| log.iter().filter(|event| is(event)).count() > 10;
    assert!(has(|e| matches!(e, Logged::Closed(c) if c.is_freed)));
    assert!(has(|e| matches!(e, Logged::Closed(c) if c.is_implied_free)));
    assert!(has(|e| matches!(e, Logged::Closed(c) if c.deferred_at().is_some())));
    assert!(has(|e| matches!(e, Logged::Frames(f) if f.stack != crate::ledger::frames::NO_STACK)));
    assert!(has(|e| matches!(e, Logged::Unmatched(..))) && has(|e| matches!(e, Logged::Changed { .. })));
    assert!(
        has(|e| matches!(e, Logged::Side(_))) && has(|e| matches!(e, Logged::Closed(c) if c.stack.is_some()))
    );
    let stalls = in_parts(&Stalls::default(), &log, 7);
    assert!(stalls.kinds.len() > 5 && stalls.delayed.len() > 5, "{:?}", stalls.kinds.keys());
    assert!(in_parts(&Calls::default(), &log, 7).stacks.len() > 3);
    assert!(in_parts(&Fallbacks, &log, 7).len() > 10);
    assert!(in_parts(&Mixing { pageblock_order: 9 }, &log, 7).live.len() > 3);
    let occupancy = in_parts(&Occupancy { window: (200, 2_500), steps: 10 }, &log, 7);
    assert!(occupancy.pages.len() > 10, "{}", occupancy.pages.len());
    assert!(occupancy.pins.iter().any(|p| p.objects > 0), "{:?}", occupancy.pins);
    assert!(in_parts(&Peak { window: (0, LAST) }, &log, 7).highest.is_some());
    assert!(!log_of(&numbers, false).is_empty());
}
