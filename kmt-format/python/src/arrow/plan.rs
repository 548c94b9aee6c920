//! Which columns a table has, and which field of which event goes where.

use std::collections::{BTreeMap, BTreeSet};

use kmt_format::read::Trace;
use kmt_format::schema::{EventClass, Meaning, Role};

use super::column::type_of;
use super::data::Type;
use crate::value::Kind;

/// A file can describe millions of fields.
const COLUMNS_MAX: usize = 4096;

/// The source of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Number,
    Time,
    Cpu,
    Pid,
    Comm,
    Event,
    StackOf,
    DuplicateCallSite,
    Field(Kind),
    /// Symbol of the address in the column before.
    Symbol,
}

impl Source {
    pub fn kind(self) -> Kind {
        match self {
            Self::Number | Self::Time | Self::StackOf | Self::DuplicateCallSite => {
                Kind::Number { width: 8, signed: false }
            }
            Self::Cpu => Kind::Number { width: 4, signed: false },
            Self::Pid => Kind::Number { width: 4, signed: true },
            Self::Comm | Self::Event | Self::Symbol => Kind::Text,
            Self::Field(kind) => kind,
        }
    }
}

/// The column of a field of a class.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub field: usize,
    /// How the class has it; the column may be wider.
    pub kind: Kind,
    pub column: usize,
    pub symbol_column: Option<usize>,
}

/// The columns of a class.
#[derive(Debug, Clone)]
pub struct ClassPlan {
    /// `SYSTEM:EVENT`.
    pub name: String,
    pub cells: Vec<Cell>,
}

/// The columns of a table.
#[derive(Debug, Clone)]
pub struct Plan {
    pub columns: Vec<(String, Source)>,
    /// By class; `None` for those that are left out.
    pub classes: Vec<Option<ClassPlan>>,
}

/// Columns that every table has first.
const BASE: [(&str, Source); 6] = [
    ("number", Source::Number),
    ("time", Source::Time),
    ("cpu", Source::Cpu),
    ("event", Source::Event),
    ("pid", Source::Pid),
    ("comm", Source::Comm),
];

/// A column that a table has only if it is selected among the fields: see [`OwnedEvents::duplicate_call_site`].
///
/// [`OwnedEvents::duplicate_call_site`]: kmt::owned::OwnedEvents::duplicate_call_site
const DUPLICATE: &str = "duplicate_call_site";

impl Plan {
    /// Of the events of those names, or of all that occur, and their fields of those names, or all but the common ones.
    pub fn of(
        trace: &Trace<'_>,
        events: Option<&[String]>,
        fields: Option<&[String]>,
    ) -> Result<Self, String> {
        let found = occurring(trace);
        let classes = found.iter().filter_map(|&index| Some((index, trace.schema().class(index)?)));
        let classes: Vec<(usize, &EventClass)> = classes.collect();
        check(events, "event", || {
            classes.iter().flat_map(|(_, c)| [full_name(c), c.name.clone()]).collect()
        })?;
        let is_wanted = |c: &EventClass| {
            events.is_none_or(|wanted| wanted.iter().any(|name| *name == c.name || *name == full_name(c)))
        };
        let classes: Vec<_> = classes.into_iter().filter(|(_, class)| is_wanted(class)).collect();
        check(fields, "field", || {
            let names = classes.iter().flat_map(|(_, c)| c.fields.iter().map(|f| f.name.clone()));
            names.chain([DUPLICATE.to_owned()]).collect()
        })?;
        let columns = BASE.map(|(name, source)| (name.to_owned(), source)).to_vec();
        let mut plan = Self { columns, classes: vec![None; trace.schema().class_count()] };
        if classes.iter().any(|(_, class)| class.meaning == Meaning::KERNEL_STACK) {
            plan.columns.push(("stack_of".to_owned(), Source::StackOf));
        }
        if fields.is_some_and(|wanted| wanted.iter().any(|name| name == DUPLICATE)) {
            plan.columns.push((DUPLICATE.to_owned(), Source::DuplicateCallSite));
        }
        let mut places: BTreeMap<String, usize> =
            plan.columns.iter().enumerate().map(|(index, (name, _))| (name.clone(), index)).collect();
        let has_symbols = trace.symbols().is_some();
        for (index, class) in classes {
            let class_plan = plan.add(class, fields, has_symbols, &mut places)?;
            if let Some(place) = plan.classes.get_mut(index) {
                *place = Some(class_plan);
            }
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        class: &EventClass,
        fields: Option<&[String]>,
        has_symbols: bool,
        places: &mut BTreeMap<String, usize>,
    ) -> Result<ClassPlan, String> {
        let mut cells = Vec::new();
        for (index, field) in class.fields.iter().enumerate() {
            if !fields.map_or(index >= class.common_count, |wanted| wanted.contains(&field.name)) {
                continue;
            }
            let kind = Kind::of(field);
            // A field that has no place beside fields of the same name gets a column of its own.
            let names = [field.name.clone(), format!("{}.{}", class.name, field.name)];
            let column = names.into_iter().find_map(|name| self.place(name, Source::Field(kind), places));
            let Some(column) = column else { continue };
            let is_code = class.roles.get(index) == Some(&Role::CALL_SITE) && has_symbols;
            let symbol_column = is_code
                .then(|| self.columns.get(column).map(|(name, _)| format!("{name}_text")))
                .flatten()
                .and_then(|name| self.place(name, Source::Symbol, places));
            cells.push(Cell { field: index, kind, column, symbol_column });
            if self.columns.len() > COLUMNS_MAX {
                return Err(format!("more than {COLUMNS_MAX} columns: name the events, or the fields"));
            }
        }
        Ok(ClassPlan { name: full_name(class), cells })
    }

    /// The column of that name, if what it holds can hold this too; made if there is none.
    fn place(&mut self, name: String, source: Source, places: &mut BTreeMap<String, usize>) -> Option<usize> {
        let Some(&index) = places.get(&name) else {
            places.insert(name.clone(), self.columns.len());
            self.columns.push((name, source));
            return Some(self.columns.len() - 1);
        };
        let column = self.columns.get_mut(index)?;
        column.1 = match (column.1, source) {
            (Source::Field(a), Source::Field(b)) => Source::Field(a.and(b)?),
            (Source::Symbol, Source::Symbol) => Source::Symbol,
            _ => return None,
        };
        Some(index)
    }

    /// The type of its batches.
    pub fn schema(&self) -> Type {
        let is_always_there = |source: Source| {
            matches!(source, Source::Number | Source::Time | Source::Cpu | Source::Event | Source::Pid)
        };
        let column = |(name, source): &(String, Source)| Type {
            is_nullable: !is_always_there(*source),
            ..type_of(source.kind(), name)
        };
        Type {
            children: self.columns.iter().map(column).collect(),
            is_nullable: false,
            ..Type::plain("+s", "")
        }
    }
}

/// Classes that have events, by what the chunks' tables name. Chunks that are damaged have none.
pub fn occurring(trace: &Trace<'_>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for (chunk, _) in trace.streams().values().flat_map(|stream| &stream.chunks) {
        let Ok(chunk) = trace.read(chunk) else { continue };
        let shapes = (0..chunk.descriptor_count()).filter_map(|descriptor| chunk.shape_of(descriptor));
        found.extend(shapes.filter_map(|shape| Some(trace.schema().shape(shape)?.class)));
    }
    found
}

fn full_name(class: &EventClass) -> String {
    format!("{}:{}", class.system, class.name)
}

fn check(
    wanted: Option<&[String]>,
    what: &str,
    known: impl FnOnce() -> BTreeSet<String>,
) -> Result<(), String> {
    let Some(wanted) = wanted else { return Ok(()) };
    let known = known();
    let Some(missing) = wanted.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let known: Vec<String> = known.into_iter().collect();
    Err(format!("no {what} \"{missing}\"; there are {}", known.join(", ")))
}
