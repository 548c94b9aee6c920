//! Rules at the edges: long heads, an id that is an offset, the last event number, sizes that do not count.

use serde_json::json;

use super::Changed;
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::json;
use crate::model::{Layout, Loss, Op};

/// Heads that are longer than the prefix of their chunk.
pub fn short_prefixes(m: Maker, layout: Layout) -> Changed {
    let layout = Layout { padded: true, index: false, ..layout };
    let ops = cases::sub_buffers(m);
    let mut file = Broken::new(&ops, layout);
    let expected = json::expected(&ops, &file.file, &layout);
    for (kind, len) in [(b"EVNT", 96), (b"RAWP", 72)] {
        for nth in 0..file.file.chunks.iter().filter(|c| c.kind == *kind).count() {
            file.header(kind, nth, 52, len, 4);
        }
    }
    (file, expected)
}

/// Definitions and clocks that differ only in what means nothing.
pub fn alike(m: Maker, layout: Layout) -> Changed {
    let clock = Op::Clock("counter", true, false);
    let ops = [clock.clone(), clock, Op::Event(0, m.kmalloc(1_000, 0x40, 100))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    expected["clock"] = json!({"name": "counter", "ticks": true, "comparable": false});
    file.body(b"CLOK", 1, 4, 77, 1);
    file.body(b"CLOK", 1, 5, 2, 1);
    // The place of the first field is the class id.
    let id = file.slot(1, 0, 0, 0).unwrap_or(0);
    file.body(b"SCHM", 1, id + 1, 8, 1);
    file.body(b"SCHM", 1, id + 4, 1_000, 4);
    (file, expected)
}

/// An array whose place is the class id: the array stands at that offset of the heap.
pub fn array_at_id(m: Maker, layout: Layout) -> Changed {
    // The heap starts with the length of this text, 4 bytes. The class has id 12.
    let text = if m.big { "8 bytes.\0\0\0\x03abcdef" } else { "8 bytes.\x03\0\0\0abcdef" };
    let ops = [Op::Event(0, m.free(1_000, 0x40, text))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    file.set_slot((0, 0, 6), (0, 4, 0, 0, 1_000));
    expected["events"][0]["fields"]["name"] = json::hex(b"abc");
    (file, expected)
}

/// Numbers of events up to the last one that 64 bits hold.
pub fn last_event_number(m: Maker, layout: Layout) -> Changed {
    let mut ops = Vec::new();
    for time in [10, 20, 30] {
        ops.extend([Op::Event(0, m.kmalloc(time, 0x40, 8)), Op::Event(0, m.page(time, 3, 0)), Op::Flush(0)]);
    }
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    file.body(b"EVNT", 1, 32, u64::MAX, 8);
    file.body(b"EVNT", 2, 32, u64::MAX, 8);
    expected["lookups"] = json!({"missing": [[0, 0, u64::MAX - 2]]});
    (file, expected)
}

/// A stack whose elements are stated to be smaller, or larger, than a long.
pub fn stack_elements(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::SubBuffer(0, vec![m.kmalloc(10, 0x40, 8), m.stack(11, 3)], Loss::default())];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    let element_size = if m.long == 8 { 2 } else { 8 };
    for nth in 0..file.file.chunks.iter().filter(|c| c.kind == *b"SCHM").count() {
        let (offset, _) = file.chunk(b"SCHM", nth);
        let classes = file.number(offset + 64 + 12, 4) as usize;
        let first = file.number(offset + 64 + 40 + 44 + 8, 4) as usize;
        file.body(b"SCHM", nth, 40 + 44 * classes + 32 * (first + 5) + 26, element_size, 1);
    }
    expected["classes"][1]["fields"][5][6] = json!(element_size);
    (file, expected)
}

/// Records of 4 bytes: the kind of common_pid is not known, and the record need not hold it.
pub fn record_of_4(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::SubBuffer(0, vec![m.empty(10), m.empty(11)], Loss::default())];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    file.set_field((0, 3), 24, 0x77, 1);
    expected["classes"][0]["fields"][3][4] = json!(0x77);
    for event in expected["events"].as_array_mut().into_iter().flatten() {
        event["fields"]["common_pid"] = json!(null);
    }
    // A word and 4 bytes, twice; the head of the body, the time and the commit word are in front of them.
    let (commit, data) = (72 + 8, 72 + 8 + m.long);
    let (offset, _) = file.chunk(b"RAWP", 0);
    let record = file.number(offset + 64 + data + 4, 4);
    let word = |delta: u64| if m.big { 1 << 27 | delta } else { delta << 5 | 1 };
    for (at, value) in [(0, word(0)), (8, word(1)), (12, record)] {
        file.body(b"RAWP", 0, data + at, value, 4);
    }
    file.body(b"RAWP", 0, commit, 16, m.long);
    (file, expected)
}

/// A chunk without sub-buffers: there is only a loss.
pub fn no_sub_buffers(m: Maker, layout: Layout) -> Changed {
    let counted = Loss { counted: 5, ..Loss::default() };
    let ops = [
        Op::SubBuffer(0, vec![], counted),
        Op::Flush(0),
        Op::SubBuffer(0, vec![m.kmalloc(10, 0x40, 8)], Loss::default()),
    ];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let expected = json::expected(&ops, &file.file, &layout);
    file.body(b"RAWP", 0, 48, 0, 4);
    file.resize(b"RAWP", 0, 72);
    (file, expected)
}

/// CRITICAL where no reader looks at it, and the largest page.
pub fn ignored_flags(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Meta(vec![("key", b"value")]), Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let expected = json::expected(&ops, &file.file, &layout);
    file.header(b"META", 0, 12, 1, 1);
    file.header(b"EVNT", 0, 12, 0, 1);
    file.file_header(34, 30, 1);
    (file, expected)
}

/// Bytes behind the NUL of a name.
pub fn behind_nul(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Tasks(vec![(0, 42, 42, "sh")]), Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    file.body(b"TASK", 0, 16 + 16 + 3, u64::from(b'x'), 1);
    expected["lookups"] = json!({"comms": [[42, 10, json::hex(b"sh")]]});
    (file, expected)
}

/// OVERWRITTEN alone is a loss: also a stack behind it belongs to no event.
pub fn overwritten_alone(m: Maker, layout: Layout) -> Changed {
    let overwritten = Loss { overwritten: true, ..Loss::default() };
    let ops = [
        Op::Lost(0, overwritten),
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Event(0, m.stack(11, 2)),
        Op::Event(0, m.kmalloc(12, 0x40, 8)),
        Op::Lost(0, overwritten),
        Op::Event(0, m.stack(13, 2)),
    ];
    let layout = Layout { index: false, ..layout };
    let file = Broken::new(&ops, layout);
    let mut expected = json::expected(&ops, &file.file, &layout);
    expected["lookups"] = json!({"stacks": [[0, 1, 0], [0, 3, null]]});
    (file, expected)
}
