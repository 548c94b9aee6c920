//! Batches deliver all events of a ledger, in order, on random operations.
//!
//! A receiver that gets the events directly writes a log; the same operations with batches must give the same log for
//! every selection of event kinds. Proptest makes the operations, on few addresses and frames, so that most rules
//! apply. Another test checks that events of all kinds occur.

use std::collections::BTreeSet;

use kmt_format::fold::FoldedSums;
use proptest::prelude::*;

use super::*;
use crate::ledger::batch::{Batch, Batched, event_enum, event_pushes};
use crate::ledger::lives::{Free, NoLife};
use crate::ledger::receiver::for_each_event;
use crate::stream::op::OpCode;

macro_rules! all_events {
    ({ $($own:tt)* } { $($others:tt)* }) => {
        event_enum!(Logged { $($own)* $($others)* });
    };
}
for_each_event!(all_events);

macro_rules! names {
    ($({ $($(#[$doc:meta])* $name:ident $method:ident($($arg:tt)*) for $for:ident;)* })*) => {
        /// Names of all kinds of events.
        const KINDS: &[&str] = &[$($(stringify!($name)),*),*];
    };
}
for_each_event!(names);

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

/// Time to the next operation, and the numbers that determine it.
type Numbers = (u8, (u8, u8, u8, u8));

/// Number of CPUs and tasks.
const ORIGINS: u8 = 9;

/// One operation, on few addresses and frames.
fn op(side_numbers: &mut Vec<(u64, SideNumbers)>, time: u64, (kind, a, b, c): (u8, u8, u8, u8)) -> Op {
    let (frame, number) = (0x40 + u64::from(b % 16), u32::from(c % 4));
    let address = BASE + (frame << 12) + u64::from(c % 8) * 512;
    let (fails, block) = (a > 240, frame >> number << number);
    let (code, value) = match kind % 16 {
        0..=4 if fails => (OpCode::new(Kind::Alloc, number), 0),
        0..=4 if number >= LARGE_INNER => (OpCode::new(Kind::Alloc, number), address & !0x3fff),
        0..=4 => (OpCode::new(Kind::Alloc, number), address),
        5 | 6 => (OpCode::new(Kind::Kfree, 0), address),
        7 | 8 => (OpCode::new(Kind::CacheFree, 1), address),
        9 => (OpCode::new(Kind::FreeRcu, 0), address),
        10 | 11 => (OpCode::new(Kind::PageAlloc, number), if fails { u64::MAX } else { block }),
        12 => (OpCode::new(Kind::PageFree, number), block),
        13 => {
            let of = if a % 2 == 0 { StackOf::Slab } else { StackOf::Pages };
            (OpCode::new(Kind::Stack, number), of.value())
        }
        _ => {
            let kinds: Vec<SideEventKind> = (0u32..).map_while(SideEventKind::of).collect();
            let kind = kinds[usize::from(c) % kinds.len()];
            let value = side_numbers.len() as u64;
            if kind.has_fields() {
                side_numbers.push((value, [a, b, c, a, b, c].map(|n| Some(u64::from(n % 10)))));
            }
            (OpCode::new(Kind::SideEvent, kind as u32), value)
        }
    };
    Op { time, value, code, origin: u32::from(b % ORIGINS) }
}

/// Events of a ledger for random operations; `lives`: with each life.
fn log_of(numbers: &[Numbers], lives: bool) -> Vec<Logged> {
    let mut interner = interner();
    for number in 0..ORIGINS {
        let (cpu, pid) = (u32::from(number % 3), i32::from(number / 3));
        interner.origins.number(&Origin { cpu, pid, ..Origin::default() });
    }
    let (mut new_items, mut time) = (NewItems::all(&interner), 0);
    let op_of = |&(step, numbers): &Numbers| {
        time += u64::from(step % 32);
        op(&mut new_items.side_numbers, time, numbers)
    };
    let ops: Vec<Op> = numbers.iter().map(op_of).collect();
    let window = if lives { (200, 2_500) } else { (0, u64::MAX) };
    let rules = Rules { late_bound: 40, deferred_max: 60, ..rules(window) };
    let plain = Interests::PLAIN_LIVES | Interests::UNMATCHED;
    let interests = if lives { Interests::all() } else { plain };
    let losses = Losses::default();
    let mut ledger = Ledger::new(rules, &losses, Choice::ALL, interests, Log::default(), None);
    ledger.learn(&new_items);
    ops.chunks(16).for_each(|ops| ledger.enter(ops));
    for (alloc, free) in [(Kind::Alloc, Kind::Kfree), (Kind::PageAlloc, Kind::PageFree)] {
        let codes = [OpCode::new(alloc, 0), OpCode::new(free, 0)];
        let sums = FoldedSums { count: 3, length_sum: 9, length_max: 5, ..FoldedSums::default() };
        ledger.enter_folded(codes, &sums, (200, 300), [(2, 2), (5, 1)].into_iter());
    }
    ledger.finish().1.0
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
    fn batches_have_all_events(
        numbers in proptest::collection::vec(any::<Numbers>(), 0..600),
        bits in any::<u16>(),
        lives in any::<bool>(),
    ) {
        let log = log_of(&numbers, lives);
        check_batches(&log, Interests::from_bits_truncate(bits));
        check_batches(&log, Interests::all());
        // Several batches.
        check_batches(&log.iter().cycle().take(5_000).cloned().collect::<Vec<_>>(), Interests::all());
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
    let numbers: Vec<Numbers> = (0..5_000).map(|_| (next() % 2, (next(), next(), next(), next()))).collect();
    let lines: Vec<String> =
        [true, false].iter().flat_map(|lives| log_of(&numbers, *lives)).map(|e| format!("{e:?}")).collect();
    let found: BTreeSet<&str> = lines.iter().map(|line| kind_of(line)).collect();
    assert_eq!(found, KINDS.iter().copied().collect());
}
