//! `lifetimes` and `temporary`: how long objects live, by the call site that allocated them, and where they are freed.

use std::collections::BTreeMap;

use kmt_format::kernel::ClockUnit;
use serde_json::{Value, json};

use crate::collect::histogram::Histogram;
use crate::collect::lifetimes::LifetimeSums;
use crate::collect::{self, Collectors, Handle};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::pass::term::duration_of;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, escaped, percent};
use crate::reports::common::basis::Input;
use crate::reports::common::sums::{more, shown};
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use crate::stream::Api;
use crate::trace::session::Session;

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LifetimeKey {
    /// Objects that were freed
    Count,
    /// Half of them lived that long at most
    P50,
    /// Nine of ten
    P90,
    /// 99 of 100
    P99,
    /// The longest life
    Max,
    /// Bytes that were freed
    Bytes,
    /// Bytes times time
    ByteTime,
    /// Objects that go on
    Live,
    /// Objects freed unseen
    Unseen,
    /// Objects freed almost at once
    Temporary,
    /// Bytes of those
    TemporaryBytes,
    /// Name
    Name,
}

/// A place of frees: interface, address.
type FreePlace = (Api, u64);

struct Row {
    address: u64,
    api: Api,
    name: String,
    freed: Histogram,
    censored: u64,
    unseen: u64,
    uncertain: u64,
    bytes_freed: u64,
    byte_time: u128,
    temporary: u64,
    bytes_temporary: u64,
    temporary_elsewhere: u64,
    /// Where they were freed: count, mean lifetime; most first.
    freed_by: Vec<(FreePlace, String, u64, u64)>,
}

/// Options of `lifetimes`.
#[derive(Debug, clap::Args)]
pub struct LifetimeOptions {
    /// Sort by these, the most important first; what is temporary is known to the report of that name alone
    #[arg(short, long, value_enum, value_delimiter = ',', default_value = "count")]
    sort: Vec<LifetimeKey>,
}

/// Options of `temporary`.
#[derive(Debug, clap::Args)]
pub struct TemporaryOptions {
    /// Lives up to this long count
    #[arg(long, value_name = "TIME", value_parser = duration_of, default_value = "100us")]
    within: u64,
    /// Sort by these, the most important first
    #[arg(short, long, value_enum, value_delimiter = ',', default_value = "temporary")]
    sort: Vec<LifetimeKey>,
}

/// Lifetimes by call site.
#[derive(Debug)]
pub struct Lifetimes {
    sort: Vec<LifetimeKey>,
}

/// Objects that are freed almost at once.
#[derive(Debug)]
pub struct Temporary {
    sort: Vec<LifetimeKey>,
    /// Lives that end this soon, in the clock's unit.
    bound: u64,
}

impl Report for Lifetimes {
    type Options = LifetimeOptions;
    type Handles = Handle<collect::Lifetimes>;
    type Rows = Page;

    const NAME: &'static str = "lifetimes";
    const KEY: &'static str = "lifetimes";
    const TITLE: &'static str = "lifetimes";
    const ABOUT: &'static str = "How long objects live, by call site, and where they are freed";

    fn new(options: LifetimeOptions, _: &Selection) -> Self {
        Self { sort: options.sort }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![LifetimeKey::Count] })
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(collect::Lifetimes::default())
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handles: &Self::Handles) -> Page {
        both(context, analysis, analysis.get(*handles), &self.sort, None)
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

impl Report for Temporary {
    type Options = TemporaryOptions;
    type Handles = Handle<collect::Lifetimes>;
    type Rows = Page;

    const NAME: &'static str = "temporary";
    const KEY: &'static str = "temporary";
    const TITLE: &'static str = "temporary";
    const ABOUT: &'static str = "Objects that are freed almost at once";

    fn new(options: TemporaryOptions, _: &Selection) -> Self {
        Self { sort: options.sort, bound: options.within }
    }

    fn usual() -> Option<Self> {
        None
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(collect::Lifetimes { temporary_bound: Some(self.bound) })
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handles: &Self::Handles) -> Page {
        both(context, analysis, analysis.get(*handles), &self.sort, Some(self.bound))
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

fn both(
    context: &Context<'_, '_>,
    result: &Analysis,
    lifetimes: &LifetimeSums,
    keys: &[LifetimeKey],
    bound: Option<u64>,
) -> Page {
    let session = context.session;
    let mut rows = collect(session, result, lifetimes);
    rows.retain(|r| bound.is_none() || r.temporary > 0);
    sort(&mut rows, keys);
    let mut all = Histogram::default();
    rows.iter().for_each(|r| all.merge(&r.freed));
    let shown = shown(Some(context.limit), rows.len());
    let name = if bound.is_some() { "temporary" } else { "lifetimes" };
    Page::of(
        |out| {
            if let Some(bound) = bound {
                out.insert("temporary_bound".into(), bound.into());
            }
            out.insert(format!("{name}_total"), json!(rows.len()));
            out.insert("all".into(), distribution(&all));
            out.insert(name.into(), rows.iter().take(shown).map(|r| row_json(r, bound.is_some())).collect());
        },
        || match bound {
            Some(bound) => temporary_page(&rows, shown, bound, session.unit()),
            None => page(&rows, shown, session.unit(), session.losses.any()),
        },
    )
}

fn collect(session: &Session<'_>, result: &Analysis, lifetimes: &LifetimeSums) -> Vec<Row> {
    let env = session.print_env();
    let mut rows = Vec::new();
    for (&(api, address), lives) in result.balance.callers.iter().zip(&lifetimes.callers) {
        if lives.freed.count() + lives.censored + lives.unseen == 0 {
            continue;
        }
        let mut places: BTreeMap<FreePlace, (u64, u128)> = BTreeMap::new();
        for &(free, (count, time)) in &lives.freed_by {
            let Some(site) = result.interner.frees.get(free) else { continue };
            let place = places.entry((site.api, site.call_site)).or_default();
            *place = (place.0 + count, place.1 + time);
        }
        let mut freed_by: Vec<_> = places
            .into_iter()
            .map(|(place, (count, time))| {
                let mean = (time / u128::from(count.max(1))) as u64;
                (place, escaped(&env.symbol_with_offset(place.1)), count, mean)
            })
            .collect();
        freed_by.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.1.cmp(&b.1)));
        rows.push(Row {
            address,
            api,
            name: escaped(&env.symbol_with_offset(address)),
            freed: lives.freed.clone(),
            censored: lives.censored,
            unseen: lives.unseen,
            uncertain: lives.uncertain,
            bytes_freed: lives.bytes_freed,
            byte_time: lives.byte_time,
            temporary: lives.temporary,
            bytes_temporary: lives.bytes_temporary,
            temporary_elsewhere: lives.temporary_elsewhere,
            freed_by,
        });
    }
    rows
}

fn sort(rows: &mut [Row], keys: &[LifetimeKey]) {
    let number = |r: &Row, key| -> u128 {
        let quantile = |per_mille| r.freed.quantile(per_mille).unwrap_or(0).into();
        match key {
            LifetimeKey::Count => r.freed.count().into(),
            LifetimeKey::P50 => quantile(500),
            LifetimeKey::P90 => quantile(900),
            LifetimeKey::P99 => quantile(990),
            LifetimeKey::Max => r.freed.max().unwrap_or(0).into(),
            LifetimeKey::Bytes => r.bytes_freed.into(),
            LifetimeKey::ByteTime => r.byte_time,
            LifetimeKey::Live => r.censored.into(),
            LifetimeKey::Unseen => r.unseen.into(),
            LifetimeKey::Temporary => r.temporary.into(),
            LifetimeKey::TemporaryBytes => r.bytes_temporary.into(),
            LifetimeKey::Name => 0,
        }
    };
    rows.sort_by_cached_key(|r| {
        let keys = keys.iter().take_while(|&&k| k != LifetimeKey::Name);
        let numbers: Vec<_> = keys.map(|&k| std::cmp::Reverse(number(r, k))).collect();
        (numbers, r.name.clone())
    });
}

/// Numbers of a distribution; percentiles are exact to 1.6 %.
fn distribution(freed: &Histogram) -> Value {
    let buckets = freed.buckets().map(|(low, width, count)| json!([low, low + (width - 1), count]));
    json!({
        "n": freed.count(),
        "p50": freed.quantile(500),
        "p90": freed.quantile(900),
        "p99": freed.quantile(990),
        "max": freed.max(),
        "mean": freed.mean(),
        "histogram": buckets.collect::<Vec<_>>(),
    })
}

fn row_json(row: &Row, with_temporary: bool) -> Value {
    let freed_by = row.freed_by.iter().map(|((api, address), name, count, mean)| {
        json!({
            "call_site": json::address(*address),
            "symbol": name,
            "api": api.name(),
            "frees": count,
            "lifetime_mean": mean,
        })
    });
    let mut out = json!({
        "call_site": json::address(row.address),
        "symbol": row.name,
        "api": row.api.name(),
        "lifetime": distribution(&row.freed),
        "censored": row.censored,
        "freed_unseen": row.unseen,
        "uncertain": row.uncertain,
        "bytes_freed": row.bytes_freed,
        "byte_time": row.byte_time.to_string(),
        "freed_by": freed_by.collect::<Vec<_>>(),
    });
    if with_temporary {
        out["temporary"] = row.temporary.into();
        out["bytes_temporary"] = row.bytes_temporary.into();
        out["temporary_freed_elsewhere"] = row.temporary_elsewhere.into();
    }
    out
}

/// The places where most are freed, with their shares.
fn freers(row: &Row) -> String {
    const NAMED: usize = 2;
    let all = row.freed.count();
    let named = row.freed_by.iter().take(NAMED);
    let mut out: Vec<String> = named.map(|(_, name, n, _)| format!("{name} {}", percent(*n, all))).collect();
    if row.freed_by.len() > NAMED {
        out.push(format!("{} more", row.freed_by.len() - NAMED));
    }
    out.join(", ")
}

/// A digit for each power of ten from a nanosecond on: the share of lives in it, in tenths.
fn sketch(freed: &Histogram) -> String {
    let digit = |n: u64| match (10 * n).checked_div(freed.count()).unwrap_or(0) {
        0 if n == 0 => '.',
        0 => '+',
        tenths @ 1..=9 => char::from(b'0' + tenths as u8),
        _ => '*',
    };
    freed.decades().into_iter().map(digit).collect()
}

fn page(rows: &[Row], shown: usize, unit: ClockUnit, is_lossy: bool) -> String {
    use Align::{Left, Right};
    let mut columns = vec![
        ("allocated at", Left),
        ("of", Left),
        ("n", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("max", Right),
        ("per decade", Left),
        ("go on", Right),
        ("unseen", Right),
        ("freed at", Left),
    ];
    // Beside the shares that it touches.
    let beside = columns.len() - 1;
    columns.splice(beside..beside, is_lossy.then_some(("uncertain", Right)));
    let time = |t: Option<u64>| t.map_or("-".to_owned(), |t| duration(t, unit));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            let all = r.freed.count() + r.censored + r.unseen;
            let mut cells = vec![
                r.name.clone(),
                r.api.name().to_owned(),
                count(r.freed.count()),
                time(r.freed.quantile(500)),
                time(r.freed.quantile(900)),
                time(r.freed.quantile(990)),
                time(r.freed.max()),
                sketch(&r.freed),
                percent(r.censored, all),
                percent(r.unseen, all),
            ];
            cells.extend(is_lossy.then(|| percent(r.uncertain, all)));
            cells.push(freers(r));
            cells
        })
        .collect();
    table(&columns, &cells)
        + &more(shown, rows.len(), "call sites")
        + "\nLifetimes are those of objects whose free was seen; those that go on and those freed unseen are in none of them, so where their shares are large the percentiles are too short.\nper decade: tenths of the lives of 1 ns, 10 ns, 100 ns ... (+ less than a tenth, . none, * all)\n"
}

fn temporary_page(rows: &[Row], shown: usize, bound: u64, unit: ClockUnit) -> String {
    use Align::{Left, Right};
    let columns = [
        ("allocated at", Left),
        ("of", Left),
        ("temporary", Right),
        ("of its frees", Right),
        ("bytes", Right),
        ("p50", Right),
        ("freed elsewhere", Right),
        ("freed at", Left),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            vec![
                r.name.clone(),
                r.api.name().to_owned(),
                count(r.temporary),
                percent(r.temporary, r.freed.count()),
                count(r.bytes_temporary),
                r.freed.quantile(500).map_or("-".to_owned(), |t| duration(t, unit)),
                percent(r.temporary_elsewhere, r.temporary),
                freers(r),
            ]
        })
        .collect();
    let (all, bytes) = rows.iter().fold((0, 0), |s, r| (s.0 + r.temporary, s.1 + r.bytes_temporary));
    let freed: u64 = rows.iter().map(|r| r.freed.count()).sum();
    format!(
        "{} objects ({} of the frees at these call sites), {} bytes, were freed within {} of their birth\n\n{}{}\nfreed elsewhere: on another CPU, by another task or on another interrupt level\n",
        count(all),
        percent(all, freed),
        count(bytes),
        duration(bound, unit),
        table(&columns, &cells),
        more(shown, rows.len(), "call sites"),
    )
}
