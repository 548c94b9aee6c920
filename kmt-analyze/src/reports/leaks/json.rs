//! The report as JSON.

use serde_json::{Value, json};

use super::Row;
use super::stacks::RowStack;
use super::view::LeakView;
use crate::render::json;
use crate::reports::common::labels::Labels;

/// Tasks named for a row.
const HOLDERS: usize = 5;

/// The tasks that most survivors are of.
fn holders(row: &Row<'_>, labels: &Labels<'_, '_>) -> Value {
    let mut all: Vec<(i32, u64)> =
        row.course.holders.iter().map(|(pid, steps)| (*pid, steps.sum())).collect();
    all.sort_by_key(|&(pid, count)| (std::cmp::Reverse(count), pid));
    let holder =
        |(pid, count): &(i32, u64)| json!({"pid": pid, "task": labels.task(*pid), "survivors": count});
    all.iter().take(HOLDERS).map(holder).collect()
}

/// Where most of what stays was allocated.
fn stacks(row: &Row<'_>, labels: &Labels<'_, '_>) -> Value {
    let stack = |stack: &RowStack| {
        let frames: Vec<String> = stack.frames.iter().map(|&address| labels.symbol(address)).collect();
        json!({"survivors": stack.live, "bytes": stack.bytes_live, "frames": frames})
    };
    row.stacks.iter().map(stack).collect()
}

impl LeakView<'_, '_, '_> {
    pub(super) fn json(&self) -> Value {
        let families = self.families();
        let number_of =
            |row: &Row<'_>| families.iter().position(|f| f.rows.iter().any(|r| std::ptr::eq(*r, row)));
        let labels = Labels::new(self.context.session);
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
                "survivors_by_birth": r.course.survivors.all(),
                "unseen_age_p99": r.course.unseen_ages.quantile(990),
                "began_step": e.began,
                "batches": e.batches,
                "family": number_of(r),
                "holders": holders(r, &labels),
                "stacks": stacks(r, &labels),
            })
        };
        json!({
            "window": self.length,
            "families_total": families.len(),
            "families": families.iter().take(self.context.limit).map(|f| json!({
                "call_sites": f.rows.len(),
                "leader": f.rows.first().map(|r| &r.name),
                "old_bytes": f.bytes,
                "old_bytes_per_second": f.per_second,
            })).collect::<Vec<_>>(),
            "callers_total": self.rows.len(),
            "callers": self.rows.iter().take(self.context.limit).map(row).collect::<Vec<_>>(),
            "slab_pages": self.slab_pages,
            "page_callers_total": self.page_callers.len(),
            "page_callers": self.page_callers.iter().take(self.context.limit).map(row).collect::<Vec<_>>(),
            "pages_total": self.pages.len(),
            "pages": self.pages.iter().take(self.context.limit).map(row).collect::<Vec<_>>(),
        })
    }
}
