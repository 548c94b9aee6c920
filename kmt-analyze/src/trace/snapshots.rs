//! Snapshots of /proc/slabinfo in a recording.

use kmt_format::read::Metadata;

use crate::trace::slabinfo::{SlabCaches, parse};

/// /proc/slabinfo at one time.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Begin of reading, in the trace clock's time.
    pub from: u64,
    /// End of reading.
    pub to: u64,
    /// Contents.
    pub caches: SlabCaches,
}

/// Largest delay after the last event at which a snapshot still is of the trace: one second.
const LATE_NS: u64 = 1_000_000_000;

/// Snapshots read while events were recorded, and the one after the last event, at `last`; sorted by time.
///
/// They are `slabinfo` with its times, and `slabinfo.after` (format-spec/registry.md). The latter is used only if the
/// recorder read it at once: in a saved directory it may be from much later.
pub fn snapshots(metadata: &Metadata<'_>, last: u64) -> Vec<Snapshot> {
    let meanwhile = metadata.attachments.iter().filter_map(|attachment| {
        let (from, to) = attachment.times.filter(|_| attachment.name == "slabinfo")?;
        (from <= to).then(|| Snapshot { from, to, caches: parse(&attachment.contents) })
    });
    let (mut all, mut behind): (Vec<Snapshot>, Vec<Snapshot>) = meanwhile.partition(|s| s.to <= last);
    all.sort_by_key(|s| s.to);
    behind.retain(|s| s.from.saturating_sub(last) <= LATE_NS);
    let is_live = metadata.text("source") == Some("live");
    let after = metadata.attachment("slabinfo.after").filter(|_| is_live).map(parse);
    let after = after.or_else(|| behind.into_iter().min_by_key(|s| s.to).map(|s| s.caches));
    all.extend(after.map(|caches| Snapshot { from: last, to: last, caches }));
    all
}

/// A snapshot from an unknown time after the trace, of a saved directory: it bounds nothing. At `last`, so that it is
/// beside what is live at the end.
pub fn untimed(metadata: &Metadata<'_>, last: u64) -> Option<Snapshot> {
    let without_times = metadata.attachments.iter().find(|a| a.name == "slabinfo" && a.times.is_none());
    let contents = metadata.attachment("slabinfo.after").or(without_times.map(|a| a.contents.as_ref()))?;
    let caches = parse(contents);
    (!caches.is_empty()).then_some(Snapshot { from: last, to: last, caches })
}

/// The snapshot after the last event.
pub fn at_end(metadata: &Metadata<'_>, last: u64) -> Option<Snapshot> {
    snapshots(metadata, last).pop().filter(|snapshot| snapshot.to == last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kmt_format::read::Attachment;

    #[test]
    fn a_snapshot_from_much_later_bounds_nothing() {
        let attachment = |name: &str, times, active: u64| {
            let text = format!("epi {active} 9 128 32 1 : tunables 0 0 0 : slabdata 1 1 0\n");
            let mut made = Attachment::new(name.to_owned(), text.into_bytes());
            made.times = times;
            made
        };
        let second = 1_000_000_000;
        let with = |attachments: Vec<Attachment<'static>>| {
            let mut metadata = Metadata::default();
            metadata.attachments = attachments;
            metadata
        };
        let active = |metadata: &Metadata<'_>| {
            let all = snapshots(metadata, 50 * second).into_iter();
            all.map(|s| (s.to / second, s.caches["epi"].active_objs)).collect::<Vec<_>>()
        };
        let at = |from, to, active| attachment("slabinfo", Some((from, to)), active);
        let mut saved = with(vec![attachment("slabinfo.after", None, 3), at(55 * second, 56 * second, 4)]);
        assert_eq!(active(&saved), [], "from somebody's directory");
        saved.attachments.push(at(50 * second + 7, 51 * second, 5));
        saved.attachments.push(at(20 * second, 21 * second, 6));
        saved.attachments.push(at(21, 20, 7));
        assert_eq!(active(&saved), [(21, 6), (50, 5)]);
        saved.pairs.push(("source".into(), b"live"[..].into()));
        assert_eq!(active(&saved), [(21, 6), (50, 3)], "the recorder's own");
    }
}
