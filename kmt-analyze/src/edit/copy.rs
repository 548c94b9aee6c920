//! A new file from parts of another one.
//!
//! `slice`, `anonymize` and `folds` write through these functions: classes, clock, symbols, names of tasks, counters,
//! source lines and events of the old file go to a `KmtFile`. Positions of losses are kept, as a copy must not look
//! more complete than its source.

use std::collections::BTreeSet;

use indexmap::IndexSet;
use kmt_common::kmt_file::KmtFile;
use kmt_format::Error;
use kmt_format::kernel::{CpuStats, KernelSymbols, Symbol, SymbolOwner, parse_modules};
use kmt_format::read::Gap;
use kmt_format::tables::SourceLine;
use kmt_format::write::{StatsTaken, Task, Writer, WriterOptions};

use super::OutputArgs;
use crate::export::output::Export;
use crate::failure::{Failure, Result};
use crate::sort_rows::SortRows;
use crate::trace::session::Session;

/// Rows of a chunk of source lines, about: rows of one address stand in one chunk.
const ROWS: usize = 4_096;

/// Adds source lines, which are sorted by address.
pub fn add_lines(writer: &mut Writer, lines: &[SourceLine<'_>]) -> Result<()> {
    for rows in chunks(lines) {
        writer.add_lines(rows).map_err(|e| failed(&e))?;
    }
    Ok(())
}

/// Rows in parts that end with an address.
fn chunks<'l, 'd>(lines: &'l [SourceLine<'d>]) -> impl Iterator<Item = &'l [SourceLine<'d>]> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        let next = rest.get(ROWS).map(|line| line.address);
        let end = next.map_or(rest.len(), |address| rest.partition_point(|line| line.address <= address));
        let (part, after) = rest.split_at(end);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Table of these symbols: address, size, kind, owner and name of each.
pub fn symbol_table<'s>(
    symbols: impl Iterator<Item = (u64, u64, u8, Option<&'s [u8]>, &'s [u8])>,
) -> KernelSymbols<'s> {
    let mut owners: IndexSet<&[u8]> = IndexSet::new();
    let symbols = symbols.map(|(address, size, kind, owner, name)| {
        let owner = owner.map_or(SymbolOwner::Core, |owner| {
            SymbolOwner::Owner(u16::try_from(owners.insert_full(owner).0).unwrap_or(u16::MAX))
        });
        Symbol { address, size, kind, owner, name }
    });
    let mut symbols: Vec<Symbol<'_>> = symbols.collect();
    symbols.sort_rows_by_key(|s| s.address);
    KernelSymbols { symbols, owners: owners.into_iter().collect(), all_zero: false }
}

/// Failure for an unexpected error of the format.
pub fn failed(error: &Error) -> Failure {
    Failure::new(format!("writing the file: {error}"))
}

/// Begins a file for the same machine and the same event classes.
pub fn begin(session: &Session<'_>, made: &OutputArgs, trace_uuid: [u8; 16]) -> Result<KmtFile<Export>> {
    let classes = session.trace.schema().classes();
    let classes = classes.map(|(_, class)| (class.system.as_str(), &*class.format_text));
    begin_with_classes(session, made, trace_uuid, classes)
}

/// Begins a file for the same machine with these classes: system, and the kernel's description.
pub fn begin_with_classes<'c>(
    session: &Session<'_>,
    made: &OutputArgs,
    trace_uuid: [u8; 16],
    classes: impl Iterator<Item = (&'c str, &'c str)>,
) -> Result<KmtFile<Export>> {
    let header = session.trace.header();
    let options = WriterOptions::new(header.order, header.long_size)
        .align_u64(header.align_u64)
        .page_size(header.page_size)
        .trace_uuid(trace_uuid)
        .folded(header.folded)
        .compression(made.compress.into());
    let mut writer = Writer::new(options).map_err(|e| failed(&e))?;
    for (system, format_text) in classes {
        let added = writer.add_format(system, format_text);
        added.and_then(|id| writer.declare(id)).map_err(|e| failed(&e))?;
    }
    Ok(KmtFile::new(writer, Export::open_binary(&made.target(), &session.env)?))
}

/// Copies the clock.
pub fn clock(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    match &session.trace.metadata().clock {
        Some(clock) => writer.add_clock(clock).map_err(|e| failed(&e)),
        None => Ok(()),
    }
}

/// Copies the kernel's counters of CPUs for which `keeps` is true, changed by `change`.
pub fn counters(
    writer: &mut Writer,
    session: &Session<'_>,
    keeps: impl Fn(u32) -> bool,
    change: impl Fn(CpuStats) -> CpuStats,
) -> Result<()> {
    for taken in [StatsTaken::Before, StatsTaken::After] {
        let counters = session.trace.metadata().counters.iter().filter(|(cpu, _)| keeps(**cpu));
        let rows = counters.filter_map(|(&cpu, c)| {
            let stats = if taken == StatsTaken::Before { c.before } else { c.after };
            Some((cpu, change(stats?)))
        });
        let rows: Vec<(u32, CpuStats)> = rows.collect();
        if !rows.is_empty() {
            writer.add_stats(taken, &rows).map_err(|e| failed(&e))?;
        }
    }
    Ok(())
}

/// Copies names of tasks.
pub fn tasks(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    let tasks: Vec<Task> = session
        .trace
        .metadata()
        .tasks
        .iter()
        .map(|t| Task::new(t.pid, t.comm.to_vec()).tgid(t.tgid).since(t.time))
        .collect();
    if tasks.is_empty() { Ok(()) } else { writer.add_tasks(&tasks).map_err(|e| failed(&e)) }
}

/// Copies source lines: of each address those that hold.
pub fn lines(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    let metadata = session.trace.metadata();
    let addresses: BTreeSet<u64> = metadata.lines.iter().map(|line| line.address).collect();
    let lines: Vec<_> =
        addresses.into_iter().flat_map(|address| metadata.lines_at(address).cloned()).collect();
    add_lines(writer, &lines)
}

/// Copies symbols and the modules that they are of.
pub fn symbols(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    let Some(table) = session.trace.symbols() else { return Ok(()) };
    let entries: Vec<_> = table.entries().collect();
    let table = symbol_table(entries.iter().map(|s| (s.address, s.size, s.kind, s.owner, s.name.as_ref())));
    let modules = session.trace.metadata().attachment("modules");
    let modules = modules.map(|text| parse_modules(&String::from_utf8_lossy(text))).unwrap_or_default();
    writer.add_symbols(&table, &modules).map_err(|e| failed(&e))
}

/// Adds a loss before the next event of a CPU.
pub fn gap(file: &mut KmtFile<Export>, cpu: u32, gap: &Gap) -> Result<()> {
    let mut loss = gap.loss;
    loss.counted = gap.counted();
    loss.damaged_input |= gap.events_damaged > 0;
    file.lose(cpu, loss).map_err(|e| failed(&e))
}

/// Adds an event.
pub fn event(file: &mut KmtFile<Export>, cpu: u32, time: u64, record: &[u8]) -> Result<()> {
    file.event(cpu, time, record).map_err(|e| failed(&e))?;
    file.write_if_large()
}

/// Completes the file; returns the number of events in it.
pub fn finish(mut file: KmtFile<Export>) -> Result<u64> {
    file.end_cpus().and_then(|()| file.add_totals()).map_err(|e| failed(&e))?;
    let events = file.events();
    file.finish()?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_with_an_address() {
        let lines: Vec<_> = (0..10_000_u64).map(|row| SourceLine::new(row / 3)).collect();
        let parts: Vec<_> = chunks(&lines).collect();
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), lines.len());
        assert!(parts.windows(2).all(|pair| pair[0].last().unwrap().address < pair[1][0].address));
        assert!(parts.len() == 3 && chunks(&[]).next().is_none());
    }
}
