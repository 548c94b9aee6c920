//! Fields that are found by their roles.

use serde_json::{Value as Json, json};

use super::Changed;
use crate::broken::Broken;
use crate::bytes::number;
use crate::cases::{Maker, plain};
use crate::json;
use crate::model::{Event, Layout, Loss, Op, Value};
use crate::odd_classes::{ARRAY_DEPTH, ARRAY_TIME, COMMON_TIME, TWO_DEPTHS};

const ROLE: usize = 28;
const BYTES_REQ: usize = 6;
const BYTES_ALLOC: usize = 7;
const GFP_FLAGS: usize = 8;

/// Flags and task of kmem:kmalloc are other fields than those of these names; of two with one role the first counts.
pub fn roles_of_stacks(m: Maker, layout: Layout) -> Changed {
    let task = 0xcc0;
    let stack = |time| m.of(task, m.stack(time, 2));
    let ops = [
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Event(0, stack(11)),
        Op::Event(0, m.kmalloc(12, 0x40, 1)),
        Op::Event(0, stack(13)),
        // 96 has a bit of an NMI, 128 has none.
        Op::Event(0, m.kmalloc(14, 0x40, 96)),
        Op::Event(0, stack(15)),
        Op::Event(0, m.kmalloc(16, 0x40, 2)),
        Op::Event(0, m.stack(17, 2)),
    ];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    for (field, role) in [(1, 0), (3, 0), (BYTES_REQ, 2), (BYTES_ALLOC, 2), (GFP_FLAGS, 4)] {
        file.set_field((0, field), ROLE, role, 2);
        expected["classes"][0]["fields"][field][7] = json!(role);
    }
    expected["lookups"] = json!({"stacks": [[0, 1, null], [0, 3, 2], [0, 5, null], [0, 7, null]]});
    (file, expected)
}

fn of(time: u64, class: &'static crate::classes::Class, values: Vec<Value>) -> Event {
    Event { time, class, context: [1, 0, 42], values }
}

/// Roles in sub-buffers: numbers of addresses, times of functions, and event ids that are none.
pub fn roles_in_sub_buffers(m: Maker, layout: Layout) -> Changed {
    let array = |bytes: &[u8]| Value::Array(bytes.to_vec());
    let addresses: Vec<u8> = (1..=16 / m.long as u64).flat_map(|n| number(n, m.long, m.big)).collect();
    let (text, one, two) = (b"a\0cdefghijklmnop", Value::Number(1), Value::Number(2));
    let rest = [0x10, 0x20].map(|low| number(m.address(low), m.long, m.big)).concat();
    let stacks = [array(&addresses), array(text), array(&rest)];
    let two_depths = [vec![one.clone(), two.clone()], stacks.to_vec()].concat();
    let events = vec![
        of(10, &TWO_DEPTHS, two_depths),
        of(20, &ARRAY_DEPTH, vec![array(&[1, 1, 1, 1]), one, array(&addresses)]),
        of(30, &ARRAY_TIME, vec![Value::Number(25), array(b"text\0")]),
        plain(40, &COMMON_TIME, &[35, 33]),
    ];
    let ops = [Op::SubBuffer(0, events, Loss::default())];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    let mut told = |name: &str, value: Json| expected["events"][0]["fields"][name] = value;
    told("fixed", json::hex(&addresses[..m.long]));
    told("text", json::hex(&text[..m.long]));
    told("rest", json::hex(&rest[..m.long]));
    // common_preempt_count is no event id; the time of return of the last class is a common field.
    file.set_field((2, 2), ROLE, 1, 2);
    expected["classes"][2]["fields"][2][7] = json!(1);
    for nth in 0..file.file.chunks.iter().filter(|c| c.kind == *b"SCHM").count() {
        file.body(b"SCHM", nth, 40 + 3 * 44 + 6, 5, 2);
    }
    (file, expected)
}

/// The number of addresses is of an unknown kind: stacks are arrays like others.
pub fn depth_unknown(layout: Layout) -> Changed {
    let array = |bytes: &[u8]| Value::Array(bytes.to_vec());
    let (one, text) = (Value::Number(1), b"a\0cdefghijklmnop");
    let values = vec![one.clone(), one, array(&[7; 16]), array(text), array(&[9; 16])];
    let ops = [Op::SubBuffer(0, vec![of(10, &TWO_DEPTHS, values)], Loss::default())];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    file.set_field((0, 4), 24, 0x77, 1);
    expected["classes"][0]["fields"][4][4] = json!(0x77);
    let fields = &mut expected["events"][0]["fields"];
    fields["depth"] = Json::Null;
    fields["text"] = json::hex(b"a");
    (file, expected)
}

/// A common field of an unknown kind, decoded and verbatim.
pub fn common_unknown(m: Maker, layout: Layout) -> Changed {
    let ops = [
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::SubBuffer(1, vec![m.kmalloc(20, 0x40, 8)], Loss::default()),
    ];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    file.set_field((0, 2), 24, 0x77, 1);
    expected["classes"][0]["fields"][2][4] = json!(0x77);
    for event in expected["events"].as_array_mut().into_iter().flatten() {
        event["fields"]["common_preempt_count"] = Json::Null;
    }
    (file, expected)
}
