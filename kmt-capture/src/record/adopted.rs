//! A ring buffer that is found and taken over: one that has been filling since boot, or that another program has set up.
//!
//! Its clock, its size and `trace` are not touched: writing any of them empties the buffer. Its counters are read before anything
//! else. Its events may have been switched off since they were recorded, so that formats are found by the ids that occur.

use std::collections::{BTreeSet, HashMap};

use kmt_common::text::count;
use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage, Missed, SubBuffer, SubBufferItem};
use kmt_format::write::Writer;

use super::plan::{Plan, Recorded};
use crate::failure::{Failure, Result};
use crate::tracefs::{Event, EventSpec, TraceDir, find_events, is_of_recorder};

/// Name of the top level of tracefs on the command line.
pub const TOP: &str = "top";

/// A ring buffer as it was found.
#[derive(Debug)]
pub struct Adopted {
    /// Name of the instance, or [`TOP`].
    pub name: String,
    /// True if it recorded.
    pub is_on: bool,
    /// The kernel's counters of each CPU.
    counters: Vec<(u32, CpuStats)>,
}

impl Adopted {
    /// The directory of that name, and its counters.
    pub fn find(top: &TraceDir, name: &str) -> Result<(Self, TraceDir)> {
        let dir = dir_of(top, name)?;
        let stats = |cpu: u32| Some((cpu, CpuStats::parse(&dir.read(&format!("per_cpu/cpu{cpu}/stats"))?)?));
        let counters: Vec<(u32, CpuStats)> = dir.cpus().into_iter().filter_map(stats).collect();
        is_of_this_boot(&dir, name)?;
        let is_on = dir.read("tracing_on").is_none_or(|text| text.trim() != "0");
        Ok((Self { name: name.to_owned(), is_on, counters }, dir))
    }

    /// CPUs that have events in their buffers.
    pub fn cpus(&self) -> BTreeSet<u32> {
        let has_events = |stats: &CpuStats| stats.entries.is_some_and(|entries| entries > 0);
        self.counters.iter().filter(|(_, stats)| has_events(stats)).map(|(cpu, _)| *cpu).collect()
    }

    /// Counters of a CPU.
    pub fn counters(&self, cpu: u32) -> Option<CpuStats> {
        self.counters.iter().find(|(of, _)| *of == cpu).map(|(_, stats)| *stats)
    }

    /// Events in the buffers, and those that were lost before.
    fn totals(&self) -> (u64, u64) {
        let entries = self.counters.iter().filter_map(|(_, stats)| stats.entries);
        let lost = self.counters.iter().filter_map(|(_, stats)| stats.lost_events());
        (entries.fold(0, u64::saturating_add), lost.fold(0, u64::saturating_add))
    }

    /// What was found, in words.
    pub fn note(&self, dir: &TraceDir) -> String {
        let (entries, lost) = self.totals();
        let lost = if lost > 0 {
            format!(", {} were overwritten or dropped before", count(lost, "event"))
        } else {
            String::new()
        };
        let off = if self.is_on { "" } else { "; tracing is off in it" };
        format!(
            "{} has {} in its buffers{lost}{off}; its settings stay as they are",
            dir.path().display(),
            count(entries, "event")
        )
    }

    /// The selection that was found. Fails if there is nothing to record.
    pub fn plan(&self, dir: &TraceDir) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut conditions = String::new();
        let enabled = dir.read("set_event").unwrap_or_default();
        for spec in enabled.lines().filter_map(|line| EventSpec::parse(line.trim()).ok()) {
            for event in find_events(dir, &spec).into_iter().filter(|_| spec.is_exact()) {
                let recorded = recorded(dir, &event, &mut conditions);
                plan.events.insert(event, recorded);
            }
        }
        if plan.events.is_empty() && self.totals().0 == 0 {
            return Err(Failure::new(format!(
                "{} has no events in its buffers, and no event is enabled in it",
                dir.path().display()
            ))
            .hint("`kmt-capture check --boot` prints kernel parameters that record from boot on; without --adopt kmt-capture records in a buffer of its own"));
        }
        plan.found = Some(conditions);
        Ok(plan)
    }
}

/// How an event is recorded, and that as lines of the file.
fn recorded(dir: &TraceDir, event: &Event, conditions: &mut String) -> Recorded {
    let mut recorded = Recorded::default();
    conditions.push_str(&format!("{event} enable=1\n"));
    for file in ["filter", "trigger"] {
        let text = dir.read(&event.file(file)).unwrap_or_default();
        for line in text.lines().filter(|line| !line.starts_with('#') && *line != "none") {
            conditions.push_str(&format!("{event} {file}={line}\n"));
            if file == "filter" {
                recorded.filter = Some(line.to_owned());
            } else if line.starts_with("stacktrace") {
                recorded.stack = Some(line.split_once(" if ").map_or("", |(_, filter)| filter).to_owned());
            }
        }
    }
    recorded
}

fn dir_of(top: &TraceDir, name: &str) -> Result<TraceDir> {
    if name == TOP {
        return Ok(top.clone());
    }
    let file = format!("instances/{name}");
    let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    if !is_name || !top.has(&format!("{file}/trace_clock")) {
        let names = top.names("instances").into_iter().filter_map(|name| name.into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !is_of_recorder(name)).collect();
        names.sort();
        names.push(TOP.to_owned());
        return Err(Failure::new(format!("tracefs has no instance {name:?}"))
            .hint(format!("--adopt accepts {}", names.join(", "))));
    }
    if is_of_recorder(name) {
        return Err(Failure::new(format!("{name} is the instance of a kmt-capture that runs"))
            .hint("end that recording with Ctrl-C: its file has the events"));
    }
    Ok(top.sub(&file))
}

/// Fails for a persistent buffer that may hold the events of an earlier boot: their addresses and times are of that boot.
fn is_of_this_boot(dir: &TraceDir, name: &str) -> Result<()> {
    // 7.2 writes `# Current` once it has only events of this boot; 6.12 does not tell.
    match dir.read("last_boot_info") {
        Some(text) if !text.starts_with("# Current") => Err(Failure::new(format!(
            "{name} is a persistent buffer and may have events of an earlier boot, whose addresses are others"
        ))
        .hint("copy its files to a directory, and use `kmt-capture convert --boot last`, or `--boot first` for the boot before")),
        _ => Ok(()),
    }
}

/// Events that were overwritten by design before the first sub-buffer of a CPU; `None`: none, or events were lost otherwise.
///
/// In a buffer of which nothing was read, a mark there counts what the buffer overwrote, which may be more by now than `counters`
/// has. In another one it counts what was overwritten since then: also before this recording.
pub fn overwritten_before(bytes: &[u8], layout: &HeaderPage, counters: CpuStats) -> Option<u64> {
    let overrun = counters.overrun.filter(|_| counters.dropped == Some(0))?;
    let is_fresh = counters.read == Some(0);
    match SubBuffer::parse(bytes, layout, ByteOrder::NATIVE).ok()?.missed() {
        Missed::Count(events) if !is_fresh || events >= overrun => Some(events),
        Missed::Unknown if overrun > 0 => Some(if is_fresh { overrun } else { 0 }),
        _ => None,
    }
}

/// Finds the formats of the events that occur in a buffer.
#[derive(Debug)]
pub struct FoundFormats {
    dir: TraceDir,
    /// Ids that were looked at.
    seen: Vec<bool>,
    /// All events of the kernel by id, once one of them is needed.
    events: Option<HashMap<u16, Event>>,
    /// Events of time 0.
    pub zeros: u64,
    /// Ids that no event has.
    pub missing: Vec<u16>,
}

impl FoundFormats {
    /// Of the buffer in that directory.
    pub fn new(dir: &TraceDir) -> Self {
        let seen = vec![false; 1 << 16];
        Self { dir: dir.clone(), seen, events: None, zeros: 0, missing: Vec::new() }
    }

    /// Looks at a sub-buffer before it is written: gives the writer the formats that it needs.
    pub fn see(&mut self, bytes: &[u8], layout: &HeaderPage, writer: &mut Writer) {
        let order = ByteOrder::NATIVE;
        let Ok(sub_buffer) = SubBuffer::parse(bytes, layout, order) else { return };
        for item in sub_buffer.items() {
            let Ok(item) = item else { return };
            let SubBufferItem::Event { time, record, .. } = item else { continue };
            self.zeros += u64::from(time == 0);
            let id = order.uint_at(record, 0, 2).unwrap_or(0) as u16;
            let seen = self.seen.get_mut(usize::from(id)).map(|seen| std::mem::replace(seen, true));
            if seen == Some(false) && !writer.knows_id(id) {
                self.add(id, writer);
            }
        }
    }

    fn add(&mut self, id: u16, writer: &mut Writer) {
        let dir = &self.dir;
        let events = self.events.get_or_insert_with(|| events_by_id(dir));
        let event = events.get(&id);
        let text = event.and_then(|event| Some((event, dir.read(&event.file("format"))?)));
        let added = text.and_then(|(event, text)| writer.add_format(&event.system, &text).ok());
        if added != Some(id) {
            self.missing.push(id);
        }
    }
}

/// All events by the id in their `format`: the file `id` needs CONFIG_PERF_EVENTS.
fn events_by_id(dir: &TraceDir) -> HashMap<u16, Event> {
    let names = |path: &str| dir.names(path).into_iter().filter_map(|name| name.into_string().ok());
    let mut events = HashMap::new();
    for system in names("events") {
        for name in names(&format!("events/{system}")) {
            let event = Event::new(&system, &name);
            let text = dir.read(&event.file("format")).unwrap_or_default();
            let id = text.lines().find_map(|line| line.strip_prefix("ID: ")?.trim().parse().ok());
            events.extend(id.map(|id| (id, event)));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A folder that looks like tracefs.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let path = std::env::temp_dir().join(format!("kmt-adopted-{}-{name}", std::process::id()));
            for (file, text) in files {
                let file = path.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Self(path)
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const STATS: &str =
        "entries: 12\noverrun: 3\ncommit overrun: 0\nbytes: 700\ndropped events: 0\nread events: 0\n";

    #[test]
    fn the_selection_is_the_one_that_was_found() {
        let fake = Fake::new(
            "plan",
            &[
                ("instances/early/trace_clock", "[local]\n"),
                ("instances/early/tracing_on", "1\n"),
                ("instances/early/set_event", "kmem:kmalloc\nkmem:kfree\n"),
                ("instances/early/per_cpu/cpu0/stats", STATS),
                ("instances/early/events/kmem/kmalloc/enable", "1\n"),
                ("instances/early/events/kmem/kmalloc/filter", "bytes_req > 77\n"),
                ("instances/early/events/kmem/kmalloc/trigger", "stacktrace:unlimited\n"),
                ("instances/early/events/kmem/kfree/enable", "1\n"),
                ("instances/early/events/kmem/kfree/filter", "none\n"),
                ("instances/early/events/kmem/kfree/trigger", "# Available triggers:\n# traceon\n"),
            ],
        );
        let top = TraceDir::at(&fake.0);
        let (adopted, dir) = Adopted::find(&top, "early").unwrap();
        assert!(adopted.is_on && adopted.cpus() == BTreeSet::from([0]));
        let plan = adopted.plan(&dir).unwrap();
        assert_eq!(
            plan.conditions(),
            "kmem:kmalloc enable=1\nkmem:kmalloc filter=bytes_req > 77\n\
             kmem:kmalloc trigger=stacktrace:unlimited\nkmem:kfree enable=1\n"
        );
        assert_eq!(plan.summary(), "2 kmem events (1 with stacks)");
        assert!(adopted.note(&dir).contains("early has 12 events in its buffers, 3 events were overwritten"));
        let refused = |name: &str| Adopted::find(&top, name).map(|_| ()).unwrap_err().to_string();
        assert!(refused("late").contains("--adopt accepts early, top"), "{}", refused("late"));
        assert!(refused("../instances/early").contains("has no instance"));
    }

    #[test]
    fn a_persistent_buffer_of_an_earlier_boot_is_refused() {
        for (info, is_refused) in [("text delta:\t0\n", true), ("# Current\n", false)] {
            let fake = Fake::new(
                "persistent",
                &[("instances/map/trace_clock", "[local]\n"), ("instances/map/last_boot_info", info)],
            );
            let found = Adopted::find(&TraceDir::at(&fake.0), "map");
            assert_eq!(found.is_err(), is_refused, "{info}");
        }
    }

    #[test]
    fn an_empty_buffer_without_events_is_refused() {
        let fake = Fake::new("empty", &[("trace_clock", "[local]\n"), ("set_event", "")]);
        let (adopted, dir) = Adopted::find(&TraceDir::at(&fake.0), TOP).unwrap();
        let refusal = adopted.plan(&dir).unwrap_err().to_string();
        assert!(
            refusal.contains("no event is enabled in it") && refusal.contains("check --boot"),
            "{refusal}"
        );
    }
}
