//! Findings in the order of their kinds, and totals: the rows of the first screen.
//!
//! The recording itself has losses, length, CPUs and kernel. Parts of the kernel are those whose code allocated most slab memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kmt_format::schema::Meaning;
use serde::Serialize;

use super::finding::Finding;
use super::growth::{self, PageGrowthRow};
use super::held::HeldRow;
use super::top::TopRow;
use super::top_pages::TopPagesRow;
use super::whole_time::WholeTimeGrowth;
use super::{Sources, facts};
use crate::render::head::is_minimum;
use crate::render::look::Look;
use crate::render::out::missing_in_input;
use crate::render::words::{count, counted, duration, escaped, share};
use crate::reports::balance::FreeMemory;
use crate::reports::common::basis::WholeTime;
use crate::reports::common::lost_before::{lost_before_first, more_before_first};
use crate::reports::common::record_again::RecordAgain;
use crate::reports::common::trust::no_counters;
use crate::reports::common::{Context, ReportContext, ring};
use crate::reports::leaks::{LeakRows, ReclaimableGrowth, reclaimable_growth};
use crate::reports::summary::SummaryRows;
use crate::sort_rows::SortRows;
use crate::trace::ages::events_at_zero;
use crate::trace::folded;
use crate::trace::session::Session;

/// Findings on the first screen.
const FINDINGS_MAX: usize = 10;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRows {
    /// Findings: growth, the fastest first, then possible growth, stalls, failures and waste; ten at most.
    pub findings: Vec<Finding>,
    /// The largest process when the OOM killer ended the wait of a ring; `null`: it did not, or resident memory is unknown.
    pub held: Option<HeldRow>,
    /// The recording: its losses, length and kernel.
    pub recording: Recording,
    /// Function, task and cache that allocated most slab memory; `null`: none was allocated, or that is unknown.
    pub allocated: Option<TopRow>,
    /// Those that hold most of what is still allocated; `null`: nothing, or that is unknown.
    pub still_allocated: Option<TopRow>,
    /// Function, task and use that allocated most pages; `null`: none was allocated, or that is unknown.
    pub allocated_pages: Option<TopPagesRow>,
    /// Those that hold most pages that are still allocated; `null`: none is, or that is unknown.
    pub still_allocated_pages: Option<TopPagesRow>,
    /// Growth of pages; `null`: no page was allocated or freed, or that is unknown.
    pub page_growth: Option<PageGrowthRow>,
    /// Free memory of the machine at the end, its change, and the accounts that took it; `null`: /proc/meminfo of the begin and of
    /// the end is not in the file, or a part of the recording is selected.
    pub free_memory: Option<FreeMemory>,
    /// `grows`: a finding is of growth; `none`: no memory grew that could be judged, or too little for a finding; `not_judged`: the
    /// recording is too short or lacks events. `verdict` says which.
    pub growth: &'static str,
    /// The verdict on growth, where no finding is of growth; `null`: one is.
    pub verdict: Option<String>,
    /// Where events were lost and growth is not judged: the cache that grew most by /proc/slabinfo, and the call site of which
    /// almost no object was freed, a sentence each, or one for both.
    pub perhaps: Vec<String>,
    /// Command of a recording that would not have lost events, where growth is not judged for that; `null`: it is judged, or the
    /// command is unknown.
    pub record_again: Option<String>,
    /// The longest time without losses, where there are some and lives are known; `null`: nothing was lost, or it is short.
    pub whole_time: Option<WholeTime>,
    /// Growth in that time, where growth of the whole recording is not judged; `null`: it is, or that time is too short.
    pub whole_time_growth: Option<WholeTimeGrowth>,
    /// Parts of the kernel that allocated most; `null`: allocations of kmalloc or of caches were not recorded, or no
    /// function has a name.
    pub parts: Option<Parts>,
    /// Totals, as `summary` has them.
    #[serde(flatten)]
    pub totals: SummaryRows,
    #[serde(skip)]
    pub shown: FindingsShown,
}

/// Facts that only the screen has.
#[derive(Debug)]
pub struct FindingsShown {
    /// Growth of what the kernel can reclaim, where no verdict has it.
    pub reclaimable: Option<ReclaimableGrowth>,
    /// True if slab allocations have stacks.
    pub has_stacks: bool,
    /// True if waits for memory were recorded.
    pub has_stalls: bool,
    /// True if the file has events.
    pub has_events: bool,
    /// True if the first events are of a boot, before its trace clock ran.
    pub begins_at_boot: bool,
    /// True if the verdict says that events were lost.
    pub says_losses: bool,
    /// Number of bytes of the recording's sentence that are about losses, at its begin.
    pub losses_len: usize,
    /// Bytes of live pages that are older than the selected time.
    pub page_bytes_older: u64,
    /// The recording that would have a verdict, where the verdict says that events were lost.
    pub again: Option<RecordAgain>,
}

/// Findings of a trace.
pub fn compute(context: &Context<'_, '_>, sources: Sources) -> FindingRows {
    let view = context.view(Look::default());
    let (first, last) = context.selection.span(context.session);
    let length = last.saturating_sub(first);
    // Their shares are of different wholes, so that kinds are not compared. Growth goes by its rate.
    let mut findings = growth::growth(&sources, length, &view);
    findings.extend(growth::unseen(&sources, length, &view));
    findings.sort_rows_by_key(|found| std::cmp::Reverse(found.bytes_per_second));
    let has_growth = !findings.is_empty();
    let growth = match sources.leaks.as_ref().map(LeakRows::judges) {
        _ if has_growth => "grows",
        Some(true) => "none",
        Some(false) | None => "not_judged",
    };
    let mut others: Vec<Finding> = growth::possible(&sources, length, &view).into_iter().collect();
    others.extend(facts::waits(&sources, length, &view));
    others.extend(facts::failures(&sources, &view));
    others.extend(facts::waste(&sources, &view));
    findings.truncate(FINDINGS_MAX.saturating_sub(others.len()));
    findings.extend(others);
    let [allocated, still_allocated] = sources.top;
    let [allocated_pages, still_allocated_pages] = sources.top_pages;
    let verdict = sources.verdict.filter(|_| !has_growth);
    // Accounts of the kernel have all of it, not old objects alone.
    let has_accounts = sources.free_memory.is_some();
    let reclaimable = sources.leaks.as_ref().and_then(reclaimable_growth).filter(|_| !has_accounts);
    let again = sources.shown.again.filter(|_| verdict.is_some());
    let (recording, losses) = recording(context.session, context.selection.is_active());
    FindingRows {
        findings,
        growth,
        held: sources.held,
        recording,
        allocated,
        still_allocated,
        allocated_pages,
        still_allocated_pages,
        page_growth: sources.page_growth,
        free_memory: sources.free_memory,
        shown: FindingsShown {
            reclaimable: reclaimable.cloned(),
            says_losses: sources.shown.says_losses && verdict.is_some(),
            losses_len: losses,
            again: again.clone(),
            ..sources.shown
        },
        perhaps: if verdict.is_some() { sources.perhaps } else { Vec::new() },
        record_again: again.as_ref().and_then(RecordAgain::shown),
        verdict,
        whole_time: sources.whole_time,
        whole_time_growth: sources.whole_time_growth,
        parts: sources.parts,
        totals: sources.summary,
    }
}

/// The recording: losses, length, kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recording {
    /// What ended the wait of a ring buffer, when, and which processes were killed; `null`: the recording did not wait.
    pub stopped: Option<String>,
    /// Two sentences, one on the window of a ring buffer, and one on a recording that begins before the trace clock ran.
    pub sentence: String,
    /// Length, in the clock's unit.
    pub length: u64,
    /// Release of the kernel; `null`: not recorded.
    pub kernel_release: Option<String>,
}

/// The recording of a trace, and the number of bytes of its sentence that are about losses, at its begin.
fn recording(session: &Session<'_>, is_part_selected: bool) -> (Recording, usize) {
    let first = session.losses.window_begin().or_else(|| session.first_time());
    let length = first.zip(session.last_time()).map_or(0, |(a, b)| b.saturating_sub(a));
    let release = session.trace.metadata().text("kernel.release").map(|release| escaped(release.as_bytes()));
    let kernel = release.as_deref().map_or("kernel version unknown".to_owned(), |r| format!("Linux {r}"));
    let window = ring::window(session).map_or(String::new(), |window| format!(" {window}"));
    let of = if is_part_selected { "The whole file: " } else { "" };
    let losses = format!("{of}{} ", losses(session));
    let sentence = format!(
        "{losses}{} in {} from {}, {kernel}.{window}{}",
        events(session),
        duration(length, session.unit()),
        counted(session.losses.cpus.len() as u64, "CPU", "CPUs"),
        of_boot(session),
    );
    let recording = Recording { stopped: ring::stopped(session), sentence, length, kernel_release: release };
    (recording, losses.len())
}

impl Recording {
    /// The sentence, or that without losses, its first bytes.
    pub fn shown(&self, losses: Option<usize>) -> &str {
        self.sentence.get(losses.unwrap_or(0)..).unwrap_or_default()
    }
}

/// The sentence on a recording that begins before the trace clock ran; empty: it does not.
fn of_boot(session: &Session<'_>) -> String {
    if !session.begins_before_clock() {
        return String::new();
    }
    let events = match events_at_zero(session.trace.metadata()) {
        0 => String::new(),
        events => format!(" ({} of time 0)", counted(events, "event", "events")),
    };
    format!(" It begins at boot, before the clock ran{events}.")
}

/// A stack is an event of its own.
fn events(session: &Session<'_>) -> String {
    let has_stacks =
        session.trace.schema().classes().any(|(_, class)| class.meaning == Meaning::KERNEL_STACK);
    let (one, several) =
        if has_stacks { ("event or stack", "events and stacks") } else { ("event", "events") };
    counted(folded::all_events(session.trace), one, several)
}

fn losses(session: &Session<'_>) -> String {
    let losses = &session.losses;
    let events = folded::all_events(session.trace);
    let before = lost_before_first(losses);
    match (losses.any(), losses.has_all_stats(), losses.lost_since_first()) {
        (false, true, _) => match before {
            None => "Nothing was lost.".to_owned(),
            Some(before) => format!("Nothing was lost since the first event; {before}."),
        },
        (false, false, _) if losses.by_perf && before.is_none() => "perf marked no lost events.".to_owned(),
        (false, false, _) => {
            let since = before.map_or(String::new(), |before| format!(" since the first event ({before})"));
            format!("No loss is marked{since}, but {}: dropped events would not show.", no_counters(session))
        }
        _ if session.trace.damage_count() > 0 && losses.lost_since_first() == 0 => {
            "The file is cut or damaged.".to_owned()
        }
        (true, _, 0) if !losses.has_gaps() => "The recording ended unexpectedly.".to_owned(),
        (true, _, 0) => "Events were lost, not counted.".to_owned(),
        (true, _, _) if losses.missing_in_input > 0 => missing_in_input(losses, events),
        (true, _, lost) => {
            let least = if is_minimum(losses) { "At least " } else { "" };
            let were = if lost == 1 { "event was" } else { "events were" };
            let all = lost.saturating_add(events);
            let more = more_before_first(losses);
            format!("{least}{} {were} lost, {} of all.{more}", count(lost), share(lost, all))
        }
    }
}

/// Parts on the first screen.
const PARTS: usize = 3;

/// Slab memory by part of the kernel, the largest first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Parts {
    /// True if the bytes are those still allocated; false: lives are not recorded, and they are all that was allocated.
    pub is_live: bool,
    /// Bytes of all parts, and those that are unknown.
    pub bytes_total: u64,
    /// Bytes of call sites whose part is unknown.
    pub bytes_unknown: u64,
    /// Three at most.
    pub largest: Vec<Part>,
}

/// One part.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    /// Directory of the part in the kernel's source; `~` before it: inferred from names of functions.
    pub subsystem: String,
    /// Bytes of the part.
    pub bytes: u64,
}

/// The parts; `None`: allocations of kmalloc or of caches were not recorded, or no function has a name.
pub fn parts(context: &ReportContext<'_, '_>, summary: &SummaryRows) -> Option<Parts> {
    let slab = summary.slab.as_ref()?;
    let both = [&slab.kmalloc.totals, &slab.cache.totals];
    if both.iter().any(|totals| totals.bytes_alloc.is_none()) {
        return None;
    }
    let is_live = both.iter().all(|totals| totals.bytes_live.is_some());
    let (analysis, source) = (context.analysis, context.session.source());
    let mut call_sites: BTreeMap<u64, u64> = BTreeMap::new();
    for (site, parts) in analysis.interner.sites.items().iter().zip(&analysis.balance.sites) {
        let of = |totals: &crate::ledger::totals::Totals| {
            if is_live { totals.bytes_live } else { totals.bytes_alloc }
        };
        let bytes = parts.iter().map(|(_, totals)| of(totals)).fold(0, u64::saturating_add);
        let sum = call_sites.entry(site.call_site).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let bytes_total = call_sites.values().copied().fold(0, u64::saturating_add);
    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
    for (address, bytes) in call_sites {
        if let Some(directory) = source.directory(address) {
            let sum = parts.entry(directory.marked(directory.subsystem())).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    let known = parts.values().copied().fold(0, u64::saturating_add);
    let mut largest: Vec<Part> = parts
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(subsystem, bytes)| Part { subsystem, bytes })
        .collect();
    largest.sort_rows_by_key(|part| Reverse(part.bytes));
    largest.truncate(PARTS);
    (!largest.is_empty()).then_some(Parts {
        is_live,
        bytes_total,
        bytes_unknown: bytes_total.saturating_sub(known),
        largest,
    })
}
