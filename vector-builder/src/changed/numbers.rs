//! Epochs, and chunks that are missing.

use serde_json::{Value as Json, json};

use super::Changed;
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::json;
use crate::model::{Event, Layout, Loss, Op};

/// Two epochs of one record, of which the later one holds; or one that begins behind the last record.
pub fn epochs(m: Maker, layout: Layout, is_behind: bool) -> Changed {
    let ops = cases::times(m);
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    // They are (2, 1) and (3, 3).
    let at = file.place(0, 56);
    if is_behind {
        file.body(b"EVNT", 0, at + 8, 9, 4);
        let time = 6 + (1u64 << 32);
        file.body(b"EVNT", 0, 24, time, 8);
        expected["events"][3]["time"] = json!(time);
    } else {
        file.body(b"EVNT", 0, at, 3, 4);
        file.body(b"EVNT", 0, at + 4, 2, 4);
        expected["events"][2]["time"] = json!(5);
    }
    let times: Vec<Json> = expected["events"].as_array().cloned().unwrap_or_default();
    expected["merged"] = json::merged(&times).into();
    (file, expected)
}

/// Chunks that are missing from the middle and the start of streams, or whose numbers of events rise.
pub fn gaps(m: Maker, layout: Layout) -> Changed {
    let layout = Layout { index: false, trailer: false, ..layout };
    let alloc = |time: u64| m.kmalloc(time, 0x40, 8);
    let parts: Vec<(u32, Vec<Event>)> = vec![
        (0, vec![alloc(10)]),
        (0, vec![alloc(20), alloc(21)]),
        (0, vec![m.stack(30, 2), alloc(31)]),
        (0, vec![m.stack(40, 2)]),
        (1, vec![alloc(10)]),
        (1, vec![alloc(20)]),
        (2, vec![alloc(10)]),
        (2, vec![]),
        (2, vec![m.stack(30, 2)]),
        (3, vec![alloc(10)]),
        (3, vec![m.stack(20, 2)]),
        (3, vec![alloc(30)]),
    ];
    let ops = |keeps: &dyn Fn(usize) -> bool| -> Vec<Op> {
        let mut out = Vec::new();
        for (_, (cpu, events)) in parts.iter().enumerate().filter(|(i, _)| keeps(*i)) {
            if events.is_empty() {
                out.push(Op::Lost(*cpu, Loss { counted: 7, ..Loss::default() }));
            }
            out.extend(events.iter().map(|event| Op::Event(*cpu, event.clone())));
            out.push(Op::Flush(*cpu));
        }
        out
    };
    let mut file = Broken::new(&ops(&|_| true), layout);
    // The first event of CPU 3's second chunk has number 6, that of its third one too: the numbers before stay.
    file.body(b"EVNT", 10, 32, 6, 8);
    file.body(b"EVNT", 11, 32, 6, 8);
    for nth in [7, 4, 1] {
        file.remove(b"EVNT", nth);
    }
    file.file.losses.clear();
    let mut expected = json::expected(&ops(&|i| ![7, 4, 1].contains(&i)), &file.file, &layout);
    expected["lookups"] = json!({
        "missing": [[0, 1, 2], [1, 1, 1], [2, 1, 0], [3, 0, 5]],
        // Where events are missing the event before gets no stack; a chunk without events takes none away.
        "stacks": [[0, 1, null], [0, 3, 2], [2, 1, 0], [3, 1, null]],
    });
    (file, expected)
}
