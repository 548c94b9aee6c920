//! The exact ledger of slab objects: one owner for every address, by the rules R1 to R11.
//!
//! - R1 Events count in merge order; addresses are compared by their low 56 bits.
//! - R2 An allocation of address 0 is a failure. R3 Frees of 0 and of 1 to 16 are no frees of objects.
//! - R4 A large kmalloc that reports twice is one life.
//! - R5 An allocation of a live address ends the old life as freed unseen; R6 unless its free was only logged late.
//! - R7 A page free or allocation under a live object ends it likewise.
//! - R9 A free matches the life of its address by whichever interface it came.
//! - R10 A free without a life is an untraced birth if anything is known of its address or page, else of an object
//!   allocated before the trace. R11 A free on another CPU than the allocation is a cross-CPU free.
//!
//! A life is added up when its end is known, by the times of its events, so that a window of time selects what is
//! counted and never what is matched.

use std::collections::{HashMap, HashSet};

use super::addresses::{ADDRESS_BITS, Free, FreedOnce, IntHash, Life, NONE, Replaced, State};
use super::direct_map::DirectMap;
use super::losses::Losses;
use super::sites::{Api, NameId, Sites};
use super::totals::{EventCounts, RawSums, Totals};

/// What the rules depend on.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Page size of the target in bytes.
    pub page_size: u64,
    /// One millisecond in the clock's unit: the bound of late frees and double reports.
    pub late_bound: u64,
    /// Where page frames are mapped, if it was learned.
    pub direct_map: Option<DirectMap>,
    /// First and last time of what is counted.
    pub window: (u64, u64),
}

/// When and where something was logged.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// Time in the clock's unit.
    pub time: u64,
    /// CPU.
    pub cpu: u32,
    /// Task.
    pub pid: i32,
    /// Whether the filters select it.
    pub selected: bool,
}

/// Sums of one site, apart for each cache that a free has shown its objects to belong to.
pub type SiteTotals = Vec<(Option<NameId>, Totals)>;

/// The ledger.
#[derive(Debug)]
pub struct Ledger<'l> {
    rules: Rules,
    losses: &'l Losses,
    addresses: HashMap<u64, State, IntHash>,
    lives: Vec<Life>,
    unused: Vec<u32>,
    /// First life in each page frame.
    frames: HashMap<u64, u32, IntHash>,
    /// Frames allocated in the trace and not yet freed.
    frames_allocated: HashSet<u64, IntHash>,
    totals: Vec<SiteTotals>,
    counts: [EventCounts; 2],
    raw: RawSums,
}

/// What the ledger came to.
#[derive(Debug, Default)]
pub struct Balance {
    /// By site.
    pub sites: Vec<SiteTotals>,
    /// By interface: kmalloc, cache.
    pub counts: [EventCounts; 2],
    /// Plain sums.
    pub raw: RawSums,
}

enum End {
    Freed { free: Free, end: u64, late: bool },
    Unseen { end: u64, ambiguous: bool },
    Live,
}

impl<'l> Ledger<'l> {
    /// An empty ledger.
    pub fn new(rules: Rules, losses: &'l Losses) -> Self {
        Self {
            rules,
            losses,
            addresses: HashMap::default(),
            lives: Vec::new(),
            unused: Vec::new(),
            frames: HashMap::default(),
            frames_allocated: HashSet::default(),
            totals: Vec::new(),
            counts: Default::default(),
            raw: RawSums::default(),
        }
    }

    fn in_window(&self, time: u64) -> bool {
        (self.rules.window.0..=self.rules.window.1).contains(&time)
    }

    fn is_late(&self, end: u64, free: &Free) -> bool {
        free.api == Api::Cache && free.time.saturating_sub(end) <= self.rules.late_bound
    }

    /// An allocation event.
    pub fn alloc(&mut self, sites: &Sites, site_number: u32, ptr: u64, at: At) {
        let Some(site) = sites.site(site_number) else { return };
        let counted = at.selected && self.in_window(at.time);
        if counted {
            self.raw.alloc_events += 1;
            self.raw.bytes_req = self.raw.bytes_req.saturating_add(site.bytes_req);
            self.raw.bytes_alloc = self.raw.bytes_alloc.saturating_add(site.bytes_alloc);
        }
        let address = ptr & ADDRESS_BITS;
        if address == 0 {
            self.counts[site.api as usize].alloc_failures += u64::from(counted);
            return;
        }
        let state = self.take(address).unwrap_or(State::Empty);
        let current = match &state {
            State::Live(live) => Some(*live),
            State::Replaced(replaced) => Some(replaced.live),
            _ => None,
        };
        if current.is_some_and(|live| self.is_double_report(sites, live, site_number, at)) {
            if let Some(life) = current.and_then(|live| self.lives.get_mut(live as usize)) {
                life.last_report = at.time;
                life.site = site_number;
            }
            self.counts[Api::Kmalloc as usize].double_reports += u64::from(counted);
            self.addresses.insert(address, state);
            return;
        }
        let ended = match state {
            State::Empty => None,
            State::Live(live) => self.remove(live),
            State::Replaced(replaced) => {
                self.close(sites, &replaced.old, End::Unseen { end: replaced.old_end, ambiguous: false });
                self.remove(replaced.live)
            }
            State::FreedOnce(once) => {
                self.only_one_free(sites, &once);
                None
            }
            State::PageGone(gone) => {
                self.close(sites, &gone.0, End::Unseen { end: gone.1, ambiguous: false });
                None
            }
        };
        let live = self.insert(Life {
            address,
            site: site_number,
            born: at.time,
            last_report: at.time,
            pid: at.pid,
            cpu: at.cpu,
            previous: NONE,
            next: NONE,
            selected: at.selected,
        });
        let state = match ended {
            None => State::Live(live),
            Some(old) => State::Replaced(Box::new(Replaced { old, old_end: at.time, live })),
        };
        self.addresses.insert(address, state);
    }

    /// Rule R4: the inner and the outer function of one large kmalloc, 6.10 and later.
    fn is_double_report(&self, sites: &Sites, live: u32, site_number: u32, at: At) -> bool {
        let Some(life) = self.lives.get(live as usize) else { return false };
        let (Some(first), Some(second)) = (sites.site(life.site), sites.site(site_number)) else {
            return false;
        };
        first.api == Api::Kmalloc
            && second.api == Api::Kmalloc
            && life.cpu == at.cpu
            && life.pid == at.pid
            && (first.bytes_req, first.bytes_alloc) == (second.bytes_req, second.bytes_alloc)
            && second.bytes_alloc > 2 * self.rules.page_size
            && at.time.saturating_sub(life.last_report) <= self.rules.late_bound
    }

    /// A free event.
    pub fn free(&mut self, sites: &Sites, api: Api, cache: Option<NameId>, ptr: u64, at: At) {
        let counted = at.selected && self.in_window(at.time);
        self.raw.free_events += u64::from(counted);
        let address = ptr & ADDRESS_BITS;
        if address <= 16 {
            let counts = &mut self.counts[api as usize];
            let slot = if address == 0 { &mut counts.null_frees } else { &mut counts.zero_size_frees };
            *slot += u64::from(counted);
            return;
        }
        let free = Free { time: at.time, cpu: at.cpu, api, cache, selected: at.selected };
        let next = match self.take(address) {
            None => {
                let known_page = self.frame(address).is_some_and(|f| self.frames_allocated.contains(&f));
                self.unmatched(&free, known_page);
                self.addresses.insert(address, State::Empty);
                State::Empty
            }
            Some(State::Empty) => {
                self.unmatched(&free, true);
                State::Empty
            }
            Some(State::Live(live)) => {
                self.close_live(sites, live, free);
                State::Empty
            }
            Some(State::Replaced(replaced)) if self.is_late(replaced.old_end, &free) => {
                let Replaced { old, old_end, live } = *replaced;
                match self.remove(live) {
                    Some(second) => State::FreedOnce(Box::new(FreedOnce { old, old_end, second, free })),
                    None => State::Empty,
                }
            }
            Some(State::Replaced(replaced)) => {
                self.close(sites, &replaced.old, End::Unseen { end: replaced.old_end, ambiguous: false });
                self.close_live(sites, replaced.live, free);
                State::Empty
            }
            Some(State::FreedOnce(once)) => {
                // Two frees behind two allocations: the first one was the old life's, logged late (R6).
                self.close(sites, &once.old, End::Freed { free: once.free, end: once.old_end, late: true });
                self.close(sites, &once.second, End::Freed { free, end: free.time, late: false });
                State::Empty
            }
            Some(State::PageGone(gone)) => {
                let (old, end) = *gone;
                if self.is_late(end, &free) {
                    self.close(sites, &old, End::Freed { free, end, late: true });
                } else {
                    self.close(sites, &old, End::Unseen { end, ambiguous: false });
                    self.unmatched(&free, true);
                }
                State::Empty
            }
        };
        if !matches!(next, State::Empty) {
            self.addresses.insert(address, next);
        }
    }

    /// What is known of an address, which counts as empty from then on; `None` if it had no event.
    #[inline]
    fn take(&mut self, address: u64) -> Option<State> {
        self.addresses.get_mut(&address).map(|state| std::mem::replace(state, State::Empty))
    }

    fn unmatched(&mut self, free: &Free, untraced: bool) {
        if free.selected && self.in_window(free.time) {
            let counts = &mut self.counts[free.api as usize];
            *(if untraced { &mut counts.untraced_birth } else { &mut counts.allocated_before }) += 1;
        }
    }

    /// The one free behind two allocations was the second's; the first stays freed unseen, and uncertain.
    fn only_one_free(&mut self, sites: &Sites, once: &FreedOnce) {
        self.close(sites, &once.old, End::Unseen { end: once.old_end, ambiguous: true });
        self.close(sites, &once.second, End::Freed { free: once.free, end: once.free.time, late: false });
    }

    fn close_live(&mut self, sites: &Sites, live: u32, free: Free) {
        if let Some(life) = self.remove(live) {
            self.close(sites, &life, End::Freed { free, end: free.time, late: false });
        }
    }

    /// 2^order pages were allocated.
    pub fn page_alloc(&mut self, sites: &Sites, pfn: u64, order: u8, time: u64) {
        self.page_event(sites, pfn, order, time, true);
    }

    /// 2^order pages were freed.
    pub fn page_free(&mut self, sites: &Sites, pfn: u64, order: u8, time: u64) {
        self.page_event(sites, pfn, order, time, false);
    }

    fn page_event(&mut self, sites: &Sites, pfn: u64, order: u8, time: u64, allocated: bool) {
        if self.rules.direct_map.is_none() {
            return;
        }
        for frame in (0..1u64 << order.min(24)).map(|i| pfn.wrapping_add(i)) {
            while let Some(&live) = self.frames.get(&frame) {
                if !self.page_gone(sites, live, time) {
                    self.frames.remove(&frame);
                }
            }
            if allocated {
                self.frames_allocated.insert(frame);
            } else {
                self.frames_allocated.remove(&frame);
            }
        }
    }

    /// Rule R7 for one life; false if there is no such life.
    fn page_gone(&mut self, sites: &Sites, live: u32, time: u64) -> bool {
        let Some(life) = self.remove(live) else { return false };
        if let Some(State::Replaced(replaced)) = self.addresses.remove(&life.address) {
            self.close(sites, &replaced.old, End::Unseen { end: replaced.old_end, ambiguous: false });
        }
        self.addresses.insert(life.address, State::PageGone(Box::new((life, time))));
        true
    }

    #[inline]
    fn frame(&self, address: u64) -> Option<u64> {
        Some(self.rules.direct_map?.frame(address, self.rules.page_size.trailing_zeros()))
    }

    /// Puts a life into the arena and into the list of its page frame.
    fn insert(&mut self, mut life: Life) -> u32 {
        let number = self.unused.pop().unwrap_or(self.lives.len() as u32);
        if let Some(frame) = self.frame(life.address) {
            let head = self.frames.insert(frame, number);
            if let Some(head) = head {
                life.next = head;
                if let Some(head) = self.lives.get_mut(head as usize) {
                    head.previous = number;
                }
            }
        }
        match self.lives.get_mut(number as usize) {
            Some(slot) => *slot = life,
            None => self.lives.push(life),
        }
        number
    }

    fn remove(&mut self, number: u32) -> Option<Life> {
        let life = *self.lives.get(number as usize)?;
        if let Some(frame) = self.frame(life.address) {
            match self.lives.get_mut(life.previous as usize) {
                Some(previous) => previous.next = life.next,
                None if life.next == NONE => {
                    self.frames.remove(&frame);
                }
                None => {
                    self.frames.insert(frame, life.next);
                }
            }
            if let Some(next) = self.lives.get_mut(life.next as usize) {
                next.previous = life.previous;
            }
        }
        self.unused.push(number);
        Some(life)
    }

    /// Adds a life up.
    fn close(&mut self, sites: &Sites, life: &Life, end: End) {
        if !life.selected {
            return;
        }
        let Some(site) = sites.site(life.site) else { return };
        let (window_start, window_end) = self.rules.window;
        let last = match end {
            End::Freed { end, .. } | End::Unseen { end, .. } => end,
            End::Live => u64::MAX,
        };
        if life.born > window_end || last < window_start {
            // A late free may still be logged in the window.
            if !matches!(end, End::Freed { free, .. } if self.in_window(free.time)) {
                return;
            }
        }
        let born_counts = self.in_window(life.born);
        let mut cache = site.cache;
        let mut sums = Totals::default();
        let mut counts = EventCounts::default();
        if born_counts {
            sums.alloc_events = 1;
            sums.bytes_req = site.bytes_req;
            sums.bytes_alloc = site.bytes_alloc;
        }
        let mut uncertain = self.losses.overlaps(life.born, last);
        match end {
            End::Freed { free, late, .. } => {
                cache = cache.or(free.cache);
                if self.in_window(free.time) {
                    sums.frees_matched = 1;
                    sums.bytes_freed = site.bytes_alloc;
                    counts.cross_cpu_frees = u64::from(free.cpu != life.cpu);
                    counts.mixed_api_frees = u64::from(free.api != site.api);
                    counts.late_frees = u64::from(late);
                }
            }
            End::Unseen { end, ambiguous } => {
                uncertain |= ambiguous;
                if self.in_window(end) {
                    sums.freed_unseen = 1;
                    sums.bytes_freed_unseen = site.bytes_alloc;
                }
            }
            End::Live => {}
        }
        if life.born <= window_end && last > window_end || matches!(end, End::Live) {
            sums.live = 1;
            sums.bytes_live = site.bytes_alloc;
            sums.bytes_req_live = site.bytes_req;
        }
        if uncertain {
            sums.uncertain = 1;
            sums.bytes_live_uncertain = sums.bytes_live;
        }
        self.counts[site.api as usize] += &counts;
        self.add(life.site, cache, &sums);
    }

    fn add(&mut self, site: u32, cache: Option<NameId>, sums: &Totals) {
        let site = site as usize;
        if self.totals.len() <= site {
            self.totals.resize_with(site + 1, Vec::new);
        }
        let Some(parts) = self.totals.get_mut(site) else { return };
        match parts.iter_mut().find(|(name, _)| *name == cache) {
            Some((_, totals)) => *totals += sums,
            None => parts.push((cache, *sums)),
        }
    }

    /// Closes all lives that go on, and decides what was left open.
    pub fn finish(mut self, sites: &Sites) -> Balance {
        for (_, state) in std::mem::take(&mut self.addresses) {
            match state {
                State::Empty => {}
                State::Live(live) => self.close_going_on(sites, live),
                State::Replaced(replaced) => {
                    self.close(sites, &replaced.old, End::Unseen { end: replaced.old_end, ambiguous: false });
                    self.close_going_on(sites, replaced.live);
                }
                State::FreedOnce(once) => self.only_one_free(sites, &once),
                State::PageGone(gone) => {
                    self.close(sites, &gone.0, End::Unseen { end: gone.1, ambiguous: false })
                }
            }
        }
        let mut totals = self.totals;
        totals.resize_with(sites.len(), Vec::new);
        Balance { sites: totals, counts: self.counts, raw: self.raw }
    }

    fn close_going_on(&mut self, sites: &Sites, live: u32) {
        if let Some(life) = self.lives.get(live as usize).copied() {
            self.close(sites, &life, End::Live);
        }
    }
}

#[cfg(test)]
mod tests;
