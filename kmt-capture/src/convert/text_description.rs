//! The description of a text: its machine, clock and pointers.

use kmt_format::kernel::{ByteOrder, TraceClock};

use super::description::Description;
use crate::import::text::TextSurvey;

/// What a first look at the text shows.
pub fn describe(survey: TextSurvey) -> Description {
    let hashed = "pointers are hashes of addresses: allocations and frees match, but the addresses are unknown; \
                  record with `echo nohash-ptr > trace_options`, or save trace_pipe_raw";
    let mut notes =
        vec!["text has no byte order: little-endian is assumed; no report depends on it".to_owned()];
    if survey.is_hashed {
        notes.push(hashed.to_owned());
    }
    let pointers = if survey.is_hashed { "hashed" } else { "real" };
    let clock = survey.counts.then(|| TraceClock::named("counter"));
    Description {
        source: "ftrace text".to_owned(),
        order: Some(ByteOrder::Little),
        long_size: survey.long_size,
        clock,
        pairs: vec![("pointers".to_owned(), pointers.as_bytes().to_vec())],
        notes,
        ..Description::default()
    }
}
