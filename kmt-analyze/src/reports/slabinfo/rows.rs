//! Live objects of each cache whenever /proc/slabinfo was read.

use serde::Serialize;

use crate::collect::moments::MomentSums;
use crate::pass::Analysis;
use crate::pass::caches::{CacheKey, name_of};
use crate::pass::coverage::course::{At, Course, courses};
use crate::reports::common::Context;
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::common::rows::text;
use crate::reports::common::shown::shown;
use crate::trace::snapshots::{Snapshot, snapshots};

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoRows {
    /// Live objects by events and by the kernel.
    pub slabinfo: SlabInfoTable,
}

/// Live objects by events and by the kernel.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoTable {
    /// When each snapshot of /proc/slabinfo had been read, in the clock's unit; the last one is behind the trace.
    pub times: Vec<u64>,
    /// How long reading took, in the clock's unit.
    pub read_for: Vec<u64>,
    /// Caches in all.
    pub caches_total: usize,
    /// Caches of which more objects seem live than slabinfo calls active.
    pub caches_contradicted: usize,
    /// Caches.
    pub caches: Vec<SlabInfoCache>,
}

/// A cache at each snapshot.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoCache {
    /// Its name.
    pub cache: String,
    /// Objects born in the trace and not known to be over.
    pub live: Vec<u64>,
    /// Objects that can live: at least, at most. Where events were lost: from 0 to active.
    pub live_range: Vec<(u64, Option<u64>)>,
    /// Active objects by slabinfo, older ones included; `null`: it does not name the cache.
    pub active: Vec<Option<u64>>,
    /// More objects seem live at some time than slabinfo calls active.
    pub is_contradicted: bool,
    /// Name for people, on one line.
    #[serde(skip)]
    pub name: String,
    /// Most objects that seem live and are not, and when; `None`: there are none.
    #[serde(skip)]
    pub most_over: Option<(u64, u64)>,
}

/// Snapshots that the file holds.
pub fn read(context: &Context<'_, '_>) -> Vec<Snapshot> {
    let session = context.session;
    snapshots(session.trace.metadata(), session.last_time().unwrap_or(0))
}

/// Rows of a trace; caches of which more seems live than can be come first.
pub fn of(context: &Context<'_, '_>, analysis: &Analysis, moments: &MomentSums) -> SlabInfoRows {
    let snapshots = read(context);
    let bounds = LiveBounds::of(context, analysis).bounds;
    let mut all: Vec<(String, Course)> = courses(analysis, &bounds, moments, &snapshots)
        .into_iter()
        .map(|course| (name_of(&course.key, analysis), course))
        .collect();
    let worst = |course: &Course| course.at.iter().map(over).max();
    let last = |course: &Course| course.at.last().map(|at| at.live);
    all.sort_by(|a, b| (worst(&b.1), last(&b.1)).cmp(&(worst(&a.1), last(&a.1))).then_with(|| a.0.cmp(&b.0)));
    let shown = shown(Some(context.limit), all.len());
    let table = SlabInfoTable {
        times: snapshots.iter().map(|s| s.to).collect(),
        read_for: snapshots.iter().map(|s| s.to - s.from).collect(),
        caches_total: all.len(),
        caches_contradicted: all.iter().filter(|(_, course)| course.is_contradicted()).count(),
        caches: all.iter().take(shown).map(|(name, course)| cache(name, course, &snapshots)).collect(),
    };
    SlabInfoRows { slabinfo: table }
}

/// How many more seem live than can be.
fn over(at: &At) -> u64 {
    at.most.map_or(0, |most| at.live.saturating_sub(most))
}

fn cache(name: &str, course: &Course, snapshots: &[Snapshot]) -> SlabInfoCache {
    let most_over = course.at.iter().zip(snapshots).map(|(at, snapshot)| (over(at), snapshot.to));
    SlabInfoCache {
        cache: match &course.key {
            CacheKey::Named(exact) => text(exact),
            _ => name.to_owned(),
        },
        live: course.at.iter().map(|at| at.live).collect(),
        live_range: course.at.iter().map(|at| (at.least, at.most)).collect(),
        active: course.at.iter().map(|at| at.active).collect(),
        is_contradicted: course.is_contradicted(),
        name: name.to_owned(),
        most_over: most_over.max_by_key(|(over, _)| *over).filter(|(over, _)| *over > 0),
    }
}
