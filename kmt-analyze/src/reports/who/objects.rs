//! Lives of the objects that held an address, and their neighbours: rows and screen.
//!
//! The collector `Who` keeps the lives of the address and of the addresses around it.

use serde::{Serialize, Serializer};

use super::frame::FrameRows;
use super::{LifeEnd, ended, lifetime_cell};
use crate::ledger::Closed;
use crate::ledger::lives::{ADDRESS_BITS, End, Free};
use crate::pass::Analysis;
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, escaped};
use crate::reports::common::ages::unknown_age_note;
use crate::reports::common::labels::{Labels, Symbol};
use crate::reports::common::rows::Address;
use crate::reports::common::{ReportContext, View};
use crate::trace::ages::Ages;
use crate::trace::names::{cache_name, function_of};

/// Rows of the report.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhoRows {
    /// The address; `null`: a page frame was given.
    pub address: Option<Address>,
    /// Number of lives, including those beyond the limit of rows.
    pub lives_total: usize,
    /// Lives of the objects that held the address, by time of allocation.
    pub lives: Vec<WhoLifeRow>,
    /// The page frame and its allocations; `null`: an address was given.
    pub frame: Option<FrameRows>,
}

impl WhoRows {
    /// Rows of a page frame.
    pub fn of_frame(frame: FrameRows) -> Self {
        Self { frame: Some(frame), ..Self::default() }
    }
}

/// One life of an object.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhoLifeRow {
    /// Address of the object.
    pub address: Address,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Name of the cache; `null`: unknown, or allocated by kmalloc.
    pub cache: Option<String>,
    /// Time of the allocation, in the clock's unit.
    pub born: u64,
    /// Address of the call site of the allocation.
    pub call_site: Address,
    /// Function and offset of the call site, or its address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Thread id of the allocating task.
    #[serde(rename = "pid")]
    #[cfg_attr(test, schemars(with = "i32"))]
    pub task: TaskThen,
    /// CPU of the allocation.
    pub cpu: u32,
    /// Kind of its end.
    pub end: LifeEnd,
    /// Time of its end, the latest possible one of an implied free; `null`: still allocated.
    pub ended: Option<u64>,
    /// Time from its allocation to its end; `null`: still allocated, or allocated before the clock ran.
    pub lifetime: Option<u64>,
    /// Free that ended it; `null`: no free event.
    pub freed: Option<WhoFreeRow>,
    /// True if the life crosses a loss, or its free is ambiguous.
    pub uncertain: bool,
    /// Address of the next lower object, of those live at the same time.
    #[cfg_attr(test, schemars(with = "Option<Address>"))]
    pub neighbour_below: Option<Neighbour>,
    /// Address of the next higher object, of those live at the same time.
    #[cfg_attr(test, schemars(with = "Option<Address>"))]
    pub neighbour_above: Option<Neighbour>,
}

/// A free event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhoFreeRow {
    /// Time of the event, in the clock's unit.
    pub time: u64,
    /// Address of the call site of the free.
    pub call_site: Address,
    /// Function and offset of the call site, or its address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Thread id of the freeing task.
    #[serde(rename = "pid")]
    #[cfg_attr(test, schemars(with = "i32"))]
    pub task: TaskThen,
    /// CPU of the free.
    pub cpu: u32,
    /// True if the event was logged after the address had been allocated again.
    pub late: bool,
}

/// A task at the time of an event; JSON has its thread id.
#[derive(Debug)]
pub struct TaskThen {
    pub pid: i32,
    /// Name and thread id.
    pub shown: String,
}

impl TaskThen {
    fn of(labels: &Labels<'_, '_>, pid: i32, time: u64) -> Self {
        Self { pid, shown: labels.task_at(pid, time) }
    }
}

impl Serialize for TaskThen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.pid.serialize(serializer)
    }
}

/// An object at a nearby address; JSON has its address: `"0xffff..."`.
#[derive(Debug)]
pub struct Neighbour {
    pub address: Address,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Name of its cache.
    pub cache: Option<String>,
    /// Function and offset of the call site of its allocation, or its address.
    pub symbol: Symbol,
    /// CPU of its allocation.
    pub cpu: u32,
    /// Name and thread id of the allocating task.
    pub task: String,
}

impl Serialize for Neighbour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.address.serialize(serializer)
    }
}

/// Rows of the lives of an address, of those near it.
pub fn compute(context: &ReportContext<'_, '_>, near: &[Closed], address: u64) -> WhoRows {
    let analysis = context.analysis;
    let low = address & ADDRESS_BITS;
    let holds =
        |life: &&Closed| (life.address..life.address.saturating_add(life.bytes_alloc.max(1))).contains(&low);
    let lives: Vec<&Closed> = near.iter().filter(holds).collect();
    let top = address & !ADDRESS_BITS;
    let lookup = Lookup { labels: context.labels(), analysis, top, ages: context.session.ages() };
    WhoRows {
        address: Some(Address(address)),
        lives_total: lives.len(),
        lives: lives.iter().take(context.limit).map(|life| lookup.life(life, near)).collect(),
        frame: None,
    }
}

/// Names of sites, tasks and caches.
struct Lookup<'l, 'r, 'd> {
    labels: &'l Labels<'r, 'd>,
    analysis: &'r Analysis,
    /// Upper byte of the kernel's pointers.
    top: u64,
    ages: Ages,
}

impl Lookup<'_, '_, '_> {
    fn life(&self, life: &Closed, near: &[Closed]) -> WhoLifeRow {
        let (end, freed) = match life.end {
            End::Freed { free, late, .. } => (LifeEnd::Freed, Some(self.free(&free, late.is_some()))),
            End::ImpliedFree { .. } => (LifeEnd::FreedUnseen, None),
            End::Live => (LifeEnd::Live, None),
        };
        let call_site = self.call_site(life);
        let [below, above] = neighbours(life, near).map(|other| other.map(|other| self.neighbour(other)));
        WhoLifeRow {
            address: self.address(life),
            bytes_req: life.bytes_req,
            bytes_alloc: life.bytes_alloc,
            cache: self.cache(life),
            born: life.life.born,
            call_site: Address(call_site),
            symbol: self.labels.located(call_site),
            task: TaskThen::of(self.labels, life.born_at.pid, life.life.born),
            cpu: life.born_at.cpu,
            end,
            ended: life.end.time(),
            lifetime: life.end.time().and_then(|end| self.ages.length(life.life.born, end)),
            freed,
            uncertain: life.uncertain,
            neighbour_below: below,
            neighbour_above: above,
        }
    }

    fn free(&self, free: &Free, late: bool) -> WhoFreeRow {
        let (address, symbol) = self.labels.free_site(self.analysis, free.site);
        let origin = self.analysis.interner.origins.get(free.origin).copied().unwrap_or_default();
        WhoFreeRow {
            time: free.time,
            call_site: Address(address),
            symbol,
            task: TaskThen::of(self.labels, origin.pid, free.time),
            cpu: origin.cpu,
            late,
        }
    }

    fn neighbour(&self, other: &Closed) -> Neighbour {
        Neighbour {
            address: self.address(other),
            bytes_alloc: other.bytes_alloc,
            cache: self.cache(other),
            symbol: self.labels.located(self.call_site(other)),
            cpu: other.born_at.cpu,
            task: self.labels.task_at(other.born_at.pid, other.life.born),
        }
    }

    fn address(&self, life: &Closed) -> Address {
        Address(life.address | self.top)
    }

    fn call_site(&self, life: &Closed) -> u64 {
        self.analysis.interner.sites.get(life.life.site).map_or(0, |site| site.call_site)
    }

    fn cache(&self, life: &Closed) -> Option<String> {
        life.cache.map(|cache| cache_name(self.analysis.interner.name(cache)))
    }
}

/// The objects at the next lower and higher address, of those live at the same time.
fn neighbours<'r>(life: &Closed, near: &'r [Closed]) -> [Option<&'r Closed>; 2] {
    let end = |life: &Closed| life.end.time().unwrap_or(u64::MAX);
    let overlaps = |other: &&Closed| other.life.born <= end(life) && end(other) >= life.life.born;
    let below = near.iter().filter(overlaps).filter(|other| other.address < life.address);
    let above = near.iter().filter(overlaps).filter(|other| other.address > life.address);
    let order = |other: &&Closed| (other.address, other.life.born);
    [below.max_by_key(order), above.min_by_key(order)]
}

/// The objects that held an address, and their neighbours.
pub fn screen(rows: &WhoRows, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows, view));
    screen.table(lives(rows, view));
    screen.table(neighbours_table(rows));
    if rows.lives.iter().any(|life| life.end == LifeEnd::FreedUnseen) {
        screen.note("Implied free: the address or its page was reused, and no free event was recorded; the lifetime is the longest possible.");
    }
    let of_unknown_age = rows.lives.iter().filter(|life| life.lifetime.is_none() && life.ended.is_some());
    screen.notes.extend(unknown_age_note(of_unknown_age.count() as u64));
    if rows.lives.iter().any(|life| life.uncertain) {
        screen.note("Uncertain: the object crosses a loss, or its free is ambiguous.");
    }
    if rows.lives.iter().any(|life| life.freed.as_ref().is_some_and(|free| free.late)) {
        screen.note("Late free event: it was recorded after the address had been allocated again.");
    }
    if let Some(function) = rows.lives.last().and_then(|life| plain_function(&life.symbol)) {
        screen.next(
            CommandLine::from("callers").option("--call-site", function),
            "all objects of this call site",
        );
    }
    screen.next("lifetimes", "lifetimes of all call sites");
    screen
}

/// The function of a symbol, if it is harmless on a command line.
fn plain_function(symbol: &str) -> Option<&str> {
    let function = symbol.split('+').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    (!function.is_empty() && function.chars().all(is_plain)).then_some(function)
}

/// One sentence: the number of objects, and the last of them.
fn answer(rows: &WhoRows, view: &View) -> String {
    let address = rows.address.map_or(0, |address| address.0);
    let Some(last) = rows.lives.last() else {
        return format!(
            "No object that was allocated in the trace held {address:#x}. Objects allocated before the trace are unknown."
        );
    };
    let held = counted(rows.lives_total as u64, "object", "objects");
    let which = match (rows.lives_total, rows.lives.len()) {
        (1, _) => "it",
        (total, shown) if shown < total => "the last one shown",
        _ => "the last one",
    };
    format!(
        "{held} held {address:#x}; {which} was allocated at {} by {} in {}{}.",
        view.time(last.born),
        last.task.shown,
        function_of(&last.symbol),
        end(last, view)
    )
}

/// The end of an object, in words.
fn end(life: &WhoLifeRow, view: &View) -> String {
    let end = ended(&life.end, life.lifetime, view);
    match &life.freed {
        Some(free) => format!("{end} by {} in {}", free.task.shown, function_of(&free.symbol)),
        None => end,
    }
}

/// A row for each object.
fn lives(rows: &WhoRows, view: &View) -> Table {
    let free =
        |life: &WhoLifeRow, cell: &dyn Fn(&WhoFreeRow) -> Cell| life.freed.as_ref().map_or(Cell::Empty, cell);
    Table::of_rows("", (1..).zip(&rows.lives))
        .of("object", "objects", rows.lives_total)
        .column(Column::number("#"), |(number, _)| Cell::Count(*number))
        .column(Column::number("allocated"), |(_, life)| Cell::text(view.time(life.born)))
        .column(Column::number("bytes"), |(_, life)| Cell::Bytes(life.bytes_alloc))
        .column(Column::number("requested").leaves(8), |(_, life)| Cell::Bytes(life.bytes_req))
        .column(Column::text("cache").leaves(3), |(_, life)| cache(life.cache.as_deref()))
        .column(Column::name("call site"), |(_, life)| Cell::from(&life.symbol))
        .column(Column::name("task").leaves(2), |(_, life)| Cell::text(&life.task.shown))
        .column(Column::number("cpu").leaves(6), |(_, life)| Cell::Count(life.cpu.into()))
        .column(Column::number("lifetime"), |(_, life)| lifetime_cell(&life.end, life.lifetime, view))
        .column(Column::name("end"), |(_, life)| match (life.end, &life.freed) {
            (_, Some(free)) => Cell::from(&free.symbol),
            (LifeEnd::Live, _) => Cell::text("still allocated"),
            (_, None) => Cell::text("implied free"),
        })
        .column(Column::name("freed by").leaves(4), |(_, life)| {
            free(life, &|free| Cell::text(&free.task.shown))
        })
        .column(Column::number("freed on cpu").leaves(7), |(_, life)| {
            free(life, &|free| Cell::Count(free.cpu.into()))
        })
        .column(Column::text("address").leaves(9), |(_, life)| address(life.address))
        .column(Column::text("trust").leaves(1), |(_, life)| {
            match (life.uncertain, life.freed.as_ref().is_some_and(|free| free.late)) {
                (true, _) => Cell::text("uncertain"),
                (false, true) => Cell::text("late free event"),
                (false, false) => Cell::text(""),
            }
        })
        .explain("end", "end: call site of the free, or the reason why there is none.")
        .into()
}

fn address(address: Address) -> Cell {
    Cell::text(format!("{:#x}", address.0))
}

/// Objects beside each of these objects, live at the same time.
fn neighbours_table(rows: &WhoRows) -> Table {
    let lives = (1..).zip(&rows.lives);
    let beside = lives.flat_map(|(number, life)| {
        let sides = [("below", &life.neighbour_below), ("above", &life.neighbour_above)];
        sides.into_iter().filter_map(move |(side, other)| Some((number, side, other.as_ref()?)))
    });
    Table::of_rows("neighbours in memory", beside)
        .of("neighbour", "neighbours", 0)
        .column(Column::number("#"), |(number, ..)| Cell::Count(*number))
        .column(Column::whole("side"), |(_, side, _)| Cell::text(*side))
        .column(Column::text("address").leaves(3), |(.., other)| address(other.address))
        .column(Column::number("bytes"), |(.., other)| Cell::Bytes(other.bytes_alloc))
        .column(Column::text("cache").leaves(2), |(.., other)| cache(other.cache.as_deref()))
        .column(Column::name("call site"), |(.., other)| Cell::from(&other.symbol))
        .column(Column::name("task").leaves(1), |(.., other)| Cell::text(&other.task))
        .column(Column::number("cpu").leaves(4), |(.., other)| Cell::Count(other.cpu.into()))
        .into()
}

fn cache(name: Option<&str>) -> Cell {
    name.map_or(Cell::Empty, |name| Cell::text(escaped(name.as_bytes())))
}
