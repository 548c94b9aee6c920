//! Sums of lives when their end is known, and of events without a life.
//!
//! A life is added up when its end is decided, here alone: to the sums of its site if the window and the selection
//! count it, and to the receivers. At the end of the trace, `finish` adds up the lives that are still allocated and the
//! decisions that wait for a next event. The result is a `Balance`.

use std::collections::HashMap;

use super::Ledger;
use super::events::{Change, Closed, FreedPlain, PlainLife};
use super::frames::FrameBalance;
use super::lives::{ADDRESS_BITS, End, Free, FreeOp, Life, NoLife, PendingLife};
use super::receiver::Receiver;
use super::site_lives::SiteTotals;
use super::table::{PAGE_SHIFT, Slot};
use crate::ledger::totals::{EventCounts, OlderSums, RawSums};
use crate::stream::Interests;
use crate::stream::{Api, NameId, Op};

/// Results of the ledger.
#[derive(Debug, Default)]
pub struct Balance {
    /// By site.
    pub sites: Vec<SiteTotals>,
    /// Failed allocations, by site.
    pub failures: Vec<u64>,
    /// By interface: kmalloc, cache.
    pub counts: [EventCounts; 2],
    /// Plain sums.
    pub raw: RawSums,
    /// Results for pages.
    pub frames: FrameBalance,
    /// Call sites and interfaces, by number.
    pub callers: Vec<(Api, u64)>,
    /// Frees that name a cache, of lives outside of the window, by site: they name the caches of other objects of the site.
    pub named_outside: HashMap<(u32, NameId), u64>,
    /// Sums of what is older than the window.
    pub older: OlderSums,
}

impl<R: Receiver> Ledger<'_, R> {
    /// True if an event without a life is counted.
    pub(super) fn counts_event(&self, op: &Op) -> bool {
        self.choice.events && self.in_window(op.time) && self.tables.origin(op.origin).selected
    }

    /// True if an allocation event is counted.
    fn counts_alloc(&self, op: &Op) -> bool {
        self.tables.site(op.code.number()).selected
            && self.in_window(op.time)
            && self.tables.origin(op.origin).selected
    }

    /// Counts a failed allocation (R2).
    pub(super) fn failed(&mut self, op: &Op) {
        if self.counts_alloc(op) {
            if let Some(site) = self.sites.get_mut(op.code.number() as usize) {
                self.counts[site.api as usize].alloc_failures += 1;
                site.failures += 1;
            }
        }
    }

    /// Counts a duplicate kmalloc event (R4).
    pub(super) fn duplicate_kmalloc(&mut self, op: &Op) {
        if self.counts_alloc(op) {
            let site = self.tables.site(op.code.number());
            self.raw.alloc_events += 1;
            self.raw.bytes_req = self.raw.bytes_req.saturating_add(site.bytes_req);
            self.raw.bytes_alloc = self.raw.bytes_alloc.saturating_add(site.bytes_alloc);
            self.counts[Api::Kmalloc as usize].double_reports += 1;
        }
    }

    /// Counts a free without a life (R10).
    pub(super) fn unmatched(&mut self, address: u64, free: &Free, no_life: NoLife, counted: bool) {
        if self.interests.contains(Interests::UNMATCHED) {
            self.receiver.freed_unknown(address, free);
        }
        if counted {
            let counts = &mut self.counts[free.api as usize];
            let untraced = no_life != NoLife::Before;
            *(if untraced { &mut counts.untraced_birth } else { &mut counts.allocated_before }) += 1;
            if self.interests.contains(Interests::UNMATCHED) {
                self.receiver.unmatched(address, free, no_life);
            }
        }
    }

    /// Reports the begin of a life.
    #[inline]
    pub(super) fn born(&mut self, address: u64, life: &Life) {
        self.change(address, life, life.born, true, false);
    }

    /// Reports the end of a life in memory.
    #[inline]
    pub(super) fn gone(&mut self, address: u64, life: &Life, time: u64) {
        self.change(address, life, time, false, false);
    }

    /// Reports that the owner gave up an object (R13).
    #[inline]
    pub(super) fn given_up(&mut self, address: u64, life: &Life, time: u64) {
        self.change(address, life, time, false, true);
    }

    fn change(&mut self, address: u64, life: &Life, time: u64, is_birth: bool, is_deferred: bool) {
        if self.interests.contains(Interests::CHANGES) {
            let site = *self.tables.site(life.site);
            let selected = site.selected && self.tables.origin(life.origin).selected;
            self.receiver.changed(&Change {
                address,
                life: *life,
                site,
                selected,
                time,
                is_birth,
                is_deferred,
            });
        }
    }

    /// Moves a life to another site (R4).
    pub(super) fn renamed(&mut self, address: u64, life: &Life, site: u32) {
        self.gone(address, life, life.born);
        self.born(address, &Life { site, ..*life });
    }

    /// Adds up a freed life without pending decisions, where nothing is filtered out.
    #[inline]
    pub(super) fn close_plain(&mut self, life: &Life, free: FreeOp) {
        let Some(site) = self.sites.get_mut(life.site as usize) else { return };
        let uncertain =
            self.has_losses && self.losses.overlaps_rising(life.born, free.time, &mut self.loss_cursor);
        let by = if free.code.is_cache_free() { Api::Cache } else { Api::Kmalloc };
        if site.frees_first(free.code, || self.tables.free_site(free.code.number()).cache) {
            site.plain[by as usize] += 1;
            if uncertain {
                site.plain_uncertain += 1;
            }
        } else {
            let lives = site.of(self.tables.free_site(free.code.number()).cache);
            lives.born += 1;
            lives.freed += 1;
            lives.uncertain += u64::from(uncertain);
            self.counts[site.api as usize].mixed_api_frees += u64::from(by != site.api);
        }
        if free.origin != life.origin {
            let (there, here) =
                (self.tables.origin(life.origin).origin, self.tables.origin(free.origin).origin);
            self.counts[site.api as usize].cross_cpu_frees += u64::from(there.cpu != here.cpu);
        }
        if self.interests.contains(Interests::PLAIN_LIVES) {
            let mut plain = self.plain_life(life, free.time, uncertain);
            plain.cache = plain.cache.or_else(|| self.tables.free_site(free.code.number()).cache);
            let cpu = self.tables.origin(free.origin).origin.cpu;
            self.receiver.freed_plain(&FreedPlain { plain, op: free, cpu });
        }
    }

    /// A life until its end, for receivers.
    #[inline]
    fn plain_life(&self, life: &Life, end: u64, uncertain: bool) -> PlainLife {
        let (site, origin) = (self.tables.site(life.site), &self.tables.origin(life.origin).origin);
        PlainLife {
            life: *life,
            cache: site.cache,
            caller: site.caller,
            api: site.api,
            cpu: origin.cpu,
            pid: origin.pid,
            bytes_req: site.bytes_req,
            bytes_alloc: site.bytes_alloc,
            lost_at: if uncertain { self.losses.first_between(life.born, end) } else { None },
        }
    }

    /// Adds up a life without pending decisions whose address was reused (R5) and that can have no late free any more.
    pub(super) fn close_implied_free_plain(&mut self, life: &Life, end: u64) {
        let Some(site) = self.sites.get_mut(life.site as usize) else { return };
        let cache = if site.is_one_cache { site.cache } else { None };
        let uncertain = self.has_losses && self.losses.overlaps(life.born, end);
        let lives = site.of(cache);
        lives.born += 1;
        lives.implied_frees += 1;
        lives.uncertain += u64::from(uncertain);
        lives.implied_frees_uncertain += u64::from(uncertain);
        if self.interests.contains(Interests::PLAIN_LIVES) {
            let plain = self.plain_life(life, end, uncertain);
            self.receiver.implied_free_plain(&plain, end);
        }
    }

    /// Adds up a life.
    pub(super) fn close(&mut self, address: u64, life: &Life, end: End) {
        let stack = if self.interests.contains(Interests::SLAB_STACKS) {
            self.slab_stacks.take(address, life)
        } else {
            None
        };
        let site = *self.tables.site(life.site);
        let born_at = *self.tables.origin(life.origin);
        if !(site.selected && born_at.selected) {
            return;
        }
        let (_, window_end) = self.rules.window;
        let last = end.time();
        let is_chosen = self.choice.lifetime;
        if is_chosen
            .is_some_and(|is_chosen| !is_chosen(last.and_then(|l| self.rules.ages.length(life.born, l))))
        {
            return;
        }
        let is_born = self.in_window(life.born);
        let is_live = life.born <= window_end && last.is_none_or(|l| l > window_end);
        // What comes after the window makes nothing in it uncertain: a pass need not read as far.
        let until = last.unwrap_or(u64::MAX).min(window_end);
        let lost_at = if self.has_losses { self.losses.first_between(life.born, until) } else { None };
        let mut uncertain = lost_at.is_some();
        let mut cache = site.cache;
        let (mut is_freed, mut is_implied_free, mut is_waiting) = (false, false, false);
        match end {
            End::Freed { free, late, .. } => {
                cache = cache.or_else(|| self.tables.free_site(free.site).cache);
                // A late free may be logged in the window although the life ended before it.
                is_freed = self.in_window(free.time);
                is_waiting = free.is_deferred && self.rules.is_waiting(free.time);
                let freed_at = self.tables.origin(free.origin).origin;
                let counts = &mut self.counts[site.api as usize];
                counts.cross_cpu_frees += u64::from(is_freed && freed_at.cpu != born_at.origin.cpu);
                counts.mixed_api_frees += u64::from(is_freed && free.api != site.api);
                counts.late_frees += u64::from(is_freed && late.is_some());
            }
            End::ImpliedFree { end, ambiguous, .. } => {
                uncertain |= ambiguous && end <= window_end;
                is_implied_free = self.in_window(end);
            }
            End::Live => {}
        }
        if !(is_born || is_live || is_freed || is_implied_free) {
            if let Some(name) = cache.filter(|_| site.cache.is_none()) {
                *self.named_outside.entry((life.site, name)).or_default() += 1;
            }
            return;
        }
        if !is_born {
            self.older.add_object(site.bytes_alloc, is_live);
        }
        if let Some(lives) = self.sites.get_mut(life.site as usize) {
            let lives = lives.of(cache);
            lives.born += u64::from(is_born);
            lives.freed += u64::from(is_freed);
            lives.implied_frees += u64::from(is_implied_free);
            lives.live += u64::from(is_live);
            lives.waiting += u64::from(is_waiting);
            lives.uncertain += u64::from(uncertain);
            lives.uncertain_live += u64::from(uncertain && is_live);
            lives.implied_frees_uncertain += u64::from(uncertain && is_implied_free);
        }
        if self.interests.intersects(Interests::ANY_LIVES) {
            let closed = Closed {
                address,
                life: *life,
                end,
                cache,
                stack,
                caller: site.caller,
                api: site.api,
                bytes_req: site.bytes_req,
                bytes_alloc: site.bytes_alloc,
                born_at: born_at.origin,
                freed_at: match end {
                    End::Freed { free, .. } => Some(self.tables.origin(free.origin).origin),
                    End::ImpliedFree { .. } | End::Live => None,
                },
                is_born,
                is_freed,
                is_implied_free,
                is_live,
                is_waiting,
                uncertain,
                lost_at,
            };
            self.receiver.closed(&closed);
        }
    }

    /// Takes decisions that wait for an event that may come at any time: whether such events are read behind the window
    /// depends on what is wanted.
    pub(super) fn decide(&mut self) {
        let waits = |(address, slot): (u64, Slot)| match self.table.pending(&slot) {
            Some(PendingLife::FreedOnce(number)) => Some((address, number)),
            _ => None,
        };
        let waiting: Vec<_> = self.table.iter().filter_map(waits).collect();
        for (address, number) in waiting {
            let at = self.table.locate(address);
            self.table.take_pending(at);
            self.only_one_free(address, number);
        }
        self.mark_slab_frames();
        self.is_decided = true;
    }

    /// Marks live frames with slab objects.
    fn mark_slab_frames(&mut self) {
        let rules = self.rules;
        let Some(map) = rules.direct_map.filter(|_| self.interests.contains(Interests::SLAB_FRAMES)) else {
            return;
        };
        let births = self.table.last_births();
        self.frames.mark_slab(|pfn, order, born| {
            let start = map.base.wrapping_add(pfn.wrapping_mul(rules.page_size)) & ADDRESS_BITS;
            let first = start >> PAGE_SHIFT;
            let end = first + rules.block_bytes(order).div_ceil(1 << PAGE_SHIFT);
            let from = births.partition_point(|birth| birth.0 < first);
            births.iter().skip(from).take_while(|birth| birth.0 < end).any(|birth| birth.1 >= born)
        });
    }

    /// Closes all lives that are still allocated, and takes pending decisions.
    pub fn finish(mut self) -> (Balance, R) {
        if !self.is_decided {
            self.decide();
        }
        let slots: Vec<_> = self.table.iter().filter(|(_, s)| s.is_live() || !s.is_plain()).collect();
        for (address, slot) in slots {
            let pending = self.table.pending(&slot);
            self.settle(address, slot.life.born, pending);
            if slot.is_live() {
                self.close(address, &slot.life, End::Live);
            }
        }
        let frames = self.finish_frames();
        self.finish_areas();
        let mut sites: Vec<SiteTotals> = Vec::with_capacity(self.sites.len());
        let mut failures = Vec::with_capacity(self.sites.len());
        for (number, lives) in std::mem::take(&mut self.sites).iter().enumerate() {
            let site = self.tables.site(number as u32);
            let parts = lives.totals(site);
            // Plain sums: of lives and failures; duplicate events are added already.
            let born = parts.iter().map(|(_, t)| t.alloc_events).sum::<u64>();
            let count = born.saturating_add(lives.failures);
            self.raw.alloc_events += count;
            let bytes = |each: u64| count.saturating_mul(each);
            self.raw.bytes_req = self.raw.bytes_req.saturating_add(bytes(site.bytes_req));
            self.raw.bytes_alloc = self.raw.bytes_alloc.saturating_add(bytes(site.bytes_alloc));
            sites.push(parts);
            failures.push(lives.failures);
            self.counts[lives.api as usize].mixed_api_frees += lives.plain_mixed();
        }
        let callers = self.tables.into_callers();
        let (counts, raw, named_outside, older) = (self.counts, self.raw, self.named_outside, self.older);
        let balance = Balance { sites, failures, counts, raw, frames, callers, named_outside, older };
        (balance, self.receiver)
    }
}
