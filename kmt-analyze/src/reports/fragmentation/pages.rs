//! Free pages that large requests cannot use, fallbacks, and pageblocks of mixed types.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kmt_format::schema::Meaning;
use serde_json::{Value, json};

use super::{Part, Traced};
use crate::collect::fallbacks::Fallback;
use crate::collect::mixing::MixingSums;
use crate::collect::page_use::Severity;
use crate::pass::filter::Names;
use crate::pass::names::TraceNames;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, percent};
use crate::reports::common::recorded::{recorded, recorded_class};
use crate::reports::common::sums::more;
use crate::trace::buddy::{self, Zone};

pub(super) fn of(view: &Traced<'_, '_, '_>, mixing: &MixingSums, fallbacks: &HashMap<Fallback, u64>) -> Part {
    let parts = [indices(view), fallen(view, fallbacks), mixed(view, mixing)];
    let [indices, fallen, mixed] = &parts;
    Part {
        json: json!({"zones": indices.json, "fallbacks": fallen.json, "pageblocks": mixed.json}),
        text: format!("BETWEEN PAGES\n{}\n{}\n{}", indices.text, fallen.text, mixed.text),
    }
}

/// The kernel's own indices, before and after.
fn indices(view: &Traced<'_, '_, '_>) -> Part {
    let read = |name: &str| view.attachment(&[name]).map(buddy::parse).filter(|z| !z.is_empty());
    let snapshots: Vec<(&str, Vec<Zone>)> =
        [("before", "buddyinfo.before"), ("after", "buddyinfo.after"), ("", "buddyinfo")]
            .into_iter()
            .filter_map(|(when, name)| Some((when, read(name)?)))
            .collect();
    if snapshots.is_empty() {
        return Part {
            json: Value::Null,
            text: "unusable_index and extfrag_index are not known: the file holds no /proc/buddyinfo\n"
                .to_owned(),
        };
    }
    let mut values = Vec::new();
    let mut rows = Vec::new();
    for (when, zones) in &snapshots {
        for zone in zones {
            let orders = zone.free.len();
            let unusable: Vec<u64> = (0..orders).map(|o| zone.unusable_index(o)).collect();
            let extfrag: Vec<i64> = (0..orders).map(|o| zone.extfrag_index(o)).collect();
            let name = format!("{}/{} {when}", zone.node, escaped(zone.name.as_bytes()));
            let thousandths = |v: f64| format!("{:.3}", v / 1000.0);
            rows.push(
                [name, count(zone.pages()), "unusable".to_owned()]
                    .into_iter()
                    .chain(unusable.iter().map(|v| thousandths(*v as f64)))
                    .collect::<Vec<_>>(),
            );
            rows.push(
                [String::new(), String::new(), "extfrag".to_owned()]
                    .into_iter()
                    .chain(extfrag.iter().map(|v| thousandths(*v as f64)))
                    .collect(),
            );
            values.push(json!({
                "when": when, "node": zone.node, "zone": zone.name, "free_pages": zone.pages(),
                "free_blocks": zone.free, "unusable_index": unusable, "extfrag_index": extfrag,
            }));
        }
    }
    let orders = snapshots.iter().flat_map(|(_, z)| z).map(|z| z.free.len()).max().unwrap_or(0);
    let headings: Vec<String> = (0..orders).map(|o| format!("{o}")).collect();
    let mut columns =
        vec![("node/zone", Align::Left), ("free pages", Align::Right), ("by order", Align::Left)];
    columns.extend(headings.iter().map(|h| (h.as_str(), Align::Right)));
    let note = "unusable: share of the free pages that a request of that order cannot use. extfrag: -1 it would succeed, towards 0 it would fail for lack of memory, towards 1 for fragmentation. Pages on per-CPU lists are in neither.\n";
    Part { json: values.into(), text: format!("{}{note}", table(&columns, &rows)) }
}

/// Fallbacks by severity and by who caused them.
fn fallen(view: &Traced<'_, '_, '_>, fallbacks: &HashMap<Fallback, u64>) -> Part {
    let is_it = |c: &kmt_format::schema::EventClass| c.name == "mm_page_alloc_extfrag";
    if fallbacks.is_empty() && recorded_class(view.context.session, view.result, is_it) != Some(true) {
        let text = "fallbacks: not recorded (kmem:mm_page_alloc_extfrag), or none happened\n".to_owned();
        return Part { json: Value::Null, text };
    }
    let (pageblock_order, assumed) = view.context.session.pageblock_order();
    let names = TraceNames::new(view.context.session);
    let severity = |f: &Fallback| Some(Severity::of(f.fallback_order?.into(), pageblock_order.into()));
    let severity_name = |f: &Fallback| severity(f).map(Severity::name);
    let migratetype = |number: Option<i32>| number.map(|n| names.migratetype(n));
    let cell = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    let order = |order: Option<u32>| cell(order.map(|o| o.to_string()));
    let mut by_severity: BTreeMap<(Option<Severity>, Option<bool>), u64> = BTreeMap::new();
    for (fallback, number) in fallbacks {
        *by_severity.entry((severity(fallback), fallback.change_ownership)).or_default() += number;
    }
    let mut rows: Vec<(&Fallback, u64)> = fallbacks.iter().map(|(f, n)| (f, *n)).collect();
    rows.sort_by_key(|(f, n)| (std::cmp::Reverse(severity(f)), std::cmp::Reverse(*n), **f));
    let all: u64 = rows.iter().map(|r| r.1).sum();
    let severe =
        |s: Severity| by_severity.iter().filter(|((x, _), _)| *x == Some(s)).map(|(_, n)| n).sum::<u64>();
    let changed: u64 = by_severity.iter().filter(|((_, c), _)| *c == Some(true)).map(|(_, n)| n).sum();
    let shown = view.context.limit.min(rows.len());
    let site = |f: &Fallback| f.slab_site.and_then(|s| view.result.interner.sites.get(s));
    let gfp = |f: &Fallback| {
        let pages = f.page_site.and_then(|s| view.result.interner.pages.get(s));
        pages.map(|p| escaped(&names.gfp(&view.result.interner, p.gfp_flags)))
    };
    let json = json!({
        "events": all,
        "severe": severe(Severity::Severe),
        "moderate": severe(Severity::Moderate),
        "type_changed": changed,
        "pageblock_order": pageblock_order,
        "pageblock_order_assumed": assumed,
        "rows_total": rows.len(),
        "rows": rows.iter().take(shown).map(|(f, number)| json!({
            "severity": severity_name(f),
            "count": number,
            "alloc_migratetype": migratetype(f.alloc_migratetype),
            "fallback_migratetype": migratetype(f.fallback_migratetype),
            "alloc_order": f.alloc_order,
            "fallback_order": f.fallback_order,
            "type_changed": f.change_ownership,
            "pid": f.pid,
            "task": view.labels.task(f.pid),
            "gfp_flags_text": gfp(f),
            "call_site": site(f).map(|s| json::address(s.call_site)),
            "symbol": site(f).map(|s| view.labels.symbol(s.call_site)),
        })).collect::<Vec<_>>(),
    });
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown.min(15))
        .map(|(f, number)| {
            vec![
                severity_name(f).unwrap_or("?").to_owned(),
                count(*number),
                format!(
                    "{} from {}",
                    cell(migratetype(f.alloc_migratetype)),
                    cell(migratetype(f.fallback_migratetype))
                ),
                format!("{} from {}", order(f.alloc_order), order(f.fallback_order)),
                cell(f.change_ownership.map(|c| if c { "yes" } else { "no" }.to_owned())),
                view.labels.task(f.pid),
                gfp(f).unwrap_or_default(),
                site(f).map_or(String::new(), |s| view.labels.symbol(s.call_site)),
            ]
        })
        .collect();
    use Align::{Left, Right};
    let columns = [
        ("severity", Left),
        ("times", Right),
        ("type", Left),
        ("order", Left),
        ("block changes type", Left),
        ("task", Left),
        ("gfp_flags", Left),
        ("for a slab object of", Left),
    ];
    let text = format!(
        "fallbacks: {} pages came from blocks of another type: {} severe, {} moderate, {} changed the block's type (pageblock order {pageblock_order}{})\n{}{}",
        count(all),
        count(severe(Severity::Severe)),
        count(severe(Severity::Moderate)),
        count(changed),
        if assumed { ", assumed" } else { "" },
        table(&columns, &cells),
        more(cells.len(), rows.len(), "kinds")
    );
    Part { json, text }
}

/// What a pageblock holds at the end.
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

/// Pageblocks whose pages of the trace are of several types.
fn mixed(view: &Traced<'_, '_, '_>, mixing: &MixingSums) -> Part {
    let has_pages = recorded(view.context.session, view.result, Meaning::PAGE_ALLOC) == Some(true);
    if !has_pages {
        return Part { json: Value::Null, text: "pageblocks: page events were not recorded\n".to_owned() };
    }
    let (interner, names) = (&view.result.interner, TraceNames::new(view.context.session));
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    let mut by_order: BTreeMap<(u8, i32), u64> = BTreeMap::new();
    for live in &mixing.live {
        let site = interner.pages.get(live.site).copied().unwrap_or_default();
        let pid = interner.origins.get(live.origin).map_or(0, |o| o.pid);
        let block = blocks.entry(live.block).or_default();
        *block.by_type.entry(site.migratetype).or_default() += live.frames;
        block.orders.insert(site.order);
        *by_order.entry((site.order, site.migratetype)).or_default() += live.frames;
        *block.by_maker.entry((live.site, pid)).or_default() += live.frames;
    }
    let mixed = blocks.values().filter(|b| b.by_type.len() > 1).count() as u64;
    let orders_mixed = blocks.values().filter(|b| b.orders.len() > 1).count() as u64;
    // What cannot be moved away in a block of movable pages keeps it from ever being whole again.
    let mut polluted = 0u64;
    let mut culprits: BTreeMap<(u32, i32), (u64, u64)> = BTreeMap::new();
    for (number, block) in &blocks {
        if mixing.block_type(*number) != Some(MOVABLE) || !block.by_type.contains_key(&UNMOVABLE) {
            continue;
        }
        polluted += 1;
        for ((site, pid), frames) in &block.by_maker {
            if interner.pages.get(*site).is_some_and(|s| s.migratetype == UNMOVABLE) {
                let sums = culprits.entry((*site, *pid)).or_default();
                *sums = (sums.0 + 1, sums.1 + frames);
            }
        }
    }
    let mut culprits: Vec<_> = culprits.into_iter().collect();
    culprits.sort_by_key(|((site, pid), (blocks, frames))| {
        (std::cmp::Reverse(*blocks), std::cmp::Reverse(*frames), *site, *pid)
    });
    let mut types: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for block in blocks.values() {
        for (migratetype, frames) in &block.by_type {
            let sums = types.entry(names.migratetype(*migratetype)).or_default();
            *sums = (sums.0 + 1, sums.1 + frames);
        }
    }
    let before = view.attachment(&["pagetypeinfo.before"]).map(buddy::parse_blocks);
    let after = view.attachment(&["pagetypeinfo.after"]).map(buddy::parse_blocks);
    let shown = view.context.limit.min(culprits.len());
    let maker = |(site, pid): &(u32, i32)| {
        let site = interner.pages.get(*site).copied().unwrap_or_default();
        (view.labels.task(*pid), site.order, escaped(&names.gfp(interner, site.gfp_flags)))
    };
    let json = json!({
        "blocks_with_live_pages": blocks.len(),
        "blocks_mixed": mixed,
        "blocks_of_mixed_orders": orders_mixed,
        "by_order_and_migratetype": by_order.iter().map(|((order, migratetype), pages)| json!({
            "order": order, "migratetype": names.migratetype(*migratetype), "pages": pages,
        })).collect::<Vec<_>>(),
        "movable_blocks_with_unmovable_pages": polluted,
        "by_migratetype": types.iter().map(|(name, (blocks, pages))| json!({"migratetype": name, "blocks": blocks, "pages": pages})).collect::<Vec<_>>(),
        "culprits_total": culprits.len(),
        "culprits": culprits.iter().take(shown).map(|(key, (blocks, pages))| {
            let (task, order, gfp) = maker(key);
            json!({"pid": key.1, "task": task, "order": order, "gfp_flags_text": gfp, "blocks": blocks, "pages": pages})
        }).collect::<Vec<_>>(),
        "blocks_by_type_before": before.as_deref().map(blocks_json),
        "blocks_by_type_after": after.as_deref().map(blocks_json),
    });
    use Align::{Left, Right};
    let mut text = format!(
        "pageblocks: {} hold live pages of the trace, {} ({}) of more than one type, {} ({}) of more than one order; {} movable ones hold pages that cannot be moved\n",
        count(blocks.len() as u64),
        count(mixed),
        percent(mixed, blocks.len() as u64),
        count(orders_mixed),
        percent(orders_mixed, blocks.len() as u64),
        count(polluted)
    );
    let orders: BTreeSet<u8> = by_order.keys().map(|k| k.0).collect();
    let headings: Vec<String> = orders.iter().map(|o| format!("order {o}")).collect();
    let mut columns = vec![("asked for", Left), ("in blocks", Right), ("live pages", Right)];
    columns.extend(headings.iter().map(|h| (h.as_str(), Right)));
    let of_order = |name: &str, order: u8| -> u64 {
        by_order
            .iter()
            .filter(|((o, t), _)| *o == order && names.migratetype(*t) == name)
            .map(|(_, n)| n)
            .sum()
    };
    let rows: Vec<Vec<String>> = types
        .iter()
        .map(|(name, (blocks, pages))| {
            let cells = orders.iter().map(|&order| count(of_order(name, order)));
            [name.clone(), count(*blocks), count(*pages)].into_iter().chain(cells).collect()
        })
        .collect();
    text.push_str(&table(&columns, &rows));
    if !culprits.is_empty() {
        let rows: Vec<Vec<String>> = culprits
            .iter()
            .take(shown.min(10))
            .map(|(key, (blocks, pages))| {
                let (task, order, gfp) = maker(key);
                vec![task, order.to_string(), gfp, count(*blocks), count(*pages)]
            })
            .collect();
        let columns = [
            ("unmovable in movable blocks", Left),
            ("order", Right),
            ("gfp_flags", Left),
            ("blocks", Right),
            ("pages", Right),
        ];
        text.push_str(&format!("\n{}{}", table(&columns, &rows), more(rows.len(), culprits.len(), "kinds")));
    }
    if let (Some(before), Some(after)) = (&before, &after) {
        text.push_str(&blocks_text(before, after));
    }
    text.push_str("A block's type is that of most pages served from it without falling back; before its first event it is not known. What was allocated before the trace is in no block.\n");
    Part { json, text }
}

fn blocks_json(zones: &[buddy::Blocks]) -> Value {
    zones
        .iter()
        .map(|z| json!({"node": z.node, "zone": z.name, "types": z.types.iter().map(|(t, n)| json!({"migratetype": t, "blocks": n})).collect::<Vec<_>>()}))
        .collect()
}

/// What /proc/pagetypeinfo says of all blocks.
fn blocks_text(before: &[buddy::Blocks], after: &[buddy::Blocks]) -> String {
    let types: Vec<&str> =
        before.first().map(|z| z.types.iter().map(|t| t.0.as_str()).collect()).unwrap_or_default();
    let mut columns = vec![("all blocks by type", Align::Left)];
    columns.extend(types.iter().map(|t| (*t, Align::Right)));
    let rows: Vec<Vec<String>> = before
        .iter()
        .zip(after)
        .map(|(b, a)| {
            let name = format!("{}/{}", b.node, escaped(b.name.as_bytes()));
            let cells = b.types.iter().zip(&a.types).map(|((_, b), (_, a))| match a.cmp(b) {
                std::cmp::Ordering::Equal => count(*a),
                _ => format!("{} (was {})", count(*a), count(*b)),
            });
            std::iter::once(name).chain(cells).collect()
        })
        .collect();
    format!("\n{}", table(&columns, &rows))
}
