//! Events of time 0: those of a boot before its trace clock runs. They have an order on each CPU, but no durations.

use kmt_common::text::count;
use kmt_format::Result;
use kmt_format::write::Writer;

/// Key of their number in the file.
const KEY: &str = "events_at_zero";

/// True if events of time 0 show that the clock did not run: one may be the first of a clock that begins at 0.
fn are_several(events: u64) -> bool {
    events > 1
}

/// Writes their number, if there are several.
pub fn write(writer: &mut Writer, events: u64) -> Result<()> {
    if are_several(events) { writer.add_metadata(&[(KEY, events.to_string().as_bytes())]) } else { Ok(()) }
}

/// The note on them; `None` if there are not several.
pub fn note(events: u64) -> Option<String> {
    are_several(events).then(|| {
        format!(
            "{} have the time 0: the trace clock did not run yet; they have an order on each CPU, but no durations",
            count(events, "event")
        )
    })
}
