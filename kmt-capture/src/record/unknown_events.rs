//! Events of the command line that the kernel lacks: the event that was probably meant, by the names in `events/` of tracefs.
//!
//! A word without a system (`kmalloc`) is an event, a mistyped one is near another name of its system.

use kmt_common::usage::nearest;

use crate::failure::Failure;
use crate::tracefs::{Event, EventSpec, TraceDir, find_events};

/// The error of an event that the kernel lacks, if its name is near another one.
pub fn refused(option: &str, spec: &EventSpec, top: &TraceDir) -> Option<Failure> {
    let meant = meant(spec, top)?;
    let given = given(spec);
    let failure =
        Failure::new(format!("{option} {given}: this kernel has no such event; did you mean {meant}?"));
    Some(failure.hint(format!("{option} {meant}")).usage())
}

/// The specification as it was written: a system alone means all its events.
pub fn given(spec: &EventSpec) -> String {
    if spec.name == "*" { spec.system.clone() } else { spec.to_string() }
}

/// Where the names of events are, if the kernel has any.
pub fn listed(top: &TraceDir) -> String {
    match top.names("events").is_empty() {
        true => "this kernel has no tracepoints: it needs CONFIG_TRACEPOINTS".to_owned(),
        false => format!("`ls {0}/events {0}/events/kmem` lists systems and events", top.path().display()),
    }
}

/// The event or system that was probably meant. `None`: no name is near, or the specification is a pattern.
fn meant(spec: &EventSpec, top: &TraceDir) -> Option<String> {
    let is_pattern = |word: &str| word.contains(['*', '?']);
    let is_system = spec.name == "*";
    if is_pattern(&spec.system) || (!is_system && is_pattern(&spec.name)) {
        return None;
    }
    let all = EventSpec { system: "*".to_owned(), name: "*".to_owned(), filter: None };
    let mut events: Vec<Event> = find_events(top, &all).into_iter().collect();
    // Of one name in several systems, that of the memory allocators is meant.
    events.sort_by_key(|event| event.system != "kmem");
    let name = if is_system { &spec.system } else { &spec.name };
    if let Some(same) = events.iter().find(|event| event.name == *name) {
        return Some(same.to_string());
    }
    let systems: std::collections::BTreeSet<&str> =
        events.iter().map(|event| event.system.as_str()).collect();
    let has_system = systems.contains(spec.system.as_str());
    if is_system {
        let systems: Vec<&str> = systems.into_iter().collect();
        if let Some(system) = nearest(name, &systems) {
            return Some(system.to_owned());
        }
    }
    let near = events.iter().filter(|event| !has_system || event.system == spec.system);
    let names: Vec<&str> = near.clone().map(|event| event.name.as_str()).collect();
    let name = nearest(name, &names)?;
    near.clone().find(|event| event.name == name).map(Event::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Plan, RecordOptions};

    fn kernel(events: &[&str]) -> TraceDir {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kmt-unknown-events-{}-{number}", std::process::id()));
        for event in events {
            let dir = path.join("events").join(event.replace(':', "/"));
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("enable"), "0\n").unwrap();
            std::fs::write(dir.join("trigger"), "").unwrap();
        }
        TraceDir::at(path)
    }

    #[test]
    fn the_event_that_was_meant_is_named() {
        let top = kernel(&[
            "kmem:kmalloc",
            "kmem:kmalloc_node",
            "kmem:kfree",
            "a:kfree",
            "vmscan:mm_shrink_slab_start",
        ]);
        for (given, expected) in [
            ("kmalloc", Some("kmem:kmalloc")),
            ("kmem:kmaloc", Some("kmem:kmalloc")),
            ("kmaloc", Some("kmem:kmalloc")),
            ("kmen:kmalloc", Some("kmem:kmalloc")),
            ("slab:kfree", Some("kmem:kfree")),
            ("vmscn", Some("vmscan")),
            ("kmem:nothing_like_it", None),
            ("nothing_like_it", None),
            ("kmem:kmaloc*", None),
        ] {
            let spec = EventSpec::parse(given).unwrap();
            assert_eq!(meant(&spec, &top).as_deref(), expected, "{given}");
        }
        let refusal = refused("--stack", &EventSpec::parse("kmalloc").unwrap(), &top).unwrap();
        assert_eq!(refusal.exit_code(), 2);
        assert!(
            refusal
                .to_string()
                .starts_with("--stack kmalloc: this kernel has no such event; did you mean kmem:kmalloc?"),
            "{refusal}"
        );
        std::fs::remove_dir_all(top.path()).unwrap();
    }

    #[test]
    fn a_mistyped_event_is_refused_and_a_missing_one_is_noted() {
        let top = kernel(&["kmem:kmalloc", "kmem:kfree", "kmem:mm_page_alloc", "kmem:mm_page_free"]);
        let spec = |text: &str| EventSpec::parse(text).unwrap();
        let of_events = |texts: &[&str]| {
            let events = texts.iter().map(|text| spec(text)).collect();
            Plan::new(&RecordOptions { events, ..RecordOptions::default() }, &top)
        };
        for given in ["kmalloc", "kmem:kmaloc", "kmaloc"] {
            let refusal = of_events(&["kmem:kfree", given]).unwrap_err();
            assert!(refusal.what().contains("did you mean kmem:kmalloc?"), "{given}: {refusal}");
            assert_eq!(refusal.exit_code(), 2);
            let stacks = vec![spec(given)];
            let refusal = Plan::new(&RecordOptions { stacks, ..RecordOptions::default() }, &top).unwrap_err();
            assert!(refusal.what().contains("did you mean kmem:kmalloc?"), "{given}: {refusal}");
        }
        let plan = of_events(&["kmem:kfree", "percpu:*", "kmem:kmalloc_node"]).unwrap();
        assert!(plan.notes.iter().any(|note| note.contains("no event percpu:*")), "{:?}", plan.notes);
        let stacks = vec![spec("percpu:percpu_alloc_percpu")];
        let refusal = Plan::new(&RecordOptions { stacks, ..RecordOptions::default() }, &top).unwrap_err();
        assert!(refusal.to_string().contains("no such event\nhint: `ls "), "{refusal}");
        std::fs::remove_dir_all(top.path()).unwrap();
    }
}
