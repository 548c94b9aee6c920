//! Conditions that the kernel checks at an event: `traceoff` triggers, which stop the ring buffer of our instance at once.
//!
//! A trigger is used up when it has stopped the buffer once (`:1`). All of them have a filter: one without is called before its
//! event is written (`event_triggers_call`, kernel/trace/trace_events_trigger.c), and the event would not be in the file. An
//! event can have one `traceoff` trigger, so that conditions on one event share theirs.

use std::collections::BTreeMap;

use super::Condition;
use crate::failure::{Failure, Result};
use crate::tracefs::{Event, TraceDir};
use kmt_common::setting_change::SettingChange;

/// A filter that each event meets.
const ALWAYS: &str = "common_pid >= 0";
/// What a used-up trigger reads as.
const USED_UP: &str = "traceoff:count=0";

/// One condition on one event.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Watched {
    /// The condition as it was given.
    text: String,
    filter: String,
}

/// The triggers of a recording, by event.
#[derive(Debug, Default)]
pub struct Triggers(BTreeMap<Event, Vec<Watched>>);

impl Triggers {
    /// Those of `conditions` that the kernel checks; `top` is the top level of tracefs.
    ///
    /// # Errors
    ///
    /// This kernel does not have an event, or no triggers.
    pub fn new(conditions: &[Condition], top: &TraceDir) -> Result<Self> {
        let mut triggers = Self::default();
        for condition in conditions.iter().filter(|condition| condition.is_trigger()) {
            let (event, filter) = watched(condition, top)?;
            let text = condition.to_string();
            triggers.0.entry(event).or_default().push(Watched { text, filter });
        }
        Ok(triggers)
    }

    /// The events, which have to be recorded: the one that stops the buffer is the last.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.0.keys()
    }

    /// Names of the files that hold them.
    pub fn files(&self) -> Vec<String> {
        self.0.keys().map(|event| event.file("trigger")).collect()
    }

    /// Sets them in `dir`, which must not record yet: a trigger would be used up at once.
    pub fn set(&self, dir: &TraceDir) -> Result<()> {
        for (event, conditions) in &self.0 {
            // Opening it with O_TRUNC would remove triggers that take stacks.
            dir.append(&event.file("trigger"), &text(conditions)).map_err(|failure| {
                let names: Vec<&str> = conditions.iter().map(|condition| condition.text.as_str()).collect();
                let refused = Failure::new(format!("--stop-when {:?}: {}", names.join(", "), failure.what()));
                let format =
                    format!("events/{}/{}/format has the fields of the event", event.system, event.name);
                refused.hint(failure.remedy().map_or(format.clone(), |remedy| format!("{remedy}; {format}")))
            })?;
        }
        Ok(())
    }

    /// The conditions whose trigger has stopped the buffer.
    pub fn fired(&self, dir: &TraceDir) -> Vec<String> {
        self.used_up(dir).map(|(_, conditions)| one_of(conditions)).collect()
    }

    /// True if a trigger made this change when it stopped the buffer.
    pub fn made(&self, change: &SettingChange, dir: &TraceDir) -> bool {
        match change.file.as_str() {
            // The kernel takes the count off before (`traceoff_count_trigger`, kernel/trace/trace_events_trigger.c).
            "tracing_on" => change.before != "0" && change.after == "0" && self.used_up(dir).next().is_some(),
            file => {
                change.after.contains(USED_UP) && self.0.keys().any(|event| event.file("trigger") == file)
            }
        }
    }

    /// Events whose trigger has stopped the buffer, with their conditions.
    fn used_up<'t>(&'t self, dir: &'t TraceDir) -> impl Iterator<Item = (&'t Event, &'t Vec<Watched>)> {
        let is_used_up = |text: String| text.contains(USED_UP);
        self.0.iter().filter(move |(event, _)| dir.read(&event.file("trigger")).is_some_and(is_used_up))
    }
}

/// Conditions that share a trigger, in words.
fn one_of(conditions: &[Watched]) -> String {
    conditions.iter().map(|condition| condition.text.as_str()).collect::<Vec<_>>().join(" or ")
}

/// The trigger of conditions on one event.
fn text(conditions: &[Watched]) -> String {
    let filters: Vec<String> = match conditions {
        [one] => vec![one.filter.clone()],
        several => several.iter().map(|condition| format!("({})", condition.filter)).collect(),
    };
    format!("traceoff:1 if {}", filters.join(" || "))
}

/// Event and filter of a condition.
fn watched(condition: &Condition, top: &TraceDir) -> Result<(Event, String)> {
    let (event, filter) = match condition {
        Condition::Oom => (Event::new("oom", "mark_victim"), ALWAYS.to_owned()),
        Condition::Event(spec) => {
            (Event::new(&spec.system, &spec.name), spec.filter.clone().unwrap_or_else(|| ALWAYS.to_owned()))
        }
        _ => (Event::new("kmem", "mm_page_alloc"), String::new()),
    };
    let refused = |what: &str| Failure::new(format!("--stop-when {:?}: {what}", condition.to_string()));
    if !top.has(&event.file("enable")) {
        return Err(refused(&format!("this kernel has no event {event}")).hint(match condition {
            Condition::Oom => {
                "oom:mark_victim needs Linux 4.13 or later; 'MemAvailable<SIZE' stops before the OOM killer runs"
            }
            _ => "`kmt-capture check` shows the available events",
        }));
    }
    if !top.has(&event.file("trigger")) {
        return Err(refused("this kernel has no event triggers").hint(
            "they need Linux 3.14 or later; conditions on memory and pressure work without: 'MemAvailable<SIZE', psi:some:STALL/WINDOW",
        ));
    }
    if *condition != Condition::AllocFailure {
        return Ok((event, filter));
    }
    let format = top.read(&event.file("format")).unwrap_or_default();
    let filter = failure_filter(&format).ok_or_else(|| {
        refused("the format of kmem:mm_page_alloc has no pfn, or does not name __GFP_NOWARN")
            .hint("give a filter that fits this kernel: 'kmem:mm_page_alloc if FILTER'")
    })?;
    Ok((event, filter))
}

/// The filter for page allocations that failed and that the kernel reports in its log: without a page frame and without
/// __GFP_NOWARN. Allocations with it fail all the time, as attempts at huge pages.
fn failure_filter(format: &str) -> Option<String> {
    let field = format.lines().find(|line| line.contains(" pfn;"))?;
    let size: u32 = field.split_once("size:")?.1.split(';').next()?.trim().parse().ok()?;
    let none = u64::MAX >> (64 - 8 * size.clamp(1, 8));
    let (before, _) = format.split_once(", \"__GFP_NOWARN\"}")?;
    let (_, value) = before.rsplit_once('{')?;
    Some(format!("pfn == {none:#x} && !(gfp_flags & {:#x})", flag(value)?))
}

/// Value of a flag in a print fmt: `0x2000u`, or since 6.10 `(((1UL))) << (13)`, with casts and parentheses around.
fn flag(text: &str) -> Option<u64> {
    if let Some((_, bit)) = text.rsplit_once("<<") {
        let bit: u32 = bit.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
        return 1_u64.checked_shl(bit);
    }
    let (_, hex) = text.rsplit_once("0x")?;
    let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
    u64::from_str_radix(&hex[..end], 16).ok().filter(|&flag| flag > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, format: &str) -> (std::path::PathBuf, TraceDir) {
        let path = std::env::temp_dir().join(format!("kmt-triggers-{name}-{}", std::process::id()));
        for event in ["kmem/mm_page_alloc", "oom/mark_victim"] {
            let dir = path.join("events").join(event);
            std::fs::create_dir_all(&dir).unwrap();
            for (file, text) in [("enable", "0\n"), ("trigger", ""), ("format", format)] {
                std::fs::write(dir.join(file), text).unwrap();
            }
        }
        (path.clone(), TraceDir::at(path))
    }

    const FORMAT_6_18: &str = "\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"%s\", __print_flags(REC->gfp_flags, \"|\", {( unsigned long)(( gfp_t)((((1UL))) << (12))), \"__GFP_WRITE\"}, {( unsigned long)(( gfp_t)((((1UL))) << (13))), \"__GFP_NOWARN\"}, {0, 0})";

    #[test]
    fn failures_that_are_reported_have_a_filter_on_each_kernel() {
        let filter = "pfn == 0xffffffffffffffff && !(gfp_flags & 0x2000)";
        assert_eq!(failure_filter(FORMAT_6_18).as_deref(), Some(filter));
        let of_5_10 = "\tfield:unsigned long pfn;\toffset:8;\tsize:4;\tsigned:0;\nprint fmt: {(unsigned long)((( gfp_t)0x1000u)), \"__GFP_WRITE\"}, {(unsigned long)((( gfp_t)0x2000u)), \"__GFP_NOWARN\"}";
        assert_eq!(failure_filter(of_5_10).as_deref(), Some("pfn == 0xffffffff && !(gfp_flags & 0x2000)"));
        for without in [
            "",
            "\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n",
            "print fmt: {0x2000u, \"__GFP_NOWARN\"}",
        ] {
            assert_eq!(failure_filter(without), None, "{without}");
        }
    }

    #[test]
    fn conditions_on_one_event_share_a_trigger_and_each_has_a_filter() {
        let (path, top) = kernel("shared", FORMAT_6_18);
        let conditions = ["oom", "kmem:mm_page_alloc if order >= 4", "alloc-failure", "slab>9M"];
        let conditions: Vec<Condition> = conditions.iter().map(|c| Condition::parse(c).unwrap()).collect();
        let triggers = Triggers::new(&conditions, &top).unwrap();
        triggers.set(&top).unwrap();
        let set =
            |event: &str| std::fs::read_to_string(path.join("events").join(event).join("trigger")).unwrap();
        assert_eq!(set("oom/mark_victim"), "traceoff:1 if common_pid >= 0");
        assert_eq!(
            set("kmem/mm_page_alloc"),
            "traceoff:1 if (order >= 4) || (pfn == 0xffffffffffffffff && !(gfp_flags & 0x2000))"
        );
        assert_eq!(triggers.fired(&top), Vec::<String>::new());
        std::fs::write(path.join("events/kmem/mm_page_alloc/trigger"), "traceoff:count=0 if order >= 4\n")
            .unwrap();
        assert_eq!(triggers.fired(&top), ["kmem:mm_page_alloc if order >= 4 or alloc-failure"]);
        let change = |file: &str, before: &str, after: &str| SettingChange {
            file: file.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        };
        let file = "events/kmem/mm_page_alloc/trigger";
        assert!(triggers.made(&change(file, "traceoff:count=1 if x", "traceoff:count=0 if x"), &top));
        assert!(triggers.made(&change("tracing_on", "1", "0"), &top));
        for other in [
            change(file, "traceoff:count=1 if x", ""),
            change("events/kmem/kfree/trigger", "", "traceoff:count=0"),
            change("tracing_on", "0", "0"),
            change("trace_clock", "mono", "local"),
        ] {
            assert!(!triggers.made(&other, &top), "{other:?}");
        }
        std::fs::write(path.join(file), "traceoff:count=1 if order >= 4\n").unwrap();
        assert!(!triggers.made(&change("tracing_on", "1", "0"), &top), "another process stopped it");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_the_kernel_lacks_is_refused_with_a_remedy() {
        let (path, top) = kernel("lacks", "");
        let refusal = |text: &str| {
            let failure = Triggers::new(&[Condition::parse(text).unwrap()], &top).unwrap_err();
            (failure.what().to_owned(), failure.remedy().unwrap_or_default().to_owned())
        };
        assert!(refusal("alloc-failure").1.contains("kmem:mm_page_alloc if FILTER"));
        assert!(refusal("kmem:gone").0.contains("no event kmem:gone"));
        std::fs::remove_file(path.join("events/oom/mark_victim/trigger")).unwrap();
        assert!(refusal("oom").0.contains("no event triggers"));
        std::fs::remove_dir_all(path.join("events/oom")).unwrap();
        assert!(refusal("oom").1.contains("MemAvailable<SIZE"));
        std::fs::remove_dir_all(path).unwrap();
    }
}
