//! Events of the running kernel that presets and reports use, with their names.

use super::facts::{Facts, State};
use crate::tracefs::{Event, EventSpec, TraceDir, find_events};

/// Events that reports need, by subject.
const WANTED: [(&str, &[&str]); 4] = [
    ("slab", &["kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free"]),
    ("pages", &["mm_page_alloc", "mm_page_free", "mm_page_free_batched"]),
    ("page lists", &["mm_page_alloc_zone_locked", "mm_page_pcpu_drain", "mm_page_alloc_extfrag"]),
    ("processes", &["rss_stat"]),
];
/// Systems other than kmem that presets record.
const SYSTEMS: [&str; 7] = ["vmscan", "compaction", "vmalloc", "percpu", "cma", "page_pool", "task"];

/// Events that this kernel can record, and those of reports that it lacks.
pub fn recordable(facts: &mut Facts, top: &TraceDir) {
    for (what, names) in WANTED {
        of_subject(facts, top, what, names);
    }
    let found = SYSTEMS.iter().filter_map(|system| {
        Some((system, find_events(top, &EventSpec::parse(system).ok()?).into_iter().collect::<Vec<Event>>()))
    });
    let (mut counts, mut names) = (Vec::new(), Vec::new());
    for (system, events) in found {
        counts.push(match events.len() {
            0 => format!("no {system}"),
            number => format!("{number} {system}"),
        });
        names.extend(events.iter().map(|event| format!("{}:{}", event.system, event.name)));
    }
    facts.good("events", counts.join(", "));
    facts.name(names);
    if top.has("events/kmem/kmalloc/trigger") {
        facts.good("stacks", "recorded with event triggers");
    } else {
        facts.add(
            "stacks",
            State::Warning,
            "no event triggers",
            "--stack needs Linux 3.14 and CONFIG_STACKTRACE",
        );
    }
}

/// Events of one subject.
fn of_subject(facts: &mut Facts, top: &TraceDir, what: &str, names: &[&str]) {
    let has = |name: &str| top.has(&Event::new("kmem", name).file("enable"));
    let (found, missing): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| has(name));
    if missing.is_empty() {
        facts.good("events", format!("kmem: {what}: all {}", names.len()));
    } else {
        let none_is_bad = what == "slab" && found.is_empty();
        let state = if none_is_bad { State::Bad } else { State::Warning };
        facts.add(
            "events",
            state,
            format!("kmem: {what}: missing {}", missing.join(", ")),
            "reports that need them show \"not recorded\"; kmem events need CONFIG_TRACEPOINTS and CONFIG_EVENT_TRACING",
        );
    }
    facts.name(found.iter().map(|name| format!("kmem:{name}")));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn counted_events_have_their_names() {
        let folder = std::env::temp_dir().join(format!("kmt-check-events-{}", std::process::id()));
        let events = [
            "kmem/kmalloc",
            "kmem/kfree",
            "vmscan/mm_vmscan_wakeup_kswapd",
            "task/task_rename",
            "task/task_newtask",
        ];
        for event in events {
            let event = folder.join("events").join(event);
            fs::create_dir_all(&event).unwrap();
            fs::write(event.join("enable"), "0").unwrap();
        }
        // Without a file `enable` it cannot be recorded.
        fs::create_dir_all(folder.join("events/vmscan/not_an_event")).unwrap();
        let mut facts = Facts::default();
        recordable(&mut facts, &TraceDir::at(&folder));
        fs::remove_dir_all(&folder).unwrap();
        let names: Vec<&[String]> = facts.0.iter().map(|fact| fact.names.as_slice()).collect();
        assert_eq!(names[0], ["kmem:kmalloc", "kmem:kfree"]);
        assert!(facts.0[0].value.contains("missing kmem_cache_alloc, kmem_cache_free"));
        assert!(names[1].is_empty() && facts.0[1].value.contains("missing mm_page_alloc"));
        let systems = &facts.0[4];
        assert_eq!(
            systems.names,
            ["vmscan:mm_vmscan_wakeup_kswapd", "task:task_newtask", "task:task_rename"]
        );
        assert!(systems.value.starts_with("1 vmscan, no compaction") && systems.value.ends_with("2 task"));
    }
}
