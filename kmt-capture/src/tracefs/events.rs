//! The events of a kernel, by name and pattern.

use std::collections::BTreeSet;

use super::dir::TraceDir;

/// An event of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// System, such as `kmem`.
    pub system: String,
    /// Name, such as `kmalloc`.
    pub name: String,
}

impl Event {
    /// The event of that system and name.
    pub fn new(system: &str, name: &str) -> Self {
        Self { system: system.to_owned(), name: name.to_owned() }
    }

    /// A file of its directory, from the ring buffer's directory on.
    pub fn file(&self, name: &str) -> String {
        format!("events/{}/{}/{name}", self.system, self.name)
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.system, self.name)
    }
}

/// Events that a user selects: `SYSTEM`, `SYSTEM:EVENT` with `*` and `?`, and ` if FILTER` after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    /// Pattern of the system.
    pub system: String,
    /// Pattern of the event.
    pub name: String,
    /// Filter of the kernel.
    pub filter: Option<String>,
}

impl EventSpec {
    /// Parses the text of the command line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (event, filter) = match text.split_once(" if ") {
            Some((event, filter)) => (event.trim(), Some(filter.trim().to_owned())),
            None => (text.trim(), None),
        };
        let (system, name) = event.split_once(':').or_else(|| event.split_once('/')).unwrap_or((event, "*"));
        let is_plain =
            |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-*?.".contains(&b));
        if !is_plain(system) || !is_plain(name) || name.starts_with('.') || system.starts_with('.') {
            return Err(format!("{event:?} is not SYSTEM:EVENT, such as kmem:kmalloc or 'vmscan:*'"));
        }
        if filter.as_deref() == Some("") {
            return Err("the filter after `if` is missing".to_owned());
        }
        Ok(Self { system: system.to_owned(), name: name.to_owned(), filter })
    }

    /// True if the event is selected.
    pub fn matches(&self, event: &Event) -> bool {
        matches(self.system.as_bytes(), event.system.as_bytes())
            && matches(self.name.as_bytes(), event.name.as_bytes())
    }

    /// True if it names one event, which then must be there.
    pub fn is_exact(&self) -> bool {
        !self.system.contains(['*', '?']) && !self.name.contains(['*', '?'])
    }

    /// True if it is one event, or a system with all its events.
    pub fn is_exact_or_system(&self) -> bool {
        self.is_exact() || (self.name == "*" && !self.system.contains(['*', '?']))
    }
}

impl std::fmt::Display for EventSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.system, self.name)
    }
}

/// True if `text` fits the pattern, in which `*` matches any bytes and `?` one.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| matches(rest, &text[skip..])),
        Some((b'?', rest)) => !text.is_empty() && matches(rest, &text[1..]),
        Some((byte, rest)) => text.first() == Some(byte) && matches(rest, &text[1..]),
    }
}

/// The events of `dir` that `spec` asks for, sorted. Only directories that can match are looked into.
pub fn find_events(dir: &TraceDir, spec: &EventSpec) -> BTreeSet<Event> {
    let names = |path: &str, pattern: &str| -> Vec<String> {
        if !pattern.contains(['*', '?']) {
            return vec![pattern.to_owned()];
        }
        dir.names(path).into_iter().filter_map(|name| name.into_string().ok()).collect()
    };
    let mut found = BTreeSet::new();
    for system in names("events", &spec.system) {
        for name in names(&format!("events/{system}"), &spec.name) {
            let event = Event { system: system.clone(), name };
            // The built-in events of ftrace have a format but cannot be enabled.
            if spec.matches(&event) && dir.has(&event.file("enable")) {
                found.insert(event);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_names_patterns_and_filters() {
        let spec = EventSpec::parse("kmem:kmalloc if bytes_req > 4096").unwrap();
        assert_eq!(spec.filter.as_deref(), Some("bytes_req > 4096"));
        assert!(spec.is_exact() && spec.matches(&Event::new("kmem", "kmalloc")));
        assert!(!spec.matches(&Event::new("kmem", "kmalloc_node")));
        let all = EventSpec::parse("vmscan").unwrap();
        assert!(!all.is_exact() && all.matches(&Event::new("vmscan", "mm_shrink_slab_start")));
        let some = EventSpec::parse("kmem/mm_page_*ll?c").unwrap();
        assert!(some.matches(&Event::new("kmem", "mm_page_alloc")));
        assert!(!some.matches(&Event::new("kmem", "mm_page_alloc_extfrag")));
        for bad in ["", ":x", "a:", "../x:y", "kmem:kmalloc if ", "a b:c"] {
            assert!(EventSpec::parse(bad).is_err(), "{bad:?}");
        }
    }
}
