//! Selection of a recording: events with filters and stacks, functions with their latency.

use std::collections::{BTreeMap, BTreeSet};

use super::preset::{Preset, RECLAIM_FUNCTIONS};
use super::{RecordOptions, unknown_events};
use crate::failure::{Failure, Result};
use crate::tracefs::{Event, EventSpec, Probe, TraceDir, find_events};
use kmt_common::survivors::Narrowed;
use kmt_common::text::count;

/// Events that tell the names of tasks, and to which cgroup they move.
const TASK_EVENTS: [&str; 4] =
    ["task:task_newtask", "task:task_rename", "sched:sched_process_exit", "cgroup:cgroup_attach_task"];

/// How one event is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Filter of the kernel.
    pub filter: Option<String>,
    /// Filter of the stacks that are taken, empty for all; `None`: none are.
    pub stack: Option<String>,
    /// How it was made, if it is a probe of ours.
    pub probe: Option<String>,
}

/// The system that probes of ours have in the file; in the kernel its name has the recorder's number.
pub const PROBES: &str = "kmt";

/// Selection of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Events.
    pub events: BTreeMap<Event, Recorded>,
    /// Tasks whose allocations are recorded; empty: all.
    pub pids: BTreeSet<i32>,
    /// True if allocations of other tasks are left out by the recorder: the text of the filter is too long for the kernel.
    pub in_user_space: bool,
    /// Functions whose latency is taken; the first that the kernel has of each row.
    pub functions: Vec<Vec<String>>,
    /// Lines of the conditions of a buffer that was found; `None`: they follow from the selection.
    pub found: Option<String>,
    /// Requested events that cannot be recorded, a sentence each.
    pub notes: Vec<String>,
}

impl Plan {
    /// The selection of `options`, as far as the kernel has it.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing of it is there.
    pub fn new(options: &RecordOptions, top: &TraceDir) -> Result<Self> {
        let mut plan = Self::default();
        let asked = plan.asked_events(options);
        for spec in &asked {
            let found = find_events(top, spec);
            if found.is_empty() && options.events.contains(spec) && !is_optional(spec) {
                unknown_events::refused("-e", spec, top).map_or(Ok(()), Err)?;
            }
            if found.is_empty() && (spec.is_exact() || options.preset.is_none()) && !is_optional(spec) {
                plan.notes.push(format!("this kernel has no event {spec}; it is not recorded"));
            }
            for event in found.into_iter().filter(|event| !is_left_out(event, options)) {
                let recorded = plan.events.entry(event).or_default();
                recorded.filter = spec.filter.clone().or_else(|| recorded.filter.take());
            }
        }
        if plan.events.is_empty() {
            let names: Vec<String> = asked.iter().map(unknown_events::given).collect();
            return Err(Failure::new(format!("this kernel has none of the events {}", names.join(", ")))
                .hint(unknown_events::listed(top)));
        }
        plan.add_stacks(options, top)?;
        plan.set_pids(options.pids.iter().flat_map(|&pid| threads_of(pid)).collect());
        if plan.in_user_space {
            if options.verbatim {
                return Err(Failure::new(format!(
                    "--pid has {}, more than a filter of the kernel takes, and --raw keeps the kernel's sub-buffers as they are",
                    count(plan.pids.len() as u64, "thread")
                ))
                .hint("omit --raw: the recorder leaves out the allocations of other tasks then"));
            }
            plan.notes.push(format!(
                "--pid has {}, more than a filter of the kernel takes: the recorder leaves out the allocations of other tasks",
                count(plan.pids.len() as u64, "thread")
            ));
        }
        if options.task_events {
            for spec in TASK_EVENTS.iter().filter_map(|name| EventSpec::parse(name).ok()) {
                find_events(top, &spec).into_iter().for_each(|event| {
                    plan.events.entry(event).or_default();
                });
            }
        }
        plan.functions = functions(options);
        plan.notes.extend(plan.lacks_page_frees(top));
        Ok(plan)
    }

    /// Kernels free some objects without an event; where their page is freed, at the latest, they are known to be gone.
    fn lacks_page_frees(&self, top: &TraceDir) -> Option<String> {
        let is_recorded = |name: &str| self.events.contains_key(&Event::new("kmem", name));
        let has_slab = is_recorded("kmalloc") || is_recorded("kmem_cache_alloc");
        let is_missing =
            !is_recorded("mm_page_free") && top.has(&Event::new("kmem", "mm_page_free").file("enable"));
        (has_slab && is_missing).then(|| {
            "kmem:mm_page_alloc and kmem:mm_page_free are not recorded: objects that the kernel frees without an event (kfree_rcu, bulk frees) are reported as live for longer; add both events with -e".to_owned()
        })
    }

    fn asked_events(&self, options: &RecordOptions) -> Vec<EventSpec> {
        let mut asked: Vec<EventSpec> = Vec::new();
        let mut add =
            |patterns: &[&str]| asked.extend(patterns.iter().filter_map(|p| EventSpec::parse(p).ok()));
        match options.preset {
            Some(preset) => add(preset.events()),
            None if options.events.is_empty() => add(&["kmem:*"]),
            None => {}
        }
        asked.extend(options.events.iter().cloned());
        asked
    }

    fn add_stacks(&mut self, options: &RecordOptions, top: &TraceDir) -> Result<()> {
        let preset = options.preset.map_or(&[][..], Preset::stacks);
        let preset = preset.iter().filter_map(|p| EventSpec::parse(p).ok()).map(|spec| (spec, false));
        let given = options.stacks.iter().map(|spec| (spec.clone(), true));
        for (spec, is_given) in preset.chain(given) {
            let found: BTreeSet<Event> = find_events(top, &spec);
            if found.is_empty() && is_given && !is_optional(&spec) && spec.is_exact_or_system() {
                let failure = || {
                    let given = unknown_events::given(&spec);
                    let what = format!("--stack {given}: this kernel has no such event");
                    Failure::new(what).hint(unknown_events::listed(top)).usage()
                };
                return Err(unknown_events::refused("--stack", &spec, top).unwrap_or_else(failure));
            }
            if found.is_empty() && is_given {
                self.notes.push(format!("this kernel has no event {spec}; its stacks are not recorded"));
            }
            for event in found {
                if !top.has(&event.file("trigger")) {
                    return Err(Failure::new(format!("this kernel cannot record stacks of {event}"))
                        .hint("stack triggers need Linux 3.14 and CONFIG_STACKTRACE; remove --stack"));
                }
                self.events.entry(event).or_default().stack = Some(spec.filter.clone().unwrap_or_default());
            }
        }
        Ok(())
    }

    /// The filter of an event: its own, and for allocations that of the tasks. Frees stay: any task may free, and an allocation
    /// without its free would seem a leak.
    pub fn filter(&self, event: &Event, recorded: &Recorded) -> Option<String> {
        let own = recorded.filter.as_deref();
        if self.pids.is_empty() || !is_allocation(event) {
            return own.map(str::to_owned);
        }
        let tasks = one_of(&self.pids);
        Some(own.map_or(tasks.clone(), |own| format!("({own}) && ({tasks})")))
    }

    /// Takes these tasks; decides where they are filtered. What was too long once stays in user space.
    pub fn set_pids(&mut self, pids: BTreeSet<i32>) {
        self.pids = pids;
        let is_too_long = |text: Option<String>| text.is_some_and(|text| text.len() > FILTER_LEN_MAX);
        self.in_user_space |= !self.pids.is_empty()
            && self.events.iter().any(|(event, recorded)| {
                is_too_long(self.filter(event, recorded)) || is_too_long(self.trigger(event, recorded))
            });
    }

    /// This plan as the kernel filters it.
    pub fn in_kernel(&self) -> Self {
        let pids = if self.in_user_space { BTreeSet::new() } else { self.pids.clone() };
        Self { pids, ..self.clone() }
    }

    /// Kinds of objects of which a filter leaves out allocations, while all frees come.
    pub fn narrowed(&self) -> Narrowed {
        let any = |is_of_pages: bool| {
            let mut of_kind = self.events.iter().filter(|(event, _)| {
                event.system == "kmem"
                    && is_allocation(event)
                    && (event.name == "mm_page_alloc") == is_of_pages
            });
            of_kind.any(|(event, recorded)| self.filter(event, recorded).is_some())
        };
        Narrowed { objects: any(false), pages: any(true) }
    }

    /// The events that are filtered by task.
    pub fn allocations(&self) -> impl Iterator<Item = &Event> {
        self.events.keys().filter(|event| is_allocation(event))
    }

    /// Adds the event of a probe of ours.
    pub fn add_probe(&mut self, probe: &Probe) {
        let recorded = Recorded { probe: Some(probe.definition.clone()), ..Recorded::default() };
        self.events.insert(probe.event(), recorded);
    }

    /// The system that an event has in the file.
    pub fn system<'e>(&self, event: &'e Event) -> &'e str {
        let is_probe = self.events.get(event).is_some_and(|recorded| recorded.probe.is_some());
        if is_probe { PROBES } else { &event.system }
    }

    /// The trigger that takes stacks. It does not heed the event's filter, so it gets that as well: a stack without its
    /// event would belong to nothing. Threads that start later have none: a trigger's filter cannot be changed.
    pub fn trigger(&self, event: &Event, recorded: &Recorded) -> Option<String> {
        let stack = recorded.stack.as_deref()?;
        let filter = self.filter(event, recorded).unwrap_or_default();
        Some(match [filter.as_str(), stack] {
            ["", ""] => "stacktrace".to_owned(),
            [filter, ""] | ["", filter] => format!("stacktrace if {filter}"),
            [event, stack] => format!("stacktrace if ({event}) && ({stack})"),
        })
    }

    /// The filters of the kernel that depend on tasks; `0` is none.
    pub fn task_filters(&self) -> Vec<(Event, String)> {
        let plan = self.in_kernel();
        let by_task = plan.events.iter().filter(|(event, _)| is_allocation(event));
        let filter =
            |event: &Event, recorded: &Recorded| plan.filter(event, recorded).unwrap_or("0".to_owned());
        by_task.map(|(event, recorded)| (event.clone(), filter(event, recorded))).collect()
    }

    /// Lines of `SYSTEM:EVENT enable=1`, `filter=` and `trigger=`, as the file keeps them.
    pub fn conditions(&self) -> String {
        if let Some(found) = &self.found {
            return found.clone();
        }
        let mut out = String::new();
        for (event, recorded) in &self.events {
            let shown =
                if recorded.probe.is_some() { Event::new(PROBES, &event.name) } else { event.clone() };
            out.push_str(&format!("{shown} enable=1\n"));
            let (filter, trigger) = (self.filter(event, recorded), self.trigger(event, recorded));
            for (name, value) in [("filter", filter), ("trigger", trigger), ("probe", recorded.probe.clone())]
            {
                if let Some(value) = value {
                    out.push_str(&format!("{shown} {name}={value}\n"));
                }
            }
        }
        out
    }

    /// The selection, in one line.
    pub fn summary(&self) -> String {
        let mut systems: BTreeMap<&str, usize> = BTreeMap::new();
        self.events.keys().for_each(|event| *systems.entry(self.system(event)).or_default() += 1);
        let parts: Vec<String> = systems.iter().map(|(system, count)| format!("{count} {system}")).collect();
        let mut out = format!("{} events", parts.join(" + "));
        let stacks = self.events.values().filter(|r| r.stack.is_some()).count();
        if stacks > 0 {
            out.push_str(&format!(" ({stacks} with stacks)"));
        }
        if !self.functions.is_empty() {
            out.push_str(&format!(" and latencies of {}", count(self.functions.len() as u64, "function")));
        }
        out
    }
}

/// Longest text of a filter: less than a page (event_filter_write and event_trigger_write in kernel/trace, 4.4 to 7.2), and
/// pages have at least 4 KiB. A trigger has words before its filter.
const FILTER_LEN_MAX: usize = 4_000;

/// A filter for tasks; three and more with consecutive numbers are a range.
fn one_of(pids: &BTreeSet<i32>) -> String {
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for &pid in pids {
        match ranges.last_mut() {
            Some((_, last)) if i64::from(*last) + 1 == i64::from(pid) => *last = pid,
            _ => ranges.push((pid, pid)),
        }
    }
    let text = |(first, last): (i32, i32)| match i64::from(last) - i64::from(first) {
        0 => format!("common_pid == {first}"),
        1 => format!("common_pid == {first} || common_pid == {last}"),
        _ => format!("(common_pid >= {first} && common_pid <= {last})"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(" || ")
}

/// The threads of a process; of a thread only itself. A task that is not there is kept: it may be about to start.
fn threads_of(pid: i32) -> Vec<i32> {
    let threads = super::tasks::numbered(&format!("/proc/{pid}/task"));
    // /proc/THREAD/task lists the whole process as well.
    if threads.is_empty() || !super::tasks::is_process(pid) { vec![pid] } else { threads }
}

/// Events of the page allocator that come beside an allocation or a free, and say nothing on who holds memory. A recording of
/// days is small without them.
const BESIDE_PAGES: [&str; 3] = ["mm_page_free_batched", "mm_page_alloc_zone_locked", "mm_page_pcpu_drain"];

/// `rss_stat` comes with every page fault and has little to say; it has to be asked for. So have others where survivors are
/// recorded.
fn is_left_out(event: &Event, options: &RecordOptions) -> bool {
    let is_asked = options.preset == Some(Preset::All)
        || options.events.iter().any(|s| s.matches(event) && s.is_exact());
    let is_beside = options.survivors.is_some() && BESIDE_PAGES.contains(&event.name.as_str());
    event.system == "kmem" && (event.name == "rss_stat" || is_beside) && !is_asked
}

fn is_optional(spec: &EventSpec) -> bool {
    // Merged into kmalloc and kmem_cache_alloc in 6.1; absent without CONFIG_MIGRATION.
    matches!(spec.name.as_str(), "kmalloc_node" | "kmem_cache_alloc_node" | "mm_migrate_pages")
}

fn is_allocation(event: &Event) -> bool {
    let names: &[&str] = match event.system.as_str() {
        "kmem" => &["kmalloc", "kmalloc_node", "kmem_cache_alloc", "kmem_cache_alloc_node", "mm_page_alloc"],
        "vmalloc" => &["alloc_vmap_area"],
        "percpu" => &["percpu_alloc_percpu"],
        _ => &[],
    };
    names.contains(&event.name.as_str())
}

fn functions(options: &RecordOptions) -> Vec<Vec<String>> {
    let own = options.functions.iter().map(|name| vec![name.clone()]);
    let row = |names: &&[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    if options.preset == Some(Preset::Reclaim) && options.functions.is_empty() {
        return RECLAIM_FUNCTIONS.iter().map(row).collect();
    }
    own.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(events: &[&str]) -> (std::path::PathBuf, TraceDir) {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kmt-plan-{}-{number}", std::process::id()));
        for event in events {
            let dir = path.join("events").join(event.replace(':', "/"));
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("enable"), "0\n").unwrap();
            std::fs::write(dir.join("trigger"), "").unwrap();
        }
        (path.clone(), TraceDir::at(path))
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.events.keys().map(Event::to_string).collect()
    }

    #[test]
    fn presets_take_what_the_kernel_has() {
        let (path, top) = kernel(&[
            "kmem:kmalloc",
            "kmem:kfree",
            "kmem:kmem_cache_alloc",
            "kmem:kmem_cache_free",
            "kmem:rss_stat",
            "kmem:mm_page_alloc",
            "kmem:mm_page_free",
            "vmscan:mm_shrink_slab_start",
            "migrate:mm_migrate_pages",
            "migrate:set_migration_pte",
            "task:task_rename",
        ]);
        let plan = |options: RecordOptions| Plan::new(&options, &top);
        let all = plan(RecordOptions::default()).unwrap();
        assert_eq!(all.events.len(), 6, "the kmem events without rss_stat: {:?}", names(&all));
        assert!(all.notes.is_empty());
        let slab = plan(RecordOptions { preset: Some(Preset::Slab), ..RecordOptions::default() }).unwrap();
        assert_eq!(
            slab.events.len(),
            6,
            "those of pages end lives of objects that are freed without an event"
        );
        assert!(slab.notes.is_empty(), "{:?}", slab.notes);
        let alone = vec![EventSpec::parse("kmem:kmalloc").unwrap(), EventSpec::parse("kmem:kfree").unwrap()];
        let alone = plan(RecordOptions { events: alone, ..RecordOptions::default() }).unwrap();
        assert!(
            alone.notes.iter().any(|note| note.contains("mm_page_free are not recorded")),
            "{:?}",
            alone.notes
        );
        let pages = plan(RecordOptions { preset: Some(Preset::Pages), ..RecordOptions::default() }).unwrap();
        let alloc = &pages.events[&Event::new("kmem", "mm_page_alloc")];
        assert_eq!(alloc.stack.as_deref(), Some(""));
        let reclaim =
            plan(RecordOptions { preset: Some(Preset::Reclaim), ..RecordOptions::default() }).unwrap();
        assert_eq!(names(&reclaim), ["migrate:mm_migrate_pages", "vmscan:mm_shrink_slab_start"]);
        assert_eq!(reclaim.functions.len(), RECLAIM_FUNCTIONS.len());
        let everything =
            plan(RecordOptions { preset: Some(Preset::All), task_events: true, ..RecordOptions::default() })
                .unwrap();
        assert!(names(&everything).contains(&"kmem:rss_stat".to_owned()));
        assert!(everything.notes.is_empty(), "this kernel has no vmalloc events: {:?}", everything.notes);
        assert!(names(&everything).contains(&"task:task_rename".to_owned()));
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn frees_are_never_filtered_by_task() {
        let (path, top) = kernel(&["kmem:kmalloc", "kmem:kfree"]);
        let events = vec![
            EventSpec::parse("kmem:kmalloc if bytes_req > 64").unwrap(),
            EventSpec::parse("kmem:kfree").unwrap(),
        ];
        let plan = Plan::new(
            &RecordOptions { events, pids: vec![4_194_305, 4_194_306], ..RecordOptions::default() },
            &top,
        )
        .unwrap();
        assert_eq!(
            plan.conditions(),
            "kmem:kfree enable=1\nkmem:kmalloc enable=1\n\
             kmem:kmalloc filter=(bytes_req > 64) && (common_pid == 4194305 || common_pid == 4194306)\n"
        );
        assert_eq!(plan.narrowed(), Narrowed { objects: true, pages: false });
        let stacks = vec![EventSpec::parse("kmem:kmalloc if bytes_req > 99").unwrap()];
        let plan =
            Plan::new(&RecordOptions { stacks, pids: vec![4_194_305], ..RecordOptions::default() }, &top)
                .unwrap();
        let triggers = plan.conditions();
        assert!(
            triggers.contains("trigger=stacktrace if (common_pid == 4194305) && (bytes_req > 99)\n"),
            "{triggers}"
        );
        let all = Plan::new(&RecordOptions::default(), &top).unwrap();
        assert_eq!(all.narrowed(), Narrowed::default());
        let missing = RecordOptions {
            events: vec![EventSpec::parse("kmem:gone").unwrap()],
            ..RecordOptions::default()
        };
        assert!(Plan::new(&missing, &top).unwrap_err().to_string().contains("kmem:gone"));
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_is_too_long_for_the_kernel_is_filtered_in_user_space() {
        let (_path, top) = kernel(&["kmem:kmalloc", "kmem:kfree"]);
        let mut plan =
            Plan::new(&RecordOptions { pids: vec![4_194_305], ..RecordOptions::default() }, &top).unwrap();
        plan.set_pids((1_000..4_000).chain([7, 9_000, 9_001]).collect());
        assert!(!plan.in_user_space);
        let filters = plan.task_filters();
        let text = "common_pid == 7 || (common_pid >= 1000 && common_pid <= 3999) || common_pid == 9000 || common_pid == 9001";
        assert_eq!(filters, [(Event::new("kmem", "kmalloc"), text.to_owned())]);
        plan.set_pids((0..400).map(|number| 1_000 + 2 * number).collect());
        assert!(plan.in_user_space);
        assert_eq!(plan.task_filters(), [(Event::new("kmem", "kmalloc"), "0".to_owned())]);
        assert!(plan.conditions().contains("kmem:kmalloc filter=common_pid == 1000 || common_pid == 1002"));
        let raw = RecordOptions {
            pids: (0..400).map(|number| 4_194_305 + 2 * number).collect(),
            verbatim: true,
            ..RecordOptions::default()
        };
        assert!(Plan::new(&raw, &top).unwrap_err().to_string().contains("omit --raw"));
    }
}
