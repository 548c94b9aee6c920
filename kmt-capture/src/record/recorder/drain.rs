//! Sub-buffers out of the kernel, into the file.

use std::time::{Duration, Instant};

use kmt_common::kmt_file::overwritten;
use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage};
use kmt_format::write::{Keep, Loss};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Recorder;
use super::changed::APART_NS;
use super::turn::ROUND;
use crate::failure::{Failure, Result};
use crate::record::adopted::overwritten_before;
use crate::record::settings::Settings;

/// Sub-buffers of one CPU before the next one's turn.
const DRAIN_MAX: usize = 256;
/// Sub-buffers of one CPU before the next one's turn, where the end of the file is near.
const DRAIN_MAX_NEAR_END: usize = 8;
/// Longest time from the time stamp of an event until it can be read, in nanoseconds: nothing preempts the task between them but
/// interrupts, and a host.
const COMMIT_MAX: u64 = 10_000_000;

impl Recorder {
    /// Waits until a buffer fills, something else happens, or the time is over. Kernels that cannot wait for a
    /// buffer to fill would wake us at every event.
    pub(super) fn wait(&self, timeout: Duration, can_wait: bool) {
        let mut fds: Vec<PollFd<'_>> =
            self.file.output.signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if can_wait {
            fds.extend(
                self.settings
                    .iter()
                    .filter_map(|settings| Some(PollFd::from_borrowed_fd(settings.fd()?, PollFlags::IN))),
            );
            fds.extend(self.cpus.iter().map(|cpu| PollFd::new(&cpu.ring, PollFlags::IN)));
        }
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        // An interruption is as good as a timeout: everything is looked at afterwards.
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Empties all buffers, or stops after 100 ms and continues in the next round: symbols, names and counters are due meanwhile.
    pub(super) fn drain_round(&mut self) -> Result<()> {
        let start = Instant::now();
        if !self.has_rest {
            self.cpus.iter_mut().for_each(|cpu| cpu.drained = 0);
        }
        self.room.update(self.file.output.out.len());
        self.keep_room_for_symbols();
        // The clock is read for buffers that may be found empty: reading it takes as long as a few hundred events.
        let mut may_be_empty = self.file.is_folding();
        self.has_rest = loop {
            let mut again = false;
            let now = if may_be_empty { self.trace_now() } else { None };
            may_be_empty = false;
            for index in 0..self.cpus.len() {
                let (read, most) = self.drain_ring(index)?;
                again |= read == most;
                may_be_empty |= read < most && self.file.is_folding();
                if let (Some(now), Some(cpu)) = (now.filter(|_| read < most), self.cpus.get(index)) {
                    self.file.known_until(cpu.number(), now.saturating_sub(COMMIT_MAX));
                }
            }
            self.file.fold_known()?;
            if self.room.reached.is_some() || self.changes.of_clock || !again {
                break false;
            }
            if start.elapsed() >= ROUND {
                break true;
            }
        };
        self.follow_threads()?;
        let most = self.cpus.iter().map(|cpu| cpu.drained).max().unwrap_or(0);
        let fill = 100.0 * most as f64 / self.buffer_len.max(1) as f64;
        self.fill_percent = self.fill_percent.max(fill.min(100.0));
        Ok(())
    }

    /// Keeps room at the end for symbols that are still to be found: a pass over kallsyms takes a tenth of a second.
    fn keep_room_for_symbols(&mut self) {
        let Self { room, used, file, .. } = self;
        let writer = &mut file.writer;
        if let Some(used) = used.as_mut().filter(|_| room.is_near(writer)) {
            used.collect(writer);
            room.symbols_len = used.wanted_len();
        }
    }

    /// Lets in the allocations of threads that the tasks of --pid have started.
    pub(super) fn follow_threads(&mut self) -> Result<()> {
        let threads = self.names.new_threads();
        if threads.is_empty() {
            return Ok(());
        }
        self.notice_writes()?;
        let was_in_user_space = self.plan.in_user_space;
        let before = self.plan.pids.clone();
        self.plan.set_pids(before.iter().copied().chain(threads).collect());
        if self.plan.in_user_space && !was_in_user_space {
            if self.keep == Keep::Verbatim {
                // Sub-buffers are kept as they are: the recorder can leave nothing out of them.
                (self.plan.pids, self.plan.in_user_space) = (before, false);
                self.names.watch_none();
                self.notices.push("warning: threads that start from now on are not recorded: the filter of --pid is full, and --raw keeps the kernel's sub-buffers as they are".to_owned());
                return Ok(());
            }
            self.notices.push("note: the filter of --pid is full: from now on the recorder leaves out the allocations of other tasks".to_owned());
        }
        let long_size = self.layout.long_size();
        self.tasks.follow(&self.plan, &self.setup.dir, ByteOrder::NATIVE, long_size);
        if was_in_user_space {
            return Ok(());
        }
        if let Err(failure) = self.setup.filter_tasks(&self.plan) {
            self.notices.push(format!("warning: threads that start from now on are not recorded: {failure}"));
            self.names.watch_none();
        }
        let filters: Vec<String> =
            self.plan.task_filters().iter().map(|(event, _)| event.file("filter")).collect();
        self.settings.iter_mut().for_each(|settings| settings.set_by_us(filters.iter().map(String::as_str)));
        Ok(())
    }

    /// Reads some sub-buffers of one CPU; returns how many there were, and how many there could be.
    fn drain_ring(&mut self, index: usize) -> Result<(usize, usize)> {
        // Where the file may end any time, or events of all CPUs are merged, no CPU may get far ahead of the others.
        let is_near = self.room.is_near(&mut self.file.writer);
        let most = if is_near || self.file.is_folding() { DRAIN_MAX_NEAR_END } else { DRAIN_MAX };
        let read = self.drain_some(index, most)?;
        if read < most {
            self.see_empty(index);
        }
        Ok((read, most))
    }

    /// Notes that the buffer of a CPU is empty. Its counters are read where a loss has no count, which is rare.
    fn see_empty(&mut self, index: usize) {
        let Some(cpu) = self.cpus.get_mut(index) else { return };
        let stats = || self.setup.dir.read(&format!("per_cpu/cpu{}/stats", cpu.number()));
        let counted = || CpuStats::parse(&stats()?)?.lost_events();
        let counted = if cpu.shortage.is_uncounted() { counted() } else { None };
        cpu.shortage.empty(counted);
    }

    /// Reads sub-buffers of one CPU, `most` of them at most; returns how many there were.
    fn drain_some(&mut self, index: usize, most: usize) -> Result<usize> {
        let Self { cpus, file, layout, names, exits, tasks, buffer, room, notices, .. } = self;
        let (settings, changes, formats) = (&mut self.settings, &mut self.changes, &mut self.formats);
        let (is_ring, adopted) = (self.black_box.is_some(), &self.setup.adopted);
        // What comes now has times of another clock.
        let Some(cpu) = cpus.get_mut(index).filter(|_| !changes.of_clock) else { return Ok(0) };
        let number = cpu.number();
        let found = adopted.as_ref().and_then(|adopted| adopted.counters(number));
        for count in 0..most {
            if room.is_used_up(&mut file.writer) {
                return Ok(count);
            }
            let bytes = match cpu.ring.next(buffer) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(count),
                Err(error) => {
                    return Err(Failure::new(format!("reading the ring buffer of CPU {number}: {error}")));
                }
            };
            let time = page_time(bytes, layout);
            if changes.is_unlikely(time, cpu.page_time) {
                // Times of another clock would be in no order with those before.
                if let Some(change) = settings.as_mut().and_then(Settings::clock_change) {
                    self.changed(vec![change])?;
                    return Ok(count);
                }
                changes.trust(time);
            }
            let is_first = cpu.first_time.is_none();
            cpu.first_time.get_or_insert(time);
            let by_design = match found.filter(|_| is_first) {
                Some(counters) => overwritten_before(bytes, layout, counters),
                None => {
                    let counters = cpu.counters.sums.filter(|_| is_ring && is_first);
                    overwritten(bytes, layout, ByteOrder::NATIVE, counters)
                }
            };
            if let Some(events) = by_design {
                file.mark_overwritten(number, events)?;
                if !cpu.counters.was_read_before() {
                    cpu.overwritten = events;
                }
            }
            cpu.page_time = time;
            cpu.drained += bytes.len() as u64;
            let is_begun = is_begun(bytes, layout);
            formats.iter_mut().for_each(|formats| formats.see(bytes, layout, &mut file.writer));
            let (mut last, mut clock, mut events) = (time, None, 0);
            let see = |time: u64, record: &[u8]| {
                events += 1;
                // The kernel changes the clock before it empties the buffer: a sub-buffer may have times of both.
                if time.abs_diff(last) > APART_NS && clock.is_none() {
                    clock = settings.as_mut().and_then(Settings::clock_change);
                }
                if clock.is_some() {
                    return false;
                }
                last = time;
                names.see(time, record);
                exits.iter_mut().for_each(|exits| exits.see(time, record));
                tasks.keeps(number, record)
            };
            let found = file.sub_buffer(number, bytes, layout, self.keep, see)?;
            cpu.last_time = cpu.last_time.max(last);
            cpu.marked = cpu.marked.and(found.loss);
            let loss = if by_design.is_some() { Loss::default() } else { found.loss };
            cpu.shortage.read(committed(bytes, layout) as u64, events, loss);
            if let Some(damage) = found.damage.filter(|_| file.stats(number).sub_buffers_damaged == 1) {
                notices.push(format!(
                    "warning: a sub-buffer of CPU {number} cannot be decoded completely: {damage}"
                ));
            }
            file.write()?;
            if let Some(change) = clock {
                self.changed(vec![change])?;
                return Ok(count);
            }
            // To go after the writer would be a system call for a handful of events.
            if is_begun {
                return Ok(count);
            }
        }
        Ok(most)
    }
}

/// Time at the start of a sub-buffer: the first field of its header (`struct buffer_data_page`, kernel/trace/ring_buffer.c).
fn page_time(bytes: &[u8], header: &HeaderPage) -> u64 {
    ByteOrder::NATIVE.uint_at(bytes, header.timestamp_offset, 8).unwrap_or(0)
}

/// Bytes that the kernel has written to a sub-buffer: the second field of its header, without the marks of losses.
fn committed(bytes: &[u8], header: &HeaderPage) -> usize {
    let commit = ByteOrder::NATIVE.uint_at(bytes, header.commit_offset, header.commit_size).unwrap_or(0);
    (commit & 0x07ff_ffff) as usize
}

/// True if the kernel has just begun to write to a sub-buffer: a quarter of it is used at most. One that it is done with
/// has more in it, unless its next event took three quarters of a sub-buffer.
fn is_begun(bytes: &[u8], header: &HeaderPage) -> bool {
    committed(bytes, header) <= header.data_size / 4
}
