//! The output of `perf kmem stat` for the same events.
//!
//! `perf_rules` has the sums by perf's own rules; this file finds the call sites as perf does, prints the tables in
//! perf's layout, and keeps perf's limits, such as 16 addresses of a stack. The text is compared with perf's own line
//! by line, so that widths, dots and short names of flags are perf's too.

use std::collections::HashMap;
use std::fmt::Write as _;

use clap::ValueEnum as _;
use kmt_common::tell;
use kmt_common::text::tame;
use kmt_format::print::EventText;
use kmt_format::read::{Event, LEVEL_FLAGS, StackJoiner};
use kmt_format::schema::{Meaning, Role};

use super::CompatOptions;
use crate::failure::{Failure, Outcome, Result};
use crate::render::out::print;
use crate::render::words::escaped;
use crate::reports::common::page_sums::is_tracer;
use crate::reports::compat::perf_rules::{
    Gfp, PageQueue, PageRow, PerfKey, PerfPageKey, PerfPages, Slab, SlabRow, Waiting, fragmentation,
    sorted_pages, sorted_slab,
};
use crate::trace::faults::Faults;
use crate::trace::names::Symbolizer;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Addresses of a stack in which perf looks for a caller.
const STACK_MAX: usize = 16;

const LINE: &str = "---------------------------------------------------------------------------------------------------------";

/// Prints it.
pub fn run(session: &Session<'_>, options: &CompatOptions) -> Result<Outcome> {
    check_keys(options)?;
    let mut view = PerfView::new(session);
    let faults = view.read();
    let is_slab = options.slab || !options.page;
    let limit = options.lines.unwrap_or(usize::MAX);
    let keys = options.sort.as_slice();
    let mut text = String::new();
    if is_slab {
        if options.caller {
            view.slab_table(&mut text, &sorted_slab(view.slab.callers(), keys), limit, true);
        }
        if options.alloc {
            view.slab_table(&mut text, &sorted_slab(view.slab.pointers(), keys), limit, false);
        }
        slab_summary(&mut text, &view.slab);
    }
    if options.page {
        if options.caller || options.alloc {
            legend(&mut text, &view.gfp);
        }
        if options.caller {
            view.page_table(&mut text, &sorted_pages(view.pages.callers(), keys), limit, false);
        }
        if options.alloc {
            view.page_table(&mut text, &sorted_pages(view.pages.frames(), keys), limit, true);
        }
        page_summary(&mut text, &view.pages);
        if let Some(count) = session.trace.metadata().text("perf/corrupt_chains") {
            tell!(
                "note: perf takes {count} call chains for corrupt and drops them: pages of them have its own function for a caller there, and theirs here"
            );
        }
        if view.pages.sums.other_order > 0 {
            tell!(
                "note: perf kmem gives up on these events: {} frees are of another order than the allocation of their frame",
                view.pages.sums.other_order
            );
        }
    }
    print(&session.env, false, tame(&text).as_bytes())?;
    Ok(outcome(session, &faults))
}

/// Keys belong to one table: perf sorts the one whose option stands last before them.
fn check_keys(options: &CompatOptions) -> Result<()> {
    if options.sort.is_empty() {
        return Ok(());
    }
    if options.caller == options.alloc || options.slab && options.page {
        return Err(Failure::new("--sort is the order of one table")
            .hint("give one of --caller and --alloc, and with it --slab or --page"));
    }
    let is_there = |key: &PerfKey| key.is_of(options.page, options.caller);
    match options.sort.iter().find(|key| !is_there(key)) {
        None => Ok(()),
        Some(key) => {
            let name =
                |key: &PerfKey| key.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
            let keys: Vec<String> =
                PerfKey::value_variants().iter().filter(|k| is_there(k)).map(name).collect();
            Err(Failure::new(format!("perf kmem does not sort this table by {}", name(key)))
                .hint(format!("--sort takes {} here", keys.join(", "))))
        }
    }
}

/// A stack as perf would have it: that of ftrace begins in functions of the tracer. A chain of perf counts as it is, also
/// with such functions in it.
fn chain(stack: &[u64], is_of_perf: bool, is_tracer: impl Fn(u64) -> bool) -> &[u64] {
    let of_tracer = if is_of_perf { 0 } else { stack.iter().take_while(|&&ip| is_tracer(ip)).count() };
    stack.get(of_tracer..).unwrap_or_default()
}

/// CPU and level of an event: on one level of a CPU there is one event at a time.
fn level(event: &Event<'_>) -> (u32, u64) {
    (event.cpu(), event.uint_with(Role::FLAGS).unwrap_or(0) & LEVEL_FLAGS)
}

struct PerfView<'s, 'd> {
    session: &'s Session<'d>,
    symbols: Symbolizer<'d>,
    slab: Slab,
    pages: PerfPages,
    gfp: Gfp,
    page_size: u64,
    /// Offset that perf adds to the addresses of page allocations' call sites, so that it finds no symbol.
    shift: Option<u64>,
    /// Stacks are call chains that perf recorded.
    is_of_perf: bool,
    allocators: HashMap<u64, bool>,
}

impl<'s, 'd> PerfView<'s, 'd> {
    fn new(session: &'s Session<'d>) -> Self {
        let metadata = session.trace.metadata();
        let shift = metadata.text("perf/kernel_start");
        let shift = shift.and_then(|t| u64::from_str_radix(t.strip_prefix("0x")?, 16).ok());
        Self {
            session,
            symbols: session.symbolizer(),
            slab: Slab::default(),
            pages: PerfPages::default(),
            gfp: Gfp::default(),
            page_size: session.trace.header().page_size.unwrap_or(4096),
            shift,
            is_of_perf: metadata.text("source") == Some("perf.data"),
            allocators: HashMap::new(),
        }
    }

    /// Reads all events.
    fn read(&mut self) -> Faults {
        let trace = self.session.trace;
        let nodes = self.session.cpu_nodes().unwrap_or_default();
        let has_stacks = trace.schema().classes().any(|(_, c)| c.meaning == Meaning::KERNEL_STACK);
        let mut queue = PageQueue::default();
        let mut stacks = StackJoiner::default();
        let mut merge = trace.merge();
        while let Some(run) = merge.next_run() {
            if run.gap.is_some() {
                stacks.gap(run.cpu);
                queue.lost(run.cpu);
            }
            for event in run.events() {
                let number = |role| event.uint_with(role).unwrap_or(0);
                let cpu = event.cpu();
                let meaning = event.class().meaning;
                let is_alloc = meaning == Meaning::PAGE_ALLOC;
                let owner = stacks.see(&event, is_alloc.then(|| queue.next_number()));
                if meaning != Meaning::KERNEL_STACK {
                    queue.happened(level(&event));
                }
                match meaning {
                    m if m.is_slab_alloc() => {
                        let (req, alloc) = (number(Role::BYTES_REQ), number(Role::BYTES_ALLOC));
                        self.slab.alloc(number(Role::PTR), number(Role::CALL_SITE), req, alloc, cpu);
                        let node = event.uint_with(Role::NODE).map_or(-1, |n| n as i32);
                        let own = nodes.get(cpu).unwrap_or(0);
                        self.slab.sums.cross += u64::from(node != -1 && node != own as i32);
                    }
                    m if m.is_slab_free() => self.slab.free(number(Role::PTR), cpu),
                    Meaning::PAGE_ALLOC => {
                        let key = self.page_key(&event);
                        let pfn = event.uint_with(Role::PFN).filter(|&pfn| !is_failure(&event, pfn));
                        queue.push(
                            Waiting::Alloc { pfn, key, stack: Vec::new() },
                            has_stacks.then(|| level(&event)),
                        );
                    }
                    Meaning::PAGE_FREE => {
                        let order = number(Role::ORDER) as u32;
                        queue.push(Waiting::Free { pfn: number(Role::PFN), order }, None);
                    }
                    Meaning::KERNEL_STACK => {
                        if let Some(number) = owner.flatten() {
                            let stack = event.stack();
                            let stack =
                                stack.map(|s| s.addresses().take(STACK_MAX).collect()).unwrap_or_default();
                            queue.stack(number, stack);
                        }
                    }
                    _ => {}
                }
                while let Some(page) = queue.pop(false) {
                    self.page(page);
                }
            }
        }
        while let Some(page) = queue.pop(true) {
            self.page(page);
        }
        merge.damages().into()
    }

    fn page(&mut self, event: Waiting) {
        match event {
            Waiting::Alloc { pfn, key, stack } => {
                let call_site = self.call_site(&stack);
                self.pages.alloc(pfn, key, call_site, self.page_size);
            }
            Waiting::Free { pfn, order } => self.pages.free(pfn, order, self.page_size),
        }
    }

    /// Order, migrate type, flags; the text of the flags is kept.
    fn page_key(&mut self, event: &Event<'_>) -> (u32, u32, u32) {
        let number = |role| event.uint_with(role).unwrap_or(0) as u32;
        let gfp_flags = number(Role::GFP_FLAGS);
        let failed = event.uint_with(Role::PFN).is_none_or(|pfn| is_failure(event, pfn));
        if !failed && !self.gfp.contains_key(&gfp_flags) {
            let (class, env) = (event.class(), self.symbols.env());
            let field = class.field_with(Role::GFP_FLAGS);
            let text = field.and_then(|f| EventText::new(class, env).field_text(f, event, env));
            let text = text.map_or_else(|| format!("{gfp_flags:#x}"), |t| escaped(&t));
            self.gfp.insert(gfp_flags, text);
        }
        (number(Role::ORDER), number(Role::MIGRATETYPE), gfp_flags)
    }

    /// The first frame that is in no function of the page allocator; else the innermost one.
    fn call_site(&mut self, stack: &[u64]) -> u64 {
        let (symbols, allocators) = (&self.symbols, &mut self.allocators);
        let stack = chain(stack, self.is_of_perf, |ip| is_tracer(&symbols.raw(ip)));
        let outside = stack
            .iter()
            .find(|&&ip| !*allocators.entry(ip).or_insert_with(|| is_page_allocator(&symbols.raw(ip))));
        match outside {
            Some(ip) => ip.wrapping_add(self.shift.unwrap_or(0)),
            None => stack.first().copied().unwrap_or(0),
        }
    }

    /// Name and offset of a function.
    fn symbol(&self, address: u64) -> Option<(String, String)> {
        let text = self.symbols.shown(address);
        let (name, rest) = text.split_once('+')?;
        let offset = rest.split(['/', ' ']).next()?.strip_prefix("0x")?;
        Some((name.to_owned(), offset.to_owned()))
    }

    fn slab_table(&self, text: &mut String, rows: &[(u64, SlabRow)], limit: usize, by_caller: bool) {
        let heading = if by_caller { "Callsite" } else { "Alloc Ptr" };
        let _ = writeln!(text, "{LINE}");
        let _ = writeln!(
            text,
            " {heading:<34} | Total_alloc/Per | Total_req/Per   | Hit      | Ping-pong | Frag"
        );
        let _ = writeln!(text, "{LINE}");
        for (address, row) in rows.iter().take(limit) {
            let symbol = self.symbol(*address).filter(|_| by_caller);
            let name = symbol.map_or_else(|| hex(*address), |(name, offset)| format!("{name}+{offset}"));
            let _ = writeln!(
                text,
                " {name:<34} | {:>9}/{:<5} | {:>9}/{:<5} | {:>8} | {:>9} | {:>6.3}%",
                row.bytes_alloc,
                row.bytes_alloc / row.hit.max(1),
                row.bytes_req,
                row.bytes_req / row.hit.max(1),
                row.hit,
                row.pingpong,
                fragmentation(row.bytes_req, row.bytes_alloc),
            );
        }
        if is_cut(rows.len(), limit) {
            let _ = writeln!(
                text,
                " ...                                | ...             | ...             | ...      | ...       | ...   "
            );
        }
        let _ = writeln!(text, "{LINE}");
    }

    fn page_table(&self, text: &mut String, rows: &[(PerfPageKey, PageRow)], limit: usize, by_frame: bool) {
        let width = gfp_width(&self.gfp).max("GFP flags".len());
        let _ = writeln!(text, "\n{LINE}");
        let frame = if by_frame { " PFN              |" } else { "" };
        let _ = writeln!(
            text,
            "{frame} Total alloc (KB) | Hits      | Order | Mig.type | {:<width$} | Callsite",
            "GFP flags"
        );
        let _ = writeln!(text, "{LINE}");
        for ((key, order, migratetype, gfp_flags), row) in rows.iter().take(limit) {
            if by_frame {
                let _ = write!(text, " {key:>16} |");
            }
            let flags = self.gfp.get(gfp_flags).map_or(String::new(), |names| compact(names));
            let symbol = self.symbol(row.call_site).map(|(name, _)| name);
            let name = symbol.unwrap_or_else(|| format!("{:x}", row.call_site));
            let migratetype = MIGRATETYPES.get(*migratetype as usize).copied().unwrap_or("?");
            let _ = writeln!(
                text,
                " {:>16} | {:>9} | {order:>5} | {migratetype:>8} | {flags:<width$} | {name}",
                row.alloc_bytes / 1024,
                row.allocs,
            );
        }
        if is_cut(rows.len(), limit) {
            let frame = if by_frame { " ...              |" } else { "" };
            let _ = writeln!(
                text,
                "{frame} ...              | ...       | ...   | ...      | {:<width$} | ...",
                "..."
            );
        }
        let _ = writeln!(text, "{LINE}");
    }
}

/// perf's names, in its own order: it exchanges 1 and 2.
const MIGRATETYPES: [&str; 6] = ["UNMOVABL", "RECLAIM", "MOVABLE", "RESERVED", "CMA/ISLT", "UNKNOWN"];

/// True if perf prints a line of dots: also under a table that has no rows and no limit.
fn is_cut(rows: usize, limit: usize) -> bool {
    rows > limit || rows == 0 && limit == usize::MAX
}

/// No frame: all ones in the kernel's word.
fn is_failure(event: &Event<'_>, pfn: u64) -> bool {
    let size =
        event.class().field_with(Role::PFN).and_then(|f| event.class().fields.get(f)).map_or(8, |f| f.size);
    pfn == if size == 4 { u64::from(u32::MAX) } else { u64::MAX }
}

/// `^_?_?(alloc|get_free|get_zeroed)_pages?`
fn is_page_allocator(symbol: &[u8]) -> bool {
    let name = symbol.strip_prefix(b"_").unwrap_or(symbol);
    let name = name.strip_prefix(b"_").unwrap_or(name);
    [&b"alloc_page"[..], b"get_free_page", b"get_zeroed_page"].iter().any(|start| name.starts_with(start))
}

/// Width of the longest flags. A table's column has at least that of its heading; the legend's has not.
fn gfp_width(gfp: &Gfp) -> usize {
    gfp.values().map(|names| compact(names).len()).max().unwrap_or(0)
}

fn legend(text: &mut String, gfp: &Gfp) {
    text.push_str("#\n# GFP flags\n# ---------\n");
    let width = gfp_width(gfp);
    for (flags, names) in gfp {
        let _ = writeln!(text, "# {flags:08x}: {:>width$}: {names}", compact(names));
    }
}

/// `%#llx`
fn hex(address: u64) -> String {
    if address == 0 { "0".to_owned() } else { format!("{address:#x}") }
}

fn slab_summary(text: &mut String, slab: &Slab) {
    let sums = &slab.sums;
    let _ = writeln!(text, "\nSUMMARY (SLAB allocator)\n========================");
    let _ = writeln!(text, "Total bytes requested: {}", sums.requested);
    let _ = writeln!(text, "Total bytes allocated: {}", sums.allocated);
    let _ = writeln!(text, "Total bytes freed:     {}", sums.freed);
    if sums.allocated > sums.freed {
        let _ = writeln!(text, "Net total bytes allocated: {}", sums.allocated - sums.freed);
    }
    let wasted = sums.allocated.wrapping_sub(sums.requested);
    let _ = writeln!(text, "Total bytes wasted on internal fragmentation: {wasted}");
    let _ = writeln!(text, "Internal fragmentation: {:.6}%", fragmentation(sums.requested, sums.allocated));
    let _ = writeln!(text, "Cross CPU allocations: {}/{}", sums.cross, sums.allocs);
}

fn page_summary(text: &mut String, pages: &PerfPages) {
    let sums = &pages.sums;
    let _ = writeln!(text, "\nSUMMARY (page allocator)\n========================");
    let mut line = |name: &str, (count, bytes): (u64, u64), blank: &str| {
        let _ = writeln!(text, "{name:<30}: {count:>16}   [ {:>16} KB ]{blank}", bytes / 1024);
    };
    let minus = |a: (u64, u64), b: (u64, u64)| (a.0.saturating_sub(b.0), a.1.saturating_sub(b.1));
    let matched = minus(sums.frees, sums.no_match);
    line("Total allocation requests", sums.allocs, "");
    line("Total free requests", sums.frees, "\n");
    line("Total alloc+freed requests", matched, "");
    line("Total alloc-only requests", minus(sums.allocs, matched), "");
    line("Total free-only requests", sums.no_match, "\n");
    line("Total allocation failures", sums.fails, "");
    let _ = writeln!(text, "\nOrder     Unmovable   Reclaimable       Movable      Reserved  CMA/Isolated");
    let _ = writeln!(text, "-----  ------------  ------------  ------------  ------------  ------------");
    // Perf knows orders up to 10, and prints the first five types.
    let mut orders: Vec<u32> = (0..=10).chain(pages.orders.keys().map(|(order, _)| *order)).collect();
    orders.sort_unstable();
    orders.dedup();
    for order in orders {
        let _ = write!(text, "{order:>5}");
        for migratetype in 0..5 {
            match pages.orders.get(&(order, migratetype)) {
                Some(count) => drop(write!(text, "  {count:>12}")),
                None => text.push_str("             ."),
            }
        }
        text.push('\n');
    }
}

/// Perf's short names of allocation flags; those that it does not know are left out.
fn compact(names: &str) -> String {
    const SHORT: [(&str, &str); 35] = [
        ("GFP_TRANSHUGE", "THP"),
        ("GFP_TRANSHUGE_LIGHT", "THL"),
        ("GFP_HIGHUSER_MOVABLE", "HUM"),
        ("GFP_HIGHUSER", "HU"),
        ("GFP_USER", "U"),
        ("GFP_KERNEL_ACCOUNT", "KAC"),
        ("GFP_KERNEL", "K"),
        ("GFP_NOFS", "NF"),
        ("GFP_ATOMIC", "A"),
        ("GFP_NOIO", "NI"),
        ("GFP_NOWAIT", "NW"),
        ("GFP_DMA", "D"),
        ("__GFP_HIGHMEM", "HM"),
        ("GFP_DMA32", "D32"),
        ("__GFP_HIGH", "H"),
        ("__GFP_ATOMIC", "_A"),
        ("__GFP_IO", "I"),
        ("__GFP_FS", "F"),
        ("__GFP_NOWARN", "NWR"),
        ("__GFP_RETRY_MAYFAIL", "R"),
        ("__GFP_NOFAIL", "NF"),
        ("__GFP_NORETRY", "NR"),
        ("__GFP_COMP", "C"),
        ("__GFP_ZERO", "Z"),
        ("__GFP_NOMEMALLOC", "NMA"),
        ("__GFP_MEMALLOC", "MA"),
        ("__GFP_HARDWALL", "HW"),
        ("__GFP_THISNODE", "TN"),
        ("__GFP_RECLAIMABLE", "RC"),
        ("__GFP_MOVABLE", "M"),
        ("__GFP_ACCOUNT", "AC"),
        ("__GFP_WRITE", "WR"),
        ("__GFP_RECLAIM", "R"),
        ("__GFP_DIRECT_RECLAIM", "DR"),
        ("__GFP_KSWAPD_RECLAIM", "KR"),
    ];
    let short = |name: &str| SHORT.iter().find(|(long, _)| *long == name).map(|(_, short)| *short);
    names.split('|').filter_map(short).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_allocator_and_of_flags() {
        assert!(is_page_allocator(b"__alloc_pages+0x1/0x2") && is_page_allocator(b"get_zeroed_page"));
        assert!(!is_page_allocator(b"___alloc_pages") && !is_page_allocator(b"__alloc_frozen_pages_noprof"));
        assert_eq!(compact("GFP_NOFS|__GFP_NOFAIL|__GFP_FUTURE|__GFP_COMP"), "NF|NF|C");
    }

    #[test]
    fn functions_of_the_tracer_are_left_out_of_stacks_of_ftrace_only() {
        let stack = [1, 2, 30, 2];
        assert_eq!(chain(&stack, false, |ip| ip < 10), [30, 2]);
        assert_eq!(chain(&stack, true, |ip| ip < 10), stack);
    }

    #[test]
    fn the_legend_is_as_wide_as_its_longest_flags() {
        let mut text = String::new();
        let names = [(0xcc0, "GFP_KERNEL"), (0x14_0cca, "GFP_HIGHUSER_MOVABLE|__GFP_COMP")];
        legend(&mut text, &names.map(|(flags, names)| (flags, names.to_owned())).into());
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            lines,
            ["# 00000cc0:     K: GFP_KERNEL", "# 00140cca: HUM|C: GFP_HIGHUSER_MOVABLE|__GFP_COMP"]
        );
    }
}
