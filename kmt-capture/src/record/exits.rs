//! Begin of the end of a recorded command: the first exit among the processes that ran with it to its end.
//!
//! A process that exits gives back what it leaked. Growth of memory is judged before that.

use std::collections::{HashMap, VecDeque};

use kmt_format::kernel::{ByteOrder, EventFormat, Field};

use crate::tracefs::TraceDir;

/// Starts that are remembered at most.
const STARTS_MAX: usize = 8_192;
/// Exits that are remembered at most, the latest.
const EXITS_MAX: usize = 1_024;
/// Processes that end together do so within this time, in nanoseconds, and within a sixteenth of the recording.
const TOGETHER_NS: u64 = 2_000_000_000;

/// Starts and exits of tasks.
#[derive(Debug)]
pub struct Exits {
    order: ByteOrder,
    newtask: Option<(u16, Field)>,
    exit: Option<(u16, Field)>,
    /// Start of each task that is running; at most [`STARTS_MAX`].
    starts: HashMap<i32, u64>,
    /// Start, if it was in the recording, and exit.
    exits: VecDeque<(Option<u64>, u64)>,
    /// Times of the first and the last event.
    span: Option<(u64, u64)>,
}

impl Exits {
    /// For events of `dir`.
    pub fn new(dir: &TraceDir, order: ByteOrder, long_size: usize) -> Self {
        let event = |event: &str| {
            let format = dir.read(&format!("events/{event}/format"))?;
            let format = EventFormat::parse(&format, long_size).ok()?;
            let field = format.fields.iter().find(|field| field.name == "pid").cloned()?;
            Some((format.id, field))
        };
        Self::of(order, event("task/task_newtask"), event("sched/sched_process_exit"))
    }

    /// For these events: number, and field of the task.
    fn of(order: ByteOrder, newtask: Option<(u16, Field)>, exit: Option<(u16, Field)>) -> Self {
        Self { order, newtask, exit, starts: HashMap::new(), exits: VecDeque::new(), span: None }
    }

    /// Looks at an event.
    #[inline]
    pub fn see(&mut self, time: u64, record: &[u8]) {
        let id = self.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        let pid = |event: &Option<(u16, Field)>| {
            let (_, field) = event.as_ref().filter(|(event, _)| *event == id)?;
            Some(self.order.uint_at(record, field.offset as usize, field.size as usize)? as i32)
        };
        if let Some(pid) = pid(&self.newtask) {
            if self.starts.len() < STARTS_MAX {
                self.starts.insert(pid, time);
            }
        } else if let Some(pid) = pid(&self.exit) {
            let start = self.starts.remove(&pid);
            self.exits.truncate(EXITS_MAX - 1);
            self.exits.push_front((start, time));
        }
    }

    /// Time of the first exit near the end, of a task that ran for at least half of the recording; `None`: none did.
    pub fn near_end(&self) -> Option<u64> {
        let (first, last) = self.span?;
        let length = last.saturating_sub(first);
        let since = last.saturating_sub((length / 16).min(TOGETHER_NS));
        let ran = |(start, exit): &&(Option<u64>, u64)| {
            *exit >= since && exit.saturating_sub(start.unwrap_or(first)) >= length / 2
        };
        self.exits.iter().filter(ran).map(|(_, exit)| *exit).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exits() -> Exits {
        let field = |offset| {
            let text = format!(
                "name: e\nID: 7\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\tfield:pid_t pid;\toffset:{offset};\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n"
            );
            EventFormat::parse(&text, 8).unwrap().fields.pop().unwrap()
        };
        Exits::of(ByteOrder::Little, Some((7, field(8))), Some((8, field(12))))
    }

    fn record(id: u8, pid: u8) -> [u8; 16] {
        [
            id,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            if id == 7 { pid } else { 0 },
            0,
            0,
            0,
            if id == 8 { pid } else { 0 },
            0,
            0,
            0,
        ]
    }

    #[test]
    fn the_first_exit_of_a_long_run_near_the_end_counts() {
        let mut exits = exits();
        let second = 1_000_000_000;
        exits.see(0, &record(1, 0));
        assert_eq!(exits.near_end(), None);
        exits.see(second, &record(7, 50));
        exits.see(98 * second, &record(7, 51));
        exits.see(99 * second, &record(8, 51));
        exits.see(99 * second + 5, &record(8, 50));
        exits.see(99 * second + 9, &record(8, 3));
        exits.see(100 * second, &record(1, 0));
        assert_eq!(exits.near_end(), Some(99 * second + 5), "51 ran for a second only");
        exits.see(200 * second, &record(1, 0));
        assert_eq!(exits.near_end(), None, "long before the end");
    }

    #[test]
    fn starts_and_exits_are_bounded() {
        let mut exits = exits();
        (0..20_000u64).for_each(|time| exits.see(time, &record(8, time as u8)));
        assert_eq!(exits.exits.len(), EXITS_MAX);
        assert!(exits.near_end().is_some());
    }
}
