//! Settings of the ring buffer that is recorded, and changes of them by other processes.
//!
//! A process that may write to tracefs can switch our events off, clear our buffer or change its clock, and nothing in the ring buffer
//! shows it. Two ways to notice: inotify reports each write to a file of tracefs, also one that is undone at once; where it is
//! missing (CONFIG_INOTIFY_USER), and for what the kernel changes by itself, the files are read again once a second.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::inotify;

use super::plan::Plan;
use crate::tracefs::TraceDir;
use kmt_common::setting_change::SettingChange;

/// Settings of a ring buffer that decide which events get into it, with what time.
const OF_BUFFER: [&str; 12] = [
    "tracing_on",
    "trace_clock",
    "set_event_pid",
    "set_event_notrace_pid",
    "tracing_cpumask",
    "current_tracer",
    "options/overwrite",
    "options/event-fork",
    "options/pause-on-trace",
    "buffer_size_kb",
    "buffer_subbuf_size_kb",
    "buffer_percent",
];
/// Settings of an event.
const OF_EVENT: [&str; 3] = ["enable", "filter", "trigger"];
/// A file that has no value of its own: writing to it clears the buffer.
const CLEARS: &str = "trace";
/// Names of files that set what several of these files have.
const SET_SEVERAL: [&str; 4] = ["set_event", "enable", "filter", "trace_options"];
/// Directories of events that are watched: each takes a file descriptor. Beyond, files are read once a second.
const WATCHED_MAX: usize = 256;
/// Files of events that are read again in a second.
const READ_MAX: usize = 64;
/// Time after which a write has had its effect.
const SETTLED_AFTER: Duration = Duration::from_millis(50);
/// Bytes of a value that are kept.
const VALUE_MAX: usize = 200;

/// The settings as the recorder left them.
#[derive(Debug)]
pub struct Settings {
    dir: TraceDir,
    /// Values by file.
    known: BTreeMap<String, String>,
    watch: Option<Watch>,
    /// Files that were written and not looked at yet.
    written: BTreeSet<String>,
    /// Files that were written and have their value still, with the time of the write.
    unchanged: BTreeMap<String, Instant>,
    /// Files whose change was found by reading; the report of the write may follow.
    found: BTreeSet<String>,
    /// The last event file that was read again.
    next: String,
}

impl Settings {
    /// Reads the settings of `dir`, and watches them from now on.
    pub fn new(dir: &TraceDir, plan: &Plan, cpus: &[u32]) -> Self {
        let of_events = plan.events.keys().flat_map(|event| OF_EVENT.map(|name| event.file(name)));
        let names = OF_BUFFER.into_iter().map(str::to_owned).chain(of_events);
        let watch = Watch::new(dir, plan, cpus);
        // After the watch: what changes in between is read as it is then, and reported.
        let known = names.filter_map(|name| dir.read(&name).map(|value| (name, shortened(&value)))).collect();
        Self {
            dir: dir.clone(),
            known,
            watch,
            written: BTreeSet::new(),
            unchanged: BTreeMap::new(),
            found: BTreeSet::new(),
            next: String::new(),
        }
    }

    /// Wakes the recorder when a setting is written.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(|watch| watch.inotify.as_fd())
    }

    /// True if a file was written that is to be looked at again.
    pub fn is_unsettled(&self) -> bool {
        !self.written.is_empty() || !self.unchanged.is_empty()
    }

    /// Changes since the last call, as far as writes show them.
    pub fn written(&mut self) -> Vec<SettingChange> {
        self.settled(SETTLED_AFTER)
    }

    /// A file is opened with O_TRUNC, which counts as a write, and then written: one that has its value still is looked at
    /// again after `time`.
    fn settled(&mut self, time: Duration) -> Vec<SettingChange> {
        let mut written = std::mem::take(&mut self.written);
        written.extend(self.watch.as_mut().map(Watch::take).unwrap_or_default());
        let mut changes = Vec::new();
        for file in written {
            let name = file.rsplit('/').next().unwrap_or_default();
            // Others may set several of ours: set_event, events/kmem/filter, trace_options.
            let is_ours = self.known.contains_key(&file);
            let found = if is_ours { self.look_at(&file).into_iter().collect() } else { self.read_known() };
            if file == CLEARS {
                changes.push(SettingChange::clear());
            } else if !found.is_empty() {
                self.unchanged.remove(&file);
            } else if !self.found.remove(&file) && (is_ours || SET_SEVERAL.contains(&name)) {
                self.unchanged.entry(file).or_insert_with(Instant::now);
            }
            changes.extend(found);
        }
        let due = self.unchanged.iter().filter(|(_, since)| since.elapsed() >= time);
        for file in due.map(|(file, _)| file.clone()).collect::<Vec<_>>() {
            self.unchanged.remove(&file);
            let value = self.known.get(&file).cloned().unwrap_or_default();
            let same = SettingChange { file: file.clone(), before: value.clone(), after: value };
            changes.push(self.look_at(&file).unwrap_or(same));
        }
        changes
    }

    /// Changes since the last call, by reading: the buffer's settings, and some of those of events, in turn.
    pub fn read_again(&mut self) -> Vec<SettingChange> {
        let of_events = self.known.range(self.next.clone()..).map(|(file, _)| file.clone());
        let of_events: Vec<String> =
            of_events.filter(|file| file.starts_with("events/")).take(READ_MAX).collect();
        self.next = match of_events.last() {
            Some(last) if of_events.len() == READ_MAX => format!("{last}/"),
            _ => String::new(),
        };
        let files = OF_BUFFER.into_iter().map(str::to_owned).chain(of_events);
        files.collect::<Vec<_>>().iter().filter_map(|file| self.look_at(file)).collect()
    }

    /// Changes since the last call, by reading all settings.
    pub fn read_all(&mut self) -> Vec<SettingChange> {
        let mut changes = self.settled(Duration::ZERO);
        changes.extend(self.read_known());
        changes
    }

    fn read_known(&mut self) -> Vec<SettingChange> {
        let files: Vec<String> = self.known.keys().cloned().collect();
        files.iter().filter_map(|file| self.look_at(file)).collect()
    }

    /// A change of the clock.
    pub fn clock_change(&mut self) -> Option<SettingChange> {
        let change = self.look_at("trace_clock")?;
        self.found.insert(change.file.clone());
        Some(change)
    }

    /// Takes over what the recorder has just written to these files.
    pub fn set_by_us<'f>(&mut self, files: impl IntoIterator<Item = &'f str>) {
        self.written.extend(self.watch.as_mut().map(Watch::take).unwrap_or_default());
        for file in files {
            self.written.remove(file);
            self.look_at(file);
        }
    }

    /// Reads one file; `None` if it has the value that it had, or is none of ours.
    fn look_at(&mut self, file: &str) -> Option<SettingChange> {
        let before = self.known.get(file)?.clone();
        let after = self.dir.read(file).map_or("removed".to_owned(), |value| shortened(&value));
        if before == after {
            return None;
        }
        self.known.insert(file.to_owned(), after.clone());
        Some(SettingChange { file: file.to_owned(), before, after })
    }
}

/// The value of a file as one line. Of a list with one selected, that one: `local [mono] boot`.
fn shortened(value: &str) -> String {
    let selected = value.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(one, _)| one);
    let lines: Vec<&str> = selected.unwrap_or(value).lines().filter(|line| !line.starts_with('#')).collect();
    let mut text = lines.join("; ").replace('\t', " ");
    let end = (0..=VALUE_MAX).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.truncate(end);
    text.trim().to_owned()
}

/// inotify on the directories that hold settings.
#[derive(Debug)]
struct Watch {
    inotify: OwnedFd,
    /// Names of the directories, by number of the watch.
    dirs: BTreeMap<i32, String>,
    /// They stay open: the kernel frees directories of events that are not open, and the watches on them.
    _open: Vec<TraceDir>,
}

impl Watch {
    /// `None` where the kernel has no inotify, or no watch is left.
    fn new(dir: &TraceDir, plan: &Plan, cpus: &[u32]) -> Option<Self> {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let inotify = inotify::init(flags).ok()?;
        let systems: BTreeSet<String> =
            plan.events.keys().map(|event| format!("events/{}", event.system)).collect();
        let events = plan.events.keys().map(|event| format!("events/{}/{}", event.system, event.name));
        let names = ["", "options", "events"].into_iter().map(str::to_owned);
        let names = names.chain(cpus.iter().map(|cpu| format!("per_cpu/cpu{cpu}")));
        let names = names.chain(systems).chain(events).take(WATCHED_MAX);
        let (mut dirs, mut open) = (BTreeMap::new(), Vec::new());
        for name in names {
            let sub = dir.sub(&name);
            if let Ok(number) = inotify::add_watch(&inotify, sub.path(), inotify::WatchFlags::MODIFY) {
                dirs.insert(number, name);
                open.push(sub);
            }
        }
        (!dirs.is_empty()).then_some(Self { inotify, dirs, _open: open })
    }

    /// Files that were written since the last call.
    fn take(&mut self) -> BTreeSet<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut files = BTreeSet::new();
        while let Ok(event) = reader.next() {
            let Some(dir) = self.dirs.get(&event.wd()) else { continue };
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            files.insert(if dir.is_empty() { name } else { format!("{dir}/{name}") });
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_short_line() {
        assert_eq!(shortened("local global [mono] boot\n"), "mono");
        assert_eq!(shortened("1\n"), "1");
        assert_eq!(shortened("# Available triggers:\n# traceon\n"), "");
        assert_eq!(
            shortened("stacktrace:unlimited\ttraceoff:count=1\n"),
            "stacktrace:unlimited traceoff:count=1"
        );
        assert_eq!(shortened("7\n8\n9\n"), "7; 8; 9");
        assert_eq!(shortened(&"\u{e9}".repeat(300)).len(), VALUE_MAX);
    }
}
