//! Facts that `check` finds, and their output.

/// Rating of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// Recording works with restrictions.
    Warning,
    /// Recording does not work.
    Bad,
}

/// A fact that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Subject.
    pub name: &'static str,
    /// Rating of the fact.
    pub state: State,
    /// Value.
    pub value: String,
    /// Remedy; empty if none is needed.
    pub remedy: String,
    /// Names of the events that it counts: `vmscan:mm_vmscan_wakeup_kswapd`.
    pub names: Vec<String>,
}

/// Width of a line of text.
const WIDTH: usize = 80;
/// Columns before values.
const INDENT: usize = 29;

/// All facts that were found.
#[derive(Debug, Default)]
pub struct Facts(pub Vec<Fact>);

impl Facts {
    /// As it should be.
    pub fn good(&mut self, name: &'static str, value: impl Into<String>) {
        self.add(name, State::Good, value, "");
    }

    /// With a rating and a remedy.
    pub fn add(&mut self, name: &'static str, state: State, value: impl Into<String>, remedy: &str) {
        self.0.push(Fact { name, state, value: value.into(), remedy: remedy.to_owned(), names: Vec::new() });
    }

    /// Gives the last fact the names of its events.
    pub fn name(&mut self, names: impl IntoIterator<Item = String>) {
        if let Some(fact) = self.0.last_mut() {
            fact.names.extend(names);
        }
    }
}

/// Lines of names, which are in the order of their systems: the system, and the names in it.
fn lines_of(names: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = "";
    for name in names {
        let (system, event) = name.split_once(':').unwrap_or(("", name));
        match lines.last_mut().filter(|_| system == last) {
            Some(line) if INDENT + line.len() + 3 + event.len() <= WIDTH => {
                line.push_str(&format!(", {event}"));
            }
            Some(line) => {
                line.push(',');
                lines.push(format!("  {event}"));
            }
            None => lines.push(format!("{system}: {event}")),
        }
        last = system;
    }
    lines
}

/// What a recording lacks, by the fact that shows it.
const LACKS: [(&str, &str); 6] = [
    ("function latencies", "latencies of functions"),
    ("stacks", "stacks"),
    ("symbols", "names of functions"),
    ("slab state", "the kernel's counts of objects"),
    ("events", "some events"),
    ("frees", "frees of some objects"),
];

/// The answer in a sentence.
fn verdict(facts: &[Fact]) -> String {
    if let Some(bad) = facts.iter().find(|fact| fact.state == State::Bad) {
        return match bad.name {
            "user" => "This cannot be checked without root.".to_owned(),
            name => format!("This system cannot record: {name}: {}.", bad.value),
        };
    }
    let limits = facts.iter().filter(|fact| fact.state == State::Warning);
    let lack = |fact: &Fact| LACKS.iter().find(|(name, _)| *name == fact.name).map(|(_, lack)| *lack);
    let mut lacks: Vec<&str> = limits.filter_map(lack).collect();
    lacks.dedup();
    match lacks.split_last() {
        None => "This system can record everything.".to_owned(),
        Some((last, [])) => format!("This system can record everything but {last}."),
        Some((last, others)) => {
            format!("This system can record everything but {} and {last}.", others.join(", "))
        }
    }
}

/// The verdict, then a line for each fact, its names, and one for its remedy; without `list` only facts that are not as they
/// should be.
pub fn as_text(facts: &[Fact], list: bool) -> String {
    let mut out = format!("{}\n\n", verdict(facts));
    let shown = |fact: &&Fact| list || fact.state != State::Good;
    for fact in facts.iter().filter(shown) {
        let mark = match fact.state {
            State::Good => "ok     ",
            State::Warning => "warning",
            State::Bad => "BAD    ",
        };
        out.push_str(&format!("{mark}  {:<18}  {}\n", fact.name, fact.value));
        for line in lines_of(&fact.names) {
            out.push_str(&format!("{:INDENT$}{line}\n", ""));
        }
        if !fact.remedy.is_empty() {
            out.push_str(&format!("{:INDENT$}-> {}\n", "", fact.remedy));
        }
    }
    match facts.iter().filter(|fact| !shown(fact)).count() {
        0 => {}
        1 => out.push_str("1 other fact is as it should be: kmt-capture check --list\n"),
        others => {
            out.push_str(&format!("{others} other facts are as they should be: kmt-capture check --list\n"));
        }
    }
    out
}

/// One document.
pub fn as_json(facts: &[Fact]) -> String {
    let fact = |fact: &Fact| {
        let state = match fact.state {
            State::Good => "ok",
            State::Warning => "warning",
            State::Bad => "bad",
        };
        format!(
            "{{\"name\":{},\"state\":\"{state}\",\"value\":{},\"remedy\":{},\"names\":[{}]}}",
            quoted(fact.name),
            quoted(&fact.value),
            if fact.remedy.is_empty() { "null".to_owned() } else { quoted(&fact.remedy) },
            fact.names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",")
        )
    };
    let rows: Vec<String> = facts.iter().map(fact).collect();
    format!("{{\"facts\":[{}]}}\n", rows.join(","))
}

/// A JSON string (RFC 8259, section 7).
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_lines_and_json() {
        let mut facts = Facts::default();
        facts.good("kernel", "6.1");
        facts.add("symbols", State::Warning, "a \"quoted\"\tword", "do it");
        assert_eq!(
            as_text(&facts.0, true),
            "This system can record everything but names of functions.\n\n\
             ok       kernel              6.1\nwarning  symbols             a \"quoted\"\tword\n\
             \u{20}                            -> do it\n"
        );
        assert_eq!(
            as_json(&facts.0),
            "{\"facts\":[{\"name\":\"kernel\",\"state\":\"ok\",\"value\":\"6.1\",\"remedy\":null,\"names\":[]},\
             {\"name\":\"symbols\",\"state\":\"warning\",\"value\":\"a \\\"quoted\\\"\\u0009word\",\"remedy\":\"do it\",\"names\":[]}]}\n"
        );
    }

    #[test]
    fn the_verdict_comes_first_and_lists_what_is_not_as_it_should_be() {
        let mut facts = Facts::default();
        facts.good("kernel", "6.1");
        let text = as_text(&facts.0, false);
        let end = "1 other fact is as it should be: kmt-capture check --list\n";
        assert_eq!(text, format!("This system can record everything.\n\n{end}"));
        facts.add("symbols", State::Warning, "only zeros", "do it");
        facts.add("orphans", State::Warning, "1 instance", "clean");
        facts.add("function latencies", State::Warning, "no tracer", "");
        let text = as_text(&facts.0, false);
        let begin = "This system can record everything but names of functions and latencies of functions.\n\nwarning  symbols";
        assert!(text.starts_with(begin) && !text.contains("kernel") && text.ends_with(end), "{text}");
        facts.add("lockdown", State::Bad, "confidentiality", "boot");
        let text = as_text(&facts.0, false);
        assert!(text.starts_with("This system cannot record: lockdown: confidentiality.\n"), "{text}");
        let mut facts = Facts::default();
        facts.add("user", State::Bad, "not root", "sudo kmt-capture check");
        assert!(as_text(&facts.0, false).starts_with("This cannot be checked without root.\n"));
    }

    #[test]
    fn names_are_wrapped_below_their_fact() {
        let mut facts = Facts::default();
        facts.good("events", "3 vmscan, 1 task");
        let names = [
            "vmscan:mm_vmscan_direct_reclaim_begin",
            "vmscan:mm_x",
            "vmscan:mm_vmscan_wakeup_kswapd",
            "task:t",
        ];
        facts.name(names.map(str::to_owned));
        let indent = " ".repeat(INDENT);
        assert_eq!(
            as_text(&facts.0, true),
            format!(
                "This system can record everything.\n\nok       events              3 vmscan, 1 task\n{indent}vmscan: mm_vmscan_direct_reclaim_begin, mm_x,\n\
                 {indent}  mm_vmscan_wakeup_kswapd\n{indent}task: t\n"
            )
        );
        assert!(
            as_json(&facts.0)
                .contains("\"names\":[\"vmscan:mm_vmscan_direct_reclaim_begin\",\"vmscan:mm_x\",")
        );
    }
}
