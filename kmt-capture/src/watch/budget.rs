//! CPU time of a recording: the share of one CPU that its process has, in windows of 10 s, against `--cpu-budget`.

use std::fs;
use std::time::{Duration, Instant};

/// Length of a window, at least.
const WINDOW: Duration = Duration::from_secs(10);
/// Windows above the budget, one after the other, that end a recording.
const WINDOWS_MAX: u32 = 3;

/// The use of CPU time so far.
#[derive(Debug)]
pub struct Budget {
    /// Share of one CPU, in percent.
    most: f64,
    /// Time and CPU time at the begin of the window.
    begin: (Instant, Duration),
    /// Windows above the budget, without one below it after them.
    above: u32,
}

impl Budget {
    /// Of a process that starts now.
    pub fn new(most: f64, now: Instant) -> Self {
        Self { most, begin: (now, Duration::ZERO), above: 0 }
    }

    /// Takes the CPU time of the process so far. `Some`: the budget is exceeded, with the share in the last window in percent.
    pub fn exceeded(&mut self, now: Instant, used: Duration) -> Option<f64> {
        let (begin, before) = self.begin;
        let length = now.saturating_duration_since(begin);
        if length < WINDOW {
            return None;
        }
        self.begin = (now, used);
        let share = 100.0 * used.saturating_sub(before).as_secs_f64() / length.as_secs_f64();
        self.above = if share > self.most { self.above + 1 } else { 0 };
        (self.above >= WINDOWS_MAX).then_some(share)
    }

    /// Time until the window ends.
    pub fn left(&self, now: Instant) -> Duration {
        WINDOW.saturating_sub(now.saturating_duration_since(self.begin.0))
    }
}

/// CPU time of a process; `None`: it has ended, or cannot be read.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks_of(&stat)?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// utime and stime, behind the name, which may have spaces and parentheses (`do_task_stat`, fs/proc/array.c).
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(user.saturating_add(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_windows_in_a_row_exceed_a_budget() {
        let start = Instant::now();
        let mut budget = Budget::new(5.0, start);
        let (mut used, mut exceeded) = (Duration::ZERO, Vec::new());
        // Milliseconds of CPU time in each window of 10 s: the start, and two loads.
        for (number, of_window) in [900u64, 900, 100, 600, 600, 700].into_iter().enumerate() {
            used += Duration::from_millis(of_window);
            let end = start + WINDOW * (number as u32 + 1);
            assert_eq!(budget.exceeded(end - Duration::from_millis(1), used), None);
            exceeded.push(budget.exceeded(end, used).map(|share| share.round()));
        }
        assert_eq!(exceeded, [None, None, None, None, None, Some(7.0)]);
        assert_eq!(budget.left(start + WINDOW * 6 + WINDOW / 4), WINDOW * 3 / 4);
    }

    #[test]
    fn cpu_time_is_that_of_user_and_system() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 163 0 0 0 21 34 5 6 20 0 1 0 8 9 10\n";
        assert_eq!(ticks_of(stat), Some(55));
        assert_eq!(["", "7 (a) S 1", "7 (a"].map(ticks_of), [None; 3]);
        assert!(cpu_time(std::process::id()).is_some());
    }
}
