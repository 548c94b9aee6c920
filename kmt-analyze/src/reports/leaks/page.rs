//! The report as text.

use super::view::LeakView;
use super::{Row, tasks_started};
use crate::analysis::leaks::Verdict;
use crate::analysis::leaks::families::holder;
use crate::collect::growth::STEPS;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent};
use crate::reports::common::labels::Labels;
use crate::reports::common::sums::more;

/// Smallest share of the survivors, as 1/N, from which one task is named.
const MANY: u64 = 10;

impl LeakView<'_, '_, '_> {
    /// Who allocated most of what stays of a row, in words.
    fn holder(&self, labels: &Labels<'_, '_>, row: &Row<'_>) -> String {
        let tasks = row.course.holders.len() as u64;
        match holder(row.course) {
            // One of many says nothing.
            Some((_, most)) if most.saturating_mul(MANY) < row.evidence.survivors => {
                format!(", by {} tasks, {} at most each", count(tasks), count(most))
            }
            Some((pid, count)) => {
                format!(", by {} ({})", labels.task(pid), percent(count, row.evidence.survivors).trim())
            }
            None => String::new(),
        }
    }

    /// Where most of what stays of a row was allocated, if stacks were recorded.
    fn stack(&self, labels: &Labels<'_, '_>, row: &Row<'_>) -> String {
        let Some(most) = row.stacks.first() else { return String::new() };
        let frames: Vec<String> = most.frames.iter().map(|&address| labels.symbol(address)).collect();
        format!("stack of {}: {}\n", percent(most.live, row.evidence.survivors).trim(), frames.join(" < "))
    }

    pub(super) fn text(&self) -> String {
        let unit = self.context.session.unit();
        let families = self.families();
        let labels = Labels::new(self.context.session);
        let mut out = format!(
            "NOT SEEN FREED in {}: {}\n\n",
            duration(self.length, unit),
            match families.len() {
                0 => "nothing grows steadily".to_owned(),
                1 => "one thing grows".to_owned(),
                n => format!("{n} things grow"),
            }
        );
        if !families.is_empty() {
            out.push_str("growing, and not saturating; together what is born together and stays\n");
        }
        for (number, family) in families.iter().enumerate().take(self.context.limit) {
            let Some(leader) = family.rows.first() else { continue };
            let others = match family.rows.len() - 1 {
                0 => String::new(),
                1 => " and one more call site".to_owned(),
                n => format!(" and {n} more call sites"),
            };
            out.push_str(&format!(
                "\n{}. {}{others}: {} old bytes, {} a second{}{}\n",
                number + 1,
                leader.name,
                count(family.bytes),
                count(family.per_second),
                self.holder(&labels, leader),
                self.began(leader),
            ));
            out.push_str(&self.stack(&labels, leader));
            out.push_str(&self.table(&family.rows, self.context.limit, "call site"));
            if family.rows.iter().any(|r| !r.evidence.verdict.is_growth()) {
                out.push_str("of caches that are marked reclaimable: what is pinned cannot be taken back\n");
            }
        }
        if !families.is_empty() {
            out.push('\n');
        }
        for (verdict, heading) in HEADINGS {
            let alone = self.rows.iter().filter(|r| r.leader.is_none());
            let rows: Vec<&Row<'_>> = alone.filter(|r| r.evidence.verdict == verdict).collect();
            if rows.is_empty() {
                continue;
            }
            match verdict {
                Verdict::WithTasks => out.push_str(&self.tasks_heading()),
                _ => out.push_str(&format!("{heading}\n")),
            }
            out.push_str(&self.table(&rows, self.context.limit.min(8), "call site"));
            if verdict == Verdict::FreesUnseen {
                out.push_str(&self.needed(&rows));
            }
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
                out.push_str(&self.table(&rows, self.context.limit.min(10), "pages"));
            }
        }
        out.push_str(&match self.slab_pages {
            Some(0) => String::new(),
            Some(pages) => {
                format!("\n{} live pages of the trace are slabs: what they hold is above\n", count(pages))
            }
            None => "\npage frames could not be placed in memory: slabs are among the pages\n".to_owned(),
        });
        out.push_str("\nOld: older than three times what 99 of 100 freed ones of the call site reached, and not of the window's last eighth. Growing: old ones from at least half of the steps of time, or from three quarters of those since it began, and the second half brings at least half of what the first did; or three batches and more of like size. Where frees have no event, older than three times what it took to find 99 of 100 to be over, and one of twenty births. It says nothing of objects that were there before.\n");
        out
    }

    fn tasks_heading(&self) -> String {
        match tasks_started(self.rows).survivors.sum() {
            1 => "of a task that started meanwhile and still runs\n".to_owned(),
            tasks => format!("of {} tasks that started meanwhile and still run\n", count(tasks)),
        }
    }

    /// How long a window has to be to judge objects whose frees have no event.
    fn needed(&self, rows: &[&Row<'_>]) -> String {
        let unit = self.context.session.unit();
        let age = rows.iter().filter_map(|r| r.course.unseen_ages.quantile(990)).max().unwrap_or(0);
        // A quarter of it is left to look for old ones in.
        let window = age.saturating_mul(4);
        if window <= self.length {
            return String::new();
        }
        format!(
            "found to be over up to {} after their birth (99 of 100 that were): windows of {} and more can tell them from leaks\n",
            duration(age, unit),
            duration(window, unit)
        )
    }

    /// When growth began, if not at once; or in how many batches it comes.
    fn began(&self, row: &Row<'_>) -> String {
        let unit = self.context.session.unit();
        match (row.evidence.verdict, row.evidence.began) {
            (Verdict::Batches, _) => format!("; in {} batches", row.evidence.batches),
            (_, Some(step)) => {
                let after = (self.length / STEPS as u64).saturating_mul(step as u64);
                format!("; began {} after the start, and continues", duration(after, unit))
            }
            _ => String::new(),
        }
    }

    fn table(&self, rows: &[&Row<'_>], limit: usize, what: &'static str) -> String {
        use Align::{Left, Right};
        let unit = self.context.session.unit();
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
                    spark(&r.course.survivors.all()),
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
    (Verdict::Reclaimable, "growing, in caches that the kernel takes back when it needs memory"),
    (Verdict::WithReclaimable, "growing along with those, one for each object of theirs"),
    (Verdict::WithTasks, "of tasks that started meanwhile and still run"),
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
