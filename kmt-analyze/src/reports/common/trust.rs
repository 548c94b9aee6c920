//! How far numbers can be trusted, and what they are about: the lines above every report.

use super::basis::Basis;
use crate::ledger::totals::Totals;
use crate::pass;
use crate::pass::caches::name_of;
use crate::pass::caches::{CacheKey, by_cache};
use crate::pass::coverage::{Coverage, Seen};
use crate::render::text::{count, escaped, span};
use crate::stream::Api;
use crate::trace::session::Session;

/// How far the numbers can be trusted, a sentence each; the first one is about losses.
pub fn trust_lines(session: &Session<'_>, result: &pass::Analysis, all: &Totals) -> Vec<String> {
    let mut lines = vec![loss_line(session)];
    let damaged = result.damages.len() as u64 + session.trace.damage_count();
    let mut flaws = Vec::new();
    if damaged > 0 {
        flaws.push(format!("damaged places: {}", count(damaged)));
    }
    if !session.trace.is_finished() {
        flaws.push("it has no end".to_owned());
    }
    if !flaws.is_empty() {
        lines.push(format!(
            "the file is not whole ({}): every total below is a lower bound",
            flaws.join(", ")
        ));
    }
    lines.extend(filter_lines(session));
    lines.extend(session.sampled().into_iter().map(|(event, samples, events)| {
        format!(
            "{} was sampled: {} of about {} events; ~ marks estimates of all by the periods of the samples, {:.1} on average; other numbers are of the samples",
            escaped(event.as_bytes()),
            count(samples),
            count(events),
            events as f64 / samples.max(1) as f64
        )
    }));
    lines.extend(Basis::of(session, result).missing_line());
    if all.uncertain > 0 {
        lines.push(format!(
            "uncertain: {} lives, {} of the live bytes: they cross a loss, or their free is ambiguous",
            count(all.uncertain),
            count(all.bytes_live_uncertain)
        ));
    }
    lines.extend(coverage_line(session, result));
    match result.direct_map {
        Some(map) => lines.push(format!(
            "page frames were placed in memory by {} of {} votes ({:.0} %)",
            count(map.votes),
            count(map.votes_all),
            map.share_percent()
        )),
        None if session.no_addresses().is_some() => {
            lines.push(
                "pointers are hashes of addresses: where objects lie in memory is not known".to_owned(),
            );
        }
        None => lines.push(
            "page frames could not be placed in memory, so pages freed under objects were not looked at"
                .to_owned(),
        ),
    }
    let (page_size, assumed) = result.page_size;
    if assumed {
        lines.push(format!("the file does not tell the page size; {page_size} bytes are assumed"));
    }
    if let Some(bound) = result.late_bound_assumed {
        lines.push(format!(
            "the clock's rate is not known; {} ticks are taken for a millisecond",
            count(bound)
        ));
    }
    let clock = session.trace.metadata().clock.as_ref();
    let clock = clock.filter(|c| !c.comparable && !c.name.is_empty());
    if let Some(clock) = clock.filter(|_| session.trace.streams().len() > 1) {
        lines.push(format!(
            "the clock is `{}`: times of different CPUs may disagree, and a free can sort before its allocation",
            escaped(clock.name.as_bytes())
        ));
    }
    lines
}

/// Caches named for frees without events.
const CACHES_NAMED: usize = 3;

/// How many frees have no event, where that is not because events were lost.
fn coverage_line(session: &Session<'_>, result: &pass::Analysis) -> Option<String> {
    if session.losses.any() {
        return None;
    }
    let mut all = Coverage::default();
    let mut caches: Vec<(u64, String)> = Vec::new();
    let basis = Basis::of(session, result);
    for row in by_cache(result) {
        let api = if matches!(row.key, CacheKey::Kmalloc(_)) { Api::Kmalloc } else { Api::Cache };
        let coverage = Coverage::of(&row.totals);
        if !basis.ends(Some(api)) {
            continue;
        }
        all.ends = all.ends.saturating_add(coverage.ends);
        all.unseen = all.unseen.saturating_add(coverage.unseen);
        if matches!(coverage.seen(), Seen::Partly | Seen::Nothing) {
            caches.push((coverage.unseen, name_of(&row.key, result)));
        }
    }
    if all.seen() == Seen::All || all.ends == 0 {
        return None;
    }
    caches.sort_by(|a, b| (b.0, &a.1).cmp(&(a.0, &b.1)));
    let more = if caches.len() > CACHES_NAMED { ", ..." } else { "" };
    let names: Vec<String> = caches.into_iter().take(CACHES_NAMED).map(|(_, name)| name).collect();
    Some(format!(
        "{:.1} % of the lives that ended have no free event ({}{more}): kernels free some objects without one, and what seems live there is an upper bound, see caches",
        100.0 * all.unseen as f64 / all.ends as f64,
        names.join(", ")
    ))
}

/// Where the next option of a command line begins: a minus sign before a digit is a number of the filter.
fn option_after(line: &str) -> Option<usize> {
    let is_option = |at: usize| line[at + 2..].starts_with(|c: char| c == '-' || c.is_ascii_alphabetic());
    line.match_indices(" -").map(|(at, _)| at).find(|&at| is_option(at))
}

/// Filters under which events were recorded.
fn filter_lines(session: &Session<'_>) -> Vec<String> {
    let conditions = session.trace.metadata().attachment("event_conditions").unwrap_or_default();
    let conditions = String::from_utf8_lossy(conditions);
    let by_perf = session.trace.metadata().text("perf/cmdline").and_then(|line| line.split_once("--filter"));
    let by_perf = by_perf.map(|(_, rest)| {
        let rest = rest.trim_start_matches(['=', ' ']);
        let filter = &rest[..option_after(rest).unwrap_or(rest.len())];
        format!(
            "perf recorded with --filter {}: totals are of events that match, and are not scaled",
            escaped(filter.trim().as_bytes())
        )
    });
    let filtered = conditions.lines().filter_map(|line| line.split_once(" filter="));
    by_perf
        .into_iter()
        .chain(filtered.map(|(event, filter)| {
            format!(
                "{} was filtered ({}): what the filter left out is in no total, and its frees match nothing",
                escaped(event.as_bytes()),
                escaped(filter.as_bytes())
            )
        }))
        .collect()
}

fn loss_line(session: &Session<'_>) -> String {
    let losses = &session.losses;
    let least = if losses.is_minimum() { "at least " } else { "" };
    let events = session.trace.event_count();
    match (losses.any(), losses.has_all_stats()) {
        (false, true) => "lost events: none, by the kernel's own counters".to_owned(),
        (false, false) => {
            "lost events: none seen; without the kernel's counters dropped events would not show".to_owned()
        }
        (true, _) => {
            let lost = losses.lost_events();
            if lost == 0 {
                return "lost events: not counted, but parts of the recording are missing: what counts events is a lower bound, what is live is uncertain"
                    .to_owned();
            }
            let share = 100.0 * lost as f64 / (lost as f64 + events as f64).max(1.0);
            format!(
                "lost events: {least}{} ({share:.1} % of what happened): what counts events is a lower bound, what is live is uncertain; summary tells ranges",
                count(lost)
            )
        }
    }
}

/// One line on what the trace is.
pub fn title(session: &Session<'_>) -> String {
    let metadata = session.trace.metadata();
    let release = metadata
        .text("kernel.release")
        .map_or("unknown kernel".to_owned(), |r| format!("Linux {}", escaped(r.as_bytes())));
    let machine = escaped(metadata.text("kernel.machine").unwrap_or_default().as_bytes());
    let clock = metadata.clock.as_ref().map_or("not told".to_owned(), |c| escaped(c.name.as_bytes()));
    let length = session.first_time().zip(session.last_time()).map_or(0, |(a, b)| b.saturating_sub(a));
    format!(
        "{} events of {} CPUs in {}, {release} {machine}, clock {clock}",
        count(session.trace.event_count()),
        session.losses.cpus.len(),
        span(length, session.unit()),
    )
}
