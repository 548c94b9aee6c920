//! `chart`: pictures of typed reports, as SVG or PNG. They compute no number of their own.
//!
//! The options name a picture; the rows come from a report, or the stacks from `export folded`, in one pass. Each kind
//! has a file of its own that draws an `Svg`; `frame` adds title, source and trust, as the screen of the report has
//! them. The files go through `Export`, so that they are created by the rules for all outputs.

mod balance;
mod bars;
mod flame;
mod frame;
mod heat;
#[cfg(feature = "png")]
mod png;
mod shares;
pub mod svg;
mod timeline;
mod tree;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::built;
use crate::env::Env;
use crate::export::output::Export;
use crate::export::{Stacks, Target, Weight, folded_stacks};
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::pass::selection::Selection;
use crate::pass::sum_of;
use crate::render::words::escaped;
use crate::reports::common::lead::MaybeRefused;
use crate::reports::common::stated::Stated;
use crate::reports::common::trust::warnings;
use crate::reports::common::{Context, ReportContext};
use crate::reports::fragmentation::Fragmentation;
use crate::reports::grouped::Grouped;
use crate::reports::latency::Latency;
use crate::reports::lifetimes::Lifetimes;
use crate::reports::report::Report;
use crate::reports::run::typed;
use crate::reports::sizes::Sizes;
use crate::reports::timeline::{TimelineKey, TimelineReport};
use crate::trace::open::outcome;
use crate::trace::session::Session;
use clap::ValueEnum;
use frame::Frame;
use kmt_common::tell;

/// Kind of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ChartKind {
    /// Live memory over time, a line for each kind, call site, cache or task
    Timeline,
    /// Memory by account over time, with what is in no account on top (docs/balance.md)
    Balance,
    /// Call stacks by the memory that they allocated, or that is still allocated
    Flame,
    /// The same with the outermost function at the top
    Icicle,
    /// Bytes requested of each kmalloc size class, and bytes allocated beyond the requests
    Waste,
    /// Lifetimes of freed objects, by size
    Lifetimes,
    /// Slab pages of each cache: used and unused
    Filling,
    /// Pageblocks with pages of the recording, by migrate type
    Pageblocks,
    /// Waits for memory: when, and how long
    Latency,
    /// Directories, files and functions of the kernel's source by their memory, as rings
    Ring,
    /// The same as rectangles
    Treemap,
}

/// Options of `chart`.
#[derive(clap::Args)]
pub struct ChartOptions {
    /// Kind of the chart
    #[arg(value_enum)]
    pub kind: ChartKind,
    /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// File to write, SVG, or PNG if its name ends with .png; - is standard output
    #[arg(short, long, value_name = "FILE.svg", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    /// With timeline: key of the lines
    #[arg(long, value_enum, default_value = "kind")]
    pub by: TimelineKey,
    /// With timeline: number of steps
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub steps: u32,
    /// With timeline: at most N lines, and the sum of the others; 0: all lines
    #[arg(short, long = "lines", value_name = "N", default_value = "7", value_parser = limits::lines)]
    pub lines: usize,
    /// With flame and icicle: the quantity that the width of a frame shows
    #[arg(long, value_enum, default_value = "alloc")]
    pub weight: Weight,
    /// With flame and icicle: pages by allocation stack, instead of slab objects
    #[arg(long)]
    pub pages: bool,
    /// With flame and icicle: an earlier file; colours show what grew and what shrank since
    #[arg(long, value_name = "FILE.kmt")]
    pub against: Option<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// Stacks of the earlier file.
    #[arg(skip)]
    pub before: Option<BaseStacks>,
}

impl ChartOptions {
    /// The file to write.
    pub fn target(&self) -> Target {
        Target { path: self.output.clone(), force: self.force }
    }
}

/// Stacks of another file.
pub struct BaseStacks {
    /// The file, as it was given.
    pub name: String,
    /// Weights by stack.
    pub stacks: BTreeMap<String, u64>,
}

impl ChartKind {
    /// True if it is drawn of the stacks of events.
    pub fn is_of_stacks(self) -> bool {
        matches!(self, Self::Flame | Self::Icicle)
    }
}

/// The stacks of another file, by the same weight.
pub fn before(session: &Session<'_>, options: &ChartOptions) -> Result<BaseStacks> {
    let Stacks { lines, .. } =
        folded_stacks(session, &options.selection, &options.target(), options.weight, options.pages)?;
    Ok(BaseStacks { name: escaped(session.path.as_os_str().as_encoded_bytes()), stacks: lines })
}

/// Rows of a report that are asked for: more than any picture shows.
const ROWS_MAX: usize = 60;

/// Levels of a source tree without --depth: directory, directory, file, function.
const LEVELS: usize = 4;
/// Parts of a source tree that have less than this part of the whole are gathered.
const PARTS: u64 = 250;

/// Writes the chart.
pub fn run(session: &Session<'_>, options: &ChartOptions) -> Result<Outcome> {
    let context = Context { session, selection: &options.selection, limit: ROWS_MAX };
    match options.kind {
        ChartKind::Timeline if options.by != TimelineKey::Account => timeline(&context, options),
        ChartKind::Timeline | ChartKind::Balance => accounts(&context, options),
        ChartKind::Flame | ChartKind::Icicle => flame(&context, options),
        ChartKind::Waste => {
            let report = Grouped::<Sizes>::with_defaults();
            let report = report.ok_or_else(|| Failure::new("sizes needs options"))?;
            picture(&context, options, (&report, "sizes"), |rows, frame| Ok(bars::waste(&rows.rows, frame)))
        }
        ChartKind::Lifetimes => {
            let report = (&Lifetimes::by_size(), "lifetimes --by size");
            picture(&context, options, report, |rows, frame| Ok(heat::lifetimes(rows, frame)))
        }
        ChartKind::Filling => picture(&context, options, (&Fragmentation, "fragmentation"), |rows, frame| {
            match &rows.fragmentation.occupancy {
                MaybeRefused::Found(occupied) => Ok(bars::filling(occupied, frame)),
                MaybeRefused::Refused { refused } => Err(lacks(session, "filling of slabs", refused)),
            }
        }),
        ChartKind::Pageblocks => {
            let none = "it needs kmem:mm_page_alloc, which was not recorded";
            picture(&context, options, (&Fragmentation, "fragmentation"), |rows, frame| {
                let sums = rows.fragmentation.pages.pageblocks.as_ref();
                let sums = sums.ok_or_else(|| lacks(session, "pageblocks", none))?;
                Ok(heat::pageblocks(sums, rows.blocks(), frame))
            })
        }
        ChartKind::Latency => {
            let report = (&Latency::with_all_stalls(), "latency --threshold 0");
            let span = options.selection.span(session);
            picture(&context, options, report, |rows, frame| {
                Ok(heat::latency(rows, span, &session.losses, frame))
            })
        }
        ChartKind::Ring | ChartKind::Treemap => source_tree(&context, options),
    }
}

/// Writes a picture of the rows of a report, which that command prints.
fn picture<R: Report>(
    context: &Context<'_, '_>,
    options: &ChartOptions,
    (report, command): (&R, &str),
    draw: impl FnOnce(&R::Rows, &mut Frame) -> Result<String>,
) -> Result<Outcome> {
    context.selection.check(context.session, "this chart", Report::keys(report))?;
    let (analysis, rows) = typed(context, report);
    let rows = rows.map_err(|reason| lacks(context.session, R::TITLE, &reason))?;
    let context = ReportContext::new(context, &analysis);
    let mut frame = frame(&context, command.to_owned());
    write(&context, options, &draw(&rows, &mut frame)?)
}

fn timeline(context: &Context<'_, '_>, options: &ChartOptions) -> Result<Outcome> {
    let report = TimelineReport { by: options.by, steps: options.steps as usize, lines: options.lines };
    let by = options.by.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let lines = if options.lines == usize::MAX { 0 } else { options.lines };
    let command = format!("timeline --by {by} --steps {} -l {lines}", options.steps);
    picture(context, options, (&report, command.as_str()), |rows, frame| {
        report.note(&rows.timeline).into_iter().for_each(|note| tell!("note: {note}"));
        Ok(timeline::draw(&rows.timeline, frame))
    })
}

fn accounts(context: &Context<'_, '_>, options: &ChartOptions) -> Result<Outcome> {
    let report =
        TimelineReport { by: TimelineKey::Account, steps: options.steps as usize, lines: options.lines };
    Report::check(&report, context)?;
    picture(context, options, (&report, "timeline --by account"), |rows, frame| {
        let accounts = rows.accounts.as_ref();
        let accounts = accounts.ok_or_else(|| lacks(context.session, "accounts", "there are no readings"))?;
        if accounts.readings < 2 {
            let failure =
                lacks(context.session, "picture", "one reading of the kernel's accounts has no changes");
            return Err(failure.hint(
                "select more time, or record with --snapshot-every 5s; `timeline --by account` shows one reading",
            ));
        }
        Ok(balance::draw(accounts, frame))
    })
}

fn source_tree(context: &Context<'_, '_>, options: &ChartOptions) -> Result<Outcome> {
    let (session, weight) = (context.session, options.weight);
    session.check_directories("a picture of the source tree")?;
    let context = Context { limit: usize::MAX, ..*context };
    let report = (&Grouped::by_source(), "callers --by dir,file,function");
    picture(&context, options, report, |rows, frame| {
        let branch = options.selection.branch();
        let branch = branch.as_deref();
        let groups = rows.groups.as_ref();
        let groups = groups.ok_or_else(|| lacks(session, "source tree", "its groups are missing"))?;
        let (root, inferred) = tree::compute(groups, weight, branch);
        let (depth, whole) = (session.env.source.depth.map_or(LEVELS, usize::from), root.weight);
        let root = tree::gathered(root, depth, whole / PARTS);
        let picture = tree::SourcePicture {
            title: tree::SourcePicture::title(weight, branch),
            weight,
            whole,
            version: session.version(),
        };
        if inferred > 0 {
            let amount = picture.amount(inferred);
            frame.trust.push(format!("Directories of {amount} are inferred from names of functions."));
        }
        let draw = if options.kind == ChartKind::Ring { shares::ring } else { shares::treemap };
        Ok(draw(&root, &picture, frame))
    })
}

/// Rings of weights in bytes by path, below a directory.
#[cfg(feature = "dwarf")]
pub fn source_ring<'p>(
    paths: impl Iterator<Item = (&'p str, u64)>,
    title: &str,
    branch: &str,
    depth: Option<usize>,
) -> String {
    let root = tree::of_paths(paths, branch);
    let whole = root.weight;
    let root = tree::gathered(root, depth.unwrap_or(LEVELS), whole / PARTS);
    let title = if branch.is_empty() { title.to_owned() } else { format!("{title}: {branch}") };
    let picture = tree::SourcePicture { title, weight: Weight::Alloc, whole, version: None };
    shares::ring(&root, &picture, &Frame::of_command("footprint"))
}

fn lacks(session: &Session<'_>, what: &str, reason: &str) -> Failure {
    Failure::new(format!("{}: no {what}: {reason}", session.path.display()))
}

fn flame(context: &Context<'_, '_>, options: &ChartOptions) -> Result<Outcome> {
    let Stacks { lines, result } =
        folded_stacks(context.session, &options.selection, &options.target(), options.weight, options.pages)?;
    let context = ReportContext::new(context, &result);
    let by = options.weight.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let command = format!("export folded --by {by}{}", if options.pages { " --pages" } else { "" });
    let frame = frame(&context, command);
    write(&context, options, &flame::draw(&lines, options, &frame))
}

/// The heading, source and trust of a chart.
fn frame(context: &ReportContext<'_, '_>, command: String) -> Frame {
    let (session, analysis) = (context.session, context.analysis);
    let stated = Stated::of(context);
    let start = session.first_time().unwrap_or(0);
    Frame {
        file: escaped(session.path.as_os_str().as_encoded_bytes()),
        release: session.trace.metadata().text("kernel.release").map(|text| escaped(text.as_bytes())),
        command,
        start,
        unit: session.unit(),
        selection: stated.as_ref().map_or(Vec::new(), Stated::lines),
        trust: warnings(context, &sum_of(analysis, None)),
    }
}

fn write(context: &ReportContext<'_, '_>, options: &ChartOptions, svg: &str) -> Result<Outcome> {
    let (session, analysis) = (context.session, context.analysis);
    write_picture(svg, &options.target(), &session.env)?;
    Ok(outcome(session, &analysis.faults))
}

/// Writes a picture: PNG where the name of the output ends with it, else SVG.
pub fn write_picture(svg: &str, target: &Target, env: &Env) -> Result<()> {
    let bytes =
        if built::is_png(&target.path) { Cow::Owned(png(svg)?) } else { Cow::Borrowed(svg.as_bytes()) };
    let mut out = Export::open(target, env)?;
    out.write(&bytes)?;
    out.finish()
}

#[cfg(feature = "png")]
fn png(svg: &str) -> Result<Vec<u8>> {
    png::encode(svg)
}

#[cfg(not(feature = "png"))]
fn png(_: &str) -> Result<Vec<u8>> {
    built::check("png", "PNG").map(|()| Vec::new())
}
