//! The report as JSON and as text.

use serde_json::{Value, json};

use super::Row;
use crate::analysis::leaks::Verdict;
use crate::commands::parts::Subject;
use crate::commands::report::more;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent};

/// What is printed.
pub(super) struct View<'v, 's, 'd> {
    pub(super) subject: &'v Subject<'s, 'd>,
    pub(super) rows: &'v [Row<'v>],
    pub(super) pages: &'v [Row<'v>],
    pub(super) page_callers: &'v [Row<'v>],
    pub(super) slab_pages: Option<u64>,
    pub(super) length: u64,
    pub(super) page_size: u64,
}

impl View<'_, '_, '_> {
    /// Amount a second, or in 10^9 ticks.
    fn per_second(&self, row: &Row<'_>) -> u64 {
        let old_length = u128::from(self.length.saturating_sub(row.evidence.old_age)).max(1);
        u64::try_from(u128::from(row.evidence.old_amount) * 1_000_000_000 / old_length).unwrap_or(u64::MAX)
    }

    pub(super) fn json(&self) -> Value {
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
            "slab_pages": self.slab_pages,
            "page_callers": self.page_callers.iter().take(self.subject.limit).map(row).collect::<Vec<_>>(),
            "pages": self.pages.iter().take(self.subject.limit).map(row).collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self) -> String {
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
            (self.pages, "PAGES, by kind, but for slabs; movable ones are user memory or page cache"),
        ] {
            let rows: Vec<&Row<'_>> = rows.iter().filter(is_telling).collect();
            if !rows.is_empty() {
                out.push_str(&format!("\n{heading}\n"));
                out.push_str(&self.table(&rows, self.subject.limit.min(10), "pages"));
            }
        }
        out.push_str(&match self.slab_pages {
            Some(0) => String::new(),
            Some(pages) => {
                format!("\n{} live pages of the trace are slabs: what they hold is above\n", count(pages))
            }
            None => "\npage frames could not be placed in memory: slabs are among the pages\n".to_owned(),
        });
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
