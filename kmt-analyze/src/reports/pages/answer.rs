//! The answer of pages: how many, the largest group, failures.

use std::cmp::Reverse;

use super::rows::PageTables;
use crate::render::words::{count, counted, share};
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::rows::FrameSums;
use crate::reports::common::sorting::SortKey;
use crate::reports::common::{ReportContext, View};
use crate::reports::grouped::GroupTable;
use crate::trace::names::function_of;

/// Sentences of the answer.
pub fn sentences(
    context: &ReportContext<'_, '_>,
    tables: &PageTables,
    sort: Option<SortKey>,
    view: &View,
) -> Vec<String> {
    [Some(amounts(context, tables, view)), largest(tables, sort), failures(tables)]
        .into_iter()
        .flatten()
        .collect()
}

/// Pages allocated, freed and still allocated.
fn amounts(context: &ReportContext<'_, '_>, tables: &PageTables, view: &View) -> String {
    let (all, sums) = (&tables.all, &tables.all.sums);
    let page_size = context.analysis.page_size.0;
    let bytes = |pages: u64| view.bytes(pages.saturating_mul(page_size));
    let pages = |number: u64| format!("{} ({})", counted(number, "page", "pages"), bytes(number));
    let allocated = match (sums.pages_alloc, PageSums::raw_pages_freed(context)) {
        (Some(allocated), _) => format!("The kernel allocated {}", pages(allocated)),
        (None, Some(freed)) => {
            return format!("The kernel freed {}; page allocations were not recorded.", pages(freed));
        }
        (None, None) => return "The number of pages is unknown.".to_owned(),
    };
    match sums.pages_freed.zip(sums.pages_live) {
        // At a moment, nothing is allocated and freed.
        Some((0, live)) if sums.pages_alloc == Some(0) && live > 0 => {
            let are = if live == 1 { "is" } else { "are" };
            format!("{} {are} allocated.", pages(live))
        }
        Some((freed, live)) => {
            let are = if live == 1 { "is" } else { "are" };
            let uncertain = match all.pages_live_uncertain(page_size).unwrap_or(0) {
                0 => String::new(),
                uncertain => format!(" ({} uncertain)", count(uncertain)),
            };
            let (freed, live) = (count(freed), pages(live));
            format!("{allocated} and freed {freed} of them; {live} {are} still allocated{uncertain}.")
        }
        None if all.free_events.is_none() => {
            format!("{allocated}; page frees were not recorded, so live pages are unknown.")
        }
        None => format!("{allocated}; live pages are unknown."),
    }
}

/// The group of --by with most pages, allocated or live.
fn largest_group(
    groups: &GroupTable<FrameSums>,
    tables: &PageTables,
    sort: Option<SortKey>,
) -> Option<String> {
    let (phrase, sums) = groups.first().filter(|_| groups.groups_total > 1)?;
    let (what, part, all) = match sort {
        None | Some(SortKey::Pages | SortKey::Alloc) => {
            ("pages are", sums.pages_alloc?, tables.all.sums.pages_alloc?)
        }
        Some(SortKey::LivePages | SortKey::Live) => {
            ("live pages are", sums.pages_live?, tables.all.sums.pages_live?)
        }
        Some(_) => return None,
    };
    (part > 0).then(|| format!("Most {what} of {phrase}: {} ({}).", count(part), share(part, all)))
}

/// The largest call site, or the largest group of equal order and migrate type.
fn largest(tables: &PageTables, sort: Option<SortKey>) -> Option<String> {
    if let Some(groups) = &tables.groups {
        return largest_group(groups, tables, sort);
    }
    let all = tables.all.sums.pages_alloc.filter(|&pages| pages > 0)?;
    let of = |pages: u64| format!("{} ({})", counted(pages, "page", "pages"), share(pages, all));
    let caller = tables.callers.iter().find(|row| row.call_site.is_some());
    if let Some((caller, pages)) = caller.and_then(|row| Some((row, row.pages.pages_alloc?))) {
        return Some(format!("The largest call site is {}: {}.", function_of(&caller.symbol), of(pages)));
    }
    let types = tables.by_order_and_migratetype.iter();
    let row = types.max_by_key(|row| (row.sums.pages_alloc, Reverse((row.order, row.migratetype))))?;
    let pages = row.sums.pages_alloc?;
    Some(format!("The largest group is {}, order {}: {}.", row.migratetype_text, row.order, of(pages)))
}

/// Failed allocations, and the flags and the call site of most of them.
fn failures(tables: &PageTables) -> Option<String> {
    let all = tables.all.sums.alloc_failures.filter(|&failed| failed > 0)?;
    let failed = counted(all, "allocation", "allocations");
    let flags = tables.by_gfp_flags.iter();
    let worst = flags.max_by_key(|row| (row.sums.alloc_failures, Reverse(row.gfp_flags)));
    let worst = worst.and_then(|row| Some((row.gfp_flags_text.as_str(), row.sums.alloc_failures?)));
    let with = worst.map_or(String::new(), |(flags, number)| match number {
        number if number == all => format!(" with {flags}"),
        number => format!(", {} of them with {flags}", count(number)),
    });
    let at = failing_caller(tables).map_or(String::new(), |(function, number)| match number {
        number if number == all => format!(", at {function}"),
        number => format!(", {} of them at {function}", count(number)),
    });
    Some(format!("{failed} failed{with}{at}."))
}

/// Function of the call site with most failures, and their number; `None` without stacks of failures.
fn failing_caller(tables: &PageTables) -> Option<(String, u64)> {
    let mut worst: Option<(String, u64)> = None;
    for row in tables.callers.iter().filter(|row| row.call_site.is_some()) {
        let number = row.alloc_failures.unwrap_or(0);
        // The first one of several, as in the table.
        if number > worst.as_ref().map_or(0, |(_, most)| *most) {
            worst = Some((function_of(&row.symbol), number));
        }
    }
    worst
}
