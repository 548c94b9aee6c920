//! R10: frees without a life, told apart by the last event of their address.
//!
//! Cases are a free, a page event or a pending decision before the free in question, on both paths. A random test
//! compares the causes with a model that has the state of each address by name, in place of the packed slots of the
//! table.

use super::*;
use crate::ledger::lives::Free;
use crate::ledger::lives::NoLife::{self, AgainSeen, AgainUnseen, Before, NewPage};

/// Receives the causes of frees without a life.
#[derive(Default)]
struct Causes(Vec<NoLife>);

impl Receiver for Causes {
    fn unmatched(&mut self, _: u64, _: &Free, no_life: NoLife) {
        self.0.push(no_life);
    }
}

fn causes_by(rules: Rules, choice: &Choice<'static>, events: &dyn Fn(&mut Bench<'_, Causes>)) -> Vec<NoLife> {
    let losses = Losses::default();
    let ledger = Ledger::new(rules, &losses, *choice, Interests::UNMATCHED, Causes::default(), None);
    let mut bench = Bench::new(ledger);
    events(&mut bench);
    bench.ledger.finish().1.0
}

/// Checks the causes on both paths.
fn check_causes(expected: &[NoLife], events: impl Fn(&mut Bench<'_, Causes>)) {
    for choice in [&SHORT_WAY, &LONG_WAY] {
        let found = causes_by(rules((0, u64::MAX)), choice, &events);
        assert_eq!(found, expected, "short: {}", choice.is_open);
    }
}

const LATE: u64 = 100 * MS;

#[test]
fn by_the_free_before() {
    check_causes(&[AgainSeen], |b| {
        b.alloc(SMALL, PTR, 1).kfree(PTR, 2).kfree(PTR, 3);
    });
    check_causes(&[Before, AgainUnseen], |b| {
        b.kfree(PTR, 1).kfree(PTR, 2);
    });
    check_causes(&[AgainSeen, AgainUnseen], |b| {
        b.alloc(SMALL, PTR, 1).kfree(PTR, 2).kfree(PTR, 3).kfree(PTR, 4);
    });
    // An allocation after it ends the state.
    check_causes(&[Before, AgainSeen], |b| {
        b.kfree(PTR, 1).alloc(SMALL, PTR, 2).kfree(PTR, 3).kfree(PTR, 4);
    });
}

#[test]
fn by_the_page() {
    check_causes(&[NewPage], |b| {
        b.alloc(SMALL, PTR, 1).kfree(PTR, 2).page_free(PTR, 3).page_alloc(PTR, 4).kfree(PTR, 5);
    });
    check_causes(&[Before, NewPage, AgainUnseen], |b| {
        b.kfree(PTR, 1).page_alloc(PTR, 2).kfree(PTR, 3).kfree(PTR, 4);
    });
    check_causes(&[NewPage, AgainUnseen], |b| {
        b.page_alloc(PTR, 1).kfree(PTR, 2).kfree(PTR, 3);
    });
    // The page is older than the last free, or not allocated.
    check_causes(&[AgainSeen], |b| {
        b.page_alloc(PTR, 1).alloc(SMALL, PTR, 2).kfree(PTR, 3).kfree(PTR, 4);
    });
    check_causes(&[AgainSeen], |b| {
        b.alloc(SMALL, PTR, 1).kfree(PTR, 2).page_alloc(PTR, 3).page_free(PTR, 4).kfree(PTR, 5);
    });
    // The second object of the page.
    check_causes(&[NewPage], |b| {
        b.alloc(SMALL, PTR, 1).kfree(PTR, 2).page_free(PTR, 3).page_alloc(PTR, 4);
        b.alloc(SMALL, PTR + 512, 5).kfree(PTR, 6).kfree(PTR + 512, 7);
    });
}

#[test]
fn by_a_page_event_that_ended_the_object() {
    check_causes(&[AgainUnseen, AgainUnseen], |b| {
        b.alloc(SMALL, PTR, 1).page_free(PTR, 2).kfree(PTR, LATE).kfree(PTR, LATE + 1);
    });
    check_causes(&[NewPage], |b| {
        b.alloc(SMALL, PTR, 1).page_free(PTR, 2).page_alloc(PTR, 3).kfree(PTR, LATE);
    });
    // Two allocations and a free, then the page: two decisions are pending.
    check_causes(&[AgainUnseen], |b| {
        b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6).page_free(PTR, 7).kfree(PTR, LATE);
    });
    check_causes(&[NewPage], |b| {
        b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6);
        b.page_free(PTR, 7).page_alloc(PTR, 8).kfree(PTR, LATE);
    });
}

#[test]
fn behind_pending_decisions() {
    check_causes(&[AgainSeen], |b| {
        b.alloc(SMALL, PTR, 1).free_rcu(PTR, 2).kfree(PTR, 3).kfree(PTR, 4);
    });
    check_causes(&[AgainSeen, AgainUnseen], |b| {
        b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).kfree(PTR, 6).kfree(PTR, 7).kfree(PTR, 8);
    });
    check_causes(&[AgainSeen], |b| {
        b.alloc(LARGE_INNER, PTR, 10).alloc(LARGE_OUTER, PTR, 11).kfree(PTR, 12).kfree(PTR, 13);
    });
}

/// State of an address in the model.
#[derive(Clone, Copy)]
enum Last {
    Live,
    /// The object ended by a free, or the free had no object, at this time.
    Freed {
        has_object: bool,
        time: u64,
    },
    /// A page event ended the object that was born then.
    PageGone {
        born: u64,
    },
}

/// Random events of a few addresses and pages against a model that has the state of each address by name.
#[test]
fn random_events_have_the_causes_of_a_plain_model() {
    let mut seed = 7u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let events: Vec<(u64, u64)> = (0..20_000).map(|_| (next(16), next(64) << 12 | next(3) << 9)).collect();
    let mut model: HashMap<u64, (Last, u64)> = HashMap::new();
    let mut pages: HashMap<u64, u64> = HashMap::new();
    let mut expected = Vec::new();
    for (time, &(kind, at)) in (1u64..).zip(&events) {
        match kind {
            0..7 => drop(model.insert(at, (Last::Live, time))),
            7..14 => {
                let page = pages.get(&(at >> 12));
                let has_object = match model.get(&at) {
                    Some((Last::Live, _)) => true,
                    None => {
                        expected.push(if page.is_some() { NewPage } else { Before });
                        false
                    }
                    Some((last, _)) => {
                        let (since, cause) = match *last {
                            Last::Freed { has_object: true, time } => (time, AgainSeen),
                            Last::Freed { time, .. } => (time, AgainUnseen),
                            Last::PageGone { born } => (born, AgainUnseen),
                            Last::Live => unreachable!(),
                        };
                        expected.push(if page.is_some_and(|&page| page > since) { NewPage } else { cause });
                        false
                    }
                };
                model.insert(at, (Last::Freed { has_object, time }, 0));
            }
            _ => {
                if kind == 14 {
                    pages.insert(at >> 12, time)
                } else {
                    pages.remove(&(at >> 12))
                };
                for (_, state) in model.iter_mut().filter(|(address, _)| **address >> 12 == at >> 12) {
                    if let (Last::Live, born) = *state {
                        *state = (Last::PageGone { born }, 0);
                    }
                }
            }
        }
    }
    for cause in [Before, NewPage, AgainSeen, AgainUnseen] {
        assert!(
            expected.iter().filter(|found| **found == cause).count() > 3,
            "{cause:?}: a check of the test"
        );
    }
    let rules = Rules { late_frees: false, ..rules((0, u64::MAX)) };
    for choice in [&SHORT_WAY, &LONG_WAY] {
        let found = causes_by(rules, choice, &|b| {
            for (time, &(kind, at)) in (1u64..).zip(&events) {
                let ptr = PTR + at;
                match kind {
                    0..7 => b.alloc(SMALL, ptr, time),
                    7..14 => b.kfree(ptr, time),
                    14 => b.page_alloc(ptr, time),
                    _ => b.page_free(ptr, time),
                };
            }
        });
        assert_eq!(found, expected, "short: {}", choice.is_open);
    }
}
