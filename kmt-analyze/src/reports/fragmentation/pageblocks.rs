//! Pageblocks with live pages of several migrate types: rows and tables, with columns by order.
//!
//! The collector `Mixing` has the live pages of each pageblock and the makers of foreign ones; counts of all pageblocks come from
//! snapshots of /proc/pagetypeinfo.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kmt_format::schema::Meaning;
use serde::Serialize;

use super::slabs::Traced;
use crate::collect::fallbacks::MixingSums;
use crate::pass::filter::names_in;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped, share};
use crate::reports::common::View;
use crate::reports::common::cells::{is_more, part};
use crate::sort_rows::SortRows;

/// Pageblocks with live pages of the trace.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pageblocks {
    /// Pageblocks with live pages of the trace.
    pub blocks_with_live_pages: usize,
    /// Pageblocks with pages of several types.
    pub blocks_mixed: u64,
    /// Pageblocks with pages of several orders.
    pub blocks_of_mixed_orders: u64,
    /// Live pages by order and migrate type of their allocation.
    pub by_order_and_migratetype: Vec<OrderPages>,
    /// Movable blocks that hold unmovable pages: they cannot become free as a whole.
    pub movable_blocks_with_unmovable_pages: u64,
    /// Blocks and pages by migrate type.
    pub by_migratetype: Vec<TypePages>,
    /// Groups of unmovable pages in movable blocks, shown or not.
    pub culprits_total: usize,
    /// Allocations of unmovable pages in movable blocks.
    pub culprits: Vec<CulpritRow>,
    /// All blocks by type, from /proc/pagetypeinfo before the trace; `null`: not in the file.
    pub blocks_by_type_before: Option<Vec<ZoneBlocks>>,
    /// All blocks by type, from /proc/pagetypeinfo after the trace; `null`: not in the file.
    pub blocks_by_type_after: Option<Vec<ZoneBlocks>>,
}

/// A pageblock with live pages of the trace.
#[derive(Debug)]
pub struct BlockRow {
    /// Number of the block: that of its first frame, divided by the frames of a block.
    pub block: u64,
    /// Live pages by migrate type.
    pub pages: Vec<(String, u64)>,
}

/// Live pages of one order and migrate type.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OrderPages {
    /// log2 of the pages of an allocation.
    pub order: u8,
    /// Requested migrate type.
    pub migratetype: String,
    /// Live pages.
    pub pages: u64,
}

/// Blocks and live pages of one migrate type.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TypePages {
    /// Requested migrate type.
    pub migratetype: String,
    /// Blocks with pages of it.
    pub blocks: u64,
    /// Live pages of it.
    pub pages: u64,
}

/// Unmovable pages in movable blocks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CulpritRow {
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// log2 of the pages of an allocation.
    pub order: u8,
    /// Allocation flags.
    pub gfp_flags_text: String,
    /// Blocks.
    pub blocks: u64,
    /// Pages.
    pub pages: u64,
}

/// All pageblocks of a zone.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZoneBlocks {
    /// Node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Blocks by type.
    pub types: Vec<TypeBlocks>,
}

/// Pageblocks of one type.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TypeBlocks {
    /// The type.
    pub migratetype: String,
    /// Blocks.
    pub blocks: u64,
}

/// Live pages of a pageblock.
#[derive(Debug, Default)]
struct Block {
    by_type: BTreeMap<i32, u64>,
    /// Orders of their allocations.
    orders: BTreeSet<u8>,
    /// Pages by kind of allocation and task.
    by_maker: BTreeMap<(u32, i32), u64>,
}

/// Migrate type UNMOVABLE (enum migratetype, include/linux/mmzone.h 4.4 to 7.2); MOVABLE is 1.
const UNMOVABLE: i32 = 0;
const MOVABLE: usize = 1;

/// Rows of a trace, and its blocks by number; `None` if page events were not recorded.
pub fn compute(traced: &Traced<'_, '_, '_>, mixing: &MixingSums) -> Option<(Pageblocks, Vec<BlockRow>)> {
    if traced.context.recorded(Meaning::PAGE_ALLOC) != Some(true) {
        return None;
    }
    let (blocks, by_order) = blocks(traced, mixing);
    let (polluted, culprits) = culprits(traced, mixing, &blocks);
    let mut types: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (migratetype, pages) in blocks.values().flat_map(|block| &block.by_type) {
        let sums = types.entry(traced.context.analysis.migratetypes.name(*migratetype)).or_default();
        *sums = (sums.0 + 1, sums.1 + pages);
    }
    let order = |((order, migratetype), pages): ((u8, i32), u64)| OrderPages {
        order,
        migratetype: traced.context.analysis.migratetypes.name(migratetype),
        pages,
    };
    let of_type =
        |(migratetype, (blocks, pages)): (String, (u64, u64))| TypePages { migratetype, blocks, pages };
    let row = |(block, live): (&u64, &Block)| BlockRow {
        block: *block,
        pages: live
            .by_type
            .iter()
            .map(|(kind, pages)| (traced.context.analysis.migratetypes.name(*kind), *pages))
            .collect(),
    };
    let culprit = |&(key, sums): &(BlockMaker, (u64, u64))| culprit(traced, key, sums);
    let sums = Pageblocks {
        blocks_with_live_pages: blocks.len(),
        blocks_mixed: blocks.values().filter(|b| b.by_type.len() > 1).count() as u64,
        blocks_of_mixed_orders: blocks.values().filter(|b| b.orders.len() > 1).count() as u64,
        by_order_and_migratetype: by_order.into_iter().map(order).collect(),
        movable_blocks_with_unmovable_pages: polluted,
        by_migratetype: types.into_iter().map(of_type).collect(),
        culprits_total: culprits.len(),
        culprits: culprits.iter().take(traced.context.limit).map(culprit).collect(),
        blocks_by_type_before: traced.attachment(&["pagetypeinfo.before"]).map(zone_blocks),
        blocks_by_type_after: traced.attachment(&["pagetypeinfo.after"]).map(zone_blocks),
    };
    Some((sums, blocks.iter().map(row).collect()))
}

/// Live pages by block, and by order and migrate type.
fn blocks(
    traced: &Traced<'_, '_, '_>,
    mixing: &MixingSums,
) -> (BTreeMap<u64, Block>, BTreeMap<(u8, i32), u64>) {
    let interner = &traced.context.analysis.interner;
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    let mut by_order: BTreeMap<(u8, i32), u64> = BTreeMap::new();
    for live in &mixing.live {
        let site = interner.pages.get(live.site).copied().unwrap_or_default();
        let pid = interner.origins.get(live.origin).map_or(0, |origin| origin.pid);
        let block = blocks.entry(live.block).or_default();
        *block.by_type.entry(site.migratetype).or_default() += live.frames;
        block.orders.insert(site.order);
        *by_order.entry((site.order, site.migratetype)).or_default() += live.frames;
        *block.by_maker.entry((live.site, pid)).or_default() += live.frames;
    }
    (blocks, by_order)
}

/// Kind of an allocation, and task.
type BlockMaker = (u32, i32);
/// A maker with its blocks and pages.
type BlockMade = (BlockMaker, (u64, u64));

/// Number of movable blocks that hold unmovable pages; their blocks and pages by maker, those with most blocks first.
fn culprits(
    traced: &Traced<'_, '_, '_>,
    mixing: &MixingSums,
    blocks: &BTreeMap<u64, Block>,
) -> (u64, Vec<BlockMade>) {
    let pages = &traced.context.analysis.interner.pages;
    let is_unmovable = |site: u32| pages.get(site).is_some_and(|site| site.migratetype == UNMOVABLE);
    let mut polluted = 0;
    let mut culprits: BTreeMap<BlockMaker, (u64, u64)> = BTreeMap::new();
    for (number, block) in blocks {
        if mixing.block_type(*number) != Some(MOVABLE) || !block.by_type.contains_key(&UNMOVABLE) {
            continue;
        }
        polluted += 1;
        for (maker, frames) in block.by_maker.iter().filter(|((site, _), _)| is_unmovable(*site)) {
            let sums = culprits.entry(*maker).or_default();
            *sums = (sums.0 + 1, sums.1 + frames);
        }
    }
    let mut culprits: Vec<_> = culprits.into_iter().collect();
    culprits.sort_rows_by_key(|((site, pid), (blocks, frames))| {
        (std::cmp::Reverse(*blocks), std::cmp::Reverse(*frames), *site, *pid)
    });
    (polluted, culprits)
}

fn culprit(traced: &Traced<'_, '_, '_>, (site, pid): BlockMaker, (blocks, pages): (u64, u64)) -> CulpritRow {
    let interner = &traced.context.analysis.interner;
    let site = interner.pages.get(site).copied().unwrap_or_default();
    CulpritRow {
        pid,
        task: traced.context.labels().task(pid),
        order: site.order,
        gfp_flags_text: escaped(&interner.gfp_text(site.gfp_flags)),
        blocks,
        pages,
    }
}

/// Parses the last table of /proc/pagetypeinfo: numbers of pageblocks by type.
fn zone_blocks(text: &[u8]) -> Vec<ZoneBlocks> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().skip_while(|l| !l.starts_with("Number of blocks type"));
    let Some(heading) = lines.next() else { return Vec::new() };
    let types: Vec<&str> = names_in(heading.trim_start_matches("Number of blocks type")).collect();
    let line = |line: &str| {
        let (node, rest) = line.strip_prefix("Node")?.split_once(", zone")?;
        let mut words = rest.split_ascii_whitespace();
        let zone = words.next()?.to_owned();
        let numbers = words.map_while(|w| w.parse().ok());
        let of_type = |(name, blocks): (&&str, u64)| TypeBlocks { migratetype: (*name).to_owned(), blocks };
        let types = types.iter().zip(numbers).map(of_type).collect();
        Some(ZoneBlocks { node: node.trim().parse().ok()?, zone, types })
    };
    lines.map_while(line).collect()
}

/// Allocations of unmovable pages, unless more are allowed.
const UNMOVABLE_COLUMN: usize = 5;

/// Adds mixed pageblocks, unmovable pages in movable blocks, and changed types.
pub fn add_pageblocks(screen: &mut Screen, rows: &Pageblocks, view: &View) {
    let is_all = view.look.wide || is_more(view.limit);
    let is_mixed =
        rows.blocks_mixed + rows.blocks_of_mixed_orders + rows.movable_blocks_with_unmovable_pages > 0;
    if rows.blocks_with_live_pages > 0 && (is_mixed || is_all) {
        screen.lines("pageblocks with live pages of the trace", vec![sums(rows)]);
        screen.table(by_type(rows));
    }
    screen.table(unmovable(rows, view));
    if let (Some(before), Some(after)) = (&rows.blocks_by_type_before, &rows.blocks_by_type_after) {
        screen.table(all_blocks(before, after, is_all));
    }
}

/// Blocks of several types or orders.
fn sums(rows: &Pageblocks) -> String {
    let all = rows.blocks_with_live_pages as u64;
    let part = |number: u64, of: &str| format!("{} ({}) {of}", count(number), share(number, all));
    let parts = [
        (rows.blocks_mixed, "with several migrate types"),
        (rows.blocks_of_mixed_orders, "with several orders"),
        (rows.movable_blocks_with_unmovable_pages, "movable with unmovable pages"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0).map(|(number, of)| part(*number, of));
    let all = counted(all, "pageblock", "pageblocks");
    std::iter::once(all).chain(parts).collect::<Vec<_>>().join(", ")
}

/// Blocks and pages by type, and the pages by order.
fn by_type(rows: &Pageblocks) -> Table {
    let place = |order: u8| usize::from(order).min(ORDERS);
    let orders: BTreeSet<usize> = rows.by_order_and_migratetype.iter().map(|row| place(row.order)).collect();
    let mut pages: HashMap<(&str, usize), u64> = HashMap::new();
    for row in &rows.by_order_and_migratetype {
        *pages.entry((&row.migratetype, place(row.order))).or_default() += row.pages;
    }
    let of_order = |name, order| pages.get(&(name, order)).copied().unwrap_or_default();
    let mut table = Table::of_rows("", &rows.by_migratetype)
        .column(Column::whole("migrate type"), |row| Cell::text(&row.migratetype))
        .column(Column::number("pageblocks"), |row| Cell::Count(row.blocks))
        .column(Column::number("live pages"), |row| Cell::Count(row.pages));
    for &order in &orders {
        let column = order_columns().nth(order).unwrap_or(LARGER).leaves(order as u8 + 1);
        table = table.column(column, |row| Cell::Count(of_order(row.migratetype.as_str(), order)));
    }
    table.into()
}

/// Unmovable pages in movable blocks.
fn unmovable(rows: &Pageblocks, view: &View) -> Table {
    let shown = rows.culprits.iter().take(part(view.limit, UNMOVABLE_COLUMN));
    Table::of_rows("unmovable pages in movable pageblocks", shown)
        .of("group", "groups", rows.culprits_total)
        .column(Column::name("task"), |row| Cell::text(&row.task))
        .column(Column::number("pageblocks"), |row| Cell::Count(row.blocks))
        .column(Column::number("pages"), |row| Cell::Count(row.pages))
        .column(Column::number("order").leaves(1), |row| Cell::Count(row.order.into()))
        .column(Column::text("gfp_flags").leaves(2), |row| Cell::text(&row.gfp_flags_text))
        .explain(
            "pageblocks",
            "The type of a pageblock is that of most pages allocated in it without a fallback; pages older than the trace are not counted.",
        )
        .into()
}

/// All pageblocks by type, before and after; those that changed, or all.
fn all_blocks(before: &[ZoneBlocks], after: &[ZoneBlocks], is_all: bool) -> Table {
    let title = if is_all { "all pageblocks, by type" } else { "all pageblocks, types that changed" };
    let zones = before.iter().zip(after);
    let types = zones.flat_map(|(zone, after)| {
        zone.types.iter().zip(&after.types).map(move |(before, after)| (zone, before, after))
    });
    let change = |before: u64, after: u64| Cell::Change(after.wrapping_sub(before) as i64);
    Table::of_rows(title, types.filter(|(_, before, after)| is_all || before.blocks != after.blocks))
        .column(Column::name("zone"), |(zone, ..)| {
            Cell::text(format!("node {} {}", zone.node, escaped(zone.zone.as_bytes())))
        })
        .column(Column::whole("migrate type"), |(_, of, _)| Cell::text(escaped(of.migratetype.as_bytes())))
        .column(Column::number("before"), |(_, before, _)| Cell::Count(before.blocks))
        .column(Column::number("after"), |(.., after)| Cell::Count(after.blocks))
        .column(Column::number("change"), |(_, before, after)| change(before.blocks, after.blocks))
        .into()
}

/// Headings of the orders that get a column of their own.
const HEADINGS: [&str; 16] = [
    "order 0", "order 1", "order 2", "order 3", "order 4", "order 5", "order 6", "order 7", "order 8",
    "order 9", "order 10", "order 11", "order 12", "order 13", "order 14", "order 15",
];

/// Number of orders with a column of their own.
pub const ORDERS: usize = HEADINGS.len();

/// Columns of the orders that kernels have; low orders leave first.
pub fn order_columns() -> impl Iterator<Item = Column> {
    HEADINGS.into_iter().zip((2..=17).rev()).map(|(heading, leaves)| Column::number(heading).leaves(leaves))
}

/// Column of all orders above.
const LARGER: Column = Column::number("larger orders").leaves(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pageblocks_by_type() {
        let text = b"Number of blocks type     Unmovable      Movable \nNode 0, zone      DMA            1            7 \n";
        let zones = zone_blocks(text);
        let types: Vec<_> = zones[0].types.iter().map(|t| (t.migratetype.as_str(), t.blocks)).collect();
        assert_eq!(types, [("Unmovable", 1), ("Movable", 7)]);
        assert!(zone_blocks(b"").is_empty());
    }
}
