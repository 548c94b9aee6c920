//! The answer of a table of sums: the whole, and the share of its first row. A part of a report may have no answer.
//!
//! Reports refuse a part with a sentence in place of rows ([`MaybeRefused`]); screens and JSON print it.

use serde::Serialize;

use super::context::View;
use super::rows::SlabSums;
use super::sorting::SortKey;
use crate::render::words::{counted, share};
use crate::trace::names::{function_of, without_size};

/// Names in the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nouns {
    /// A row: `call site`.
    pub one: &'static str,
    /// Several rows: `call sites`.
    pub several: &'static str,
}

/// Rows that are call sites.
pub const CALL_SITES: Nouns = Nouns { one: "call site", several: "call sites" };

impl Nouns {
    /// A row of that name: `at kfree+0x1c` for a call site, since its function may have others, or `by kfree`.
    fn whose(self, name: &str) -> String {
        if self == CALL_SITES {
            format!("at {}", without_size(name))
        } else {
            format!("by {}", function_of(name))
        }
    }
}

/// A later sentence of an answer: `Also: slab memory grew …`.
pub fn also(sentence: &str) -> String {
    behind_colon("Also", sentence)
}

/// A sentence behind a colon: words of the screen begin small there, names keep their case.
pub fn behind_colon(before: &str, sentence: &str) -> String {
    let words = ["Slab memory", "Pages", "At the kill", "After the kill"];
    match words.iter().any(|begin| sentence.starts_with(begin)) {
        true => format!("{before}: {}{}", sentence[..1].to_lowercase(), &sentence[1..]),
        false => format!("{before}: {sentence}"),
    }
}

/// One sentence: what all rows have of the number that sorts them, and who has most. Unknown numbers have no sentence of
/// their own: the table says `?`.
pub fn lead(
    sort: Option<SortKey>,
    rows: u64,
    nouns: Nouns,
    all: &SlabSums,
    first: Option<(&str, &SlabSums)>,
    view: &View,
) -> String {
    let who = counted(rows, nouns.one, nouns.several);
    let key = sort.unwrap_or(SortKey::Alloc);
    let mut is_of_key = true;
    let part: fn(&SlabSums) -> Option<u64> = match key {
        SortKey::Waste | SortKey::Frag => |sums| sums.bytes_wasted,
        SortKey::Live => |sums| sums.bytes_live,
        SortKey::LiveCount => |sums| sums.live,
        SortKey::Freed => |sums| sums.bytes_freed,
        SortKey::Count => |sums| sums.alloc_events,
        SortKey::Req => |sums| sums.bytes_req,
        _ => {
            is_of_key = key == SortKey::Alloc;
            |sums| sums.bytes_alloc
        }
    };
    let Some(number) = part(all) else { return format!("{who}.") };
    let least = |uncertain: Option<u64>| uncertain.map(|uncertain| number.saturating_sub(uncertain));
    let (bytes, objects) = (view.bytes(number), counted(number, "object", "objects"));
    let sentence = match key {
        SortKey::Waste | SortKey::Frag => {
            let alloc = all.bytes_alloc.unwrap_or(0);
            format!("{who} wasted {bytes} of {} ({})", view.bytes(alloc), share(number, alloc))
        }
        SortKey::Live => live(&bytes, least(all.bytes_live_uncertain).map(|n| view.bytes(n)), &who, view),
        SortKey::LiveCount => live(&objects, None, &who, view),
        SortKey::Freed => format!("{bytes} of {who} were freed"),
        SortKey::Count => format!("{who} allocated {objects}"),
        SortKey::Req => format!("{who} requested {bytes}"),
        _ => {
            format!("{who} allocated {bytes}")
        }
    };
    // Sorted by something else, the first row has not most of it.
    let most = first.filter(|_| is_of_key).and_then(|(name, sums)| Some((name, part(sums)?)));
    let most = most.filter(|(_, part)| *part > 0 && rows > 1).map_or(String::new(), |(name, part)| {
        format!(", {} of it {}", share(part, number), nouns.whose(name))
    });
    format!("{sentence}{most}.")
}

/// Live memory in words. Where events were lost, it is a range, of the allocations that were recorded.
fn live(most: &str, least: Option<String>, who: &str, view: &View) -> String {
    match least.filter(|_| view.is_lossy) {
        None if view.is_lossy => {
            format!("At most {most} of {who} are still allocated (recorded allocations only)")
        }
        None => format!("{most} of {who} are still allocated"),
        Some(least) => {
            format!(
                "At least {least} and at most {most} of {who} are still allocated (recorded allocations only)"
            )
        }
    }
}

/// The first of sorted rows, and those with the same amount: none of them is the largest.
pub fn leaders<T>(sorted: &[T], amount: impl Fn(&T) -> u64) -> &[T] {
    let first = sorted.first().map(&amount);
    &sorted[..sorted.partition_point(|row| Some(amount(row)) == first)]
}

/// An answer, or the reason why there is none.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum MaybeRefused<T> {
    /// There is none.
    Refused {
        /// The reason.
        refused: String,
    },
    /// The answer.
    Found(Box<T>),
}

impl<T> MaybeRefused<T> {
    /// The answer; `None`: there is none.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Refused { .. } => None,
        }
    }
}
