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
    /// Its rating.
    pub state: State,
    /// Value.
    pub value: String,
    /// Remedy; empty if none is needed.
    pub remedy: String,
}

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
        self.0.push(Fact { name, state, value: value.into(), remedy: remedy.to_owned() });
    }
}

/// A line for each fact, and one for its remedy.
pub fn as_text(facts: &[Fact]) -> String {
    let mut out = String::new();
    for fact in facts {
        let mark = match fact.state {
            State::Good => "ok     ",
            State::Warning => "warning",
            State::Bad => "BAD    ",
        };
        out.push_str(&format!("{mark}  {:<18}  {}\n", fact.name, fact.value));
        if !fact.remedy.is_empty() {
            out.push_str(&format!("{:29}-> {}\n", "", fact.remedy));
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
            "{{\"name\":{},\"state\":\"{state}\",\"value\":{},\"remedy\":{}}}",
            quoted(fact.name),
            quoted(&fact.value),
            if fact.remedy.is_empty() { "null".to_owned() } else { quoted(&fact.remedy) }
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
            as_text(&facts.0),
            "ok       kernel              6.1\nwarning  symbols             a \"quoted\"\tword\n\
             \u{20}                            -> do it\n"
        );
        assert_eq!(
            as_json(&facts.0),
            "{\"facts\":[{\"name\":\"kernel\",\"state\":\"ok\",\"value\":\"6.1\",\"remedy\":null},\
             {\"name\":\"symbols\",\"state\":\"warning\",\"value\":\"a \\\"quoted\\\"\\u0009word\",\"remedy\":\"do it\"}]}\n"
        );
    }
}
