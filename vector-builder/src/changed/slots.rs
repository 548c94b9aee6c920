//! Slots that no writer of these vectors makes.

use serde_json::{Value as Json, json};

use super::Changed;
use crate::broken::Broken;
use crate::cases::Maker;
use crate::json;
use crate::model::{Event, Layout, Op, Value};
use crate::odd_classes::DIFFERENCES;

/// The lower `bits` bits of a number, extended by the sign or by zeros.
fn cut(number: u64, bits: u32, signed: bool) -> Json {
    let up = number << (64 - bits);
    if signed { json!((up as i64) >> (64 - bits)) } else { json!(up >> (64 - bits)) }
}

/// Differences of 1, 2, 4 and 8 bytes, several numbers in a value word, bases without a value.
pub fn differences(m: Maker, layout: Layout) -> Changed {
    let time: u64 = 0x1_2345_6789;
    let stored: [u64; 20] = [
        0x8091_a2b3,
        40_000,
        5,
        0x9a,
        0x7fff,
        0x1234_5678,
        0x10,
        0x90,
        0xfff0,
        0x7000_0000,
        0xffff_fff0,
        7,
        1,
        2,
        3,
        4,
        0,
        0,
        0,
        0,
    ];
    // base_signed is -5.
    let base_signed = 5u64.wrapping_neg();
    let mut values: Vec<Value> = stored[..19].iter().map(|n| Value::Number(*n)).collect();
    values[2] = Value::Number(base_signed);
    values.push(Value::Array(b"text\0".to_vec()));
    let event = Event { time, class: &DIFFERENCES, context: [1, 0, 42], values };
    let ops = [Op::Event(0, m.empty(time - 1)), Op::Event(0, event)];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    let word = 0x8091_a2b3u64;
    let class = &file.file.classes.iter().position(|c| c.name == "differences").expect("the class");
    let (class, fields) = (*class, DIFFERENCES.all_fields());
    let found = |name: &str| fields.iter().position(|f| f.name == name).expect("a field");
    let descriptor = |file: &Broken, field: usize| {
        let (offset, _) = file.chunk(b"SCHM", 0);
        file.number(offset + 64 + file.slot(0, class, 0, field).expect("a slot") + 4, 4)
    };
    let mut told = |name: &str, value: Json| expected["events"][1]["fields"][name] = value;
    // Minus the stored number: from the time, from a field.
    for (name, len, stored, signed) in [
        ("time_u8", 1, 0x9a, false),
        ("time_s16", 2, 0x7fff, true),
        ("time_u32", 4, 0x1234_5678, false),
        ("time_s64", 4, 0x10, true),
    ] {
        let field = found(name);
        let at = descriptor(&file, field);
        file.set_slot((class, 0, field), (2, len, 1, 0, at));
        told(name, cut(time.wrapping_sub(stored), 8 * fields[field].record_size(8) as u32, signed));
    }
    for (name, len, base, from, stored, signed) in [
        ("less_s8", 1, "base_signed", base_signed, 0x90u64, true),
        ("less_u16", 2, "base_unsigned", 40_000, 0xfff0, false),
        ("less_s32", 4, "base_unsigned", 40_000, 0x7000_0000, true),
        ("less_u64", 4, "base_signed", base_signed, 0xffff_fff0, false),
        (
            "less_time_s64",
            4,
            "time_s16",
            cut(time.wrapping_sub(0x7fff), 16, true).as_i64().unwrap_or(0) as u64,
            7,
            true,
        ),
    ] {
        let field = found(name);
        let at = descriptor(&file, field);
        file.set_slot((class, 0, field), (2, len, 2, found(base), at));
        told(name, cut(from.wrapping_sub(stored), 8 * fields[field].record_size(8) as u32, signed));
    }
    for (name, place, transform, base) in [
        ("of_array", 2, 2, "text"),
        ("of_difference", 2, 2, "less_s32"),
        ("of_none", 2, 2, "none"),
        ("none", 0x77, 0, "none"),
    ] {
        let field = found(name);
        let at = descriptor(&file, field);
        file.set_slot((class, 0, field), (place, 4, transform, found(base), at));
        told(name, Json::Null);
    }
    // Bytes of the value word, from its least significant one, in either byte order.
    for (name, len, offset, signed) in [("low", 2, 0, false), ("middle", 1, 2, false), ("high", 1, 3, true)] {
        file.set_slot((class, 0, found(name)), (3, len, 0, 0, offset));
        told(name, cut(word >> (8 * offset), 8 * len as u32, signed));
    }
    (file, expected)
}
