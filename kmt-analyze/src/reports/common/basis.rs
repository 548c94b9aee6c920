//! Events that the numbers of a report need: which were recorded, and the refusal if they were not.
//!
//! Where events were lost, the longest part of the recording without a loss can still be judged. It is found here, as a `--time`
//! to use.

use kmt_format::kernel::ClockUnit;
use kmt_format::schema::{EventClass, Meaning};
use serde::Serialize;

use super::context::Context;
use crate::collect::AreaKind;
use crate::render::look::Look;
use crate::render::words::counted;
use crate::stream::Api;
use crate::trace::session::Session;
use crate::trace::time_range::events_between;

/// Events that a report needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// None: the report is valid for any file.
    Nothing,
    /// Allocations of slab objects.
    SlabAllocs,
    /// Allocations by size.
    Kmallocs,
    /// Allocations of slab objects, and the frees of each interface that allocates.
    SlabLives,
    /// Allocations by size and their frees.
    KmallocLives,
    /// Allocations or frees of pages.
    Pages,
    /// Allocations of slab objects, or of pages.
    Allocs,
    /// Slab objects and their frees, or pages and theirs.
    Lives,
    /// Reclaim, compaction, or function graphs.
    Stalls,
    /// Areas of that allocator.
    Areas(AreaKind),
}

/// Recorded events of the ledger. Events that do not occur count as not recorded unless the file declares them: their
/// numbers are unknown, not 0.
#[derive(Debug, Clone, Copy)]
pub struct Basis {
    allocs: [bool; 2],
    frees: [bool; 2],
    /// True if allocations of pages were recorded.
    pub page_allocs: bool,
    /// True if frees of pages were recorded.
    pub page_frees: bool,
    stalls: bool,
    /// Allocations and frees of areas, by allocator.
    areas: [[bool; 2]; 2],
    /// Interfaces of which only some events were recorded.
    sampled: [bool; 2],
    sampled_pages: bool,
}

/// Reason to refuse a report whose results are wrong if more than `percent_max` of the events of its time were lost.
pub fn too_lossy(context: &Context<'_, '_>, percent_max: f64, why: &str) -> Option<String> {
    let (share, lost) = lost(context)?;
    if share.is_some_and(|share| 100.0 * share <= percent_max) {
        return None;
    }
    let whole = whole_time(context).map(|whole| format!("; nothing is missing within {}", whole.option()));
    Some(format!("{lost}, and {why}{}", whole.unwrap_or_default()))
}

/// Lost events of the selected time: their share, if it is known, and the same in words; `None`: nothing of the file was lost.
pub fn lost(context: &Context<'_, '_>) -> Option<(Option<f64>, String)> {
    let Context { session, selection, .. } = context;
    if !session.losses.any() {
        return None;
    }
    let window = selection.bounds(session);
    let events = events_between(session.trace, window, |_| true);
    let (all, some) = match selection.has_window() {
        true => ("the events of this time", "the events of this time"),
        false => ("all events", "events"),
    };
    let share = session.losses.lost_share(events, window);
    let least = session.losses.lost_since_first();
    let words = match share {
        Some(share) => format!("{:.1} % of {all} were lost", 100.0 * share),
        None if least > 0 && !selection.has_window() => {
            format!("at least {} were lost", counted(least, "event", "events"))
        }
        None => format!("an unknown number of {some} was lost"),
    };
    Some((share, words))
}

/// Names of the events, by interface: allocations, frees.
const SLAB: [(&str, &str); 2] =
    [("kmem:kmalloc", "kmem:kfree"), ("kmem:kmem_cache_alloc", "kmem:kmem_cache_free")];

/// Events of allocations and frees of areas, by allocator.
const AREAS: [(&str, [&str; 2]); 2] = [
    ("vmalloc", ["alloc_vmap_area", "free_vmap_area_noflush"]),
    ("percpu", ["percpu_alloc_percpu", "percpu_free_percpu"]),
];

impl Basis {
    /// Recorded events of a trace; `recorded`: whether a class was recorded that a function selects.
    pub fn of(
        session: &Session<'_>,
        recorded: impl Fn(&dyn Fn(&EventClass) -> bool) -> Option<bool>,
    ) -> Self {
        let sampled = session.sampled();
        let has = |meaning| recorded(&|class| class.meaning == meaning) == Some(true);
        let stalls = recorded(&|class| {
            class.name.starts_with("mm_vmscan_")
                || class.name.starts_with("mm_shrink_slab_")
                || class.name.starts_with("mm_compaction_")
                || class.name.starts_with("funcgraph_")
        });
        Self {
            allocs: [has(Meaning::KMALLOC), has(Meaning::CACHE_ALLOC)],
            frees: [has(Meaning::KFREE), has(Meaning::CACHE_FREE)],
            page_allocs: has(Meaning::PAGE_ALLOC),
            page_frees: has(Meaning::PAGE_FREE),
            stalls: stalls == Some(true),
            areas: AREAS.map(|(system, names)| {
                names.map(|name| {
                    let is_it = |class: &EventClass| class.system == system && class.name == name;
                    recorded(&is_it) == Some(true)
                })
            }),
            sampled: SLAB.map(|(alloc, free)| sampled.iter().any(|s| s.0 == alloc || s.0 == free)),
            sampled_pages: sampled.iter().any(|s| s.0.starts_with("kmem:mm_page_")),
        }
    }

    /// True if allocations were recorded: of one interface, or of any.
    pub fn allocs(&self, api: Option<Api>) -> bool {
        match api {
            Some(api) => self.allocs[api as usize],
            None => self.allocs.contains(&true),
        }
    }

    /// True if frees were recorded: of one interface, or of any.
    pub fn frees(&self, api: Option<Api>) -> bool {
        match api {
            Some(api) => self.frees[api as usize],
            None => self.frees.contains(&true),
        }
    }

    /// True if the end of every object is recorded: of one interface, or of all that were recorded.
    pub fn ends(&self, api: Option<Api>) -> bool {
        match api {
            Some(api) => self.allocs(Some(api)) && self.frees(Some(api)) && !self.sampled[api as usize],
            None => {
                self.allocs(None)
                    && Api::ALL.iter().all(|&api| !self.allocs(Some(api)) || self.ends(Some(api)))
            }
        }
    }

    /// True if allocations, and frees, of areas were recorded.
    pub fn areas(&self, kind: AreaKind) -> [bool; 2] {
        self.areas[kind as usize]
    }

    /// True if the frees of all traced pages are recorded.
    pub fn page_ends(&self) -> bool {
        self.page_allocs && self.page_frees && !self.sampled_pages
    }

    /// Line that names the missing events of the ledger, if only some of slab or of pages were recorded.
    pub fn missing_line(&self) -> Option<String> {
        let slab = Api::ALL.into_iter().flat_map(|api| {
            let (alloc, free) = SLAB[api as usize];
            [(alloc, self.allocs[api as usize]), (free, self.frees[api as usize])]
        });
        let has_slab = self.allocs(None) || self.frees(None);
        let has_pages = self.page_allocs || self.page_frees;
        let pages = [("kmem:mm_page_alloc", self.page_allocs), ("kmem:mm_page_free", self.page_frees)];
        let missing = slab.filter(|_| has_slab).chain(pages.into_iter().filter(|_| has_pages));
        let missing: Vec<&str> = missing.filter(|(_, has)| !has).map(|(name, _)| name).collect();
        (!missing.is_empty())
            .then(|| format!("the file has no {}: what they would tell is in no total", missing.join(", ")))
    }

    /// Sentence that names the missing events; `None`: none is missing.
    pub fn lacks(&self, input: Input) -> Option<String> {
        let api = |api: Api| SLAB[api as usize];
        let any = |names: &[&str]| format!("it needs {}, which were not recorded", names.join(" or "));
        let (kmalloc, cache) = (api(Api::Kmalloc), api(Api::Cache));
        match input {
            Input::Nothing => None,
            Input::SlabAllocs if self.allocs(None) => None,
            Input::SlabAllocs => Some(any(&[kmalloc.0, cache.0])),
            Input::Kmallocs if self.allocs(Some(Api::Kmalloc)) => None,
            Input::Kmallocs => Some(any(&[kmalloc.0])),
            Input::SlabLives if !self.allocs(None) => Some(any(&[kmalloc.0, cache.0])),
            Input::SlabLives | Input::KmallocLives if self.sampled.contains(&true) => {
                Some("events were sampled, so objects cannot be followed: record with -c 1".to_owned())
            }
            Input::SlabLives => {
                let missing: Vec<&str> = Api::ALL
                    .into_iter()
                    .filter(|&api| self.allocs(Some(api)) && !self.frees(Some(api)))
                    .map(|a| api(a).1)
                    .collect();
                let text = format!(
                    "it needs frees, and the file has no {}: every object would seem live",
                    missing.join(" or ")
                );
                (!missing.is_empty()).then_some(text)
            }
            Input::KmallocLives => self.lacks(Input::Kmallocs).or_else(|| {
                let text = format!(
                    "it needs frees, and the file has no {}: every object would seem live",
                    kmalloc.1
                );
                (!self.frees(Some(Api::Kmalloc))).then_some(text)
            }),
            Input::Pages if self.page_allocs || self.page_frees => None,
            Input::Pages => Some(any(&["kmem:mm_page_alloc", "kmem:mm_page_free"])),
            Input::Allocs if self.allocs(None) || self.page_allocs => None,
            Input::Allocs => Some(any(&[kmalloc.0, cache.0, "kmem:mm_page_alloc"])),
            Input::Lives if self.page_ends() && !self.allocs(None) => None,
            Input::Lives => self.lacks(Input::SlabLives),
            Input::Areas(kind) if self.areas(kind)[0] => None,
            Input::Areas(kind) => {
                let (system, [alloc, _]) = AREAS[kind as usize];
                Some(format!("it needs {system}:{alloc}, which was not recorded"))
            }
            Input::Stalls if self.stalls => None,
            Input::Stalls => Some(
                "no events of reclaim (vmscan:), compaction (compaction:) or function graphs were recorded: record with -p reclaim"
                    .to_owned(),
            ),
        }
    }
}

/// Least time in which memory that is still allocated says something about growth: timers, writeback and RCU alone keep
/// objects for this long.
pub const GROWTH_WINDOW_NS_MIN: u64 = 1_000_000_000;

/// Parts of the selected time, as 1/N, that are too short to be proposed.
const SHORT: u64 = 10;
/// Times are rounded to a millisecond, into the part, where it is longer than this many.
const MILLISECONDS_MIN: u64 = 10;
const MILLISECOND: u64 = 1_000_000;

/// A part of a recording without losses, as the command line takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WholeTime {
    /// Begin of the part, as `--time` takes it.
    from: String,
    /// End of the part, as `--time` takes it.
    to: String,
    /// Length of the part, in the clock's unit.
    length: u64,
}

impl WholeTime {
    /// The option that selects it.
    pub fn option(&self) -> String {
        format!("--time {}", self.range())
    }

    /// True if it is long enough for a verdict on growth.
    pub fn can_judge_growth(&self, unit: ClockUnit) -> bool {
        unit != ClockUnit::Nanoseconds || self.length >= GROWTH_WINDOW_NS_MIN
    }

    /// Value of `--time` that selects it.
    pub fn range(&self) -> String {
        format!("{}..{}", self.from, self.to)
    }
}

/// The longest part of the selected time in which no events are missing. `None`: it is short, or there are no losses.
pub fn whole_time(context: &Context<'_, '_>) -> Option<WholeTime> {
    let Context { session, selection, .. } = context;
    let (first, last) = selection.span(session);
    if !session.losses.any_between((first, last)) {
        return None;
    }
    let (from, to) = session.losses.longest_whole((first, last))?;
    if (to - from).saturating_mul(SHORT) < last.saturating_sub(first) {
        return None;
    }
    let view = context.view(Look::default());
    let (from, to) = rounded((from.saturating_sub(view.start), to.saturating_sub(view.start)));
    let option = |since: u64| view.time_option(view.start.saturating_add(since));
    Some(WholeTime { from: option(from)?, to: option(to)?, length: to - from })
}

/// Times from the start, without digits that say nothing.
fn rounded((from, to): (u64, u64)) -> (u64, u64) {
    if to.saturating_sub(from) < MILLISECONDS_MIN * MILLISECOND {
        return (from, to);
    }
    (from.next_multiple_of(MILLISECOND), to - to % MILLISECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frees_are_missed_where_something_is_allocated() {
        let none = Basis {
            allocs: [false; 2],
            frees: [false; 2],
            page_allocs: false,
            page_frees: false,
            stalls: false,
            areas: [[false; 2]; 2],
            sampled: [false; 2],
            sampled_pages: false,
        };
        let kmalloc_alone = Basis { allocs: [true, false], ..none };
        assert!(kmalloc_alone.lacks(Input::SlabLives).unwrap().contains("the file has no kmem:kfree:"));
        assert!(kmalloc_alone.lacks(Input::SlabAllocs).is_none());
        let kmalloc = Basis { frees: [true, false], ..kmalloc_alone };
        assert!(kmalloc.lacks(Input::SlabLives).is_none(), "caches were not recorded at all");
        assert_eq!((kmalloc.ends(None), kmalloc.ends(Some(Api::Cache))), (true, false));
        let both = Basis { allocs: [true, true], ..kmalloc };
        assert!(both.lacks(Input::SlabLives).unwrap().contains("kmem:kmem_cache_free"));
        assert!(!both.ends(None));
        let pages = Basis { page_allocs: true, page_frees: true, ..none };
        assert!(pages.lacks(Input::Lives).is_none() && pages.lacks(Input::SlabLives).is_some());
        for input in [
            Input::SlabAllocs,
            Input::Kmallocs,
            Input::Pages,
            Input::Allocs,
            Input::Stalls,
            Input::Lives,
            Input::Areas(AreaKind::Percpu),
        ] {
            assert!(none.lacks(input).is_some(), "{input:?}");
        }
    }

    #[test]
    fn times_are_rounded_into_the_part() {
        assert_eq!(rounded((1_561_900_001, 2_943_000_999)), (1_562_000_000, 2_943_000_000));
        assert_eq!(rounded((1_000, 9_000_000)), (1_000, 9_000_000), "too short to be rounded");
    }
}
