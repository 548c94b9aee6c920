//! Sub-buffers at the edges of what their head and their words allow.

use serde_json::{Value as Json, json};

use super::{Changed, built};
use crate::broken::Broken;
use crate::bytes::Bytes;
use crate::cases::{Maker, plain};
use crate::classes::CACHE_FREE;
use crate::json;
use crate::model::{Event, Layout, Loss, Op, Value};
use crate::odd_classes::{DYNAMIC, TWO_DEPTHS};

/// Length of a SubBuffersHead; the commit word stands 8 bytes behind it, and the data behind that.
const RAW_HEAD: usize = 72;

/// The word of an event.
pub(crate) fn word(m: Maker, kind: u64, delta: u64) -> u64 {
    if m.big { kind << 27 | delta } else { delta << 5 | kind }
}

/// Replaces the data of the first sub-buffer from `at` on, and their length.
pub(crate) fn put_data(file: &mut Broken, m: Maker, at: usize, data: &[u8]) -> u64 {
    let start = RAW_HEAD + 8 + m.long + at;
    for (i, byte) in data.iter().enumerate() {
        file.body(b"RAWP", 0, start + i, u64::from(*byte), 1);
    }
    file.body(b"RAWP", 0, RAW_HEAD + 8, (at + data.len()) as u64, m.long)
}

pub fn cases(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    let mut out = Vec::new();
    let mut add = |name, ops: &[Op], change: &dyn Fn(&mut Broken, &mut Json)| {
        let (mut file, mut expected) = built(ops, layout);
        change(&mut file, &mut expected);
        out.push((name, (file, expected)));
    };
    let of = |events: Vec<Event>| [Op::SubBuffer(0, events, Loss::default())];
    // Without sub-buffers: time and commit word end with them, or they have 8 MiB; the two times mean nothing.
    let none = [Op::SubBuffer(0, vec![], Loss { uncounted: true, ..Loss::default() })];
    for (name, fields) in [
        ("raw-layout-ends", &[(52, 1024 - 8, 2), (54, 1024 - m.long as u64, 2), (16, 5, 8), (24, 9, 8)][..]),
        ("raw-layout-long", &[(44, 8 << 20, 4)]),
    ] {
        add(name, &none, &|file, _| {
            file.body(b"RAWP", 0, 48, 0, 4);
            file.resize(b"RAWP", 0, RAW_HEAD);
            for &(at, value, len) in fields {
                file.body(b"RAWP", 0, at, value, len);
            }
        });
    }
    // The head has a loss that no sub-buffer has, and bits of classes without events.
    add("raw-head-knows-more", &of(vec![m.empty(10)]), &|file, expected| {
        file.body(b"RAWP", 0, 4, 2, 4);
        file.body(b"RAWP", 0, 64, u64::MAX, 8);
        expected["losses"] = json!([{"cpu": 0, "before": 0, "counted": 0, "uncounted": true, "damaged": false, "overwritten": false}]);
    });
    // Records of 2 and 3 bytes, whose class has one field that is known; data that do not start at a multiple of 4.
    add("short-records", &of(vec![m.empty(10), m.empty(11), m.empty(12)]), &|file, expected| {
        for (field, name) in [(1, "common_flags"), (2, "common_preempt_count"), (3, "common_pid")] {
            file.set_field((0, field), 24, 0x77, 1);
            expected["classes"][0]["fields"][field][4] = json!(0x77);
            (0..3).for_each(|i| expected["events"][i]["fields"][name] = Json::Null);
        }
        let mut data = Bytes::new(m.big);
        data.raw(&[0xa5; 2]).number(word(m, 0, 0), 4).number(6, 4).number(301, 2).raw(&[0xa5; 2]);
        data.number(word(m, 0, 1), 4).number(7, 4).number(301, 2).raw(&[0xa5; 2]);
        data.number(word(m, 1, 1), 4).number(301, 2).raw(&[0xa5; 2]);
        put_data(file, m, 0, &data.data);
        file.body(b"RAWP", 0, RAW_HEAD + 8, data.len() as u64 - 2, m.long);
        file.body(b"RAWP", 0, 58, 8 + m.long as u64 + 2, 2);
    });
    // Three words add nearly 3 x 2^59: the upper bits of the absolute time behind them are those that were reached.
    let most = u64::from(u32::MAX);
    let reached = 100 + 3 * (most << 27) + 5_000;
    add("time-reached", &of(vec![m.empty(100), m.empty(reached)]), &|file, _| {
        let record = file.number(file.chunk(b"RAWP", 0).0 + 64 + RAW_HEAD + 8 + m.long + 4, 8);
        let mut data = Bytes::new(m.big);
        (0..3).for_each(|_| drop_bytes(data.number(word(m, 30, 0), 4).number(most, 4)));
        data.number(word(m, 31, reached & 0x7ff_ffff), 4).number(reached >> 27 & most, 4);
        data.number(word(m, 2, 0), 4).number(record, 8);
        put_data(file, m, 12, &data.data);
    });
    out.extend(arrays(m, layout));
    out
}

fn drop_bytes(_: &mut Bytes) {}

/// Changes of fields in the file and in what is expected: field, part of its row, index of it in the list, value.
fn set(file: &mut Broken, expected: &mut Json, changes: &[(usize, usize, usize, u64)]) {
    for &(field, at, index, value) in changes {
        file.set_field((0, field), at, value, if at == 28 { 2 } else { 4 });
        expected["classes"][0]["fields"][field][index] = json!(value);
    }
}

/// Arrays that are, or are not, cut at a number of addresses or at the end of the record.
fn arrays(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    let mut out = Vec::new();
    let mut add = |name, events: Vec<Event>, change: &dyn Fn(&mut Broken, &mut Json)| {
        let ops = [Op::SubBuffer(0, events, Loss::default())];
        let mut file = Broken::new(&ops, layout);
        let mut expected = json::expected(&ops, &file.file, &layout);
        change(&mut file, &mut expected);
        out.push((name, (file, expected)));
    };
    let array = |bytes: &[u8]| Value::Array(bytes.to_vec());
    let of = |class, values| Event { time: 10, class, context: [1, 0, 42], values };
    // A stack to the end of the record, of which the record has nothing: its 8 bytes are no part of it.
    add("stack-at-end", vec![m.tail(10, b"")], &|file, expected| {
        set(file, expected, &[(5, 20, 3, 8), (5, 28, 7, 17)]);
    });
    // The place of the contents counts from behind 4 bytes, and the field has 8.
    let dynamic = of(&DYNAMIC, vec![array(b"abcd"), array(&[7; 8])]);
    add("locator-of-8", vec![dynamic], &|file, expected| set(file, expected, &[(5, 20, 3, 8)]));
    // A stack of dynamic length has all of its addresses, whatever their number is.
    let mut stack = plain(10, &CACHE_FREE, &[1, 2]);
    stack.values.push(array(&[9; 16]));
    add("stack-of-locator", vec![stack], &|file, expected| {
        set(file, expected, &[(4, 28, 7, 18), (6, 28, 7, 17)]);
    });
    // A number of addresses is unsigned: all of them; more than the record has: whole ones alone.
    let mut depths = [m.stack(10, 2), m.stack(11, 2)];
    depths[0].values[0] = Value::Number(u64::MAX);
    depths[1].values = vec![Value::Number(5), array(&[&[3; 16][..], &[4; 4]].concat())];
    add("stack-depths", depths.to_vec(), &|_, expected| {
        expected["events"][1]["fields"]["caller"] = json::hex(&[3; 16]);
    });
    // Stacks without a number of addresses: one that ends behind the record, and two that start there.
    let (one, text) = (Value::Number(1), b"abcdefghijklmnop");
    let values = vec![one.clone(), one, array(&[7; 16]), array(text), array(b"")];
    add("cut-stacks", vec![of(&TWO_DEPTHS, values)], &|file, expected| {
        let places = [(6, 16, 2, 40), (6, 20, 3, 64), (7, 16, 2, 64), (8, 16, 2, 64)];
        set(file, expected, &[&[(4, 28, 7, 0), (5, 28, 7, 0)], &places[..]].concat());
        let fields = &mut expected["events"][0]["fields"];
        fields["fixed"] = json::hex(&text[8..]);
        fields["text"] = json::hex(b"");
    });
    out
}
