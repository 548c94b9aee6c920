//! When the recorder looks whether a trigger has stopped the ring buffer, which wakes no process.
//!
//! Each look is a wakeup: 46 us of processor time on a loaded machine, of which a process that only sleeps has 27 (2 vCPUs, Linux
//! 6.18). Ten a second are 0.27 s in ten minutes, one a second is 0.04 s. The kernel reports OOM kills and failed allocations in
//! its log, also those in cgroups: where these are the only conditions, a line of the log wakes the recorder. Lines may come before
//! the event (`warn_alloc`, mm/page_alloc.c; `dump_header`, mm/oom_kill.c), so it looks often for a second after one. A kill may
//! have no line (`task_will_free_mem`, mm/oom_kill.c), so it looks once a second without.
//!
//! Other events have no line. A second instance with the event alone could wake the recorder, but costs the load a filter at each
//! event (28 ns): more than the looks from 15,000 events a second on. So the recorder looks ten times a second.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::Condition;
use super::kernel_log;

/// Time between looks where nothing wakes the recorder, or a line of the kernel log has.
const OFTEN: Duration = Duration::from_millis(100);
/// Time between looks else.
const SELDOM: Duration = Duration::from_secs(1);
/// How long it looks often after a line of the kernel log.
const AFTER_LINE: Duration = Duration::from_secs(1);

/// When the recorder looks.
#[derive(Debug)]
pub struct Pace {
    /// True if the recorder looks often all the time.
    is_often: bool,
    /// The kernel log; a line ends the wait.
    log: Option<File>,
    /// A line came: until then, no other one ends the wait.
    often_until: Option<Instant>,
}

impl Pace {
    /// That for these conditions.
    pub fn new(conditions: &[Condition]) -> Self {
        let log = if conditions.iter().any(is_in_log) { kernel_log::open_at_end() } else { None };
        Self::with_log(conditions, log)
    }

    fn with_log(conditions: &[Condition], log: Option<File>) -> Self {
        let needs_looks = |condition: &Condition| match condition {
            Condition::Pressure(_) => false,
            Condition::Memory { .. } => true,
            condition => log.is_none() || !is_in_log(condition),
        };
        let is_often = conditions.iter().any(needs_looks);
        Self { is_often, log: log.filter(|_| !is_often), often_until: None }
    }

    /// Time to the next look, if nothing happens.
    pub fn wait(&self) -> Duration {
        if self.is_often || self.often_until.is_some() { OFTEN } else { SELDOM }
    }

    /// The file that wakes the recorder.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.log.as_ref().filter(|_| self.often_until.is_none()).map(AsFd::as_fd)
    }

    /// After a wait and before the look; `has_line`: the file of [`Pace::fd`] ended the wait.
    pub fn waited(&mut self, has_line: bool, now: Instant) {
        if has_line {
            self.often_until = Some(now + AFTER_LINE);
        } else if self.often_until.is_some_and(|until| now >= until) {
            self.often_until = None;
            // Before the look: what comes after it wakes.
            self.log.iter_mut().for_each(kernel_log::seek_to_end);
        }
    }
}

/// True if the kernel log has a line when the condition holds.
fn is_in_log(condition: &Condition) -> bool {
    match condition {
        Condition::Oom | Condition::AllocFailure => true,
        Condition::Event(spec) => spec.system == "oom" && spec.name == "mark_victim",
        Condition::Memory { .. } | Condition::Pressure(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(conditions: &[&str], has_log: bool) -> Pace {
        let conditions: Vec<Condition> = conditions.iter().map(|c| Condition::parse(c).unwrap()).collect();
        Pace::with_log(&conditions, has_log.then(|| File::open("/dev/null").unwrap()))
    }

    #[test]
    fn the_recorder_looks_often_where_nothing_else_shows_the_condition() {
        for (conditions, has_log, wait, is_woken) in [
            (&["oom"][..], true, SELDOM, true),
            (&["oom"], false, OFTEN, false),
            (&["alloc-failure", "oom:mark_victim if pid > 7"], true, SELDOM, true),
            (&["oom", "kmem:kmalloc if bytes_req > 4096"], true, OFTEN, false),
            (&["kmem:mm_page_alloc if order > 4"], true, OFTEN, false),
            (&["oom", "MemAvailable<1M"], true, OFTEN, false),
            (&["psi:some:100ms/2s"], false, SELDOM, false),
            (&["oom", "psi:some:100ms/2s"], true, SELDOM, true),
            (&[], false, SELDOM, false),
        ] {
            let pace = pace(conditions, has_log);
            assert_eq!((pace.wait(), pace.fd().is_some()), (wait, is_woken), "{conditions:?} {has_log}");
        }
    }

    #[test]
    fn after_a_line_of_the_log_the_recorder_looks_often_and_then_seldom_again() {
        let mut pace = pace(&["oom"], true);
        let start = Instant::now();
        pace.waited(false, start);
        assert_eq!(pace.wait(), SELDOM);
        pace.waited(true, start);
        // A log with many lines does not wake it more often.
        assert!(pace.wait() == OFTEN && pace.fd().is_none());
        pace.waited(false, start + AFTER_LINE - OFTEN);
        assert!(pace.wait() == OFTEN && pace.fd().is_none());
        pace.waited(false, start + AFTER_LINE);
        assert!(pace.wait() == SELDOM && pace.fd().is_some());
    }
}
