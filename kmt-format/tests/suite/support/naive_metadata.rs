//! The naive reader's view of chunks without events, as the conformance vectors write it.

use serde_json::{Map, Value as Json, json};

use super::naive::Bytes;

pub fn hex(bytes: &[u8]) -> Json {
    format!("hex:{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()).into()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Start of each row of a table.
fn rows(body: Bytes<'_>) -> Vec<usize> {
    let [head_len, row_len, count] = [0, 4, 8].map(|at| body.u32(at));
    (0..count).map(|i| head_len + i * row_len).collect()
}

pub fn chunk(kind: &str, body: Bytes<'_>, out: &mut Map<String, Json>) {
    let mut push = |key: &str, value: Json| {
        out.entry(key).or_insert_with(|| json!([])).as_array_mut().unwrap().push(value);
    };
    match kind {
        "META" => {
            let [mut at, pair_len, count] = [0, 4, 8].map(|at| body.u32(at));
            assert!(pair_len >= 8);
            for _ in 0..count {
                let (key_len, value_len) = (body.u32(at), body.u32(at + 4));
                let value_at = at + pair_len + key_len;
                let key = body.from(at + pair_len, key_len).data;
                push("meta", json!([text(key), hex(body.from(value_at, value_len).data)]));
                at = (value_at + value_len).next_multiple_of(4);
            }
        }
        "FILE" => {
            let (head_len, name_len, len) = (body.u32(0), body.u32(4), body.number(8, 8) as usize);
            let contents = body.from((head_len + name_len).next_multiple_of(8), len).data;
            let times = (body.u32(32) & 1 == 1).then(|| [body.number(16, 8), body.number(24, 8)]);
            push("files", json!([text(body.from(head_len, name_len).data), hex(contents), times]));
        }
        "LINE" | "CGRP" | "SUMS" => {
            let rows = rows(body);
            let heap = body.u32(0) + body.u32(4) * rows.len();
            let string =
                |at: usize| text(body.from(heap, body.u32(12)).from(body.u32(at), body.u32(at + 4)).data);
            for at in rows {
                let long = |offset: usize| body.number(at + offset, 8);
                match kind {
                    "LINE" => {
                        let (line, depth) = (body.u32(at + 24), body.number(at + 28, 2));
                        push("lines", json!([long(0), string(at + 8), string(at + 16), line, depth]));
                    }
                    "CGRP" => {
                        let pid = body.u32(at + 16) as u32 as i32;
                        push("cgroups", json!([long(0), long(8), pid, body.u32(at + 20), string(at + 24)]));
                    }
                    _ => {
                        let present = body.number(at + 58, 2);
                        let number = |i: usize| (present >> i & 1 == 1).then(|| long(24 + 8 * i));
                        let numbers: Vec<Option<u64>> = (0..3).map(number).collect();
                        let meaning = body.number(at + 56, 2);
                        push(
                            "sums",
                            json!([[long(0), long(8)], long(16), string(at + 48), meaning, numbers]),
                        );
                    }
                }
            }
        }
        "TASK" => {
            for at in rows(body) {
                let comm = body.from(at + 16, 16).data.split(|&b| b == 0).next().unwrap();
                let (pid, tgid) = (body.u32(at + 8) as u32 as i32, body.u32(at + 12) as u32 as i32);
                push("tasks", json!([body.number(at, 8), pid, tgid, hex(comm)]));
            }
        }
        "STAT" => {
            // A row with another `taken` is of a later version.
            for at in rows(body).into_iter().filter(|&at| body.u32(at + 4) <= 2) {
                let present = body.u32(at + 8);
                let number = |i: usize| (present >> i & 1 == 1).then(|| body.number(at + 16 + 8 * i, 8));
                let numbers: Vec<Option<u64>> = (0..11).map(number).collect();
                push("stats", json!([body.u32(at), body.u32(at + 4), numbers]));
            }
            // Of rows of one CPU and `taken` the last one holds.
            let rows = out.get("stats").and_then(Json::as_array).cloned().unwrap_or_default();
            let holds = |i: usize| !rows[i + 1..].iter().any(|r| r[0] == rows[i][0] && r[1] == rows[i][1]);
            let rows: Vec<Json> = (0..rows.len()).filter(|&i| holds(i)).map(|i| rows[i].clone()).collect();
            if !rows.is_empty() {
                out.insert("stats".into(), rows.into());
            }
        }
        "CLOK" => {
            let (head_len, name_len) = (body.u32(0), body.u32(8));
            let name = text(body.from(head_len, name_len).data);
            let (ticks, comparable) = (body.data[4] != 0, body.data[5] == 1);
            out.insert("clock".into(), json!({"name": name, "ticks": ticks, "comparable": comparable}));
        }
        "KSYM" => {
            let mut found = symbols(body);
            // All chunks together; a bound that is 0 is not known.
            if let Some(before) = out.get("symbols") {
                let rows = [&before["symbols"], &found["symbols"]].map(|r| r.as_array().unwrap().clone());
                found["symbols"] = rows.concat().into();
                for bound in ["start", "end"] {
                    if found[bound] == 0 {
                        found[bound] = before[bound].clone();
                    }
                }
            }
            out.insert("symbols".into(), found);
        }
        "HDRC" | "INDX" | "TRLR" => {}
        other => push("unknown", json!(other)),
    }
}

/// A symbol; of another owner than the kernel its name, base and size.
pub struct Symbol {
    pub address: u64,
    pub size: u64,
    pub kind: u8,
    pub owner: Option<(String, u64, u64)>,
    pub name: String,
}

/// The symbols of a chunk.
pub fn symbols_of(body: Bytes<'_>) -> Vec<Symbol> {
    let [head_len, owners, count, blocks, owner_len, block_len, heap_len] =
        [0, 4, 8, 12, 32, 36, 40].map(|at| body.u32(at));
    let blocks_at = head_len + owners * owner_len;
    let heap = body.from(blocks_at + blocks * block_len, heap_len).data;
    let owner_of = |owner: usize| {
        let at = head_len + owner * owner_len;
        let name = text(&heap[body.u32(at + 16)..][..body.u32(at + 20)]);
        (name, body.number(at, 8), body.number(at + 8, 8))
    };
    let mut list = Vec::new();
    for block in 0..blocks {
        let at = blocks_at + block * block_len;
        let mut heap = &heap[body.u32(at + 8)..];
        let (mut address, mut owner, mut name) = (body.number(at, 8), 0, Vec::new());
        for _ in 0..body.number(at + 12, 2) {
            let kind = byte(&mut heap);
            if kind & 0x80 != 0 {
                owner = leb128(&mut heap);
            }
            address += leb128(&mut heap);
            let size = leb128(&mut heap);
            name.truncate(byte(&mut heap) as usize);
            for _ in 0..leb128(&mut heap) {
                name.push(byte(&mut heap));
            }
            let owner = owner.checked_sub(1).map(|owner| owner_of(owner as usize));
            list.push(Symbol { address, size, kind: kind & 0x7f, owner, name: text(&name) });
        }
    }
    assert_eq!(list.len(), count);
    list
}

fn symbols(body: Bytes<'_>) -> Json {
    let list: Vec<Json> = symbols_of(body)
        .into_iter()
        .map(|s| json!([s.address, s.size, char::from(s.kind).to_string(), s.owner.map(|o| o.0), s.name]))
        .collect();
    json!({"start": body.number(16, 8), "end": body.number(24, 8), "symbols": list})
}

fn byte(bytes: &mut &[u8]) -> u8 {
    let (first, rest) = bytes.split_first().unwrap();
    *bytes = rest;
    *first
}

fn leb128(bytes: &mut &[u8]) -> u64 {
    let first = byte(bytes);
    let rest = if first & 0x80 != 0 { leb128(bytes) << 7 } else { 0 };
    u64::from(first & 0x7f) | rest
}
