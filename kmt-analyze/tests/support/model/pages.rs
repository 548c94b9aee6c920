//! Pages: who owns which frame.

use std::collections::{BTreeMap, HashMap};

use super::{Event, LOW, Ledger, Lived, Target, What};

/// R12. Returns for each frame when it became allocated, or no longer was: index of the event and state.
pub fn pages(events: &[Event], target: &Target, ledger: &mut Ledger) -> HashMap<u64, Vec<(usize, bool)>> {
    let mut owner: HashMap<u64, (usize, u64, u64)> = HashMap::new();
    let mut changes: HashMap<u64, Vec<(usize, bool)>> = HashMap::new();
    for (index, e) in events.iter().enumerate() {
        match e.what {
            What::PageAlloc { pfn, .. } if pfn == target.no_frame => ledger.count("pages.alloc_failures", 1),
            What::PageAlloc { pfn, order, .. } => {
                ledger.count("pages.alloc_events", 1);
                ledger.count("pages.pages_alloc", 1 << order);
                let range = pfn..pfn + (1 << order);
                let owners: Vec<_> =
                    range.clone().filter_map(|f| owner.insert(f, (index, pfn, order))).collect();
                ledger.count("pages.pages_freed_unseen", owners.len() as u64);
                range.for_each(|f| changes.entry(f).or_default().push((index, true)));
                ended(&owners, Some((e.time, false)), events, target, ledger);
            }
            What::PageFree { pfn, order } => {
                let range = pfn..pfn + (1 << order);
                let owners: Vec<_> = range.clone().filter_map(|f| owner.remove(&f)).collect();
                range.for_each(|f| changes.entry(f).or_default().push((index, false)));
                ended(&owners, Some((e.time, true)), events, target, ledger);
                ledger.count("pages.free_events", 1);
                ledger.count("pages.pages_freed", owners.len() as u64);
                ledger.count("pages.pages_free_only", (1 << order) - owners.len() as u64);
                let whole = owners.iter().all(|o| (o.1, o.2) == (pfn, order));
                let name = if owners.is_empty() { "pages.frees_unmatched" } else { "pages.frees_matched" };
                ledger.count(name, 1);
                ledger.count("pages.frees_partial", u64::from(!owners.is_empty() && !whole));
            }
            _ => {}
        }
    }
    ledger.count("pages.pages_live", owner.len() as u64);
    let live: Vec<Owner> = owner.into_values().collect();
    ended(&live, None, events, target, ledger);
    changes
}

/// Event that allocated a frame, and its pages.
type Owner = (usize, u64, u64);

/// Adds the lives of these frames, one for each allocation.
fn ended(frames: &[Owner], end: Option<(u64, bool)>, events: &[Event], target: &Target, ledger: &mut Ledger) {
    let mut of: BTreeMap<usize, u64> = BTreeMap::new();
    frames.iter().for_each(|frame| *of.entry(frame.0).or_default() += 1);
    for (index, count) in of {
        let (born, pid) = (events[index].time, events[index].pid);
        let until = end.map_or(u64::MAX, |end| end.0);
        let uncertain = target.spans.iter().any(|s| s.0 <= until && s.1 >= born);
        let bytes = count * target.page_size;
        ledger.pages.push((
            index,
            Lived { born, pid, count, bytes, bytes_req: bytes, end, uncertain, is_slab: false },
        ));
    }
}

/// Marks live pages in which an object was allocated later.
pub fn slabs(events: &[Event], base: Option<u64>, target: &Target, ledger: &mut Ledger) {
    let Some(base) = base else { return };
    let mut last: HashMap<u64, u64> = HashMap::new();
    for e in events {
        if let What::Alloc { ptr, .. } = e.what {
            last.insert(((ptr & LOW).wrapping_sub(base) & LOW) / target.page_size, e.time);
        }
    }
    for (index, life) in ledger.pages.iter_mut().filter(|(_, life)| life.end.is_none()) {
        let What::PageAlloc { pfn, order, .. } = events[*index].what else { continue };
        life.is_slab = (pfn..pfn + (1 << order)).any(|f| last.get(&f).is_some_and(|&time| time >= life.born));
    }
}
