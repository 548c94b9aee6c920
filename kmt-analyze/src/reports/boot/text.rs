//! The screen of `boot`: memory at the end and before user space, who holds it, and the marks of most growth.
//!
//! It has one table, so that it fits a terminal of 24 lines: groups of call sites are in `callers --by`, in JSON and in CSV.

use kmt_format::kernel::ClockUnit;

use super::rows::{BeforeRow, BootRow, BootRows, MarkRow};
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::reports::common::rows::SlabSums;
use crate::reports::grouped::GroupTable;
use crate::trace::boot_marks::{Begin, MarkKind};

/// Directories, and modules, with most live memory.
const HOLDERS: usize = 3;

/// The answer and the marks.
pub fn screen(BootRows { boot }: &BootRows, view: &View) -> Screen {
    let mut screen = Screen::default();
    screen.answer.extend(begin(boot, view));
    screen.answer(answer(boot, view));
    screen.answer.extend(before(boot, view));
    screen.answer.extend(holders(boot));
    screen.table(marks(boot, view));
    if boot.events_at_zero > 0 {
        let events = counted(boot.events_at_zero, "event is", "events are");
        screen.note(format!("{events} from before the clock ran (time 0)."));
    }
    if boot.marks_left_out > 0 {
        let marks = counted(boot.marks_left_out, "mark has", "marks have");
        screen.note(format!("{marks} no row: there are too many."));
    }
    screen.notes.extend(lacks(boot));
    let by = if boot.by_dir.is_some() { "dir,call_site" } else { "module,call_site" };
    let callers = CommandLine::from("callers").option("--by", by).option("--sort", "live");
    screen.next(callers, "who holds it");
    if let Some(at) = boot.peak.and_then(|peak| view.time_option(peak.time)) {
        screen.next(CommandLine::from("caches").option("--at", at), "caches at the peak");
    }
    screen
}

/// True if times are seconds of the clock, as the kernel log has them.
fn has_boot_times(boot: &BootRow, view: &View) -> bool {
    boot.starts_at_boot && view.start_of_day.is_none() && view.unit != ClockUnit::Ticks
}

/// A time of a boot: seconds of the clock. Of another recording: from its first event.
fn time(boot: &BootRow, time: u64, view: &View) -> String {
    match has_boot_times(boot, view) {
        true => View { start: 0, ..*view }.time(time).trim_start_matches('+').to_owned(),
        false => view.time(time),
    }
}

/// A time in a sentence.
fn at(boot: &BootRow, at: u64, view: &View) -> String {
    let text = time(boot, at, view);
    if has_boot_times(boot, view) { format!("{text} s") } else { text }
}

/// Memory that is older than the recording.
fn begin(boot: &BootRow, view: &View) -> Option<String> {
    let first = boot.shown.first;
    match boot.shown.begin {
        Begin::AtBoot => None,
        Begin::Early => Some(format!(
            "The recording begins at {}: memory that was allocated before is not counted.",
            at(boot, first, view)
        )),
        Begin::Later => {
            let since = match view.unit {
                ClockUnit::Nanoseconds => format!(" (its clock shows {:.3} s)", first as f64 / 1e9),
                ClockUnit::Ticks => String::new(),
            };
            Some(format!(
                "The recording does not begin at boot{since}: memory that was allocated before is not counted. For a boot, `kmt-capture check --boot` prints the kernel parameters."
            ))
        }
    }
}

/// Live memory at the end, and the peak.
fn answer(boot: &BootRow, view: &View) -> String {
    let end = at(boot, boot.end, view);
    let slab = boot.bytes_live.map(|live| {
        let [low, high] = boot.bytes_live_range.unwrap_or([live; 2]);
        let uncertain = boot.bytes_live_uncertain.unwrap_or(0);
        let doubt = if high < live {
            format!(" (by /proc/slabinfo {} to {})", view.bytes(low), view.bytes(high))
        } else if low < live {
            format!(" (at least {})", view.bytes(low))
        } else if uncertain > 0 {
            format!(" ({} of it uncertain)", view.bytes(uncertain))
        } else {
            String::new()
        };
        format!("{} of slab memory{doubt}", view.bytes(live))
    });
    let pages = boot.page_bytes_live.map(|live| match boot.page_bytes_live_uncertain {
        Some(uncertain) if uncertain > 0 => {
            format!("{} of pages ({} uncertain)", view.bytes(live), view.bytes(uncertain))
        }
        _ => format!("{} of pages", view.bytes(live)),
    });
    let memory = match (slab, pages) {
        (Some(slab), Some(pages)) => format!("{slab} and {pages}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return "Live memory is unknown: frees were not recorded.".to_owned(),
    };
    let are = if view.is_lossy { "have no free event until" } else { "are still allocated at" };
    let peak = boot.peak.map_or(String::new(), |peak| {
        format!(
            " The peak of slab memory was {} at {}.",
            view.bytes(peak.bytes_live),
            at(boot, peak.time, view)
        )
    });
    format!("{memory} {are} the end ({end}).{peak}")
}

/// Memory from before user space.
fn before(boot: &BootRow, view: &View) -> Option<String> {
    let at = at(boot, boot.user_space?, view);
    let sentence = |row: BeforeRow, of: &str| {
        let doubt = match row.bytes_uncertain {
            0 => String::new(),
            bytes => format!(" (the end of {} is uncertain)", view.bytes(bytes)),
        };
        format!(
            "Before user space began at {at}, {} of {of} were allocated: {} were freed by then, {} later, {} are left{doubt}.",
            view.bytes(row.bytes_alloc),
            view.bytes(row.bytes_freed_before),
            view.bytes(row.bytes_freed_after),
            view.bytes(row.bytes_live)
        )
    };
    let slab = boot.before_user_space.map(|row| sentence(row, "slab memory"));
    slab.or_else(|| boot.pages_before_user_space.map(|row| sentence(row, "pages")))
}

/// Directories and modules that hold most slab memory; without directories, modules or the core kernel, call sites.
fn holders(boot: &BootRow) -> Option<String> {
    let all = boot.bytes_live.filter(|&live| live > 0)?;
    let modules = largest(boot.by_module.as_ref(), "module", all, |module| module != "[kernel]");
    let others = match &boot.by_dir {
        Some(directories) => largest(Some(directories), "dir", all, |_| true),
        None => largest(boot.by_call_site.as_ref(), "call_site", all, |_| true),
    };
    let modules = modules.map(|modules| format!("modules {modules}"));
    let parts: Vec<String> = others.into_iter().chain(modules).collect();
    (!parts.is_empty()).then(|| format!("Slab memory at the end: {}.", parts.join("; ")))
}

/// The first groups that a function selects, and their shares.
fn largest(
    table: Option<&GroupTable<SlabSums>>,
    key: &str,
    all: u64,
    is_it: impl Fn(&str) -> bool,
) -> Option<String> {
    let groups = table?.groups.iter().filter_map(|group| Some((group.text(key)?, group.row.bytes_live?)));
    let groups = groups.filter(|(name, bytes)| is_it(name) && *bytes > 0).take(HOLDERS);
    let names: Vec<String> = groups.map(|(name, bytes)| format!("{name} {}", share(bytes, all))).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Kinds of marks whose events were not recorded; of a recording that begins later, its first sentence is enough.
fn lacks(boot: &BootRow) -> Option<String> {
    if !boot.starts_at_boot || boot.shown.lacks.is_empty() {
        return None;
    }
    let joined = |part: fn(&(&'static str, &'static str)) -> &'static str| {
        boot.shown.lacks.iter().map(part).collect::<Vec<_>>().join(", ")
    };
    Some(format!("No marks of {}: {} not recorded.", joined(|lack| lack.0), joined(|lack| lack.1)))
}

fn mark(row: &MarkRow) -> String {
    let name = row.name.as_deref().unwrap_or("?");
    match row.kind.0 {
        MarkKind::Start => "first event".to_owned(),
        MarkKind::InitcallLevel => format!("initcalls: {name}"),
        MarkKind::Initcall => format!("initcall {name}"),
        MarkKind::Module => format!("module {name}"),
        MarkKind::ModuleUse => format!("module {name} (first event)"),
        MarkKind::FirstProcess => format!("user space: {name}"),
        MarkKind::Init => format!("init: {name}"),
        MarkKind::Process => format!("program {name}"),
    }
}

fn marks(boot: &BootRow, view: &View) -> Table {
    let change = |bytes: Option<i64>| bytes.map_or(Cell::Unknown, Cell::BytesChange);
    let (has_slab, has_pages) = (boot.bytes_live.is_some(), boot.page_bytes_live.is_some());
    let is_lossy = has_slab && view.is_lossy;
    Table::of_rows("", &boot.marks)
        .of("mark", "marks", boot.marks_total)
        .column(Column::number("time"), |row| Cell::text(time(boot, row.time, view)))
        .column(Column::name("mark"), |row| Cell::text(mark(row)))
        .column_if(has_slab, Column::number("slab live"), |row| Cell::bytes(row.bytes_live))
        .column_if(is_lossy, Column::number("uncertain").leaves(1), |row| {
            Cell::bytes(row.bytes_live_uncertain)
        })
        .column_if(has_slab, Column::number("growth"), |row| change(row.bytes_change))
        .column_if(has_pages, Column::number("pages live").leaves(3), |row| Cell::bytes(row.page_bytes_live))
        .column_if(has_pages, Column::number("page growth").leaves(2), |row| change(row.page_bytes_change))
        .explain(
            "mark",
            "Growth is until the next mark; of first event, initcalls and init until the next of these.",
        )
        .explain("pages live", "Pages include those of slabs.")
        .into()
}
