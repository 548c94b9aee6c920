//! `footprint`: code and data by directory, beside the memory that a trace has allocated there.
//!
//! Sizes come from a build folder or a linked kernel, allocations from a trace. The screens of one build and of two builds
//! compared are here.

mod build;
mod compare;
mod linked;
mod rows;
mod sizes;

pub use build::lined_kernel;
use build::{FunctionObjects, Objects};
pub use compare::ComparedRows;
use linked::{UNKNOWN, UNNAMED};
pub use rows::{Attribute, FootprintRows};
use rows::{Dynamic, FootprintSums, plus};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kmt_common::{quantity, tell};

use crate::built;
use crate::chart::{source_ring, write_picture};
use crate::env::Env;
use crate::export::output::Target;
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::pass::selection::Selection;
use crate::render::out::{self, Schema, print_rows};
use crate::render::screen::{Cell, Column, Screen, Table, page};
use crate::render::words::{counted, size};
use crate::reports::common::Context;
use crate::reports::grouped::Grouped;
use crate::reports::output::Show;
use crate::reports::run::typed;
use crate::trace::session::Session;

/// Rows of the table without `-l`.
const LINES: usize = 20;
/// Files that were not read, and that a message names.
const REFUSED_NAMED_MAX: usize = 8;

/// Options of `footprint`.
#[derive(Debug, clap::Args)]
pub struct FootprintArgs {
    /// Folder in which the kernel was built: sums of its objects
    #[arg(long, value_name = "DIR")]
    pub build: Option<PathBuf>,
    /// An earlier vmlinux: what each symbol grew since, as bloat-o-meter counts. With --vmlinux
    #[arg(long, value_name = "FILE", conflicts_with_all = ["build", "rings_file"])]
    pub against: Option<PathBuf>,
    /// With --against: exit with 1 if all symbols together grew by more than this
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, requires = "against")]
    pub fail_over: Option<u64>,
    /// Order of the rows, and quantity of the picture
    #[arg(short, long, value_enum, default_value = "current")]
    pub order_by: Attribute,
    /// Draw the directories as rings, as SVG, or PNG if the name ends with .png
    #[arg(short, long, value_name = "FILE.svg")]
    pub rings_file: Option<PathBuf>,
    /// Overwrite the picture if it exists
    #[arg(long)]
    pub force: bool,
    /// Show at most N rows; 0: all [default: 20, all with --json]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    pub lines: Option<usize>,
    /// Machine-readable output; docs/json.md describes it
    #[arg(long)]
    pub json: bool,
}

impl FootprintArgs {
    fn shown(&self) -> usize {
        self.lines.unwrap_or(LINES)
    }
}

/// Compares two builds.
pub fn compare(args: &FootprintArgs, against: &Path, env: &Env, show: &Show) -> Result<Outcome> {
    let Some(vmlinux) = &env.source.vmlinux else {
        return Err(Failure::new("--against compares with a vmlinux, and none is given")
            .hint("--vmlinux FILE names the new one"));
    };
    let rows = compare::compare(&compare::sizes(against, env)?, &compare::sizes(vmlinux, env)?);
    if args.json {
        print_rows(env, Schema::first("footprint-diff"), &rows, args.lines)?;
    } else {
        print(compared(&rows, args.shown()), env, show)?;
    }
    let growth = rows.after.saturating_sub(rows.before);
    match args.fail_over {
        Some(limit) if growth > limit => {
            Err(Failure::new(format!("symbols grew by {growth} bytes, more than --fail-over {limit} allows")))
        }
        _ => Ok(Outcome::Done),
    }
}

/// Prints the footprint of a build, with the allocations of a trace if one is given.
pub fn run(
    args: &FootprintArgs,
    session: Option<&Session<'_>>,
    selection: &Selection,
    env: &Env,
    show: &Show,
) -> Result<Outcome> {
    let target = args.rings_file.as_ref().map(|path| Target { path: path.clone(), force: args.force });
    if let Some(target) = &target {
        built::check_picture(&target.path)?;
        target.check()?;
    }
    let (Objects { objects, refused }, functions) = objects(args, env)?;
    warn_of_refused(&refused);
    let dynamic = session.map(|session| dynamic(session, selection, &functions)).transpose()?;
    let files = rows::by_file(&objects, dynamic.as_ref());
    let branch = selection.branch().unwrap_or_default();
    let depth = env.source.depth.map_or(1, usize::from);
    let mut rows = rows::compute(&files, &branch, depth, args.order_by, dynamic.is_some());
    rows.files_refused = refused.len();
    if rows.rows.is_empty() {
        return Err(Failure::new(format!("nothing of the build is in {branch}"))
            .hint("directories are those of the kernel's source, such as fs/ext4"));
    }
    if let Some(target) = &target {
        if rows.total.of(args.order_by).is_none() {
            return Err(Failure::new(
                "the quantity of the picture is not known: no trace is given, or it lacks the events",
            )
            .hint("--order-by static needs no trace"));
        }
        draw(&files, &branch, args.order_by, target, env)?;
    }
    if args.json {
        print_rows(env, Schema::first("footprint"), &rows, args.lines)?;
    } else {
        print(footprint(&rows, args.order_by, args.shown()), env, show)?;
    }
    Ok(if refused.is_empty() { Outcome::Done } else { Outcome::Incomplete })
}

/// Prints which files were not read.
fn warn_of_refused(refused: &[String]) {
    for why in refused.iter().take(REFUSED_NAMED_MAX) {
        tell!("warning: not read: {why}");
    }
    let more = refused.len().saturating_sub(REFUSED_NAMED_MAX);
    if more > 0 {
        tell!("warning: {more} more files are not read");
    }
}

fn objects(args: &FootprintArgs, env: &Env) -> Result<(Objects, FunctionObjects)> {
    let source = &env.source;
    let mut functions = FunctionObjects::default();
    let mut objects = match (&args.build, &source.vmlinux) {
        (Some(build), _) => build::objects(build, &mut functions)?,
        (None, Some(vmlinux)) => Objects { objects: linked::objects(vmlinux, env)?, refused: Vec::new() },
        (None, None) => {
            return Err(Failure::new("no build is given")
                .hint("--build DIR is the folder in which the kernel was built, --vmlinux FILE a kernel with debug information"));
        }
    };
    if let Some(directory) = &source.modules {
        let modules = build::modules(directory, &mut functions)?;
        objects.objects.extend(modules.objects);
        objects.refused.extend(modules.refused);
    }
    Ok((objects, functions))
}

/// Slab memory by source file, or where that is not known by the object that defines the function, or by directory.
fn dynamic(
    session: &Session<'_>,
    selection: &Selection,
    functions: &FunctionObjects,
) -> Result<BTreeMap<String, Dynamic>> {
    session.check_directories("dynamic memory by directory")?;
    let report = Grouped::by_source();
    let context = Context { session, selection, limit: usize::MAX };
    let (_, rows) = typed(&context, &report);
    let rows = rows.map_err(|reason| Failure::new(format!("{}: {reason}", session.path.display())))?;
    let mut files: BTreeMap<String, Dynamic> = BTreeMap::new();
    for group in rows.groups.iter().flat_map(|groups| &groups.table.groups) {
        let defined = group.text("function").and_then(|function| functions.of(function));
        let path = match (group.text("file").and(group.path()), defined) {
            (None, Some(object)) => Some((object, false)),
            _ => group.path(),
        };
        let path = match path {
            Some((directory, true)) => format!("{directory}/inferred from names"),
            Some((path, false)) => path.to_owned(),
            None => linked::UNKNOWN.to_owned(),
        };
        let file = files.entry(path).or_insert(Dynamic::ZERO);
        let sums = &group.row.sums;
        file.current = plus(file.current, sums.bytes_live);
        file.total = plus(file.total, sums.bytes_alloc);
        file.waste = plus(file.waste, sums.bytes_wasted_live);
    }
    Ok(files)
}

fn draw(
    files: &BTreeMap<String, FootprintSums>,
    branch: &str,
    order: Attribute,
    target: &Target,
    env: &Env,
) -> Result<()> {
    let parts = files.iter().map(|(path, sums)| (path.as_str(), sums.of(order).unwrap_or(0)));
    let what = match order {
        Attribute::Current => "Code, data and memory in use by directory",
        Attribute::Static => "Code and data by directory",
        Attribute::CurrentDynamic => "Memory still allocated, by directory",
        Attribute::TotalDynamic => "Allocated memory by directory",
        Attribute::Waste => "Memory in use beyond what was requested, by directory",
    };
    let picture = source_ring(parts, what, branch, env.source.depth.map(usize::from));
    write_picture(&picture, target, env)
}

fn print(screen: Screen, env: &Env, show: &Show) -> Result<()> {
    let text = page(&screen, &[], &[], &show.look);
    out::print(env, show.pager, text.as_bytes())
}

/// Static and dynamic memory by directory.
fn footprint(rows: &FootprintRows, order: Attribute, lines: usize) -> Screen {
    let total = &rows.total;
    let within =
        if rows.start_branch.is_empty() { String::new() } else { format!(" of {}", rows.start_branch) };
    let mut named = rows.rows.iter().filter(|row| ![UNKNOWN, UNNAMED].contains(&row.path.as_str()));
    // The first row is the largest by the attribute that orders them, which has to be the one that the sentence gives.
    let given = if rows.has_trace { Attribute::Current } else { Attribute::Static };
    let whole = total.of(order).filter(|_| order == given);
    let largest = named.next().zip(whole).and_then(|(row, whole)| Some((row, row.sums.of(order)?, whole)));
    let largest = largest.map_or(String::new(), |(row, part, whole)| match part > whole / 2 {
        true => format!(", most of it {}", row.path),
        false => format!(", the largest part {} ({} %)", row.path, part * 100 / whole.max(1)),
    });
    let answer = match rows.has_trace {
        true => format!(
            "Code and data{within} take {}, allocations in use {}{largest}.",
            size(total.static_bytes),
            total.current_dynamic.map_or("?".to_owned(), size)
        ),
        false => format!("Code and data{within} take {}{largest}.", size(total.static_bytes)),
    };
    let mut screen = Screen::new(answer);
    let mut columns = vec![
        Column::name("directory"),
        Column::number("static"),
        Column::number("text").leaves(3),
        Column::number("data").leaves(4),
        Column::number("rodata").leaves(5),
        Column::number("bss").leaves(4),
        Column::number("percpu").leaves(6),
        Column::number("init").leaves(6),
    ];
    if rows.has_trace {
        columns.extend([
            Column::number("live"),
            Column::number("static + live"),
            Column::number("allocated").leaves(1),
            Column::number("live waste").leaves(2),
        ]);
    }
    let mut table = Table::new("", columns).of("directory", "directories", rows.rows.len());
    for row in rows.rows.iter().take(lines) {
        let (sums, sizes) = (&row.sums, &row.sums.sizes);
        let numbers =
            [sums.static_bytes, sizes.text, sizes.data, sizes.rodata, sizes.bss, sizes.percpu, sizes.init];
        let dynamic = [sums.current_dynamic, sums.current, sums.total_dynamic, sums.waste];
        let dynamic = dynamic.into_iter().filter(|_| rows.has_trace).map(Cell::bytes);
        table.row(
            std::iter::once(Cell::text(&row.path)).chain(numbers.into_iter().map(Cell::Bytes)).chain(dynamic),
        );
    }
    screen.table(table);
    if rows.files_refused > 0 {
        let files = counted(rows.files_refused as u64, "file was", "files were");
        screen.note(format!("{files} not read (not regular files below the folder): sizes are minimums."));
    }
    if rows.has_trace && order == Attribute::Waste {
        screen.note("Live waste: bytes of objects in use beyond those requested.");
    }
    screen
}

/// Differences between two builds.
fn compared(rows: &ComparedRows, lines: usize) -> Screen {
    let change = i128::from(rows.after) - i128::from(rows.before);
    let percent = if rows.before == 0 { 0.0 } else { 100.0 * change as f64 / rows.before as f64 };
    let mut screen = Screen::new(format!(
        "add/remove: {}/{} grow/shrink: {}/{} up/down: {}/-{} ({})",
        rows.added,
        rows.removed,
        rows.grown,
        rows.shrunk,
        rows.up,
        rows.down,
        i128::from(rows.up) - i128::from(rows.down)
    ));
    screen.answer(format!("Total: Before={}, After={}, chg {percent:+.2}%", rows.before, rows.after));
    let columns =
        [Column::name("symbol"), Column::number("old"), Column::number("new"), Column::number("delta")];
    let mut table = Table::new("", columns).of("symbol", "symbols", rows.symbols.len());
    for row in rows.symbols.iter().take(lines) {
        let bytes = |bytes: Option<u64>| bytes.map_or(Cell::text("-"), Cell::Count);
        table.row([Cell::text(&row.name), bytes(row.old), bytes(row.new), Cell::Change(row.delta)]);
    }
    screen.table(table);
    if rows.symbols.is_empty() {
        screen.note(format!("{} are equal in both.", counted(rows.before, "byte", "bytes")));
    }
    screen
}
