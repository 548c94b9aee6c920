//! Live memory of the trace, by the names of each account.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::account::{Amounts, add, short};
use super::caches;
use crate::int_hash::IntHash;
use crate::ledger::page_totals::FrameTotals;
use crate::pass::caches::parts_of;
use crate::reports::common::ReportContext;
use crate::reports::common::page_callers::caller;
use crate::trace::names::{CacheKey, function_of};

/// Pages of SLUB have one tag in /proc/allocinfo, its function (`alloc_slab_page`, mm/slub.c, 6.10 to 7.2). Compilers put it
/// into these.
const SLAB_PAGES: (&str, [&str; 3]) = ("alloc_slab_page", ["allocate_slab", "new_slab", "___slab_alloc"]);

/// Live memory of the trace.
#[derive(Default)]
pub struct Live {
    /// Bytes of objects and pages by function, `f [module]`.
    pub functions: Amounts,
    /// Bytes of pages by call site, `f+0x1 [module]`.
    pub pages: Amounts,
    /// Objects by cache and call site, with [`caches::APART`] between them.
    pub slab: Amounts,
}

impl Live {
    /// `tagged`: functions of /proc/allocinfo.
    pub fn of(
        context: &ReportContext<'_, '_>,
        pages: &HashMap<u32, FrameTotals, IntHash>,
        tagged: &BTreeSet<&str>,
    ) -> Self {
        let (analysis, symbols) = (context.analysis, context.symbols());
        let mut live = Self::default();
        for part in parts_of(analysis).filter(|part| part.totals.live > 0) {
            let address = part.site.call_site;
            let symbol = symbols.shown(address);
            let cache = match &part.key {
                CacheKey::Kmalloc(_) => caches::KMALLOC.to_owned(),
                CacheKey::Named(name) => caches::name_of(name),
                key => key.shown(analysis.size_classes),
            };
            add(
                &mut live.slab,
                format!("{cache}{}{}", caches::APART, short(&symbol)),
                signed(part.totals.live),
            );
            let function = tag(context, &[address], tagged).unwrap_or_else(|| function_of(&symbol));
            add(&mut live.functions, function, signed(part.totals.bytes_live));
        }
        for (stack, totals) in pages.iter().filter(|(_, totals)| totals.frames_live > 0) {
            let bytes = signed(totals.frames_live.saturating_mul(analysis.page_size.0));
            let stack = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
            let symbol = caller(stack, symbols).map(|address| symbols.shown(address));
            let symbol = symbol.unwrap_or_else(|| "?".to_owned());
            let function = tag(context, stack, tagged).unwrap_or_else(|| function_of(&symbol));
            add(&mut live.functions, function, bytes);
            add(&mut live.pages, short(&symbol), bytes);
        }
        live
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The function with a tag that an allocation counts for: the innermost of its stack. With source lines inlined functions are
/// known too.
fn tag(context: &ReportContext<'_, '_>, stack: &[u64], tagged: &BTreeSet<&str>) -> Option<String> {
    if tagged.is_empty() {
        return None;
    }
    let symbols = context.symbols();
    let functions = stack.iter().filter(|&&address| address != 0).flat_map(|&address| {
        let symbol = symbols.function(address);
        let (name, module) = symbol.split_once(' ').map_or((&*symbol, ""), |(name, module)| (name, module));
        // Clones of the compiler: f.constprop.0, f.isra.0, f.cold.
        let name = name.split('.').next().unwrap_or(name);
        let frames = context.session.source().frames(address);
        let names = frames.into_iter().map(|frame| frame.function).chain([Cow::Borrowed(name)]);
        let with_module =
            |name: &str| if module.is_empty() { name.to_owned() } else { format!("{name} {module}") };
        names.map(|name| with_module(&name)).collect::<Vec<_>>()
    });
    let (slab, holders) = SLAB_PAGES;
    functions.into_iter().find_map(|name| {
        let name = if holders.contains(&name.as_str()) { slab.to_owned() } else { name };
        tagged.contains(name.as_str()).then_some(name)
    })
}
