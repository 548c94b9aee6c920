//! Pages that page pools hold at the end. They are network buffers, which are in no account.
//!
//! A pool counts a page from page_pool:page_pool_state_hold to page_pool:page_pool_state_release (net/core/page_pool.c, 5.4 to 7.2,
//! events with pfn): pages that wait in the pool, and those in packets. Events are read once more, only where they have these.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use kmt_format::read::Event;
use kmt_format::schema::{EventClass, Meaning};

use crate::reports::balance::PagePoolRow;
use crate::reports::common::labels::Labels;
use crate::sort_rows::SortRows;
use crate::trace::session::Session;

/// Fields of an event class that the ledger reads.
#[derive(Debug, Clone, Copy)]
enum Fields {
    Hold {
        pool: usize,
        pfn: usize,
    },
    Release {
        pool: usize,
        pfn: usize,
    },
    /// A page allocation: the event of a pool does not have the order.
    Alloc {
        pfn: usize,
        order: usize,
    },
}

impl Fields {
    fn of(class: &EventClass) -> Option<Self> {
        let field = |name| class.field_named(name);
        match (class.system.as_str(), class.name.as_str()) {
            ("page_pool", "page_pool_state_hold") => {
                Some(Self::Hold { pool: field("pool")?, pfn: field("pfn")? })
            }
            ("page_pool", "page_pool_state_release") => {
                Some(Self::Release { pool: field("pool")?, pfn: field("pfn")? })
            }
            _ if class.meaning == Meaning::PAGE_ALLOC => {
                Some(Self::Alloc { pfn: field("pfn")?, order: field("order")? })
            }
            _ => None,
        }
    }
}

/// Largest order of a page allocation: beyond it a field is wrong.
const ORDER_MAX: u64 = 20;

/// A page in a pool.
#[derive(Debug, Clone, Copy)]
struct Held {
    pool: usize,
    pages: u64,
}

/// Counts of one pool.
#[derive(Debug, Default)]
struct Pool {
    holds: u64,
    releases: u64,
    releases_older: u64,
    pages: u64,
    tasks: HashMap<i32, u64>,
}

/// Pools in the order of their first event, and the pages that they hold.
#[derive(Debug, Default)]
struct Pools {
    /// Number of a pool, by its address.
    numbers: HashMap<u64, usize>,
    pools: Vec<Pool>,
    /// By frame.
    held: HashMap<u64, Held>,
    /// Frame and order of the last allocation of each CPU: the pool takes the page next.
    allocated: HashMap<u32, (u64, u64)>,
}

impl Pools {
    fn number(&mut self, address: u64) -> usize {
        let next = self.pools.len();
        match self.numbers.entry(address) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                new.insert(next);
                self.pools.push(Pool::default());
                next
            }
        }
    }

    fn add(&mut self, event: &Event<'_>, fields: Fields) -> Option<()> {
        match fields {
            Fields::Alloc { pfn, order } => {
                self.allocated.insert(event.cpu(), (event.uint(pfn)?, event.uint(order)?));
            }
            Fields::Hold { pool, pfn } => {
                let (address, pfn) = (event.uint(pool)?, event.uint(pfn)?);
                let order = self.allocated.get(&event.cpu()).filter(|(frame, _)| *frame == pfn);
                let pages = 1 << order.map_or(0, |(_, order)| (*order).min(ORDER_MAX));
                let number = self.number(address);
                // A page that seems held has left its pool: its release was not recorded.
                self.drop_page(pfn);
                let pool = self.pools.get_mut(number)?;
                pool.holds += 1;
                pool.pages = pool.pages.saturating_add(pages);
                *pool.tasks.entry(event.pid()).or_default() += 1;
                self.held.insert(pfn, Held { pool: number, pages });
            }
            Fields::Release { pool, pfn } => {
                let (address, pfn) = (event.uint(pool)?, event.uint(pfn)?);
                let number = self.number(address);
                let was_held = self.drop_page(pfn);
                let pool = self.pools.get_mut(number)?;
                pool.releases += 1;
                pool.releases_older += u64::from(!was_held);
            }
        }
        Some(())
    }

    /// Takes a page out of its pool; false: no pool holds it.
    fn drop_page(&mut self, pfn: u64) -> bool {
        let Some(held) = self.held.remove(&pfn) else { return false };
        if let Some(pool) = self.pools.get_mut(held.pool) {
            pool.pages = pool.pages.saturating_sub(held.pages);
        }
        true
    }
}

/// Pools of a recording, the most memory held first; `None`: their events were not recorded.
pub fn pools(session: &Session<'_>, page_size: u64) -> Option<Vec<PagePoolRow>> {
    let mut fields: HashMap<usize, Fields> = HashMap::new();
    for (index, class) in session.trace.schema().classes() {
        fields.extend(Fields::of(class).map(|found| (index, found)));
    }
    let is_pool = |fields: &Fields| !matches!(fields, Fields::Alloc { .. });
    if !fields.values().any(is_pool) {
        return None;
    }
    let mut pools = Pools::default();
    let mut merge = session.trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            if let Some(fields) = fields.get(&event.class_index()) {
                // An event without a field is of another layout: it is not of a pool that can be counted.
                let _ = pools.add(&event, *fields);
            }
        }
    }
    let labels = Labels::new(session);
    let row = |(number, pool): (usize, &Pool)| {
        let most = pool.tasks.iter().max_by_key(|(pid, holds)| (**holds, std::cmp::Reverse(**pid)));
        PagePoolRow {
            pool: number.saturating_add(1),
            task: most.map(|(pid, _)| labels.task(*pid)),
            bytes_held: pool.pages.saturating_mul(page_size),
            holds: pool.holds,
            releases: pool.releases,
            releases_older: pool.releases_older,
        }
    };
    let mut rows: Vec<PagePoolRow> = pools.pools.iter().enumerate().map(row).collect();
    rows.sort_rows_by_key(|row| (std::cmp::Reverse((row.bytes_held, row.holds)), row.pool));
    Some(rows)
}
