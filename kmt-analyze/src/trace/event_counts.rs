//! Numbers of events between two times: from the heads of chunks, and from the events of those at the edges.

use kmt_format::read::Trace;

/// Events from one time to another on some CPUs: whole chunks are counted by their heads.
pub fn events_between(trace: &Trace<'_>, (first, last): (u64, u64), is_on: impl Fn(&u32) -> bool) -> u64 {
    let mut events = 0;
    for (_, stream) in trace.streams().iter().filter(|(cpu, _)| is_on(cpu)) {
        for (at, info) in &stream.chunks {
            if info.event_count == 0 || info.t_last < first || info.t_first > last {
                continue;
            }
            if info.t_first >= first && info.t_last <= last {
                events += u64::from(info.event_count);
                continue;
            }
            let Ok(chunk) = trace.read(at) else { continue };
            let end = last.checked_add(1).map_or(chunk.records().len(), |end| chunk.first_at_or_after(end));
            events += end.saturating_sub(chunk.first_at_or_after(first)) as u64;
        }
    }
    events
}
