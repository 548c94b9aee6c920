//! The warning beside output that has no place for it: dumps, exports and tables as CSV. Screens, pictures and JSON have it
//! inside.

use kmt_common::tell;

use crate::render::text::count;
use crate::render::words::share;
use crate::trace::session::Session;

/// Reports on standard error that events were lost, in one line.
pub fn warn_of_losses(session: &Session<'_>) {
    let losses = &session.losses;
    if !losses.any() {
        return;
    }
    let name = session.path.display();
    let lost = match (losses.lost_since_first(), losses.is_minimum()) {
        (0, _) => "parts of the recording are missing, uncounted".to_owned(),
        (lost, is_minimum) => {
            let least = if is_minimum { "at least " } else { "" };
            let part = share(lost, lost.saturating_add(session.trace.event_count()));
            let were = if losses.missing_in_input > 0 { "are missing" } else { "were lost" };
            format!("{least}{} events {were} ({part})", count(lost))
        }
    };
    tell!("warning: {name}: {lost}: counts are minimums; see kmt-analyze info");
}
