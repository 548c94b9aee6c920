//! Lines above every report: selection, and limits of the numbers.
//!
//! Limits are losses, damage, changes of the recording by other processes, an unexpected end, and CPUs whose events end before
//! those of others. Each has a sentence.

use kmt_format::kernel::ClockUnit;
use kmt_format::{Error, ErrorKind};
use serde::Serialize;

use super::lost_before::{lost_before_first, more_before_first};
use super::rows::Address;
use crate::ledger::totals::Totals;
use crate::pass::caches::by_cache;
use crate::pass::coverage::{Coverage, FreeEvents};
use crate::pass::selection::Selection;
use crate::pass::sum_of;
use crate::render::out;
use crate::render::words::{count, counted, duration, escaped, shown, size, time};
use crate::reports::common::ReportContext;
use crate::sort_rows::SortRows;
use crate::stream::Api;
use crate::trace::losses::CpuLosses;
use crate::trace::names::CacheKey;
use crate::trace::session::Session;
use crate::trace::sliced::Sliced;
use crate::trace::time_range::events_between;

/// How far the numbers of a report can be trusted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustRow {
    /// Sentences; the first one is about losses.
    pub notes: Vec<String>,
    /// Address of page frame 0 in the direct map; `null`: not found.
    pub direct_map_base: Option<Address>,
    /// Number of votes for that address: pairs of a page allocation and the slab allocation that follows it; `null`: the
    /// recorder read the address from the kernel.
    pub direct_map_votes: Option<u64>,
    /// Number of all votes.
    pub direct_map_votes_all: Option<u64>,
    /// Page size of the target, in bytes.
    pub page_size: u64,
    /// True if the file has no valid page size, and 4,096 bytes are assumed.
    pub page_size_assumed: bool,
    /// Number of damaged places of the file, as on the screen and on standard error.
    pub damaged_places: u64,
    /// Number of those that are event chunks which were found and could not be read.
    pub damaged_chunks: usize,
    /// Names of the limits that were exceeded: what is beyond them is counted as unknown.
    pub limits_exceeded: Vec<&'static str>,
}

impl TrustRow {
    /// Of the results of a pass, and the totals of all its objects.
    pub fn of(context: &ReportContext<'_, '_>, all: &Totals) -> Self {
        let result = context.analysis;
        let direct_map = result.direct_map;
        Self {
            notes: trust_lines(context, all),
            direct_map_base: direct_map.map(|map| Address(map.base_address)),
            direct_map_votes: direct_map.filter(|map| !map.is_recorded()).map(|map| map.votes),
            direct_map_votes_all: direct_map.filter(|map| !map.is_recorded()).map(|map| map.votes_all),
            page_size: result.page_size.0,
            page_size_assumed: result.page_size.1,
            damaged_places: result.faults.damaged_places(context.session.trace),
            damaged_chunks: result.faults.damages.len(),
            limits_exceeded: result.faults.limit_names(),
        }
    }
}

/// A fact about how far the numbers can be trusted.
struct TrustFact {
    sentence: String,
    /// It reduces trust: shown next to every report.
    is_warning: bool,
    /// Standard error has it among the faults of the file.
    is_fault: bool,
}

impl TrustFact {
    fn warning(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), is_warning: true, is_fault: false }
    }

    fn fault(sentence: impl Into<String>) -> Self {
        Self { is_fault: true, ..Self::warning(sentence) }
    }

    fn normal(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), is_warning: false, is_fault: false }
    }
}

/// Facts about how far the numbers can be trusted, a sentence each; the first one is about losses.
fn trust_lines(context: &ReportContext<'_, '_>, all: &Totals) -> Vec<String> {
    facts(context, all, escaped).into_iter().map(|fact| fact.sentence).collect()
}

/// Those facts that reduce trust, for screens; none where all is well.
pub fn warnings(context: &ReportContext<'_, '_>, all: &Totals) -> Vec<String> {
    warnings_behind(context, all, false)
}

/// What lost events do to figures.
const LOSS_EFFECT: &str = "Event counts are minimums; live figures are uncertain.";

/// [`warnings`] of a screen; `says_losses`: it says whether events were lost. The effect of losses on its figures is reported in any
/// case.
pub fn warnings_behind(context: &ReportContext<'_, '_>, all: &Totals, says_losses: bool) -> Vec<String> {
    // The first fact is about losses.
    let facts = facts(context, all, shown).into_iter().skip(usize::from(says_losses));
    let has_effect = says_losses && context.session.losses.any();
    // One line has all of the effect.
    let unknown = unknown_frees(all);
    let effect = has_effect.then(|| match &unknown {
        Some(unknown) => format!("{LOSS_EFFECT} {unknown}"),
        None => LOSS_EFFECT.to_owned(),
    });
    let facts = facts.filter(|fact| fact.is_warning).map(|fact| fact.sentence);
    let facts = facts.filter(|sentence| !has_effect || Some(sentence) != unknown.as_ref());
    effect.into_iter().chain(facts).collect()
}

/// All facts; `text` escapes texts of the file, and may cut them.
fn facts(context: &ReportContext<'_, '_>, all: &Totals, text: fn(&[u8]) -> String) -> Vec<TrustFact> {
    let (session, result) = (context.session, context.analysis);
    let mut facts = of_recording(session, context.selection, text);
    let damaged = result.faults.damaged_places(session.trace);
    if damaged > 0 {
        facts.push(TrustFact::fault(format!(
            "The file is incomplete ({}): all totals are minimums.",
            counted(damaged, "damaged place", "damaged places")
        )));
    }
    facts.extend(result.faults.limits.iter().filter_map(exceeded));
    facts.extend(context.basis().missing_line().map(TrustFact::warning));
    facts.extend(unknown_frees(all).map(TrustFact::warning));
    facts.extend(coverage_line(context).map(TrustFact::warning));
    facts.push(placement(context));
    let (page_size, assumed) = result.page_size;
    if assumed {
        facts.push(TrustFact::warning(format!(
            "The page size is not recorded; {page_size} bytes are assumed."
        )));
    }
    if let Some(bound) = result.late_bound_assumed {
        facts.push(TrustFact::warning(format!(
            "The clock's rate is not recorded; {} ticks are taken as 1 ms.",
            count(bound)
        )));
    }
    let clock = session.trace.metadata().clock.as_ref();
    let clock = clock.filter(|c| !c.comparable && !c.name.is_empty());
    if let Some(clock) = clock.filter(|_| session.trace.streams().len() > 1) {
        facts.push(TrustFact::normal(format!(
            "The clock is `{}`: times of different CPUs may differ, and a free can sort before its allocation.",
            text(clock.name.as_bytes())
        )));
    }
    facts
}

/// The sentence on live objects that may be freed.
fn unknown_frees(all: &Totals) -> Option<String> {
    let number = Some(all.live_uncertain).filter(|_| all.bytes_live_uncertain > 0)?;
    let (objects, were) =
        (counted(number, "object", "objects"), if number == 1 { "it was" } else { "they were" });
    let bytes = size(all.bytes_live_uncertain);
    Some(format!("For {objects} ({bytes}) it is not known whether {were} freed."))
}

/// Facts about the recording, that need no pass.
fn of_recording(session: &Session<'_>, selection: &Selection, text: fn(&[u8]) -> String) -> Vec<TrustFact> {
    let mut facts = vec![losses(session, selection)];
    facts.extend(early_end_sentence(session).map(TrustFact::fault));
    facts.extend(changes_sentence(session).map(TrustFact::warning));
    facts.extend(filters(session, text).into_iter().map(TrustFact::warning));
    facts.extend(session.sampled().into_iter().map(|(event, samples, events)| {
        TrustFact::warning(format!(
            "{} was sampled: {} of about {} events. ~ marks estimates for all events (each sample stands for {:.1} on average); other numbers count samples only.",
            text(event.as_bytes()),
            count(samples),
            count(events),
            events as f64 / samples.max(1) as f64
        ))
    }));
    facts
}

/// Reports facts that reduce trust on standard error, beside data that has no place for them: the same as on screens and in
/// JSON. Faults of the file are reported there by every command.
pub fn report(context: &ReportContext<'_, '_>) {
    let all = sum_of(context.analysis, None);
    report_facts(context.session, facts(context, &all, shown));
}

/// Reports on standard error how far data that needs no pass can be trusted.
pub fn report_of_recording(session: &Session<'_>, selection: &Selection) {
    report_facts(session, of_recording(session, selection, shown));
}

fn report_facts(session: &Session<'_>, facts: Vec<TrustFact>) {
    let beside = facts.iter().filter(|fact| fact.is_warning && !fact.is_fault);
    beside.for_each(|fact| out::warn(session, &fact.sentence));
}

/// A limit that was exceeded.
fn exceeded(error: &Error) -> Option<TrustFact> {
    let ErrorKind::LimitExceeded { name, what, found, limit } = error.kind() else { return None };
    Some(TrustFact::fault(format!(
        "The limit `{name}` is exceeded: {what} is {}, and the limit is {}.",
        count(*found),
        count(*limit)
    )))
}

/// The direct map's base, by which objects are placed on their pages.
fn placement(context: &ReportContext<'_, '_>) -> TrustFact {
    let (session, result) = (context.session, context.analysis);
    match result.direct_map {
        Some(map) if map.is_recorded() => TrustFact::normal("Direct map base: read from the kernel."),
        Some(map) => TrustFact::normal(format!(
            "Direct map base: found from {} pairs of a page allocation and the slab allocation behind it, {:.0} % of which agree.",
            count(map.votes_all),
            map.share_percent()
        )),
        None if session.no_addresses().is_some() => TrustFact::warning(
            "Pointers are hashes of addresses: the places of objects in memory are unknown.",
        ),
        None => TrustFact::normal(
            "The direct map base is unknown: pages that were freed under live objects were not detected.",
        ),
    }
}

/// Caches named for frees without events.
const CACHES_NAMED: usize = 3;

/// Share of the frees without an event, where no loss explains it.
fn coverage_line(context: &ReportContext<'_, '_>) -> Option<String> {
    let (session, result) = (context.session, context.analysis);
    if session.losses.any() {
        return None;
    }
    let mut all = Coverage::default();
    let mut caches: Vec<(u64, String)> = Vec::new();
    let basis = context.basis();
    for row in by_cache(result) {
        let api = if matches!(row.key, CacheKey::Kmalloc(_)) { Api::Kmalloc } else { Api::Cache };
        let coverage = Coverage::of(&row.totals);
        if !basis.ends(Some(api)) {
            continue;
        }
        all.ends = all.ends.saturating_add(coverage.ends);
        all.implied_frees = all.implied_frees.saturating_add(coverage.implied_frees);
        if matches!(coverage.free_events(), FreeEvents::Partly | FreeEvents::Nothing) {
            caches.push((coverage.implied_frees, row.key.shown(result.size_classes)));
        }
    }
    if all.free_events() == FreeEvents::All || all.ends == 0 {
        return None;
    }
    caches.sort_rows_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
    let more = if caches.len() > CACHES_NAMED { ", ..." } else { "" };
    let names: Vec<String> = caches.into_iter().take(CACHES_NAMED).map(|(_, name)| name).collect();
    Some(format!(
        "{:.1} % of freed objects had no free event ({}{more}). Live figures of these caches are upper bounds; see `caches`.",
        100.0 * all.implied_frees as f64 / all.ends as f64,
        names.join(", ")
    ))
}

/// Start of the next option of a command line: a minus sign before a digit is a number of the filter.
fn option_after(line: &str) -> Option<usize> {
    let is_option = |at: usize| line[at + 2..].starts_with(|c: char| c == '-' || c.is_ascii_alphabetic());
    line.match_indices(" -").map(|(at, _)| at).find(|&at| is_option(at))
}

/// Filters under which events were recorded.
fn filters(session: &Session<'_>, text: fn(&[u8]) -> String) -> Vec<String> {
    let conditions = session.trace.metadata().attachment("event_conditions").unwrap_or_default();
    let conditions = String::from_utf8_lossy(conditions);
    let by_perf = session.trace.metadata().text("perf/cmdline").and_then(|line| line.split_once("--filter"));
    let by_perf = by_perf.map(|(_, rest)| {
        let rest = rest.trim_start_matches(['=', ' ']);
        let filter = &rest[..option_after(rest).unwrap_or(rest.len())];
        format!(
            "perf recorded with --filter {}: totals count matching events only and are not scaled.",
            text(filter.trim().as_bytes())
        )
    });
    let filtered = conditions.lines().filter_map(|line| line.split_once(" filter="));
    by_perf
        .into_iter()
        .chain(filtered.map(|(event, filter)| {
            format!(
                "{} was filtered ({}): events that the filter left out are in no total, and frees of these objects match nothing.",
                text(event.as_bytes()),
                text(filter.as_bytes())
            )
        }))
        .collect()
}

/// Lost events of a part of the recording.
fn losses_of_window(session: &Session<'_>, selection: &Selection) -> TrustFact {
    let (losses, window) = (&session.losses, selection.bounds(session));
    if !losses.any_between(window) {
        return TrustFact::warning("No events are missing in this time; others of the file were lost.");
    }
    let lost = match losses.lost_between(window) {
        Some(lost) if lost >= 1.0 => {
            let events = events_between(session.trace, window, |_| true) as f64;
            let least = match losses.ended_early {
                true => "At least",
                // A gap that begins before the time, or ends behind it: how many of its events are of it is unknown.
                false if losses.reaches_over(window) => "Up to",
                false => "About",
            };
            format!(
                "{least} {} events of this time ({:.1} %)",
                count(lost as u64),
                100.0 * lost / (lost + events)
            )
        }
        _ => "Events of this time, not counted,".to_owned(),
    };
    TrustFact::warning(format!("{lost} were lost: event counts are minimums; live figures are uncertain."))
}

/// Why the file has no counters of the kernel: `slice` leaves out those of the whole recording.
pub fn no_counters(session: &Session<'_>) -> &'static str {
    match Sliced::of(session.trace.metadata()) {
        Some(_) => "the kernel's counters are of the whole recording, not of this part",
        None => "the kernel's counters are not recorded",
    }
}

/// Events lost before the first event, where none was lost since: the recorded time is whole.
fn losses_before_first(session: &Session<'_>) -> TrustFact {
    let losses = &session.losses;
    let before = lost_before_first(losses).unwrap_or_default();
    match losses.has_all_stats() {
        true => TrustFact::normal(format!(
            "No events were lost since the first event, by the kernel's own counters; {before}."
        )),
        false => TrustFact::warning(format!(
            "No lost events are marked since the first event ({before}), but {}: dropped events would not show.",
            no_counters(session)
        )),
    }
}

/// Lost events.
fn losses(session: &Session<'_>, selection: &Selection) -> TrustFact {
    let losses = &session.losses;
    if losses.any() && selection.has_window() {
        return losses_of_window(session, selection);
    }
    if !losses.any() && losses.any_before_first() {
        return losses_before_first(session);
    }
    match (out::losses(session), losses.has_all_stats()) {
        (Some(sentence), _) => TrustFact::warning(format!("{sentence}{}", more_before_first(losses))),
        (None, true) => TrustFact::normal("No events were lost, by the kernel's own counters."),
        (None, false) if losses.by_perf => TrustFact::normal(
            "perf marked no lost events; only those behind the last event of a CPU would have no mark.",
        ),
        (None, false) => TrustFact::warning(format!(
            "No lost events are marked, but {}: dropped events would not show.",
            no_counters(session)
        )),
    }
}

/// Changes that are named.
const CHANGES_NAMED: usize = 2;

/// `None`: there was no such change.
pub fn changes_sentence(session: &Session<'_>) -> Option<String> {
    let changes = &session.losses.changes;
    let named = changes.iter().take(CHANGES_NAMED);
    let mut named: Vec<String> = named
        .map(|change| {
            format!("{} at {}", shown(change.setting.describe().as_bytes()), time(change.to, session.unit()))
        })
        .collect();
    if named.is_empty() {
        return None;
    }
    let more = changes.len().saturating_sub(CHANGES_NAMED) as u64;
    if more > 0 {
        named.push(counted(more, "more change", "more changes"));
    }
    let effect = match changes.iter().any(|change| change.loses_events()) {
        true => " Events may be missing from then on; event counts are minimums.",
        false => "",
    };
    Some(format!("Another process changed the recording: {}.{effect}", named.join("; ")))
}

/// CPUs that are named.
const ENDS_NAMED: usize = 4;
/// How much earlier the events of a CPU end before it is named, in nanoseconds: a recorder writes each CPU once a second.
const EARLIER_NS: u64 = 1_500_000_000;

/// `None`: the recording ended in order.
pub fn early_end_sentence(session: &Session<'_>) -> Option<String> {
    let losses = &session.losses;
    if !losses.ended_early {
        return None;
    }
    const UNKNOWN: &str = "events that were still in the ring buffers are unknown";
    let until = |cpu: &CpuLosses| cpu.early_end().and_then(|place| place.after);
    let Some(end) = losses.cpus.iter().filter_map(until).max() else {
        return Some(format!("The recording ended unexpectedly: {UNKNOWN}."));
    };
    let unit = session.unit();
    let is_ns = unit == ClockUnit::Nanoseconds;
    let earlier = losses.cpus.iter().filter_map(|cpu| match until(cpu) {
        Some(until) if !is_ns || end.saturating_sub(until) < EARLIER_NS => None,
        Some(until) => Some(format!("CPU {} ends {} earlier", cpu.cpu, duration(end - until, unit))),
        None => Some(format!("CPU {} has no events", cpu.cpu)),
    });
    let mut earlier: Vec<String> = earlier.collect();
    let more = earlier.len().saturating_sub(ENDS_NAMED) as u64;
    earlier.truncate(ENDS_NAMED);
    if more > 0 {
        earlier.push(counted(more, "more CPU", "more CPUs"));
    }
    let earlier = if earlier.is_empty() { String::new() } else { format!(" ({})", earlier.join(", ")) };
    Some(format!("The recording ended unexpectedly at {}{earlier}: {UNKNOWN}.", time(end, unit)))
}
