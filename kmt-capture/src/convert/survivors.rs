//! `convert --survivors`: a file whose events of objects that died young are sums, from a file with all events.
//!
//! The file is merged as every reader merges it, so the lives that are folded are those that a reader would find; the code that
//! folds is that of `record --survivors`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use kmt_common::direct_map::{ElectedBase, Votes};
use kmt_common::kmt_file::KmtFile;
use kmt_common::output::report_written;
use kmt_common::survivors::{self, KnownMap, LEARNED_KEY, Narrowed, SurvivorOptions, Survivors};
use kmt_common::text::{count, grouped};
use kmt_common::{shell, tell};
use kmt_format::edit::copy_besides_events;
use kmt_format::kernel::{CpuStats, TraceClock};
use kmt_format::read::{EarlyEnd, Event, Trace};
use kmt_format::schema::{Meaning, Role};
use kmt_format::write::{StatsTaken, Writer, WriterOptions};
use kmt_format::{Error, Loss};

use super::{ConvertOptions, opened};
use crate::failure::{Failure, Outcome, Result};
use crate::import::Kind;
use crate::output::Output;
use crate::survivors::SurvivorArgs;
use crate::uuid::Identity;

/// Numbers of the events of a CPU, in its order, before which events are missing; and the number of its events.
#[derive(Debug, Default)]
struct Gaps {
    at: Vec<u64>,
    events: u64,
}

impl Gaps {
    fn is_at(&self, event: u64) -> bool {
        self.at.binary_search(&event).is_ok()
    }

    /// True if the event is next to missing events, or the last one.
    fn is_edge(&self, event: u64) -> bool {
        self.is_at(event) || self.is_at(event + 1) || event + 1 == self.events
    }
}

/// The file with all events, where the input is of another tool: removed at the end.
struct Whole(PathBuf);

impl Drop for Whole {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Converts an input of any kind, and folds its lives.
pub fn convert(options: &ConvertOptions, args: &SurvivorArgs) -> Result<Outcome> {
    let output = Output::create(&options.output, options.force)?;
    if options.verbatim {
        return Err(Failure::new("--verbatim keeps all events, and --survivors folds most of them")
            .hint("leave one of them out"));
    }
    if options.input.is_file() {
        let opened = opened::open(&options.input, &options.limits)?;
        if Kind::of(&opened.bytes) == Kind::Kmt {
            return fold(options, args, &opened.bytes, output);
        }
    }
    let folder = match options.output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ if options.output == Path::new("-") => std::env::temp_dir(),
        _ => PathBuf::from("."),
    };
    let whole = Whole(folder.join(format!(".kmt-whole-{}.kmt", std::process::id())));
    let all = ConvertOptions { output: whole.0.clone(), survivors: None, quiet: true, ..options.clone() };
    let outcome = super::convert_all(&all)?;
    let opened = opened::open(&whole.0, &options.limits)?;
    let folded = fold(options, args, &opened.bytes, output)?;
    Ok(if outcome == Outcome::Done { folded } else { outcome })
}

/// Writes a file with the survivors of a .kmt file.
fn fold(options: &ConvertOptions, args: &SurvivorArgs, bytes: &[u8], mut output: Output) -> Result<Outcome> {
    let path = &options.input;
    let failed = |e: Error| Failure::new(format!("{}: {e}", path.display()));
    let trace = Trace::builder().limits(options.limits.kmt).open(bytes).map_err(failed)?;
    if trace.header().folded {
        return Err(Failure::new(format!("{} has survivors already", path.display()))
            .hint("convert the file with all events, if there is one"));
    }
    if trace.damage_count() > 0 {
        let first = trace.damages().first().map_or_else(String::new, |damage| format!(": {}", damage.error));
        return Err(Failure::new(format!("{} is damaged{first}", path.display()))
            .hint(format!("kmt-analyze recover {} -o FILE.kmt", shell::path(path))));
    }
    let (look, map) = first_look(&trace, failed)?;
    let writer = writer(&trace, options, args, map).map_err(failed)?;
    let mut survivors = Survivors::new(settings(&trace, args, map));
    output.write(writer.pending())?;
    let mut file = KmtFile::new(writer, output);
    file.writer.clear_pending();
    events(&trace, &look, &mut survivors, &mut file)?;
    let folded: u64 = survivors.folded().map(|(_, events)| events).sum();
    for (&cpu, gaps) in &look.gaps {
        file.stats(cpu).events = gaps.events;
    }
    for (cpu, of_cpu) in survivors.folded() {
        let stats = file.stats(cpu);
        stats.events = stats.events.saturating_sub(of_cpu);
    }
    file.add_totals()?;
    let written = file.events();
    file.finish()?;
    if !options.quiet {
        let all = trace.event_count();
        tell!(
            "{} of {} written; {} folded into sums",
            grouped(written),
            count(all, "event"),
            grouped(folded)
        );
        report_written(&options.output, &format!("kmt-analyze {}", shell::path(&options.output)));
    }
    Ok(Outcome::Done)
}

/// Where events are missing, by CPU; and the direct map that readers of all events learn.
fn first_look(trace: &Trace<'_>, failed: impl Fn(Error) -> Failure) -> Result<(FirstLook, Map)> {
    let mut all = FirstLook::default();
    let mut votes = Votes::new(page_shift(trace));
    let recorded = trace.metadata().text("kernel.direct_map");
    let recorded = recorded.and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        let gaps = all.gaps.entry(run.cpu).or_default();
        if let Some(gap) = run.gap.filter(|gap| !gap.is_empty()) {
            gaps.at.push(gaps.events);
            all.times.extend(gap.after);
            all.times.extend(run.chunk.time(run.range.start));
        }
        gaps.events += run.range.len() as u64;
        if recorded.is_none() {
            run.events().for_each(|event| vote(&mut votes, &event));
        }
    }
    match merge.damages().first() {
        Some(damage) => Err(failed(damage.error.clone())),
        None => Ok((all, recorded.map_or_else(|| Map::Learned(votes.result()), Map::Recorded))),
    }
}

/// Where events are missing.
#[derive(Debug, Default)]
struct FirstLook {
    gaps: HashMap<u32, Gaps>,
    /// Times of the events before and after: lives that begin or end then touch the loss.
    times: HashSet<u64>,
}

/// The direct map of a trace.
#[derive(Debug, Clone, Copy)]
enum Map {
    /// The recorder has read its base.
    Recorded(u64),
    /// Events tell its base, or do not.
    Learned(Option<ElectedBase>),
}

fn vote(votes: &mut Votes, event: &Event<'_>) {
    let meaning = event.meaning();
    let is_slab = meaning.is_slab_alloc() || meaning.is_slab_free();
    if is_slab && votes.is_waiting() {
        let ptr = event.uint_with(Role::PTR).filter(|&ptr| ptr != 0 && meaning.is_slab_alloc());
        votes.slab_event(event.cpu(), event.pid(), ptr);
    } else if meaning == Meaning::PAGE_ALLOC {
        let number = |role| event.uint_with(role).unwrap_or(0);
        let (pfn, is_movable) = (number(Role::PFN), number(Role::MIGRATETYPE) as i32 == MOVABLE);
        if pfn != no_frame(event) && !is_movable {
            votes.page_alloc(event.cpu(), event.pid(), pfn, number(Role::ORDER).min(31) as u8);
        }
    }
}

/// Frame of a failed allocation: all bits of the target's long.
fn no_frame(event: &Event<'_>) -> u64 {
    let field = event.class().field_with(Role::PFN).and_then(|field| event.class().fields.get(field));
    u64::MAX >> (64 - 8 * field.map_or(8, |field| field.size.clamp(1, 8)))
}

/// Migrate type of movable pages (enum migratetype, include/linux/mmzone.h 4.4 to 7.2).
const MOVABLE: i32 = 1;

fn page_shift(trace: &Trace<'_>) -> u32 {
    trace.header().page_size.map_or(12, u64::trailing_zeros)
}

/// A writer whose file has all of the trace but its events.
fn writer(
    trace: &Trace<'_>,
    options: &ConvertOptions,
    args: &SurvivorArgs,
    map: Map,
) -> kmt_format::Result<Writer> {
    let header = trace.header();
    let mut identity = Identity::new();
    identity.add(&header.trace_uuid);
    identity.add(args.describe().as_bytes());
    let writer_options = WriterOptions::new(header.order, header.long_size)
        .align_u64(header.align_u64)
        .page_size(header.page_size)
        .trace_uuid(identity.finish())
        .compression(options.compression)
        .folded(true);
    let mut writer = Writer::new(writer_options)?;
    for (_, class) in trace.schema().classes() {
        let id = writer.add_format(&class.system, &class.format_text)?;
        writer.declare(id)?;
    }
    copy_besides_events(trace, &mut writer)?;
    for taken in [StatsTaken::Before, StatsTaken::After] {
        let rows = trace.metadata().counters.iter().filter_map(|(&cpu, counters)| {
            let stats = if taken == StatsTaken::Before { counters.before } else { counters.after };
            Some((cpu, stats?))
        });
        let rows: Vec<(u32, CpuStats)> = rows.collect();
        if !rows.is_empty() {
            writer.add_stats(taken, &rows)?;
        }
    }
    let early_end = trace.early_end().map(|end| end.to_text());
    let described = args.describe();
    let mut pairs = vec![(SurvivorArgs::KEY, described.as_bytes())];
    let learned = match map {
        Map::Recorded(_) => None,
        Map::Learned(map) => Some(survivors::learned(map)),
    };
    pairs.extend(learned.as_ref().map(|text| (LEARNED_KEY, text.as_bytes())));
    pairs.extend(early_end.as_ref().map(|end| (EarlyEnd::KEY, end.as_bytes())));
    writer.add_metadata(&pairs)?;
    Ok(writer)
}

fn settings(trace: &Trace<'_>, args: &SurvivorArgs, map: Map) -> SurvivorOptions {
    let header = trace.header();
    let millisecond =
        trace.metadata().clock.as_ref().map_or(1_000_000, |clock| TraceClock::millisecond(clock).0);
    SurvivorOptions {
        threshold: args.in_clock(args.threshold, millisecond),
        interval: args.in_clock(args.interval, millisecond).max(1),
        millisecond,
        memory: args.memory,
        order: header.order,
        long_size: header.long_size,
        page_shift: page_shift(trace),
        map: match map {
            Map::Recorded(base) => KnownMap::Base(base),
            Map::Learned(map) => map.map_or(KnownMap::None, |map| KnownMap::Base(map.base_address)),
        },
        narrowed: Narrowed::default(),
    }
}

/// Takes all events in merged order.
fn events(trace: &Trace<'_>, look: &FirstLook, survivors: &mut Survivors, file: &mut KmtFile) -> Result<()> {
    let mut seen: HashMap<u32, u64> = HashMap::new();
    look.gaps.values().filter(|gaps| gaps.is_at(0)).for_each(|_| survivors.begin_loss());
    let mut record = Vec::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        let seen = seen.entry(run.cpu).or_default();
        let none = Gaps::default();
        let gaps = look.gaps.get(&run.cpu).unwrap_or(&none);
        if let Some(gap) = run.gap.filter(|gap| !gap.is_empty()) {
            let mut loss: Loss = gap.loss;
            loss.counted = gap.counted();
            loss.damaged_input |= gap.events_damaged > 0;
            survivors.end_loss(run.cpu, loss, true);
        }
        for event in run.events() {
            event.to_record(&mut record);
            let is_edge = gaps.is_edge(*seen) || look.times.contains(&event.time());
            survivors.event(&mut file.writer, run.cpu, event.time(), &record, is_edge)?;
            *seen += 1;
            if gaps.is_at(*seen) {
                survivors.begin_loss();
            }
        }
        file.write_if_large()?;
    }
    survivors.finish(&mut file.writer)?;
    Ok(())
}
