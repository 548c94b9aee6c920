//! The answer of a table of sums: the whole, and the share of its first row.

use super::context::View;
use super::rows::SlabSums;
use super::sorting::SortKey;
use crate::render::screen::function_of;
use crate::render::words::{counted, share};

/// Names in the sentence.
#[derive(Debug, Clone, Copy)]
pub struct Nouns {
    /// A row: `call site`.
    pub one: &'static str,
    /// Several rows: `call sites`.
    pub several: &'static str,
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
    let of = |number: Option<u64>, sentence: &dyn Fn(u64) -> String, part: fn(&SlabSums) -> Option<u64>| {
        let Some(number) = number else { return format!("{who}.") };
        let most = first
            .and_then(|(name, sums)| Some((name, part(sums)?)))
            .filter(|(_, part)| *part > 0 && rows > 1);
        let most = most.map_or(String::new(), |(name, part)| {
            format!(", {} of it by {}", share(part, number), function_of(name))
        });
        format!("{}{most}.", sentence(number))
    };
    let bytes = |number: u64| view.bytes(number);
    match sort.unwrap_or(SortKey::Alloc) {
        SortKey::Waste | SortKey::Frag => of(
            all.bytes_wasted,
            &|wasted| {
                let alloc = all.bytes_alloc.unwrap_or(0);
                format!("{who} wasted {} of {} ({})", bytes(wasted), bytes(alloc), share(wasted, alloc))
            },
            |sums| sums.bytes_wasted,
        ),
        SortKey::Live => {
            of(all.bytes_live, &|live| format!("{} of {who} are still allocated", bytes(live)), |sums| {
                sums.bytes_live
            })
        }
        SortKey::LiveCount => of(
            all.live,
            &|live| format!("{} of {who} are still allocated", counted(live, "object", "objects")),
            |sums| sums.live,
        ),
        SortKey::Freed => {
            of(all.bytes_freed, &|freed| format!("{} of {who} were freed", bytes(freed)), |sums| {
                sums.bytes_freed
            })
        }
        SortKey::Count => of(
            all.alloc_events,
            &|allocs| format!("{who} allocated {}", counted(allocs, "object", "objects")),
            |sums| sums.alloc_events,
        ),
        SortKey::Req => {
            of(all.bytes_req, &|req| format!("{who} requested {}", bytes(req)), |sums| sums.bytes_req)
        }
        SortKey::Alloc | SortKey::Name => {
            of(all.bytes_alloc, &|alloc| format!("{who} allocated {}", bytes(alloc)), |sums| sums.bytes_alloc)
        }
    }
}
