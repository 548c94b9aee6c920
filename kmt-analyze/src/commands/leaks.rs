//! `leaks`: what was allocated and not seen freed, and what that means.

use std::collections::BTreeMap;

use kmt_format::kernel::ClockUnit;
use serde_json::{Map, Value, json};

use super::names::TraceNames;
use super::parts::{Labels, Page, Report, Subject};
use super::report::more;
use crate::analysis::caches::usual_names;
use crate::analysis::filter::Names;
use crate::analysis::leaks::{Evidence, Verdict, goes_with, judge};
use crate::analysis::page_callers::{caller, is_allocator};
use crate::analysis::pass;
use crate::analysis::sinks::growth::Course;
use crate::analysis::sinks::{Growth, Sinks};
use crate::analysis::slabinfo;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, escaped, percent};
use crate::stream::Api;

/// The report.
#[derive(Debug, Default)]
pub struct Leaks;

/// Shorter windows say nothing, in nanoseconds: timers, writeback and RCU alone hold things for so long.
const WINDOW_NS_MIN: u64 = 1_000_000_000;

/// Caches whose objects the kernel takes back (SLAB_RECLAIM_ACCOUNT), for files that hold nothing of /sys/kernel/slab.
/// From fs/ of 4.4 to 7.2; shmem_inode_cache, sock_inode_cache and mqueue_inode_cache are none.
const RECLAIMABLE: [&str; 12] = [
    "dentry",
    "inode_cache",
    "proc_inode_cache",
    "ext4_inode_cache",
    "ext2_inode_cache",
    "xfs_inode",
    "btrfs_inode",
    "v9fs_inode_cache",
    "nfs_inode_cache",
    "fuse_inode",
    "radix_tree_node",
    "buffer_head",
];

/// Caches that are marked as reclaimable though no shrinker frees their objects, only their owners do.
const ONLY_MARKED: [&str; 3] = ["sock_inode_cache", "bdev_cache", "rpc_inode_cache"];

/// Functions that allocate what the slab allocator keeps for each slab (mm/slub.c, mm/memcontrol.c, 5.9 to 7.2).
const SLAB_METADATA: [&str; 3] =
    ["alloc_slab_obj_exts", "memcg_alloc_slab_cgroups", "memcg_alloc_page_obj_cgroups"];

/// Functions whose objects the kernel frees long after their use and many at once: areas of vmalloc wait until
/// lazy_max_pages() of them have gathered (mm/vmalloc.c, 4.4 to 7.2).
const LAZY: [&str; 2] = ["alloc_vmap_area", "__get_vm_area_node"];

struct Row<'r> {
    api: Option<Api>,
    address: u64,
    name: String,
    cache: String,
    evidence: Evidence,
    course: &'r Course,
}

impl Report for Leaks {
    fn title(&self) -> &'static str {
        "not seen freed"
    }

    fn want(&self, subject: &Subject<'_, '_>, sinks: &mut Sinks) {
        let (first, last) = subject.selection.span(subject.session);
        sinks.growth = Some(Growth::new(first, last));
    }

    fn page(&self, subject: &Subject<'_, '_>, result: &mut pass::Result) -> Page {
        let mut out = Map::new();
        let (first, last) = subject.selection.span(subject.session);
        let length = last.saturating_sub(first);
        if subject.session.unit() == ClockUnit::Nanoseconds && length < WINDOW_NS_MIN {
            let why = format!(
                "the window of {} is too short: what is alive after so little time says nothing",
                duration(length, subject.session.unit())
            );
            out.insert("leaks".into(), json!({"refused": why}));
            return Page { json: out, text: format!("not seen freed: {why}\n") };
        }
        let Some(growth) = result.balance.sinks.growth.take() else { return Page::default() };
        let rows = rows(subject, result, &growth);
        let pages = page_rows(subject, result, &growth);
        let by_caller = page_callers(subject, result, &growth);
        let callers = page_caller_rows(subject, &by_caller, &growth);
        let page_size = result.page_size.0;
        let view = View { subject, rows: &rows, pages: &pages, page_callers: &callers, length, page_size };
        out.insert("leaks".into(), view.json());
        Page { json: out, text: view.text() }
    }
}

/// Slab objects by call site, those to be looked at first.
fn rows<'g>(subject: &Subject<'_, '_>, result: &pass::Result, growth: &'g Growth) -> Vec<Row<'g>> {
    let labels = Labels::new(subject.session);
    let usual = usual_names(result);
    let metadata = subject.session.trace.metadata();
    let sysfs = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|n| metadata.attachment(n));
    let sysfs = sysfs.map(slabinfo::parse_sysfs);
    let is_reclaimable = |cache: &str| {
        !ONLY_MARKED.contains(&cache)
            && match sysfs.as_ref().and_then(|s| s.get(cache)).and_then(|f| f.get("reclaim_account")) {
                Some(&value) => value != 0,
                None => RECLAIMABLE.contains(&cache),
            }
    };
    let mut rows: Vec<Row<'g>> = (0u32..)
        .zip(&growth.callers)
        .filter(|(_, course)| course.survivors.iter().any(|&n| n > 0))
        .map(|(number, course)| {
            let (api, address, name) = labels.caller(result, number);
            let site = result.interner.sites.get(course.site);
            let named = site.and_then(|s| s.cache).or(usual.get(course.site as usize).copied().flatten());
            let cache = match (api, named, site) {
                (Api::Kmalloc, _, Some(site)) => format!("kmalloc-{}", site.bytes_alloc),
                (_, Some(name), _) => escaped(result.interner.name(name)),
                _ => "?".to_owned(),
            };
            let mut evidence = judge(course, growth.step());
            if evidence.verdict == Verdict::Grows && api == Api::Cache && is_reclaimable(&cache) {
                evidence.verdict = Verdict::Reclaimable;
            }
            let function = name.split_once("+0x").map_or(name.as_str(), |(function, _)| function);
            if evidence.verdict == Verdict::Grows && LAZY.contains(&function) {
                evidence.verdict = Verdict::Lazy;
            }
            if evidence.verdict == Verdict::Grows && SLAB_METADATA.contains(&function) {
                evidence.verdict = Verdict::WithSlabs;
            }
            Row { api: Some(api), address, name, cache, evidence, course }
        })
        .collect();
    // Security modules keep a blob for each inode or file; it goes when that does. One that goes with something that
    // grows is a part of that.
    let is_blob = |row: &Row<'_>| row.name.starts_with("security_") || row.name.starts_with("lsm_");
    let hosts: Vec<(Verdict, &Course)> =
        rows.iter().filter(|r| !is_blob(r)).map(|r| (r.evidence.verdict, r.course)).collect();
    for row in rows.iter_mut().filter(|r| r.evidence.verdict == Verdict::Grows && is_blob(r)) {
        let goes = |verdict| hosts.iter().any(|(v, host)| *v == verdict && goes_with(row.course, host));
        if goes(Verdict::Reclaimable) && !goes(Verdict::Grows) {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
    sort(&mut rows);
    rows
}

/// Pages by kind.
fn page_rows<'g>(subject: &Subject<'_, '_>, result: &pass::Result, growth: &'g Growth) -> Vec<Row<'g>> {
    let names = TraceNames::new(subject.session);
    let mut rows: Vec<Row<'g>> = (0u32..)
        .zip(&growth.pages)
        .filter(|(_, course)| course.survivors.iter().any(|&n| n > 0))
        .map(|(number, course)| {
            let site = result.interner.pages.get(number).copied().unwrap_or_default();
            let migratetype = names.migratetype(site.migratetype);
            let gfp = escaped(&names.gfp(&result.interner, site.gfp_flags));
            let mut evidence = judge(course, growth.step());
            if evidence.verdict == Verdict::Grows && (site.is_movable() || migratetype == "Reclaimable") {
                evidence.verdict = Verdict::Reclaimable;
            }
            let name = format!("order {}, {gfp}", site.order);
            Row { api: None, address: 0, name, cache: migratetype, evidence, course }
        })
        .collect();
    sort(&mut rows);
    rows
}

/// By call site, and whether the pages are slabs.
type PageCallers = BTreeMap<(u64, bool), Course>;

/// Functions that allocate slabs (mm/slub.c, 4.4 to 7.2).
const SLAB_PAGES: [&str; 3] = ["allocate_slab", "new_slab", "alloc_slab_page"];

/// Pages by the first function in their stacks that is no part of the allocator.
fn page_callers(subject: &Subject<'_, '_>, result: &pass::Result, growth: &Growth) -> PageCallers {
    let env = subject.session.print_env();
    let is_slab = |address: u64| {
        let name = env.symbol_with_offset(address);
        SLAB_PAGES.iter().any(|start| name.starts_with(start.as_bytes()))
    };
    let mut out = PageCallers::new();
    for (stack, course) in &growth.page_stacks {
        let addresses = result.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let caller = caller(addresses, |a| is_allocator(&env.symbol_with_offset(a)));
        let is_slab = addresses.iter().any(|&address| is_slab(address));
        *out.entry((caller, is_slab)).or_default() += course;
    }
    out
}

/// Functions that put pages into the page cache: what is read or written is kept until memory is short (mm/filemap.c,
/// mm/readahead.c, fs/buffer.c, 4.4 to 7.2).
const PAGE_CACHE: [&str; 8] = [
    "page_cache_ra",
    "ra_alloc_folio",
    "filemap_",
    "__filemap_",
    "pagecache_get_page",
    "__page_cache_alloc",
    "__do_page_cache_readahead",
    "grow_dev_",
];

fn page_caller_rows<'g>(
    subject: &Subject<'_, '_>,
    by_caller: &'g PageCallers,
    growth: &Growth,
) -> Vec<Row<'g>> {
    let labels = Labels::new(subject.session);
    let mut rows: Vec<Row<'g>> = by_caller
        .iter()
        .filter(|(_, course)| course.survivors.iter().any(|&n| n > 0))
        .map(|(&(address, is_slab), course)| {
            let name = if address == 0 { "(the allocator)".to_owned() } else { labels.symbol(address) };
            let mut evidence = judge(course, growth.step());
            if evidence.verdict == Verdict::Grows && PAGE_CACHE.iter().any(|start| name.starts_with(start)) {
                evidence.verdict = Verdict::Reclaimable;
            }
            // Its objects have their own rows.
            if is_slab && matches!(evidence.verdict, Verdict::Grows | Verdict::Warming | Verdict::Burst) {
                evidence.verdict = Verdict::WithSlabs;
            }
            let cache = if is_slab { "slab" } else { "" }.to_owned();
            Row { api: None, address, name, cache, evidence, course }
        })
        .collect();
    sort(&mut rows);
    rows
}

fn sort(rows: &mut [Row<'_>]) {
    rows.sort_by(|a, b| {
        (a.evidence.verdict, b.evidence.old_amount, &a.name).cmp(&(
            b.evidence.verdict,
            a.evidence.old_amount,
            &b.name,
        ))
    });
}

struct View<'v, 's, 'd> {
    subject: &'v Subject<'s, 'd>,
    rows: &'v [Row<'v>],
    pages: &'v [Row<'v>],
    page_callers: &'v [Row<'v>],
    length: u64,
    page_size: u64,
}

impl View<'_, '_, '_> {
    /// Amount a second, or in 10^9 ticks.
    fn per_second(&self, row: &Row<'_>) -> u64 {
        let old_length = u128::from(self.length.saturating_sub(row.evidence.old_age)).max(1);
        u64::try_from(u128::from(row.evidence.old_amount) * 1_000_000_000 / old_length).unwrap_or(u64::MAX)
    }

    fn json(&self) -> Value {
        let row = |r: &Row<'_>| {
            let e = &r.evidence;
            let bytes =
                |amount: u64| if r.api.is_some() { amount } else { amount.saturating_mul(self.page_size) };
            json!({
                "verdict": e.verdict.name(),
                "api": r.api.map(|a| a.name()),
                "call_site": if r.address == 0 { Value::Null } else { json::address(r.address) },
                "symbol": r.name,
                "cache": r.cache,
                "survivors": e.survivors,
                "bytes": bytes(e.amount),
                "old_survivors": e.old,
                "old_bytes": bytes(e.old_amount),
                "old_bytes_per_second": bytes(self.per_second(r)),
                "old_age": e.old_age,
                "allocations_of_that_age": e.old_births,
                "steps_with_survivors": e.steps.0,
                "steps": e.steps.1,
                "first_half": e.halves.0,
                "second_half": e.halves.1,
                "freed": e.freed.0,
                "freed_unseen": e.freed.1,
                "lifetime_p99": r.course.lifetimes.quantile(990),
                "survivors_by_birth": r.course.survivors,
            })
        };
        json!({
            "window": self.length,
            "callers": self.rows.iter().take(self.subject.limit).map(row).collect::<Vec<_>>(),
            "page_callers": self.page_callers.iter().take(self.subject.limit).map(row).collect::<Vec<_>>(),
            "pages": self.pages.iter().take(self.subject.limit).map(row).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let unit = self.subject.session.unit();
        let growing = self.rows.iter().filter(|r| r.evidence.verdict == Verdict::Grows).count();
        let mut out = format!(
            "NOT SEEN FREED in {}: {}\n\n",
            duration(self.length, unit),
            match growing {
                0 => "no call site grows steadily".to_owned(),
                1 => "one call site grows steadily".to_owned(),
                n => format!("{n} call sites grow steadily"),
            }
        );
        for (verdict, heading) in HEADINGS {
            let rows: Vec<&Row<'_>> = self.rows.iter().filter(|r| r.evidence.verdict == verdict).collect();
            if rows.is_empty() {
                continue;
            }
            out.push_str(&format!("{heading}\n"));
            let limit =
                if verdict == Verdict::Grows { self.subject.limit } else { self.subject.limit.min(8) };
            out.push_str(&self.table(&rows, limit, "call site"));
            out.push('\n');
        }
        let count_of = |verdict| self.rows.iter().filter(|r| r.evidence.verdict == verdict).count() as u64;
        out.push_str(&format!(
            "{} call sites have only young survivors, {} fewer than 16\n",
            count(count_of(Verdict::Young)),
            count(count_of(Verdict::Few))
        ));
        let is_telling = |r: &&Row<'_>| !matches!(r.evidence.verdict, Verdict::Few | Verdict::Young);
        for (rows, heading) in [
            (self.page_callers, "PAGES, by call site; what is read into the page cache is reclaimable"),
            (
                self.pages,
                "PAGES, by kind; slab pages are among them, movable ones are user memory or page cache",
            ),
        ] {
            let rows: Vec<&Row<'_>> = rows.iter().filter(is_telling).collect();
            if !rows.is_empty() {
                out.push_str(&format!("\n{heading}\n"));
                out.push_str(&self.table(&rows, self.subject.limit.min(10), "pages"));
            }
        }
        out.push_str("\nOld: older than three times what 99 of 100 freed ones of the call site reached, and not of the window's last eighth. Growing: old ones from at least half of the steps of time, and the second half brings at least half of what the first did. It says nothing of objects that were there before.\n");
        out
    }

    fn table(&self, rows: &[&Row<'_>], limit: usize, what: &'static str) -> String {
        use Align::{Left, Right};
        let unit = self.subject.session.unit();
        let shown = limit.min(rows.len());
        let is_pages = what == "pages";
        let cells: Vec<Vec<String>> = rows
            .iter()
            .take(shown)
            .map(|r| {
                let e = &r.evidence;
                let p99 = r.course.lifetimes.quantile(990);
                vec![
                    r.name.clone(),
                    r.cache.clone(),
                    if is_pages { e.verdict.name().replace('_', " ") } else { String::new() },
                    count(e.survivors),
                    count(e.amount),
                    count(e.old),
                    count(e.old_amount),
                    count(self.per_second(r)),
                    percent(e.old, e.old_births),
                    format!("{}/{}", e.steps.0, e.steps.1),
                    format!("{}, {}", count(e.halves.0), count(e.halves.1)),
                    p99.map_or("none freed".to_owned(), |p| duration(p, unit)),
                    spark(&r.course.survivors),
                ]
            })
            .collect();
        let amount = if is_pages { "pages" } else { "bytes" };
        let columns = [
            (what, Left),
            (if is_pages { "type" } else { "cache" }, Left),
            ("", Left),
            ("live", Right),
            (amount, Right),
            ("old", Right),
            (amount, Right),
            ("a second", Right),
            ("of births", Right),
            ("steps", Right),
            ("halves", Right),
            ("freed ones p99", Right),
            ("born", Left),
        ];
        let keep = |column: usize| column != 2 || is_pages;
        let columns: Vec<_> = columns.iter().enumerate().filter(|(c, _)| keep(*c)).map(|(_, c)| *c).collect();
        let cells: Vec<Vec<String>> = cells
            .into_iter()
            .map(|row| row.into_iter().enumerate().filter(|(c, _)| keep(*c)).map(|(_, cell)| cell).collect())
            .collect();
        table(&columns, &cells) + &more(shown, rows.len(), "rows")
    }
}

const HEADINGS: [(Verdict, &str); 10] = [
    (Verdict::Grows, "growing, and not saturating"),
    (Verdict::Reclaimable, "growing, in caches that the kernel takes back when it needs memory"),
    (Verdict::WithReclaimable, "growing along with those, one for each object of theirs"),
    (Verdict::WithSlabs, "growing with the slabs: what the allocator keeps for each"),
    (Verdict::Warming, "warming: many early, few late"),
    (Verdict::Burst, "in bursts: something started and stays"),
    (Verdict::Lazy, "freed late and all at once, by design"),
    (Verdict::FreesUnseen, "freed without events (RCU, bulk): survivors may be long gone"),
    (Verdict::TooShort, "window too short: what is freed lives about as long"),
    (Verdict::Uncertain, "uncertain: most cross a loss"),
];

/// A small chart: when those were born that are left.
fn spark(steps: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = steps.iter().max().copied().unwrap_or(0).max(1);
    let bar = |&n: &u64| match n {
        0 => ' ',
        n => BARS.get((n * 7 / most) as usize).copied().unwrap_or('█'),
    };
    // Two steps a character.
    steps
        .chunks(2)
        .map(|pair| bar(&(pair.iter().sum::<u64>() / 2 + u64::from(pair.iter().sum::<u64>() == 1))))
        .collect()
}
