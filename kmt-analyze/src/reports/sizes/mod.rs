//! `sizes`: what kmalloc was asked for, against the size classes that it has.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::collect::Collectors;
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::pass::weights::{Estimate, in_order};
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, percent};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::known::{Known, estimated, legend};
use crate::reports::common::sorting::SortOptions;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::sums::{more, shown, sum_columns, sums};
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use crate::stream::Api;
use crate::trace::losses::Losses;

/// One size class.
struct Class {
    bytes_alloc: u64,
    name: String,
    totals: Totals,
    estimate: Option<Estimate>,
    /// Requested sizes in it, those that waste most first.
    requests: Vec<(u64, Totals)>,
}

/// Requested sizes named for each class.
const REQUESTS: usize = 3;

/// The report.
#[derive(Debug)]
pub struct Sizes {
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
}

impl Report for Sizes {
    type Options = SortOptions;
    type Handles = ();
    type Rows = Page;

    const NAME: &'static str = "sizes";
    const KEY: &'static str = "sizes";
    const TITLE: &'static str = "sizes";
    const ABOUT: &'static str = "Sizes asked of kmalloc against its size classes";

    fn new(options: SortOptions, selection: &Selection) -> Self {
        Self { sort: options.keys(selection) }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![SortKey::Alloc] })
    }

    fn rests_on(&self) -> Input {
        Input::Kmallocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, _: &Self::Handles) -> Page {
        let mut classes: BTreeMap<u64, BTreeMap<u64, Totals>> = BTreeMap::new();
        let mut estimates: BTreeMap<u64, Option<Estimate>> = BTreeMap::new();
        for (site, parts) in result.interner.sites.items().iter().zip(&result.balance.sites) {
            if site.api == Api::Kmalloc {
                let sum = classes.entry(site.bytes_alloc).or_default().entry(site.bytes_req).or_default();
                let estimate = estimates.entry(site.bytes_alloc).or_default();
                for (_, totals) in parts {
                    *sum += totals;
                    result.weights.add(site, totals, estimate);
                }
            }
        }
        let mut rows: Vec<Class> =
            classes.into_iter().map(|(size, requests)| class(size, requests)).collect();
        rows.iter_mut().for_each(|c| c.estimate = estimates.get(&c.bytes_alloc).copied().flatten());
        rows.retain(|c| c.totals != Totals::default());
        sort_rows(&mut rows, &self.sort, |c| (in_order(c.estimate, c.totals), &c.name));
        let shown = shown(Some(context.limit), rows.len());
        let known = Known::slab(&Basis::of(context.session, result), Some(Api::Kmalloc));
        Page::of(
            |out| {
                out.insert("sizes_total".into(), json!(rows.len()));
                out.insert("sizes".into(), rows.iter().take(shown).map(|c| row_json(c, known)).collect());
            },
            || page(&rows, shown, known, &context.session.losses),
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

fn class(bytes_alloc: u64, requests: BTreeMap<u64, Totals>) -> Class {
    let mut totals = Totals::default();
    let mut requests: Vec<(u64, Totals)> =
        requests.into_iter().filter(|(_, t)| *t != Totals::default()).collect();
    requests.iter().for_each(|(_, t)| totals += t);
    requests.sort_by_key(|(size, t)| (std::cmp::Reverse(t.bytes_wasted()), *size));
    Class { bytes_alloc, name: format!("{bytes_alloc:>12}"), totals, estimate: None, requests }
}

fn row_json(class: &Class, known: Known) -> Value {
    let mut out = known.mask(json::row(&class.totals));
    out.insert("estimated".into(), estimated(class.estimate));
    out.insert("size_class".into(), class.bytes_alloc.into());
    let requests = class.requests.iter().map(|(size, totals)| {
        let mut out = known.mask(json::row(totals));
        out.insert("size".into(), (*size).into());
        Value::from(out)
    });
    out.insert("requests".into(), requests.collect());
    out.into()
}

fn page(rows: &[Class], shown: usize, known: Known, losses: &Losses) -> String {
    let mut columns = vec![("kmalloc size class", Align::Right), ("requested", Align::Right)];
    columns.extend(sum_columns(losses));
    columns.push(("most of its waste: size x count", Align::Left));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|c| {
            let smallest = c.requests.iter().map(|r| r.0).min().unwrap_or(0);
            let largest = c.requests.iter().map(|r| r.0).max().unwrap_or(0);
            let range =
                if smallest == largest { smallest.to_string() } else { format!("{smallest}-{largest}") };
            let worst =
                c.requests.iter().filter(|r| r.1.bytes_wasted() > 0).take(REQUESTS).map(|(size, t)| {
                    let share = percent(t.bytes_wasted(), c.totals.bytes_wasted());
                    format!("{size} x {} ({share})", count(t.alloc_events))
                });
            let mut cells = vec![count(c.bytes_alloc), range];
            cells.extend(sums(&c.totals, c.estimate, known, losses));
            cells.push(worst.collect::<Vec<_>>().join(", "));
            cells
        })
        .collect();
    let mut out = table(&columns, &cells) + &more(shown, rows.len(), "size classes") + legend(known.lives);
    out.push_str("\nSizes between two classes are rounded up. Caches have one size each: see caches.\n");
    out
}
