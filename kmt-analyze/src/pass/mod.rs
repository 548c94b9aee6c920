//! One pass over the merged events, feeding the ledger and the collectors.
//!
//! A `Request` has the selection, the collectors and further needs; `run` gives them to the decoder, the ledger and the
//! collectors, and returns an `Analysis`: sums, results of the collectors, losses and damage. Some facts are found
//! before from samples of the trace: the base of the direct map, and the caches of call sites whose allocations do not
//! name one.

pub(crate) mod caches;
pub(crate) mod condition;
pub(crate) mod coverage;
mod crew;
pub(crate) mod figures;
pub(crate) mod filter;
pub(crate) mod folded;
pub(crate) mod operations;
pub(crate) mod progress;
pub(crate) mod ranges;
pub(crate) mod selection;
pub(crate) mod weights;

use std::collections::HashMap;
use std::thread;

use kmt_common::survivors::{LEARNED_KEY, NO_MAP};
use kmt_format::kernel::{KernelVersion, TraceClock};
use kmt_format::read::Trace;
use kmt_format::schema::{EventClass, Meaning};

use crate::collect::{Collected, Collector, Collectors, Handle, PassFacts};
use crate::ledger::batch::Batched;
use crate::ledger::direct_map::{DirectMap, Election};
use crate::ledger::totals::Totals;
use crate::ledger::{Balance, Choice, DEFERRED_MS_MAX, Ledger, Rules};
use crate::pass::crew::Crew;
use crate::pass::figures::figures;
use crate::pass::filter::{MigrateTypes, Selector, meets};
use crate::pass::progress::Progress;
use crate::pass::ranges::{OpSample, RangeInputs, Ranges, ranges};
use crate::pass::weights::Weights;
use crate::stream::decode::Decoder;
use crate::stream::load::Loader;
use crate::stream::open_chunk::Open;
use crate::stream::{Api, Interests, Interner, Item, Op, Site, pipe};
use crate::trace::cpu_nodes;
use crate::trace::faults::Faults;
use crate::trace::names::SizeClasses;
use crate::trace::session::Session;

use operations::{decoder, first_whole, selector, since};

pub use crate::trace::time_range::TimeRange;
pub use condition::Condition;
pub use selection::{Needs, Request, Selection};

/// Operations that the ledger looks up at a time: they and their slots stay in a first-level cache.
const BATCH: usize = 128;

/// Results of a pass.
#[derive(Debug)]
pub struct Analysis {
    /// Interned properties of events.
    pub interner: Interner,
    /// Sums.
    pub balance: Balance,
    collected: Collected,
    /// What the pass was asked for.
    pub(crate) needs: Needs,
    /// Base of the direct map, if found.
    pub direct_map: Option<DirectMap>,
    /// Weights of samples.
    pub weights: Weights,
    /// Names of the target's size classes.
    pub size_classes: SizeClasses,
    /// Names of the target's migrate types.
    pub migratetypes: MigrateTypes,
    /// Page size, and true if it is assumed, not recorded.
    pub page_size: (u64, bool),
    /// One millisecond in the clock's unit, if it is only assumed.
    pub late_bound_assumed: Option<u64>,
    /// By class index, whether events of it were seen before the end of the window, or in a sample of all chunks.
    pub classes_seen: Vec<bool>,
    /// Class, origin and number of events, if requested.
    pub event_counts: Vec<(u32, u32, u64)>,
    /// Faults of the file that the pass found.
    pub faults: Faults,
    /// Totals as ranges, if requested and known.
    pub ranges: Option<Ranges>,
}

impl Analysis {
    /// The result of a collector of the pass.
    ///
    /// # Panics
    ///
    /// If the handle is of another pass.
    pub fn get<C: Collector>(&self, handle: Handle<C>) -> &C::Output {
        self.collected.get(handle)
    }
}

/// Sums of all sites of one interface.
pub fn sum_of(result: &Analysis, api: Option<Api>) -> Totals {
    let mut sum = Totals::default();
    for (number, parts) in result.balance.sites.iter().enumerate() {
        let site = result.interner.sites.get(number as u32);
        if site.is_some_and(|s| api.is_none_or(|a| a == s.api)) {
            parts.iter().for_each(|(_, totals)| sum += totals);
        }
    }
    sum
}

/// Runs the ledger over a trace.
pub fn run(session: &Session<'_>, request: &Request<'_>) -> Analysis {
    let mut selector = selector(session, request.selection);
    let recorded = recorded_direct_map(session.trace);
    let window = request.selection.bounds(session);
    // A pass over all events finds their classes itself.
    let is_known = recorded.is_some() || !may_have(session.trace, Meaning::PAGE_ALLOC);
    let (found, classes_seen) = match is_known && window == (0, u64::MAX) {
        true => (None, Vec::new()),
        false => sample(session.trace),
    };
    let first = recorded.unwrap_or(found);
    let (mut result, elected) = pass(session, request, &mut selector, first);
    // The sample's votes are nearly always right; if all votes differ, they decide.
    let same = recorded.is_some() || elected.map(|m| m.base) == first.map(|m| m.base);
    let is_part = window != (0, u64::MAX) && elected.is_none();
    if !same && !is_part {
        result = pass(session, request, &mut selector, elected).0;
    }
    // A window may end before any event is read.
    for (present, in_sample) in result.classes_seen.iter_mut().zip(classes_seen) {
        *present |= in_sample;
    }
    result
}

/// The direct map's base, if the recorder could read it, or learned it from events that it did not keep; in that case also that
/// there is none to be learned.
fn recorded_direct_map(trace: &Trace<'_>) -> Option<Option<DirectMap>> {
    let base = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let read = trace.metadata().text("kernel.direct_map").and_then(base).map(DirectMap::recorded);
    let learned = || {
        let text = trace.metadata().text(LEARNED_KEY)?;
        let mut parts = text.split(' ');
        let Some(base_address) = base(parts.next()?) else { return (text == NO_MAP).then_some(None) };
        let (votes, votes_all) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Some(DirectMap { votes, votes_all, ..DirectMap::recorded(base_address) }))
    };
    read.map(Some).or_else(learned).filter(|_| has_pages(trace))
}

/// The rules for a trace; and true if one millisecond in the clock's unit is only assumed.
fn rules(session: &Session<'_>, selection: &Selection, direct_map: Option<DirectMap>) -> (Rules, bool) {
    let trace = session.trace;
    let page_size = trace.header().page_size.filter(|s| s.is_power_of_two());
    let (late_bound, assumed) = late_bound(trace);
    let rules = Rules {
        page_size: page_size.unwrap_or(4096),
        late_bound,
        late_frees: session.version().is_none_or(|version| version < KernelVersion::new(5, 19)),
        direct_map,
        window: selection.bounds(session),
        no_frame: no_frame(trace),
        last: session.last_time().unwrap_or(0),
        deferred_max: late_bound.saturating_mul(DEFERRED_MS_MAX),
        cpus: cpu_nodes::possible(trace.metadata()).unwrap_or(0),
        ages: session.ages(),
    };
    (rules, assumed)
}

/// Frame number of a failed page allocation.
fn no_frame(trace: &Trace<'_>) -> u64 {
    u64::MAX >> (64 - 8 * trace.header().long_size as u32)
}

fn pass(
    session: &Session<'_>,
    request: &Request<'_>,
    selector: &mut Selector<'_, '_>,
    direct_map: Option<DirectMap>,
) -> (Analysis, Option<DirectMap>) {
    let Request { selection, collectors, needs } = *request;
    let (trace, losses) = (session.trace, &session.losses);
    let (rules, assumed) = rules(session, selection, direct_map);
    let interests = collectors.interests(may_have(trace, Meaning::KERNEL_STACK));
    let states = collectors.begin(&PassFacts { rules, has_stacks: has_stacks(trace) });
    let lifetimes = selector.lifetimes();
    let is_chosen = |lifetime: Option<u64>| meets(&lifetimes, lifetime);
    let frames = selector.frames();
    let holds_frames =
        |first: u64, last: u64| frames.iter().all(|condition| condition.holds_for_frames(first, last));
    let choice = Choice {
        is_open: selection.is_all(),
        events: !selection.is_about_allocations(),
        lifetime: if lifetimes.is_empty() { None } else { Some(&is_chosen) },
        frames: if frames.is_empty() { None } else { Some(&holds_frames) },
    };
    let reads_on = needs.contains(Needs::LATER_ENDS)
        || !lifetimes.is_empty()
        || needs.contains(Needs::CACHE_NAMES) && !allocations_tell_caches(trace);
    let last = if reads_on { u64::MAX } else { rules.last_read() };
    let loader = Loader::new(trace, last);
    let threads = selection.threads.unwrap_or_else(cores);
    let begin = first_whole(session, rules.window);
    let is_known = recorded_direct_map(trace).is_some();
    let election = (may_have(trace, Meaning::PAGE_ALLOC) && !is_known)
        .then(|| Election::new(rules.page_size.trailing_zeros()));
    let (mut done, all, progress) = (0u64, loader.event_count_until(u64::MAX), Progress::new(&session.env));
    // Ranges are found by leaving out more events: those of folded lives are not there.
    let has_all = !trace.header().folded;
    let mut kept = (has_all && needs.contains(Needs::RANGES) && losses.any_between(rules.window))
        .then(|| OpSample::new(loader.event_count_until(rules.last_read()), &rules));
    let mut select = |interner: &Interner, item: Item<'_>| selector.selects(interner, item);
    let decoder = decoder(session, request, interests, &mut select)
        .with_seen_until(rules.last_read())
        .with_event_counts(needs.contains(Needs::EVENT_COUNTS).then_some(rules.window));
    let ((decoder, damages), elected, balance, states) = thread::scope(|scope| {
        let mut crew = Crew::new(scope, states, threads);
        let receiver = Batched::new(|batch| crew.take(batch));
        let mut ledger = Ledger::new(rules, losses, choice, interests, receiver, election);
        let (mut decoder, mut damages) = pipe::run(&loader, decoder, threads, last, |ops, new_items| {
            ledger.learn(&new_items);
            done += ops.len() as u64;
            let ops = since(ops, begin);
            ops.chunks(BATCH).for_each(|ops| ledger.enter(ops));
            if let Some(kept) = &mut kept {
                kept.add(ops, &new_items);
            }
            progress.print(done, all);
        });
        damages.extend(folded::enter(trace, &mut decoder, &mut ledger, rules.window));
        let decoded = (decoder, damages);
        let elected = ledger.elected();
        let (balance, receiver) = ledger.finish();
        receiver.finish();
        (decoded, elected, balance, crew.finish())
    });
    progress.clear();
    let Decoder { interner, classes_seen, event_counts, .. } = decoder;
    let faults = Faults::new(damages, interner.over());
    let ranges = kept.and_then(|kept| {
        let figures = figures(&balance, &interner, rules.page_size);
        let ops = &kept.streams;
        ranges(&RangeInputs { ops, interner: &interner, rules, choice, losses, threads }, &figures)
    });
    let result = Analysis {
        interner,
        balance,
        collected: Collected::new(states),
        needs,
        direct_map: match direct_map {
            _ if is_known => direct_map,
            _ => elected.filter(|e| Some(e.base) == direct_map.map(|m| m.base)).or(direct_map),
        },
        weights: Weights::of(trace.metadata()),
        size_classes: SizeClasses::of(trace),
        migratetypes: MigrateTypes::of(trace.metadata()),
        page_size: (rules.page_size, trace.header().page_size.is_none_or(|size| !size.is_power_of_two())),
        late_bound_assumed: assumed.then_some(rules.late_bound),
        classes_seen,
        event_counts: event_counts.into_iter().map(|((c, o), n)| (c, o, n)).collect(),
        faults,
        ranges,
    };
    (result, elected)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn has_pages(trace: &Trace<'_>) -> bool {
    trace.schema().classes().any(|(_, c)| c.meaning == Meaning::PAGE_ALLOC)
}

/// True if there may be events of that meaning, by the heads of chunks. A live recording has classes without events.
pub(crate) fn may_have(trace: &Trace<'_>, meaning: Meaning) -> bool {
    may_have_any(trace, |class| class.meaning == meaning)
}

/// True if there may be events of classes that a function selects, by the same.
pub(crate) fn may_have_any(trace: &Trace<'_>, is_it: impl Fn(&EventClass) -> bool) -> bool {
    let classes = trace.schema().classes().filter(|(_, class)| is_it(class));
    let bits = classes.fold(0u64, |bits, (index, _)| bits | 1 << (index % 64));
    trace.streams().values().flat_map(|stream| &stream.chunks).any(|(_, info)| info.classes & bits != 0)
}

fn has_stacks(trace: &Trace<'_>) -> bool {
    trace.schema().classes().any(|(_, c)| c.meaning == Meaning::KERNEL_STACK)
}

/// True if allocations from caches name the cache (6.18 and later).
fn allocations_tell_caches(trace: &Trace<'_>) -> bool {
    let mut classes = trace.schema().classes().filter(|(_, c)| c.meaning == Meaning::CACHE_ALLOC);
    classes.all(|(_, c)| c.field_with(kmt_format::schema::Role::CACHE_NAME).is_some())
}

/// One millisecond in the clock's unit, and true if assumed: cycle counters have no known rate.
fn late_bound(trace: &Trace<'_>) -> (u64, bool) {
    trace.metadata().clock.as_ref().map_or((1_000_000, false), TraceClock::millisecond)
}

/// Caches, by most of their frees, of sites whose allocations do not name them.
fn usual_caches(session: &Session<'_>, threads: Option<usize>) -> HashMap<Site, Vec<u8>> {
    let all = Selection { threads, ..Selection::default() };
    let result = run(session, &Request::new(&all, &Collectors::default()));
    let names = crate::pass::caches::usual_names(&result);
    let sites = result.interner.sites.items().iter().zip(names);
    sites.filter_map(|(site, name)| Some((*site, result.interner.name(name?).to_vec()))).collect()
}

/// Number of votes at which a sample ends.
const SAMPLE_VOTES: u64 = 32;
/// Number of sampled chunks of each CPU, spread over the trace: a CPU may allocate no slab page for long.
const SAMPLE_CHUNKS: usize = 64;

/// The direct map, from some chunks of each CPU, and by class index, whether it has events there. The order across CPUs does
/// not matter for either.
fn sample(trace: &Trace<'_>) -> (Option<DirectMap>, Vec<bool>) {
    let mut decoder = Decoder::new(trace, Interests::empty());
    let page_size = trace.header().page_size.filter(|s| s.is_power_of_two()).unwrap_or(4096);
    let mut election = Election::new(page_size.trailing_zeros());
    let mut ops = Vec::new();
    let has_page_allocs = may_have(trace, Meaning::PAGE_ALLOC);
    for number in 0..SAMPLE_CHUNKS {
        for stream in trace.streams().values() {
            // Bits of the number reversed: the first few are already far apart.
            let position = (number as u32).reverse_bits() as usize >> (32 - SAMPLE_CHUNKS.ilog2());
            let index = match stream.chunks.len() {
                few if few <= SAMPLE_CHUNKS => number,
                many => position * many / SAMPLE_CHUNKS,
            };
            let Some((at, _)) = stream.chunks.get(index) else { continue };
            let Ok(chunk) = trace.read(at) else { continue };
            if !has_page_allocs {
                decoder.see_classes(&chunk);
                continue;
            }
            ops.resize(chunk.records().len(), Op::default());
            let len = decoder.decode(&mut Open::new(chunk, false), &mut ops);
            election.forget_waiting();
            let interner = &decoder.interner;
            election.add(
                ops.get(..len).unwrap_or_default(),
                u64::MAX,
                no_frame(trace),
                |number| interner.origins.get(number).copied().unwrap_or_default(),
                |number| interner.pages.get(number).copied().unwrap_or_default(),
            );
        }
        if election.votes() >= SAMPLE_VOTES || number > 0 && !has_page_allocs {
            break;
        }
    }
    let direct_map = election.result().filter(|_| has_pages(trace));
    (direct_map, decoder.classes_seen)
}
