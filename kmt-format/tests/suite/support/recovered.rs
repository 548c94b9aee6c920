//! The library's recovery, as the key `recovered` of the conformance vectors has it.

use kmt_format::Limits;
use kmt_format::edit::{Rewrite, RewriteOptions};
use kmt_format::read::Trace;
use serde_json::{Value as Json, json};

/// The file that a recovery makes, which must be sound and finished; `null` if it refuses the file.
pub fn of(file: &[u8], limits: Limits) -> Json {
    let Ok(mut rewrite) = Rewrite::new(file, limits, RewriteOptions::new()) else {
        return Json::Null;
    };
    let mut new = Vec::new();
    while let Some(bytes) = rewrite.next_bytes().unwrap() {
        new.extend(bytes);
    }
    let recovery = rewrite.recovery();
    let trace = Trace::builder().limits(limits).open(&new).unwrap();
    assert!(trace.damages().is_empty() && trace.is_finished());
    let kinds: Json = trace.chunks().map(|c| json!(c.kind.to_string())).collect();
    let mut chunks: Vec<_> = trace.streams().values().flat_map(|s| &s.chunks).collect();
    chunks.sort_by_key(|(chunk, _)| chunk.offset);
    let (mut heads, mut events) = (Vec::new(), Vec::new());
    for (chunk, info) in chunks {
        let loss = &info.loss;
        let bits = [loss.counted > 0, loss.uncounted, loss.damaged_input, loss.overwritten];
        let flags = bits.iter().enumerate().fold(0, |flags, (n, bit)| flags | u64::from(*bit) << n);
        let [cpu, sequence, of_chunk] =
            [chunk.cpu.unwrap(), chunk.sequence, chunk.flags.into()].map(u64::from);
        let count = u64::from(info.event_count);
        heads.push(json!([
            cpu,
            sequence,
            of_chunk,
            info.first_event,
            count,
            info.t_first,
            info.t_last,
            flags,
            loss.counted
        ]));
        let read = trace.read(chunk).unwrap();
        events.extend(read.events(trace.schema()).map(|e| json!([e.cpu(), e.time()])));
    }
    let missing = json!([recovery.events_missing, recovery.missing_is_exact]);
    json!({"chunks": kinds, "heads": heads, "events": events, "missing": missing})
}
