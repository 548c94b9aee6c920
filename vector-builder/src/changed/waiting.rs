//! Stacks of classes whose task or meaning is changed by hand, and numbers of events that fall.

use serde_json::json;

use super::{Changed, built};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Op};

const ROLE: usize = 28;
const PID: usize = 3;

pub fn cases(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    let mut out = Vec::new();
    let mut add = |name, ops: &[Op], change: &dyn Fn(&mut Broken, &mut serde_json::Value)| {
        let (mut file, mut expected) = built(ops, layout);
        change(&mut file, &mut expected);
        out.push((name, (file, expected)));
    };
    // Of two fields with the role of common_pid the first is an array: it counts as 0, and the second one does not.
    let ops = [Op::Event(0, m.arrays(10, "task", &[])), Op::Event(0, m.of(0, m.stack(11, 2)))];
    add("array-task", &ops, &|file, expected| {
        for (field, role) in [(PID, 0), (4, 4), (7, 4)] {
            file.set_field((0, field), ROLE, role, 2);
            expected["classes"][0]["fields"][field][7] = json!(role);
        }
        expected["lookups"] = json!({"stacks": [[0, 1, 0]]});
    });
    // A task of 8 bytes, which are those of the address: their lower 4 are 42.
    let ops = [Op::Event(0, m.kmalloc(10, 42, 8)), Op::Event(0, m.stack(11, 2))];
    add("long-task", &ops, &|file, expected| {
        file.set_field((0, PID), 20, 8, 4);
        (0..3).for_each(|shape| file.set_slot((0, shape, PID), (3, 8, 0, 0, 0)));
        expected["classes"][0]["fields"][PID][3] = json!(8);
        expected["events"][0]["fields"]["common_pid"] = json!(m.address(42) as i64);
        expected["lookups"] = json!({"stacks": [[0, 1, 0]]});
    });
    // The meaning makes a stack, and not the name.
    let ops =
        [Op::Event(0, m.kmalloc(10, 0x40, 8)), Op::Event(0, m.stack(11, 2)), Op::Event(0, m.page(12, 3, 0))];
    add("meanings-of-stacks", &ops, &|file, expected| {
        for (class, meaning) in [(1, 0), (2, 9)] {
            for nth in [0, 1] {
                file.body(b"SCHM", nth, 40 + 44 * class + 2, meaning, 2);
            }
            expected["classes"][class]["meaning"] = json!(meaning);
        }
        expected["lookups"] = json!({"stacks": [[0, 2, 1]]});
    });
    // The numbers of a chunk begin below those before it: the higher ones count.
    let event = |time| Op::Event(0, m.kmalloc(time, 0x40, 8));
    let ops = [event(10), event(20), event(30), Op::Flush(0), event(40), Op::Flush(0), event(50)];
    add("numbers-fall", &ops, &|file, expected| {
        file.body(b"EVNT", 1, 32, 2, 8);
        file.body(b"EVNT", 2, 32, 4, 8);
        expected["lookups"] = json!({"missing": [[0, 0, 0]]});
    });
    out
}
