//! Lookups in a file: symbols, names, stacks. The expected answers are written by hand.

mod rows;
mod stacks;
mod symbols;

use serde_json::{Value as Json, json};

use crate::Vector;
use crate::broken::Broken;
use crate::cases::{Maker, plain};
use crate::file::build;
use crate::json;
use crate::model::{Event, Layout, Loss, Op, Value};
use crate::odd_classes::{SAME_ID, SAME_ID_AGAIN, TEXTS};

/// Operations, and what is asked with its answers.
type Case = (Vec<Op>, Json);

/// Three classes of one id; sub-buffers of each part of the file have their own.
fn ids(m: Maker) -> Case {
    let number = |time, n| plain(time, &SAME_ID, &[n]);
    let pair = |time, n| plain(time, &SAME_ID_AGAIN, &[n, n + 1]);
    let ops = vec![
        Op::SubBuffer(0, vec![m.page(90, 3, 0), m.kmalloc(100, 0x40, 8)], Loss::default()),
        Op::Append,
        Op::SubBuffer(0, vec![number(200, 7), number(210, 8)], Loss::default()),
        Op::Append,
        Op::SubBuffer(0, vec![pair(300, 9)], Loss::default()),
        Op::Event(1, pair(310, 10)),
    ];
    let asked = json!({"classes": [[0, 0, 0], [0, 1, 1], [0, 2, 2], [0, 3, 2], [0, 4, 3], [1, 0, 3]]});
    (ops, asked)
}

/// A chunk of events that a tool took from a torn one.
fn unverified(m: Maker) -> Vec<Op> {
    vec![
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Flush(0),
        Op::Event(0, m.kmalloc(20, 0x40, 8)),
        Op::Event(2, m.kmalloc(30, 0x40, 8)),
    ]
}

fn vector(name: String, ops: &[Op], layout: Layout, lookups: Json) -> Vector {
    let file = build(ops, layout);
    let mut expected = json::expected(ops, &file, &layout);
    if lookups != json!({}) {
        expected["lookups"] = lookups;
    }
    Vector { name, bytes: file.bytes, json: json::text(&expected), script: None }
}

/// Texts of plain `char` and of others, as the kernel wrote them.
fn texts(_: Maker) -> Case {
    let array = |text: &[u8]| Value::Array(text.to_vec());
    let event = |time, plain: &[u8], other: &[u8]| Event {
        time,
        class: &TEXTS,
        context: [1, 0, 42],
        values: vec![array(plain), array(plain), array(other), array(other), array(b"a\0b\0")],
    };
    let events = vec![
        event(10, b"ab", b"\0b\0d\0\0"),
        event(20, b"sixsix", b"sixsix"),
        event(30, b"", b"\0\0\0\0\0\0"),
    ];
    let ops = vec![
        Op::SubBuffer(0, events.clone(), Loss::default()),
        Op::Event(1, events[0].clone()),
        Op::Event(1, events[1].clone()),
    ];
    (ops, json!({}))
}

/// The vectors: little and big endian, and one with longer structures.
pub fn vectors() -> Vec<Vector> {
    let mut out = Vec::new();
    for (suffix, big, long, padded) in
        [("le64", false, 8, false), ("be32", true, 4, false), ("be64-padded", true, 8, true)]
    {
        let (m, layout) = (Maker { big, long }, Layout { padded, ..Layout::plain(big, long) });
        let cases: [(&str, Case); 12] = [
            ("find-symbols", symbols::symbols(m)),
            ("find-symbols-start", symbols::bounds(m, true, false)),
            ("find-symbols-end", symbols::bounds(m, false, true)),
            ("find-symbols-no-bounds", symbols::bounds(m, false, false)),
            ("find-symbols-2-chunks", symbols::many_parts(m, 2)),
            ("find-symbols-12-chunks", symbols::many_parts(m, 12)),
            ("find-rows", rows::rows(m)),
            ("find-stacks", stacks::stacks(m, false)),
            ("find-stacks-raw", stacks::stacks(m, true)),
            ("find-classes", ids(m)),
            ("texts", texts(m)),
            (
                "empty-lookups",
                (Vec::new(), json!({"symbols": [symbols::nothing(0x1000)], "comms": [[1, 1, null]]})),
            ),
        ];
        for (name, (ops, lookups)) in cases {
            out.push(vector(format!("{name}-{suffix}"), &ops, layout, lookups));
        }
        let ops = unverified(m);
        let mut file = Broken::new(&ops, Layout { index: false, ..layout });
        file.header(b"EVNT", 1, 12, 1 | 8, 1);
        let mut expected = json::expected(&ops, &file.file, &layout);
        expected["lookups"] = json!({"unverified": [[0, 1]]});
        let name = format!("unverified-{suffix}");
        out.push(Vector { name, bytes: file.file.bytes, json: json::text(&expected), script: None });
    }
    let (m, layout) = (Maker { big: false, long: 8 }, Layout { index: false, ..Layout::plain(false, 8) });
    for (name, (ops, lookups)) in [
        ("find-symbols-owners", symbols::owners()),
        ("find-rows-equal", rows::equal(m)),
        ("find-stacks-losses", stacks::losses(m)),
    ] {
        out.push(vector(format!("{name}-le64"), &ops, layout, lookups));
    }
    out
}
