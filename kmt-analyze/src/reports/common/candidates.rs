//! Values in the trace that conditions of a selection could match.

use std::collections::BTreeSet;

use crate::pass::condition::Key;
use crate::render::head::some_values;
use crate::render::words::{count, shown, time};
use crate::reports::common::ReportContext;
use crate::stream::Api;
use crate::trace::names::{cache_name, task_in_message};

/// Values in the trace for each kind of condition that is selected by.
pub fn candidates(context: &ReportContext<'_, '_>) -> Vec<String> {
    let (session, selection, result) = (context.session, context.selection, context.analysis);
    let has = |key| selection.conditions().any(|t| t.key == key);
    let interner = &result.interner;
    let mut out = Vec::new();
    let pids: BTreeSet<i32> = interner.origins.items().iter().map(|o| o.pid).collect();
    if !selection.pids.is_empty() || !selection.comms.is_empty() || has(Key::Pid) || has(Key::Comm) {
        let names = session.names();
        let tasks = pids.iter().map(|&pid| task_in_message(names.shown_at(pid, u64::MAX), pid));
        out.push(format!("tasks: {}", some_values(tasks.collect())));
    }
    if !selection.cpus.is_empty() || has(Key::Cpu) {
        let cpus = session.losses.cpus.iter().map(|c| c.cpu.to_string());
        out.push(format!("CPUs: {}", some_values(cpus.collect())));
    }
    if has(Key::Cgroup) {
        let cgroups = session.cgroups();
        let paths = interner.origins.items().iter().filter_map(|o| cgroups.path(o.pid, o.cgroup));
        let paths: BTreeSet<String> = paths.map(shown).collect();
        out.push(format!("cgroups: {}", some_values(paths.into_iter().collect())));
    }
    if has(Key::Cache) {
        let mut caches: BTreeSet<String> = interner.names.items().iter().map(|n| cache_name(n)).collect();
        let sizes = interner.sites.items().iter().filter(|s| s.api == Api::Kmalloc).map(|s| s.bytes_alloc);
        caches.extend(sizes.collect::<BTreeSet<u64>>().iter().map(|&size| result.size_classes.name(size)));
        out.push(format!("caches: {}", some_values(caches.into_iter().collect())));
    }
    if has(Key::Event) {
        let classes = session.trace.schema().classes();
        let seen = classes.filter(|(i, _)| result.classes_seen.get(*i).copied().unwrap_or(false));
        let events: Vec<String> =
            seen.map(|(_, c)| shown(format!("{}:{}", c.system, c.name).as_bytes())).collect();
        out.push(format!("events: {}", some_values(events)));
    }
    let sizes: Vec<u64> = interner.sites.items().iter().map(|s| s.bytes_alloc).collect();
    if let (true, Some(low), Some(high)) =
        (has(Key::BytesAlloc) || has(Key::BytesReq), sizes.iter().min(), sizes.iter().max())
    {
        out.push(format!("sizes: {} to {} bytes", count(*low), count(*high)));
    }
    if has(Key::CallSite) {
        out.push("call sites: `callers` lists them".to_owned());
    }
    let is_narrow = selection.time.is_some() || selection.at.is_some();
    if let (true, Some(start), Some(end)) = (is_narrow, session.first_time(), session.last_time()) {
        let unit = session.unit();
        out.push(format!("times: {} to {}", time(start, unit), time(end, unit)));
    }
    out
}
