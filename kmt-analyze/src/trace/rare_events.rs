//! Events of a few classes, in the kernel's order.

use std::collections::HashMap;

use kmt_format::read::{Event, Trace};
use kmt_format::schema::EventClass;

use crate::int_hash::IntHash;

/// Calls `each` with the events of the classes for which `is_wanted`. Reads only the chunks that may have them.
pub fn rare_events(
    trace: &Trace<'_>,
    is_wanted: impl Fn(&EventClass) -> bool,
    mut each: impl FnMut(&Event<'_>),
) {
    let schema = trace.schema();
    let wanted: Vec<bool> =
        (0..schema.class_count()).map(|index| schema.class(index).is_some_and(&is_wanted)).collect();
    if !wanted.contains(&true) {
        return;
    }
    let mut merge = trace.merge_of(schema.class_bits(&is_wanted), None);
    // By CPU, the number of its chunk, and the descriptors of wanted events there: runs of CPUs alternate.
    let mut chunks: HashMap<u32, (u64, Vec<bool>), IntHash> = HashMap::default();
    while let Some(run) = merge.next_run() {
        let (number, descriptors) = chunks.entry(run.cpu).or_insert((u64::MAX, Vec::new()));
        if *number != run.chunk_number {
            let class = |descriptor| Some(schema.shape(run.chunk.shape_of(descriptor)?)?.class);
            let is_of = |descriptor| class(descriptor).is_some_and(|class| wanted.get(class) == Some(&true));
            *descriptors = (0..run.chunk.descriptor_count()).map(is_of).collect();
            *number = run.chunk_number;
        }
        let mut index = run.range.start;
        run.chunk.for_each_in(run.range.clone(), |_, record| {
            if descriptors.get(usize::from(record.descriptor)) == Some(&true) {
                if let Some(event) = Event::new(schema, run.chunk, index) {
                    each(&event);
                }
            }
            index += 1;
        });
    }
}
