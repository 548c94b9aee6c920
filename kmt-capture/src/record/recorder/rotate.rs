//! Between two files of a recording: the events before are in the one, those after in the other. The kernel's buffers are
//! not stopped; the border of each CPU is between two of its sub-buffers.

use std::time::Instant;

use kmt_common::kmt_file::KmtFile;
use kmt_format::edit::Join;
use kmt_format::kernel::CpuStats;
use kmt_format::write::StatsTaken;

use super::Recorder;
use super::room::SLAB_STATE_LEN;
use super::sink::Sink;
use crate::failure::Result;
use crate::record::rotate::NextFile;
use crate::record::snapshot::{self, Snapshots, When};
use crate::record::symbols::{self, Symbols};
use crate::record::{RecordOptions, description};

/// Begin of a file of the recording, and what the files before it have.
pub(super) struct FileBegin {
    pub time: Instant,
    /// Time that this process had run for.
    pub cpu_ns: u64,
    /// Events and bytes of the files before.
    pub events: u64,
    pub bytes: u64,
}

impl FileBegin {
    /// The first file begins now.
    pub fn now() -> Self {
        let cpu_ns = description::own_cpu_ns().unwrap_or(0);
        Self { time: Instant::now(), cpu_ns, events: 0, bytes: 0 }
    }

    /// The file after this one begins now.
    fn next(&mut self, file: &KmtFile<Sink>) {
        let events = self.events.saturating_add(file.events());
        *self = Self { events, bytes: self.bytes, ..Self::now() };
    }
}

impl Recorder {
    /// Continues in the next file if this one has reached its limit.
    pub(super) fn rotate_if_due(&mut self, options: &RecordOptions) -> Result<()> {
        let Self { rotation, file, used, room, .. } = self;
        let Some(rotation) = rotation else { return Ok(()) };
        let len = file.writer.finished_len().saturating_add(room.end_len);
        // A slow disk makes a file longer, not the time without reading.
        if !rotation.is_due(len) || !rotation.is_ready() {
            return Ok(());
        }
        // Names are looked for in the background; the buffers are emptied meanwhile, into this file.
        let is_complete = used.as_mut().is_none_or(|used| used.is_complete(&mut file.writer));
        if is_complete || rotation.is_overdue() { self.rotate(options) } else { Ok(()) }
    }

    fn rotate(&mut self, options: &RecordOptions) -> Result<()> {
        self.file.output.out.check_name()?;
        self.report_end_of_file();
        // A file that has no room for its begin has no events; this one ends where the disk is full.
        if !self.room.has_room_before_end(&mut self.file.writer, self.room.next_len()) {
            return Ok(());
        }
        let Some(next) = self.open_next() else { return Ok(()) };
        if self.room.has_room_before_end(&mut self.file.writer, SLAB_STATE_LEN) {
            snapshot::write_slab(&mut self.file.writer)?;
        }
        // Late: what is allocated between this and the border is in no count of the next file.
        let state = Snapshots::read();
        // What came while the state was read; from here on nothing is read before the next file.
        self.drain_round()?;
        if self.room.reached.is_some() || self.changes.of_clock {
            return Ok(());
        }
        let now = self.end_events()?;
        state.write(&mut self.file.writer, When::After)?;
        snapshot::write_cgroups(&mut self.file.writer, now.unwrap_or(0))?;
        self.clock_pair()?;
        self.own_cost()?;
        self.next_file(next)?;
        self.describe_next(options, &state, now)
    }

    /// Writes what this file has after its last event: symbols, names, counters. Returns the time of the trace clock.
    fn end_events(&mut self) -> Result<Option<u64>> {
        self.read_counters()?;
        self.write_counters(StatsTaken::Before)?;
        self.taken_by_others()?;
        if let Some(used) = &mut self.used {
            used.finish(&mut self.file.writer)?;
        }
        let now = self.save_names();
        self.flush()?;
        let ends = self.cpus.iter_mut().filter_map(|cpu| Some((cpu.number(), cpu.end_file()?)));
        let ends: Vec<(u32, CpuStats)> = ends.collect();
        self.file.writer.add_stats(StatsTaken::After, &ends)?;
        self.file.add_totals()?;
        Ok(now)
    }

    /// Creates the next file; `None`: it cannot be created now, which is reported.
    fn open_next(&mut self) -> Option<NextFile> {
        match self.rotation.as_mut()?.open_next() {
            Ok(next) => Some(next),
            Err(warning) => {
                self.notices.extend(warning);
                None
            }
        }
    }

    /// Completes this file, and begins the next one.
    fn next_file(&mut self, next: NextFile) -> Result<()> {
        let Self { rotation, file, room, used, begin, .. } = self;
        let Some(rotation) = rotation else { return Ok(()) };
        let next = rotation.begin(next);
        begin.next(file);
        file.next_file(|sink| {
            begin.bytes = begin.bytes.saturating_add(sink.out.len());
            room.next_file(next.file().ok());
            rotation.end_file(std::mem::replace(&mut sink.out, next))
        })?;
        if let Some(used) = used {
            used.next_file();
        }
        self.has_config = false;
        Ok(())
    }

    /// Writes what a file after the first one has at its begin.
    fn describe_next(&mut self, options: &RecordOptions, state: &Snapshots, now: Option<u64>) -> Result<()> {
        self.describe_target(options)?;
        state.write(&mut self.file.writer, When::Before)?;
        snapshot::write_cgroups(&mut self.file.writer, now.unwrap_or(0))?;
        self.describe_modules()?;
        if options.symbols == Symbols::All {
            symbols::write_all(&mut self.file)?;
        }
        self.clock_pair()?;
        self.names.again();
        self.file.writer.add_tasks(&self.names.take())?;
        self.file.write()
    }

    /// The number of this file, if the recording has several.
    pub(super) fn describe_part(&mut self) -> Result<()> {
        let Some(part) = self.rotation.as_ref().map(|rotation| rotation.part.to_string()) else {
            return Ok(());
        };
        Ok(self.file.writer.add_metadata(&[(Join::PART_KEY, part.as_bytes())])?)
    }

    /// Waits until the file before has its name; reports the files that were removed, and failures.
    fn report_end_of_file(&mut self) {
        let Some(rotation) = &mut self.rotation else { return };
        let end = rotation.wait();
        self.notices.extend(rotation.notices(end));
    }
}
