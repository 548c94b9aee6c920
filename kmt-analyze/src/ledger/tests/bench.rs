//! A ledger for tests, with functions to enter events.
//!
//! Sites, origins and times have constants, so that a case is a few lines. `check` runs the case on the plain path and
//! on the general one and compares both with the expected totals. All files of `ledger/tests` use it.

use super::super::*;
use crate::ledger::direct_map::DirectMap;
use crate::ledger::totals::Totals;
use crate::stream::op::OpCode;
use crate::stream::{Api, FreeSite, Interner, Origin, PageSite, Site};

pub(super) const MS: u64 = 1_000_000;
pub(super) const PTR: u64 = 0xffff_8880_0012_3000;
pub(super) const BASE: u64 = 0xffff_8880_0000_0000;

/// The plain path of the ledger.
pub(super) static SHORT_WAY: Choice<'static> = Choice::ALL;
/// The general path.
pub(super) static LONG_WAY: Choice<'static> = Choice { is_open: false, ..Choice::ALL };

pub(super) struct Bench<'l, R = ()> {
    pub(super) ledger: Ledger<'l, R>,
    pub(super) interner: Interner,
    known: NewItems,
}

/// Site numbers of the test bench.
pub(super) const SMALL: u32 = 0;
pub(super) const CACHE: u32 = 1;
pub(super) const LARGE_INNER: u32 = 2;
pub(super) const LARGE_OUTER: u32 = 3;

pub(super) fn interner() -> Interner {
    let site = |api, call_site, bytes_req, bytes_alloc| Site {
        api,
        class: 0,
        call_site,
        bytes_req,
        bytes_alloc,
        gfp_flags: 0,
        node: -1,
        accounted: None,
        cache: None,
    };
    let mut interner = Interner::default();
    for site in [
        site(Api::Kmalloc, 1, 100, 128),
        site(Api::Cache, 2, 256, 256),
        site(Api::Kmalloc, 3, 16_000, 16_384),
        site(Api::Kmalloc, 4, 16_000, 16_384),
    ] {
        interner.sites.number(&site);
    }
    for api in Api::ALL {
        interner.frees.number(&FreeSite { api, class: 0, call_site: 9, cache: None });
    }
    for order in 0..4 {
        interner.pages.number(&PageSite { order, ..PageSite::default() });
    }
    interner
}

pub(super) fn direct_map() -> DirectMap {
    DirectMap { base: BASE & ADDRESS_BITS, base_address: BASE, votes: 9, votes_all: 9 }
}

pub(super) fn rules(window: (u64, u64)) -> Rules {
    let direct_map = Some(direct_map());
    Rules {
        page_size: 4096,
        late_bound: MS,
        late_frees: true,
        direct_map,
        window,
        no_frame: u64::MAX,
        last: 1_000 * MS,
        deferred_max: 100 * MS,
        ages: Ages::default(),
        cpus: 0,
    }
}

pub(super) fn bench_in<'l>(losses: &'l Losses, window: (u64, u64), choice: &Choice<'l>) -> Bench<'l> {
    bench_by(rules(window), losses, choice)
}

pub(super) fn bench_by<'l>(rules: Rules, losses: &'l Losses, choice: &Choice<'l>) -> Bench<'l> {
    Bench::new(Ledger::new(rules, losses, *choice, Interests::empty(), (), None))
}

/// CPU and task.
pub(super) fn here() -> Origin {
    Origin { cpu: 0, pid: 7, ..Origin::default() }
}

impl<'l, R: Receiver> Bench<'l, R> {
    pub(super) fn new(ledger: Ledger<'l, R>) -> Self {
        Self { ledger, interner: interner(), known: NewItems::default() }
    }

    pub(super) fn enter(
        &mut self,
        kind: Kind,
        number: u32,
        value: u64,
        time: u64,
        origin: Origin,
    ) -> &mut Self {
        let origin = self.interner.origins.number(&origin);
        let NewItems { sites, frees, pages, origins, .. } = NewItems::all(&self.interner);
        let NewItems { sites: old_sites, frees: old_frees, pages: old_pages, origins: old_origins, .. } =
            &self.known;
        let new = NewItems {
            sites: sites[old_sites.len()..].to_vec(),
            frees: frees[old_frees.len()..].to_vec(),
            pages: pages[old_pages.len()..].to_vec(),
            origins: origins[old_origins.len()..].to_vec(),
            side_numbers: Vec::new(),
        };
        self.ledger.learn(&new);
        self.known.append(new);
        self.ledger.enter(&[Op { time, value, code: OpCode::new(kind, number), origin }]);
        self
    }

    pub(super) fn alloc(&mut self, site: u32, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::Alloc, site, ptr, time, here())
    }

    pub(super) fn kfree(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::Kfree, 0, ptr, time, here())
    }

    pub(super) fn cache_free(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::CacheFree, 1, ptr, time, here())
    }

    pub(super) fn free_rcu(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::FreeRcu, 0, ptr, time, here())
    }

    pub(super) fn page_free(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::PageFree, 0, (ptr - BASE) >> 12, time, here())
    }

    pub(super) fn page_alloc(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::PageAlloc, 0, (ptr - BASE) >> 12, time, here())
    }
}

/// Totals of all sites, and the counts of both interfaces.
pub(super) fn balance<R: Receiver>(bench: Bench<'_, R>) -> (Totals, EventCounts, Balance) {
    let (balance, _) = bench.ledger.finish();
    let mut totals = Totals::default();
    balance.sites.iter().flatten().for_each(|(_, t)| totals += t);
    let mut counts = balance.counts[0];
    counts += &balance.counts[1];
    (totals, counts, balance)
}

/// Checks each case on both paths.
pub(super) fn check(events: impl Fn(&mut Bench<'_>), expected: impl Fn(&Totals, &EventCounts, &Balance)) {
    for choice in [&SHORT_WAY, &LONG_WAY] {
        let losses = Losses::default();
        let mut bench = bench_in(&losses, (0, u64::MAX), choice);
        events(&mut bench);
        let (totals, counts, balance) = balance(bench);
        let lives = totals.frees_matched + totals.implied_frees + totals.live;
        assert_eq!(totals.alloc_events, lives, "every life has one end");
        assert_eq!(totals.bytes_alloc, totals.bytes_freed + totals.bytes_freed_implied + totals.bytes_live);
        expected(&totals, &counts, &balance);
    }
}
