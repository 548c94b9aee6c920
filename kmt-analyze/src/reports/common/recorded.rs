//! Events that were recorded.

use kmt_format::schema::{EventClass, Meaning};

use crate::pass;
use crate::trace::session::Session;

/// True if events of that meaning were recorded; `None`: none occurred, and the file does not declare them.
pub fn recorded(session: &Session<'_>, result: &pass::Analysis, meaning: Meaning) -> Option<bool> {
    recorded_class(session, result, |class| class.meaning == meaning)
}

/// The same for event classes selected by a function.
pub fn recorded_class(
    session: &Session<'_>,
    result: &pass::Analysis,
    is_it: impl Fn(&EventClass) -> bool,
) -> Option<bool> {
    let classes = || session.trace.schema().classes().filter(|(_, c)| is_it(c));
    if classes().any(|(i, _)| result.classes_seen.get(i).copied().unwrap_or(false)) {
        return Some(true);
    }
    let conditions = session.trace.metadata().attachment("event_conditions")?;
    let conditions = std::str::from_utf8(conditions).ok()?;
    let is_enabled = |name: String| {
        conditions.lines().find_map(|l| l.strip_prefix(&format!("{name} enable="))).map(|v| v.trim() != "0")
    };
    let enabled: Vec<bool> =
        classes().filter_map(|(_, c)| is_enabled(format!("{}:{}", c.system, c.name))).collect();
    // A live recording describes exactly the events that it records.
    let is_live = session.trace.metadata().text("source") == Some("live");
    (!enabled.is_empty() || is_live).then(|| enabled.contains(&true))
}
