//! Tables in which of several rows one holds.

use serde_json::json;

use super::Case;
use crate::cases::Maker;
use crate::json::hex;
use crate::model::Op;

/// Rows of which one holds: counters, keys, files, names, thread groups, cgroups, lines.
pub fn rows(m: Maker) -> Case {
    let site = m.address(0x100);
    let stats = |n: u64| std::array::from_fn(|i| (i < 8).then_some(n + i as u64));
    let mut writer = [None; 11];
    for (i, n) in [(0, 3), (3, 900), (8, 2), (9, 0), (10, 1)] {
        writer[i] = Some(n);
    }
    let ops = vec![
        Op::Stats(vec![(0, 0, stats(100)), (0, 0, stats(150)), (1, 0, stats(200)), (0, 1, stats(300))]),
        Op::Stats(vec![(1, 0, stats(400)), (0, 2, writer)]),
        Op::Meta(vec![("writer", b"first"), ("writer", b"second"), ("clock.pair", b"1 2 3")]),
        Op::Meta(vec![("writer", b"third"), ("clock.pair", b"4 5 6")]),
        Op::File("slabinfo", b"first", Some((10, 12))),
        Op::File("slabinfo", b"second", None),
        Op::Tasks(vec![
            (300, 42, 43, "last"),
            (0, 42, 41, "zero"),
            (100, 42, 0, "exec"),
            (100, 42, 40, "again"),
            (200, 42, 0, ""),
            (600, 42, 44, ""),
            (500, 7, 7, "late"),
            (500, 7, 8, "later"),
            (700, 7, 9, "latest"),
            (50, -7, 0, "negative"),
        ]),
        Op::Tasks(vec![(100, 42, 0, "third")]),
        Op::Cgroups(vec![
            (0, 1, 42, 0, "/a"),
            (100, 0, 42, 0, "/b"),
            (100, 2, 42, 0, "/c"),
            (150, 3, 42, 0, ""),
            (100, 4, 42, 4, "/v1"),
            (500, 5, 7, 0, "/late"),
        ]),
        Op::Cgroups(vec![(0, 0, 42, 0, "/first")]),
        Op::Lines(vec![
            (site, "outer", "a.c", 9, 1),
            (site, "inner", "a.c", 3, 0),
            (site + 8, "only", "b.c", 1, 0),
        ]),
        Op::Lines(vec![
            (site, "outermost", "c.c", 30, 2),
            (site + 16, "other", "", 0, 0),
            (site, "in", "c.c", 10, 0),
            (site, "out", "c.c", 20, 1),
        ]),
        Op::Event(0, m.kmalloc(1_000, 0x40, 100)),
    ];
    let text = |t: &str| hex(t.as_bytes());
    let asked = json!({
        "values": [["writer", text("first")], ["nothing", null]],
        "contents": [["slabinfo", text("first")], ["nothing", null]],
        "comms": [
            [42, 0, text("zero")], [42, 99, text("zero")], [42, 100, text("third")], [42, 250, text("third")],
            [42, 300, text("last")], [42, u64::MAX, text("last")], [7, 1, text("later")], [7, 699, text("later")],
            [7, 700, text("latest")], [-7, 0, text("negative")], [9, 1_000, null], [0, 1_000, null],
        ],
        "tgids": [
            [42, 50, 41], [42, 100, 40], [42, 250, 40], [42, 300, 43], [42, 600, 44], [7, 1, 8], [-7, 60, null], [9, 1, null],
        ],
        "cgroups": [
            [42, 0, 0, "/first"], [42, 0, 99, "/first"], [42, 0, 100, "/c"], [42, 0, 1_000, "/c"], [42, 4, 0, "/v1"],
            [7, 0, 1, "/late"], [7, 4, 1, null], [9, 0, 1, null],
        ],
        "lines": [
            [site, [["in", "c.c", 10, 0], ["out", "c.c", 20, 1], ["outermost", "c.c", 30, 2]]],
            [site + 8, [["only", "b.c", 1, 0]]],
            [site + 16, [["other", "", 0, 0]]],
            [site + 4, []],
        ],
    });
    (ops, asked)
}

/// Rows of one time and of one depth, and times of all 64 bits.
pub fn equal(m: Maker) -> Case {
    let site = m.address(0x100);
    let ops = vec![
        Op::Tasks(vec![(500, 7, 7, "first"), (500, 7, 8, "second"), (700, 7, 9, "third")]),
        Op::Tasks(vec![(10, 8, 8, "early"), ((1 << 63) + 1, 8, 8, "late")]),
        Op::Lines(vec![(site, "first", "a.c", 1, 0), (site, "second", "b.c", 2, 0)]),
    ];
    let asked = json!({
        "comms": [[8, 1u64 << 63, hex(b"early")], [8, (1u64 << 63) + 5, hex(b"late")]],
        "tgids": [[7, 500, 8], [7, 699, 8]],
        "lines": [[site, [["first", "a.c", 1, 0], ["second", "b.c", 2, 0]]]],
    });
    (ops, asked)
}
