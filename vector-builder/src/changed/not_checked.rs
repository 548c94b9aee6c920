//! Rules for writers only.

use serde_json::Value as Json;

use super::Changed;
use crate::broken::Broken;
use crate::cases::Maker;
use crate::json;
use crate::model::{Layout, Loss, Op};

/// Changes that readers do not check.
pub fn not_checked(m: Maker, layout: Layout) -> Changed {
    let lost = Loss { uncounted: true, ..Loss::default() };
    let ops = [
        Op::Meta(vec![("odd", b"12")]),
        Op::Meta(vec![("key", b"1234")]),
        Op::File("name", b"contents", None),
        Op::Event(0, m.free(1_000, 0x40, "dentry")),
        Op::Event(0, m.page(1_001, 0x1234, 2)),
        Op::Lost(0, lost),
        Op::Flush(0),
        Op::Event(1, m.page(2_000, 0x1234, 2)),
    ];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let expected = json::expected(&ops, &file.file, &layout);
    // A CPU of a chunk without events; bytes that fill up behind key and value, which may be missing at the end.
    file.header(b"META", 0, 40, 3, 4);
    file.body(b"META", 0, 12 + 8 + 5, 0x00ff_ffff, 3);
    file.resize(b"META", 1, 12 + 8 + 7);
    file.body(b"FILE", 0, 40 + 4, 0xffff_ffff, 4);
    // A chunk without records: its times, and the offset of its records.
    file.body(b"EVNT", 1, 16, 77, 8);
    file.body(b"EVNT", 1, 24, 55, 8);
    file.body(b"EVNT", 1, 68, 1 << 20, 4);
    // Events that were lost, but not counted; a counted loss of none.
    file.body(b"EVNT", 1, 8, 5, 8);
    file.body(b"EVNT", 2, 4, 1, 4);
    // What is stored of an id, the transform of an array, and what is stored where the place is not known.
    let classes: Vec<&str> = file.file.classes.iter().map(|c| c.name).collect();
    let (free, page) = (
        classes.iter().position(|n| *n == "kmem_cache_free").unwrap_or(0),
        classes.iter().position(|n| *n == "mm_page_alloc").unwrap_or(0),
    );
    file.set_slot((free, 0, 0), (0, 8, 0, 99, 1_000));
    let name = file.slot(0, free, 0, 6).expect("a slot");
    let (offset, _) = file.chunk(b"SCHM", 0);
    let at = file.number(offset + 64 + name + 4, 4);
    file.set_slot((free, 0, 6), (2, 4, 1, 0, at));
    file.set_slot((page, 0, 6), (0x77, 0, 2, 99, 1 << 30));
    let mut expected = expected;
    // The size of a field with a locator, which is below that of its slots.
    for nth in 0..file.file.chunks.iter().filter(|c| c.kind == *b"SCHM").count() {
        let (offset, _) = file.chunk(b"SCHM", nth);
        let classes = file.number(offset + 64 + 12, 4) as usize;
        let first = file.number(offset + 64 + 40 + 44 * free + 8, 4) as usize;
        file.body(b"SCHM", nth, 40 + 44 * classes + 32 * (first + 6) + 20, 2, 4);
    }
    expected["classes"][free]["fields"][6][3] = 2.into();
    for event in expected["events"].as_array_mut().into_iter().flatten() {
        if event["class"] == "kmem:mm_page_alloc" {
            event["fields"]["gfp_flags"] = Json::Null;
        }
    }
    (file, expected)
}
