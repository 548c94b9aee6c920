//! An SQLite database; docs/export.md describes its tables.
//!
//! Tables are in tables.sql, views and indices in views.sql. Rows of objects come from the spool of a pass and have the
//! names of call sites, caches and tasks as keys to other tables; rows of events come from the file. SQLite writes to
//! the temporary path of the output, which gets its name when the database is complete.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OpenFlags, ToSql, params};

use super::sums::without_rows;
use super::tabular::object::{CALL_SITE, ObjectLives, Resolver, call_sites, lives, next};
use super::tabular::{ExportCell, RowsLeft, event};
use super::{ExportOf, ExportOptions, report_trust};
use crate::failure::{Failure, Outcome, Result};
use crate::render::head::is_minimum;
use crate::render::words::escaped;
use crate::reports::common::basis::Input;
use crate::stream::known_gfp;
use crate::trace::faults::Faults;
use crate::trace::folded::{self, FoldedLifeCount};
use crate::trace::names::cache_name;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Tables, created before rows are inserted.
const TABLES: &str = include_str!("tables.sql");
/// Indices and views, created after that.
const VIEWS: &str = include_str!("views.sql");

/// Writes a database.
pub fn run(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    if options.output == Path::new("-") {
        return Err(
            Failure::new("a database cannot be written to standard output").hint("give a file name with -o")
        );
    }
    let output = options.target().open()?;
    let Some(temporary) = output.unfinished() else {
        return Err(Failure::new(format!("{} is not a file", options.output.display()))
            .hint("a database is written here and there: give a file name with -o"));
    };
    let faults = write(session, options, &real_path(temporary)?)?;
    output.finish()?;
    Ok(outcome(session, &faults))
}

/// The path without symbolic links: with the flag below SQLite follows none in the directories either.
fn real_path(path: &Path) -> Result<PathBuf> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).map_err(|e| Failure::io("opening", folder, &e))?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

fn write(session: &Session<'_>, options: &ExportOptions, path: &Path) -> Result<Faults> {
    let mut lives = lives(session, &options.selection, &options.target(), Input::SlabAllocs)?;
    report_trust(session, &options.selection, &lives.result);
    let names = Resolver::new(session, &lives.result);
    let failed = |e: rusqlite::Error| Failure::new(format!("writing {}: {e}", options.output.display()));
    // A symbolic link that replaces the file in the meantime is not followed.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut database = Connection::open_with_flags(path, flags).map_err(failed)?;
    // An incomplete file is removed, so it need not survive a crash.
    database.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;").map_err(failed)?;
    let transaction = database.transaction().map_err(failed)?;
    transaction.execute_batch(TABLES).map_err(failed)?;
    about(&transaction, session).map_err(failed)?;
    let without_rows = without_rows(session, options, &ExportOf::Objects);
    sums(&transaction, session, without_rows).map_err(failed)?;
    sites(&transaction, &lives, &names).map_err(failed)?;
    tasks(&transaction, session, options.selection.span(session).1).map_err(failed)?;
    let rows_max = options.rows_max();
    objects(&transaction, &mut lives, &names, (rows_max, &failed))?;
    {
        let mut statement = transaction.prepare(&insert("call_sites", CALL_SITE.len())).map_err(failed)?;
        for row in call_sites(&lives.result, &names, session.losses.any()).into_iter().take(rows_max) {
            statement.execute(rusqlite::params_from_iter(row.iter())).map_err(failed)?;
        }
    }
    let mut faults = std::mem::take(&mut lives.result.faults);
    if options.events {
        let insert = insert("events", event::EVENT.len());
        let mut statement = transaction.prepare(&insert).map_err(failed)?;
        let mut left = RowsLeft(rows_max);
        faults.join(event::each(session, &options.selection, &mut |row| {
            if left.take() {
                statement.execute(rusqlite::params_from_iter(row.iter())).map_err(failed)?;
            }
            Ok(left.0 > 0)
        })?);
    }
    transaction.execute_batch(VIEWS).map_err(failed)?;
    if without_rows.is_some() {
        transaction.execute_batch("DROP VIEW task_load; DROP VIEW paths;").map_err(failed)?;
    }
    transaction.commit().map_err(failed)?;
    database.close().map_err(|(_, e)| failed(e))?;
    Ok(faults)
}

/// Writes the properties of the trace.
fn about(database: &Connection, session: &Session<'_>) -> rusqlite::Result<()> {
    let mut pair = database.prepare("INSERT INTO trace VALUES (?, ?)")?;
    let metadata = session.trace.metadata();
    let clock = metadata.clock.as_ref();
    let unit = match session.unit() {
        kmt_format::kernel::ClockUnit::Nanoseconds => "ns",
        kmt_format::kernel::ClockUnit::Ticks => "ticks",
    };
    let number = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    for (key, value) in [
        ("schema_version", "1".to_owned()),
        ("events", session.trace.event_count().to_string()),
        ("lost_events", session.losses.lost_events().to_string()),
        ("lost_events_is_minimum", u8::from(is_minimum(&session.losses)).to_string()),
        ("first", number(session.first_time())),
        ("last", number(session.last_time())),
        ("clock", clock.map_or(String::new(), |c| escaped(c.name.as_bytes()))),
        ("clock_unit", unit.to_owned()),
    ] {
        pair.execute(params![key, value])?;
    }
    for (key, value) in &metadata.pairs {
        pair.execute(params![format!("file.{}", escaped(key.as_bytes())), escaped(value)])?;
    }
    let mut cpu = database.prepare("INSERT INTO cpus VALUES (?, ?, ?)")?;
    for c in &session.losses.cpus {
        cpu.execute(params![c.cpu, c.events as i64, c.lost_events() as i64])?;
    }
    Ok(())
}

/// Writes how many objects are only in sums: no row of `objects` is of them, and views of `objects` would be of a part.
fn sums(
    database: &Connection,
    session: &Session<'_>,
    lives: Option<FoldedLifeCount>,
) -> rusqlite::Result<()> {
    let Some(lives) = lives else { return Ok(()) };
    let events = folded::all_events(session.trace).saturating_sub(session.trace.event_count());
    for (key, value) in [
        ("folded_events", events),
        ("objects_in_sums", lives.count),
        ("objects_in_sums_is_minimum", u64::from(!lives.is_exact)),
    ] {
        database.execute("INSERT INTO trace VALUES (?, ?)", params![key, value.to_string()])?;
    }
    Ok(())
}

fn sites(database: &Connection, lives: &ObjectLives, names: &Resolver<'_, '_>) -> rusqlite::Result<()> {
    let interner = &lives.result.interner;
    let mut site = database.prepare("INSERT INTO sites VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    for (number, s) in interner.sites.items().iter().enumerate() {
        let text = names.site(number as u32);
        site.execute(params![
            number as i64,
            s.api.name(),
            s.call_site as i64,
            text.symbol,
            text.cache,
            s.bytes_req as i64,
            s.bytes_alloc as i64,
            known_gfp(s.gfp_flags).map(|flags| flags as i64),
            text.gfp,
            s.node,
        ])?;
    }
    let mut free = database.prepare("INSERT INTO free_sites VALUES (?, ?, ?, ?, ?)")?;
    for (number, f) in interner.frees.items().iter().enumerate() {
        let cache = f.cache.map(|name| cache_name(interner.name(name)));
        free.execute(params![
            number as i64,
            f.api.name(),
            f.call_site as i64,
            names.symbol(f.call_site),
            cache
        ])?;
    }
    let mut frame = database.prepare("INSERT INTO stacks VALUES (?, ?, ?, ?)")?;
    for (number, stack) in interner.stacks.items().iter().enumerate() {
        for (depth, &address) in stack.iter().enumerate() {
            frame.execute(params![number as i64, depth as i64, address as i64, names.symbol(address)])?;
        }
    }
    Ok(())
}

/// Writes the tasks, with their names at a time.
fn tasks(database: &Connection, session: &Session<'_>, time: u64) -> rusqlite::Result<()> {
    let mut task = database.prepare("INSERT OR REPLACE INTO tasks VALUES (?, ?)")?;
    for (pid, comm) in session.names().all_at(time) {
        task.execute(params![pid, escaped(comm)])?;
    }
    Ok(())
}

fn objects(
    database: &Connection,
    lives: &mut ObjectLives,
    names: &Resolver<'_, '_>,
    (rows_max, failed): (usize, &dyn Fn(rusqlite::Error) -> Failure),
) -> Result<()> {
    let mut statement = database.prepare(&insert("objects", 18)).map_err(failed)?;
    let mut left = RowsLeft(rows_max);
    while let Some(o) = next(&mut lives.objects)?.filter(|_| left.take()) {
        statement
            .execute(params![
                names.addresses.whole(o.address) as i64,
                o.site,
                names.cache(&o),
                o.born as i64,
                o.born_at.cpu,
                o.born_at.pid,
                o.is_born,
                o.end.map(|end| end as i64),
                o.fate(),
                o.lifetime(names.ages).map(|l| l as i64),
                o.is_freed,
                o.is_live,
                o.free_site,
                o.freed_at.map(|at| at.cpu),
                o.freed_at.map(|at| at.pid),
                o.is_late,
                o.uncertain,
                o.stack,
            ])
            .map_err(failed)?;
    }
    Ok(())
}

fn insert(table: &str, columns: usize) -> String {
    format!("INSERT INTO {table} VALUES ({})", vec!["?"; columns].join(", "))
}

impl ToSql for ExportCell {
    /// Numbers above 2^63, which only addresses are, keep their bits: `printf('0x%x', address)` shows them.
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => rusqlite::types::Null.into(),
            Self::Int(number) => (*number).into(),
            Self::Uint(number) | Self::Address(number) => (*number as i64).into(),
            Self::Bool(truth) => (*truth).into(),
            Self::Text(text) => text.as_str().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tabular::ColumnKind;
    use super::*;

    #[test]
    fn tables_have_the_columns_that_rows_have() {
        let database = Connection::open_in_memory().unwrap();
        database.execute_batch(TABLES).unwrap();
        database.execute_batch(VIEWS).unwrap();
        for (table, columns) in [("call_sites", &CALL_SITE[..]), ("events", &event::EVENT[..])] {
            let statement = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
            let names: Vec<&str> = columns.iter().map(|(name, _): &(&str, ColumnKind)| *name).collect();
            assert_eq!(statement.column_names(), names);
        }
        assert_eq!(database.prepare("SELECT * FROM objects").unwrap().column_count(), 18);
    }
}
