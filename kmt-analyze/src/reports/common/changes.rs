//! The sentence about changes of a recording by other processes.

use crate::render::words::{counted, shown, time};
use crate::trace::session::Session;

/// Changes that are named.
const NAMED_MAX: usize = 2;

/// `None`: there was no such change.
pub fn sentence(session: &Session<'_>) -> Option<String> {
    let changes = &session.losses.changes;
    let named = changes.iter().take(NAMED_MAX);
    let mut named: Vec<String> = named
        .map(|change| {
            format!("{} at {}", shown(change.setting.describe().as_bytes()), time(change.to, session.unit()))
        })
        .collect();
    if named.is_empty() {
        return None;
    }
    let more = changes.len().saturating_sub(NAMED_MAX) as u64;
    if more > 0 {
        named.push(counted(more, "more change", "more changes"));
    }
    let effect = match changes.iter().any(|change| change.loses_events()) {
        true => " Events may be missing from then on; event counts are minimums.",
        false => "",
    };
    Some(format!("Another process changed the recording: {}.{effect}", named.join("; ")))
}
