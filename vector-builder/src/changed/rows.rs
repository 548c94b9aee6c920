//! Numbers in rows and heads without events: flags, times in another order, rows in place of others.

use serde_json::{Value as Json, json};

use super::{Changed, built};
use crate::cases::Maker;
use crate::model::{Layout, Op};

pub fn rows(_: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    vec![
        ("clock-comparable", clock_comparable(layout)),
        ("file-flags", file_flags(layout)),
        ("times-backwards", times_backwards(layout)),
        ("stats-again", stats_again(layout)),
    ]
}

/// A number for comparable that means the same as 0.
fn clock_comparable(layout: Layout) -> Changed {
    let (mut file, mut expected) = built(&[Op::Clock("mono", false, true)], layout);
    file.body(b"CLOK", 0, 5, 2, 1);
    expected["clock"]["comparable"] = json!(false);
    (file, expected)
}

/// Flags of files: a bit that is not known beside TIMED, and alone; times without TIMED.
fn file_flags(layout: Layout) -> Changed {
    let ops: Vec<Op> = (0..3).map(|i| Op::File("name", b"contents", Some((i + 7, i + 9)))).collect();
    let (mut file, mut expected) = built(&ops, layout);
    for (nth, flags) in [3, 2, 0].into_iter().enumerate() {
        file.body(b"FILE", nth, 32, flags, 4);
        if flags & 1 == 0 {
            expected["files"][nth][2] = Json::Null;
        }
    }
    (file, expected)
}

/// Times whose first one is above the last.
fn times_backwards(layout: Layout) -> Changed {
    let sums = Op::Sums(vec![([9, 7], 1, "open", 1, [Some(1), None, Some(3)])]);
    built(&[Op::File("name", b"contents", Some((9, 7))), sums], layout)
}

/// A later row of one CPU with one number: the others of the first row do not hold. Writers may know few numbers, too.
fn stats_again(layout: Layout) -> Changed {
    let numbers = |known| std::array::from_fn(|i| (i < known).then_some(100 + i as u64));
    let bytes = std::array::from_fn(|i| (i == 3).then_some(900));
    built(
        &[Op::Stats(vec![(0, 0, numbers(8)), (0, 0, numbers(1)), (1, 2, bytes), (2, 2, [None; 11])])],
        layout,
    )
}
