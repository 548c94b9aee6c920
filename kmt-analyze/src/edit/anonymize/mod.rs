//! `anonymize`: a trace that can be shared.
//!
//! Everything is on an allow-list: unknown chunks, keys, attached files, events and fields are removed, or become zero.
//! Addresses, frames, task ids and times get new values that depend on a key, which is not stored. See [`memory`] for
//! the layout that stays, [`code`] for functions.

mod allowed;
mod code;
mod facts;
mod fields;
mod files;
mod keys;
mod manifest;
mod memory;
mod record;
mod survey;

#[cfg(test)]
pub use manifest::AnonymizeRows;

use std::collections::{BTreeSet, HashMap};

use kmt_common::kmt_file::KmtFile;
use kmt_common::survivors::LEARNED_KEY;
use kmt_format::kernel::CpuStats;
use kmt_format::read::{EarlyEnd, Event};
use kmt_format::write::Task;

use self::code::{Code, Hiding};
use self::fields::ClassMask;
use self::keys::{Purpose, SecretKeys};
use self::manifest::ManifestRow;
use self::memory::{Memory, Shape};
use self::record::Masks;
use self::survey::Survey;
use super::copy::{self, failed};
use super::folds::{Change, Folds};
use super::{InputArgs, OutputArgs};
use crate::collect::Collectors;
use crate::export::output::Export;
use crate::failure::{Failure, Outcome, Result};
use crate::pass::selection::Selection;
use crate::pass::{self, Request};
use crate::sort_rows::SortRows;
use crate::trace::faults::Faults;
use crate::trace::open::outcome;
use crate::trace::session::Session;
use keys::{CacheTexts, Texts};

/// Readers of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Audience {
    /// Anyone: also hides modules that mainline Linux does not have, their functions, and such caches
    Public,
}

/// Options of `anonymize`.
#[derive(Debug, clap::Args)]
pub struct AnonymizeOptions {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub made: OutputArgs,
    /// Replace names of functions and modules, and shuffle functions and call sites
    #[arg(long)]
    pub hide_symbols: bool,
    /// Replace names of caches, except those of kmalloc
    #[arg(long)]
    pub hide_caches: bool,
    /// Hide more, for these readers
    #[arg(long = "for", value_enum, value_name = "READERS")]
    pub audience: Option<Audience>,
    /// For tests: derive the key from this number. Anyone who guesses the number can undo the anonymization
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Print the manifest as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Writes the trace without data that identifies its target.
pub fn run(session: &Session<'_>, options: &AnonymizeOptions) -> Result<Outcome> {
    if options.json && options.made.output.as_os_str() == "-" {
        return Err(Failure::new("the file and the manifest cannot both go to standard output")
            .hint("with --json give -o a file"));
    }
    let trace = session.trace;
    let keys = SecretKeys::new(options.seed)?;
    let plans = plans(session);
    let mut masks = masks(session, options, keys, &plans)?;
    let mut manifest = ManifestRow::new(session, &plans, options);
    let mut file = begin(session, options, &keys, &plans)?;
    about(session, &mut file, &mut masks, &mut manifest)?;
    let mut merge = trace.merge();
    let mut folds = Folds::of(session, None);
    let mut record = Vec::new();
    while let Some(run) = merge.next_run() {
        if let Some(gap) = run.gap.as_ref().filter(|gap| !gap.is_empty()) {
            copy::gap(&mut file, run.cpu, gap)?;
        }
        for event in run.events() {
            folds.until(event.time(), &mut file, &mut Masked { masks: &mut masks, plans: &plans })?;
            let Some(Some(plan)) = plans.get(event.class_index()) else { continue };
            masks.record(&event, plan, &mut record);
            manifest.left_out.events_emptied += u64::from(plan.is_hidden());
            copy::event(&mut file, run.cpu, masks.time(event.time()), &record)?;
        }
    }
    folds.finish(&mut file, &mut Masked { masks: &mut masks, plans: &plans })?;
    let mut faults: Faults = merge.damages().into();
    faults.damages.append(&mut folds.damages);
    manifest.kept.folded_events = folds.events;
    manifest.kept.events = copy::finish(file)?;
    manifest.print(&masks, options.json, &session.env)?;
    Ok(outcome(session, &faults))
}

/// Changes of samples in sums: those of events.
struct Masked<'m> {
    masks: &'m mut Masks,
    plans: &'m [Option<ClassMask>],
}

impl Change for Masked<'_> {
    fn record(&mut self, event: &Event<'_>, record: &mut Vec<u8>) {
        if let Some(Some(plan)) = self.plans.get(event.class_index()) {
            self.masks.record(event, plan, record);
        }
    }

    fn time(&self, time: u64) -> u64 {
        self.masks.time(time)
    }
}

/// Treatments of the classes, by index.
fn plans(session: &Session<'_>) -> Vec<Option<ClassMask>> {
    let mut plans = Vec::new();
    let mut unknown = 0;
    for (index, class) in session.trace.schema().classes() {
        let plan = ClassMask::of(class, unknown + 1, session.trace.header().long_size);
        unknown += usize::from(plan.is_hidden());
        plans.resize_with(plans.len().max(index + 1), || None);
        plans[index] = Some(plan);
    }
    plans
}

/// Reads all events once, and draws the new values.
fn masks(
    session: &Session<'_>,
    options: &AnonymizeOptions,
    keys: SecretKeys,
    plans: &[Option<ClassMask>],
) -> Result<Masks> {
    let trace = session.trace;
    let header = trace.header();
    let shape = shape(session);
    let mut survey = Survey::of(session, plans, &shape);
    sampled_sites(session, &mut survey, &shape);
    let is_public = options.audience == Some(Audience::Public);
    let caches = match (options.hide_caches, is_public) {
        (true, _) => CacheTexts::Hide,
        (false, true) => CacheTexts::Mainline,
        (false, false) => CacheTexts::Keep,
    };
    let mut texts = Texts::new(keys, caches);
    let hides_owner = |owner: Option<&[u8]>| {
        options.hide_symbols || is_public && owner.is_some_and(|o| !allowed::has_module(o))
    };
    let hiding = Hiding { owner: &hides_owner, nameless: options.hide_symbols };
    let no_room = |what: &str| {
        Failure::new(format!("{}: {what} leave no room to move", session.path.display()))
            .hint("slice keeps events by name, time or CPU: leave out those with such addresses")
    };
    let code = Code::new(trace.symbols(), &survey.code, header.long_size, &keys, hiding, &mut texts);
    let code = code.ok_or_else(|| no_room("addresses of functions"))?;
    let nameless: Vec<u64> = survey.code.iter().copied().filter(|&a| code.moved(a).is_none()).collect();
    survey.finish(&shape, nameless);
    let memory = Memory::new(shape, &keys, &survey.data);
    let memory = memory.ok_or_else(|| no_room("addresses of objects and page frames"))?;
    let first_time = survey.first_time.unwrap_or(0);
    // Function graphs have times of the local clock, not of the trace's.
    let clock = trace.metadata().clock.as_ref().map_or("", |c| c.name.as_str());
    let is_one_clock = matches!(clock, "" | "local" | "global");
    let first_field_time = survey.first_field_time.unwrap_or(first_time);
    let both = first_time.min(first_field_time);
    let (first_time, first_field_time) =
        if is_one_clock { (both, both) } else { (first_time, first_field_time) };
    let pids = pids(&survey, &keys).ok_or_else(|| no_room("task ids"))?;
    Ok(Masks { keys, memory, code, texts, pids, first_time, first_field_time })
}

fn shape(session: &Session<'_>) -> Shape {
    let header = session.trace.header();
    let page_size = header.page_size.filter(|s| s.is_power_of_two() && *s < 1 << 30).unwrap_or(4096);
    let result = pass::run(session, &Request::new(&Selection::default(), &Collectors::default()));
    let pageblock = match session.pageblock_order() {
        (order, false) => order,
        _ => 0,
    };
    // An allocation must not cross its block.
    let orders = result.interner.pages.items().iter().map(|site| u32::from(site.order));
    let order = orders.filter(|&order| order <= 15).max().unwrap_or(0).max(pageblock);
    Shape::new(header.long_size, page_size, order, result.direct_map.map(|map| map.base))
}

/// Call sites in the metadata on perf's samples.
fn sampled_sites(session: &Session<'_>, survey: &mut Survey, shape: &Shape) {
    let text = session.trace.metadata().text("perf/sampled_sites").unwrap_or_default();
    let sites = text.lines().filter_map(|line| line.split(' ').nth(1)?.strip_prefix("0x"));
    for site in sites.filter_map(|hex| u64::from_str_radix(hex, 16).ok()) {
        survey.site(site, shape);
    }
}

/// New task ids. Before Linux 4.15 or so, ids above 32,768 have no saved names.
fn pids(survey: &Survey, keys: &SecretKeys) -> Option<HashMap<i32, i32>> {
    let old: BTreeSet<u64> =
        survey.pids.iter().filter_map(|&pid| u64::try_from(pid).ok()).filter(|&p| p > 0).collect();
    let is_small = old.iter().next_back().is_none_or(|&pid| pid <= 32_768) && old.len() < 20_000;
    let limits = if is_small { [32_768, 1 << 22, 1 << 30] } else { [1 << 22, 1 << 30, 1 << 30] };
    let drawn = limits.iter().find_map(|&limit| keys.draw(Purpose::Pids, &old, 1..limit))?;
    Some(drawn.into_iter().map(|(old, new)| (old as i32, new as i32)).collect())
}

/// A file with these classes. Its UUID depends on the key, so that nothing links it to the original.
fn begin(
    session: &Session<'_>,
    options: &AnonymizeOptions,
    keys: &SecretKeys,
    plans: &[Option<ClassMask>],
) -> Result<KmtFile<Export>> {
    let uuid = session.trace.header().trace_uuid;
    let words = [0, 1].map(|part| keys.text(Purpose::Uuid, "uuid", &uuid, part).to_le_bytes());
    let mut trace_uuid = [0; 16];
    trace_uuid.iter_mut().zip(words.concat()).for_each(|(to, from)| *to = from);
    let classes = plans.iter().flatten().map(|plan| (plan.system.as_str(), plan.format_text.as_str()));
    copy::begin_with_classes(session, &options.made, trace_uuid, classes)
}

/// Copies everything except the events.
fn about(
    session: &Session<'_>,
    file: &mut KmtFile<Export>,
    masks: &mut Masks,
    manifest: &mut ManifestRow,
) -> Result<()> {
    let metadata = session.trace.metadata();
    if let Some(clock) = &metadata.clock {
        file.writer.add_clock(&facts::clock(clock)).map_err(|e| failed(&e))?;
    }
    let (mut pairs, dropped) = facts::pairs(metadata, masks);
    if session.trace.header().folded {
        // Not all events are there to learn it from.
        pairs.push((LEARNED_KEY.to_owned(), facts::direct_map(metadata, masks.memory.map())));
    }
    if let Some(mut end) = session.trace.early_end() {
        end.complete_until.values_mut().flatten().for_each(|until| *until = masks.time(*until));
        pairs.push((EarlyEnd::KEY.to_owned(), end.to_text()));
    }
    (manifest.kept.keys, manifest.left_out.keys) = (pairs.len(), dropped);
    let pairs: Vec<(&str, &[u8])> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_bytes())).collect();
    file.writer.add_metadata(&pairs).map_err(|e| failed(&e))?;
    for attached in &metadata.attachments {
        match files::masked(attached, masks) {
            Some((name, contents)) => {
                let times = attached.times.map(|(from, to)| (masks.time(from), masks.time(to)));
                file.writer.add_file_at(&name, &contents, times).map_err(|e| failed(&e))?;
                manifest.kept.files.push(name);
            }
            None => manifest.left_out.files += 1,
        }
    }
    let tasks = metadata.tasks.iter().map(|task| {
        Task::new(masks.pid(task.pid), masks.texts.task(&task.comm))
            .tgid(masks.pid(task.tgid))
            .since(masks.time(task.time))
    });
    let mut tasks: Vec<Task> = tasks.collect();
    // The order of the old ids must not be visible.
    tasks.sort_rows_by_key(|task| task.pid);
    if !tasks.is_empty() {
        file.writer.add_tasks(&tasks).map_err(|e| failed(&e))?;
    }
    let moved = |mut stats: CpuStats| {
        stats.oldest_time = stats.oldest_time.map(|t| masks.time(t));
        stats.now_time = stats.now_time.map(|t| masks.time(t));
        stats
    };
    copy::counters(&mut file.writer, session, |_| true, moved)?;
    if session.trace.symbols().is_some() {
        file.writer.add_symbols(&masks.code.table(), &[]).map_err(|e| failed(&e))?;
    }
    Ok(())
}
