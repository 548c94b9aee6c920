//! Lives of the objects that held an address.

use serde::{Serialize, Serializer};

use super::frame_rows::FrameRows;
use super::life_end::LifeEnd;
use crate::ledger::Closed;
use crate::ledger::lives::{ADDRESS_BITS, End, Free};
use crate::pass::Analysis;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::common::rows::Address;
use crate::reports::common::symbol::Symbol;
use crate::trace::names::cache_name;

/// Rows of the report.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhoRows {
    /// The address; `null`: a page frame was given.
    pub address: Option<Address>,
    /// Number of lives, including those beyond the limit of rows.
    pub lives_total: usize,
    /// Lives of the objects that held the address, by time of allocation.
    pub lives: Vec<WhoLifeRow>,
    /// The page frame and its allocations; `null`: an address was given.
    pub frame: Option<FrameRows>,
}

impl WhoRows {
    /// Rows of a page frame.
    pub fn of_frame(frame: FrameRows) -> Self {
        Self { frame: Some(frame), ..Self::default() }
    }
}

/// One life of an object.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhoLifeRow {
    /// Address of the object.
    pub address: Address,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Name of the cache; `null`: unknown, or allocated by kmalloc.
    pub cache: Option<String>,
    /// Time of the allocation, in the clock's unit.
    pub born: u64,
    /// Address of the call site of the allocation.
    pub call_site: Address,
    /// Function and offset of the call site, or its address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Thread id of the allocating task.
    pub pid: i32,
    /// CPU of the allocation.
    pub cpu: u32,
    /// Kind of its end.
    pub end: LifeEnd,
    /// Time of its end, the latest possible one of an implied free; `null`: still allocated.
    pub ended: Option<u64>,
    /// Free that ended it; `null`: no free event.
    pub freed: Option<WhoFreeRow>,
    /// True if the life crosses a loss, or its free is ambiguous.
    pub uncertain: bool,
    /// Address of the next lower object, of those live at the same time.
    #[cfg_attr(test, schemars(with = "Option<Address>"))]
    pub neighbour_below: Option<Neighbour>,
    /// Address of the next higher object, of those live at the same time.
    #[cfg_attr(test, schemars(with = "Option<Address>"))]
    pub neighbour_above: Option<Neighbour>,
}

/// A free event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhoFreeRow {
    /// Time of the event, in the clock's unit.
    pub time: u64,
    /// Address of the call site of the free.
    pub call_site: Address,
    /// Function and offset of the call site, or its address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Thread id of the freeing task.
    pub pid: i32,
    /// CPU of the free.
    pub cpu: u32,
    /// True if the event was logged after the address had been allocated again.
    pub late: bool,
}

/// An object at a nearby address; JSON has its address: `"0xffff..."`.
#[derive(Debug)]
pub struct Neighbour {
    pub address: Address,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Name of its cache.
    pub cache: Option<String>,
    /// Function and offset of the call site of its allocation, or its address.
    pub symbol: Symbol,
    /// CPU of its allocation.
    pub cpu: u32,
    /// Name and thread id of the allocating task.
    pub task: String,
}

impl Serialize for Neighbour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.address.serialize(serializer)
    }
}

/// Rows of the lives of an address, of those near it.
pub fn compute(context: &ReportContext<'_, '_>, near: &[Closed], address: u64) -> WhoRows {
    let analysis = context.analysis;
    let low = address & ADDRESS_BITS;
    let holds =
        |life: &&Closed| (life.address..life.address.saturating_add(life.bytes_alloc.max(1))).contains(&low);
    let lives: Vec<&Closed> = near.iter().filter(holds).collect();
    let top = address & !ADDRESS_BITS;
    let lookup = Lookup { labels: context.labels(), analysis, top };
    WhoRows {
        address: Some(Address(address)),
        lives_total: lives.len(),
        lives: lives.iter().take(context.limit).map(|life| lookup.life(life, near)).collect(),
        frame: None,
    }
}

/// Names of sites, tasks and caches.
struct Lookup<'l, 'r, 'd> {
    labels: &'l Labels<'r, 'd>,
    analysis: &'r Analysis,
    /// Upper byte of the kernel's pointers.
    top: u64,
}

impl Lookup<'_, '_, '_> {
    fn life(&self, life: &Closed, near: &[Closed]) -> WhoLifeRow {
        let (end, freed) = match life.end {
            End::Freed { free, late, .. } => (LifeEnd::Freed, Some(self.free(&free, late.is_some()))),
            End::ImpliedFree { .. } => (LifeEnd::FreedUnseen, None),
            End::Live => (LifeEnd::Live, None),
        };
        let call_site = self.call_site(life);
        let [below, above] = neighbours(life, near).map(|other| other.map(|other| self.neighbour(other)));
        WhoLifeRow {
            address: self.address(life),
            bytes_req: life.bytes_req,
            bytes_alloc: life.bytes_alloc,
            cache: self.cache(life),
            born: life.life.born,
            call_site: Address(call_site),
            symbol: self.labels.located(call_site),
            pid: life.born_at.pid,
            cpu: life.born_at.cpu,
            end,
            ended: life.end.time(),
            freed,
            uncertain: life.uncertain,
            neighbour_below: below,
            neighbour_above: above,
        }
    }

    fn free(&self, free: &Free, late: bool) -> WhoFreeRow {
        let (address, symbol) = self.labels.free_site(self.analysis, free.site);
        let origin = self.analysis.interner.origins.get(free.origin).copied().unwrap_or_default();
        WhoFreeRow {
            time: free.time,
            call_site: Address(address),
            symbol,
            pid: origin.pid,
            cpu: origin.cpu,
            late,
        }
    }

    fn neighbour(&self, other: &Closed) -> Neighbour {
        Neighbour {
            address: self.address(other),
            bytes_alloc: other.bytes_alloc,
            cache: self.cache(other),
            symbol: self.labels.located(self.call_site(other)),
            cpu: other.born_at.cpu,
            task: self.labels.task_at(other.born_at.pid, other.life.born),
        }
    }

    fn address(&self, life: &Closed) -> Address {
        Address(life.address | self.top)
    }

    fn call_site(&self, life: &Closed) -> u64 {
        self.analysis.interner.sites.get(life.life.site).map_or(0, |site| site.call_site)
    }

    fn cache(&self, life: &Closed) -> Option<String> {
        life.cache.map(|cache| cache_name(self.analysis.interner.name(cache)))
    }
}

/// The objects at the next lower and higher address, of those live at the same time.
fn neighbours<'r>(life: &Closed, near: &'r [Closed]) -> [Option<&'r Closed>; 2] {
    let end = |life: &Closed| life.end.time().unwrap_or(u64::MAX);
    let overlaps = |other: &&Closed| other.life.born <= end(life) && end(other) >= life.life.born;
    let below = near.iter().filter(overlaps).filter(|other| other.address < life.address);
    let above = near.iter().filter(overlaps).filter(|other| other.address > life.address);
    let order = |other: &&Closed| (other.address, other.life.born);
    [below.max_by_key(order), above.min_by_key(order)]
}
