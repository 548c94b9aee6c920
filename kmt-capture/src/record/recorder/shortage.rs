//! Bytes that the ring buffer of one CPU lacked: the basis of a proposal for `--buffer-size`.
//!
//! Events are lost while the buffer is full. A larger one would also have held those lost since it was last empty:
//!
//! needed = (length of the buffer + events lost since it was last empty × bytes per event) × 5/4
//!
//! The largest sum of a recording counts, not the losses of all its time. Bytes per event are those that the kernel committed: a
//! sub-buffer that is read before it is full counts with what is in it. The quarter is for a run that differs from this one.
//! Sources: the marks of the sub-buffers, and the kernel's counters where a mark has no count.

use kmt_format::write::Loss;

/// Events of one CPU that were read, and those that were lost.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    /// Bytes of the events that were read.
    bytes: u64,
    /// Number of these events.
    events: u64,
    /// Events lost since the buffer was last empty.
    lost: u64,
    /// True if some of these have no count.
    is_uncounted: bool,
    /// Events lost until the buffer was last empty.
    lost_before: u64,
    /// Most events that were lost between two times at which the buffer was empty.
    lost_most: u64,
}

impl Shortage {
    /// Adds a sub-buffer: bytes and number of its events, and the loss before it.
    pub fn read(&mut self, bytes: u64, events: u64, loss: Loss) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.events = self.events.saturating_add(events);
        self.lost = self.lost.saturating_add(loss.counted);
        self.is_uncounted |= loss.uncounted;
    }

    /// True if the kernel's counters are needed for the number of lost events.
    pub fn is_uncounted(&self) -> bool {
        self.is_uncounted
    }

    /// The buffer is empty; `counted`: events lost by the kernel's counters until now, where these are needed.
    pub fn empty(&mut self, counted: Option<u64>) {
        let counted = counted.filter(|_| self.is_uncounted).unwrap_or(0);
        let lost = self.lost.max(counted.saturating_sub(self.lost_before));
        self.lost_before = self.lost_before.saturating_add(lost);
        self.lost_most = self.lost_most.max(lost);
        (self.lost, self.is_uncounted) = (0, false);
    }

    /// Length of a buffer that would have held all; `None`: nothing was lost, or nothing read. `lost`: events lost by the kernel's
    /// counters, which count where no sub-buffer has a mark.
    pub fn needed(&self, buffer_len: u64, lost: u64) -> Option<u64> {
        let most = Some(self.lost_most.max(self.lost)).filter(|&most| most > 0).unwrap_or(lost);
        if most == 0 || self.events == 0 {
            return None;
        }
        let bytes = (u128::from(most) * u128::from(self.bytes)).div_ceil(u128::from(self.events));
        let needed = (u128::from(buffer_len) + bytes).saturating_mul(5).div_ceil(4);
        Some(u64::try_from(needed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: u64 = 16 << 20;

    #[test]
    fn losses_of_different_times_are_not_added_up() {
        let mut cpu = Shortage::default();
        for _ in 0..10 {
            cpu.read(4_000, 40, Loss::counted(20_000));
            cpu.read(4_000, 40, Loss::default());
            cpu.empty(None);
        }
        // 20,000 events of 100 bytes at a time, 200,000 in all.
        assert_eq!(cpu.needed(BUFFER, 200_000), Some((BUFFER + 2_000_000) / 4 * 5));
    }

    #[test]
    fn losses_until_the_buffer_is_empty_are_of_one_time() {
        let mut cpu = Shortage::default();
        cpu.read(4_000, 40, Loss::counted(1_000));
        cpu.read(4_000, 40, Loss::counted(3_000));
        assert_eq!(cpu.needed(BUFFER, 4_000), Some((BUFFER + 400_000) / 4 * 5), "before it is empty");
        cpu.empty(None);
        cpu.read(4_000, 40, Loss::counted(2_000));
        cpu.empty(None);
        assert_eq!(cpu.needed(BUFFER, 6_000), Some((BUFFER + 400_000) / 4 * 5));
    }

    #[test]
    fn sub_buffers_that_are_read_early_do_not_make_events_larger() {
        let mut cpu = Shortage::default();
        // A quiet hour, with 2 events in each sub-buffer.
        (0..36_000).for_each(|_| cpu.read(200, 2, Loss::default()));
        cpu.read(4_000, 40, Loss::counted(10_000));
        cpu.empty(None);
        assert_eq!(cpu.needed(BUFFER, 10_000), Some((BUFFER + 1_000_000) / 4 * 5));
    }

    #[test]
    fn counters_have_what_marks_do_not_count() {
        let mut cpu = Shortage::default();
        cpu.read(4_000, 40, Loss::counted(500));
        cpu.empty(Some(500));
        cpu.read(4_000, 40, Loss::uncounted());
        assert!(cpu.is_uncounted());
        cpu.empty(Some(1_700));
        assert_eq!(cpu.needed(BUFFER, 1_700), Some((BUFFER + 120_000) / 4 * 5), "1,200 of 1,700");
        assert!(!cpu.is_uncounted());
    }

    #[test]
    fn what_no_sub_buffer_has_is_of_the_counters() {
        let mut cpu = Shortage::default();
        assert_eq!(cpu.needed(BUFFER, 100), None, "nothing was read");
        cpu.read(4_000, 40, Loss::default());
        assert_eq!(cpu.needed(BUFFER, 0), None, "nothing was lost");
        assert_eq!(cpu.needed(BUFFER, 100), Some((BUFFER + 10_000) / 4 * 5));
    }
}
