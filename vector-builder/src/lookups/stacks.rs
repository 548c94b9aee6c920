//! The event of a stack.

use serde_json::json;

use super::Case;
use crate::cases::Maker;
use crate::model::{Event, Loss, Op};

/// An event of a task on a level.
fn on(flags: u64, pid: u64, mut event: Event) -> Event {
    event.context = [flags, 0, pid];
    event
}

/// Stacks between events of other tasks and levels, behind losses and ends of chunks.
pub fn stacks(m: Maker, in_sub_buffers: bool) -> Case {
    const LOST: u64 = u64::MAX;
    const NEW_CHUNK: u64 = u64::MAX - 1;
    // Flags, task, and of a stack the event that it belongs to.
    let steps: Vec<(u64, u64, Option<Option<u64>>)> = vec![
        (1, 42, None),
        (1, 42, Some(Some(0))),
        (1, 42, Some(None)),
        (1, 42, None),
        (9, 42, None),
        (9, 42, Some(Some(4))),
        (1, 42, Some(Some(3))),
        (1, 42, None),
        (1, 7, None),
        (1, 42, Some(None)),
        (1, 7, Some(Some(8))),
        (1, 42, None),
        (1, 7, Some(None)),
        (1, 42, Some(Some(11))),
        (LOST, 0, None),
        (1, 42, Some(None)),
        // Bits that are no level.
        (5, 42, None),
        (2, 42, Some(Some(15))),
        // A soft interrupt, a hard one, an NMI.
        (1, 42, None),
        (0x10, 42, None),
        (0x18, 42, None),
        (0x40, 42, None),
        (0x40, 42, Some(Some(20))),
        (0x18, 42, Some(Some(19))),
        (0x10, 42, Some(Some(18))),
        (1, 42, Some(Some(17))),
        (1, 42, None),
        (LOST, 0, None),
        (1, 42, Some(None)),
        (1, 42, None),
        (NEW_CHUNK, 0, None),
        (1, 42, Some(Some(27))),
    ];
    let (mut ops, mut open, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    let (mut number, mut lost) = (0u64, Loss::default());
    // A CPU of its own, whose event stands between the others in time.
    ops.push(Op::Event(1, on(1, 42, m.stack(1_000, 2))));
    ops.push(Op::Event(1, on(1, 42, m.kmalloc(1_005, 0x40, 8))));
    let flush = |open: &mut Vec<Event>, lost: &mut Loss, ops: &mut Vec<Op>| {
        let events = std::mem::take(open);
        let loss = std::mem::take(lost);
        if in_sub_buffers && !events.is_empty() {
            ops.push(Op::SubBuffer(0, events, loss));
        } else if !in_sub_buffers {
            if loss != Loss::default() {
                ops.push(Op::Lost(0, loss));
            }
            ops.extend(events.into_iter().map(|event| Op::Event(0, event)));
        }
    };
    for (flags, pid, owner) in steps {
        if flags == LOST || flags == NEW_CHUNK {
            flush(&mut open, &mut lost, &mut ops);
            ops.push(Op::Flush(0));
            if flags == LOST {
                lost.uncounted = true;
            }
            continue;
        }
        let time = 1_000 + 10 * number;
        match owner {
            Some(owner) => {
                open.push(on(flags, pid, m.stack(time, 2)));
                asked.push(json!([0, number, owner]));
            }
            None => open.push(on(flags, pid, m.kmalloc(time, 0x40 * number, 8))),
        }
        number += 1;
    }
    flush(&mut open, &mut lost, &mut ops);
    asked.push(json!([1, 0, null]));
    (ops, json!({"stacks": asked}))
}

/// A chunk that has only a loss, between an event and its stack; and events that wait on another CPU.
pub fn losses(m: Maker) -> Case {
    let ops = vec![
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Flush(0),
        Op::Lost(0, Loss { uncounted: true, ..Loss::default() }),
        Op::Flush(0),
        Op::Event(0, m.stack(20, 2)),
        Op::Event(1, m.kmalloc(30, 0x40, 8)),
        Op::Event(2, m.stack(40, 2)),
    ];
    (ops, json!({"stacks": [[0, 1, null], [2, 0, null]]}))
}
