//! Numbers in fewer bytes than their fields, differences from fields of every place, and texts between characters.

use serde_json::{Value as Json, json};

use super::Changed;
use crate::broken::Broken;
use crate::cases::Maker;
use crate::classes::KMALLOC;
use crate::json;
use crate::model::{Layout, Loss, Op};

const PID: usize = 3;
const PTR: usize = 5;
const BYTES_REQ: usize = 6;
const BYTES_ALLOC: usize = 7;
const GFP_FLAGS: usize = 8;
const NODE: usize = 9;

/// Negative numbers of which fewer bytes are stored, and one that is not negative.
pub fn narrow(m: Maker, layout: Layout) -> Changed {
    let minus_five = 5u64.wrapping_neg();
    let ops = [Op::Event(0, m.of(minus_five, m.kmalloc(10, 0x40, 8)))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    let (offset, _) = file.chunk(b"SCHM", 0);
    for (field, place, size, stored) in [(PID, 1, 4, 2), (NODE, 2, 4, 1), (GFP_FLAGS, 2, 4, 1)] {
        let at = offset + 64 + file.slot(0, 0, 0, field).expect("a slot");
        // The lower bytes are the last ones in big endian.
        let first = file.number(at + 4, 4) + if layout.big { size - stored } else { 0 };
        file.set_slot((0, 0, field), (place, stored, 0, 0, first));
    }
    expected["events"][0]["fields"]["gfp_flags"] = json!(0xc0);
    (file, expected)
}

/// Differences from the class id, a field of the context, one of the value word, and from the field itself.
pub fn bases(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Event(0, m.kmalloc(10, 0x40, 100))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    let (offset, _) = file.chunk(b"SCHM", 0);
    let mask = u64::MAX >> (64 - 8 * m.long);
    let fields = &mut expected["events"][0]["fields"];
    for (field, name, base, from, less) in [
        (BYTES_REQ, "bytes_req", 0, 11, 100),
        (BYTES_ALLOC, "bytes_alloc", PID, 42, 128),
        (GFP_FLAGS, "gfp_flags", PTR, m.address(0x40), 0xcc0),
        (NODE, "node", NODE, 0, 0),
    ] {
        let at = file.number(offset + 64 + file.slot(0, 0, 0, field).expect("a slot") + 4, 4);
        file.set_slot((0, 0, field), (2, 4, 2, base, at));
        fields[name] = if field == base { Json::Null } else { json!(u64::wrapping_sub(from, less) & mask) };
    }
    (file, expected)
}

/// Puts a character of two bytes into the print fmt of kmem:kmalloc, behind its first byte.
pub(crate) fn put_character(file: &mut Broken, nth: usize, print_at: u64) {
    let (offset, _) = file.chunk(b"SCHM", nth);
    let head = |at: usize, len: usize| file.number(offset + 64 + at, len) as usize;
    let rows = [(12, 32), (16, 34), (20, 36), (24, 38)].map(|(count, len)| head(count, 4) * head(len, 2));
    let heap = head(0, 4) + rows.iter().sum::<usize>();
    for (i, byte) in "\u{e9}".bytes().enumerate() {
        file.body(b"SCHM", nth, heap + print_at as usize + 1 + i, byte.into(), 1);
    }
}

/// A print fmt of one character of two bytes.
pub fn character(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    let text = KMALLOC.format_text(m.long);
    let print_at = text.find("print fmt: ").expect("every format has one") as u64 + 11;
    for nth in [0, 1] {
        put_character(&mut file, nth, print_at);
        file.body(b"SCHM", nth, 40 + 36, print_at + 1, 4);
        file.body(b"SCHM", nth, 40 + 40, 2, 4);
    }
    expected["classes"][0]["print"] = json!("\u{e9}");
    (file, expected)
}

/// Second definitions that differ only in what is not compared.
pub fn alike_slots(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let layout = Layout { padded: true, index: false, ..layout };
    let mut file = Broken::new(&ops, layout);
    let mut expected = json::expected(&ops, &file.file, &layout);
    file.set_slot((0, 0, BYTES_REQ), (0x77, 4, 0, 0, 8));
    expected["events"][0]["fields"]["bytes_req"] = Json::Null;
    let unknown = file.slot(1, 0, 0, BYTES_REQ).expect("a slot");
    let plain = file.slot(1, 0, 0, BYTES_ALLOC).expect("a slot");
    // Stored bytes, base and offset of the unknown place; the base of a slot without transform; a byte behind the row.
    for (at, value, len) in [(unknown + 1, 9, 1), (unknown + 3, 200, 1), (unknown + 4, 1 << 30, 4)] {
        file.body(b"SCHM", 1, at, value, len);
    }
    file.body(b"SCHM", 1, plain + 3, 200, 1);
    file.body(b"SCHM", 1, plain + 8, 0, 4);
    // A field is signed, whatever the number; its reserved bytes; a byte behind its row.
    let field = 48 + 48 + NODE * 36;
    for (at, value, len) in [(25, 2, 1), (27, 7, 1), (30, 7, 2), (32, 0, 4)] {
        file.body(b"SCHM", 1, field + at, value, len);
    }
    (file, expected)
}

/// Sub-buffers with events at one time, and clocks that step back by 2^58 exactly, and by one more.
pub fn steps(m: Maker, layout: Layout) -> Changed {
    let absolute = crate::model::How { absolute: true, ..Default::default() };
    let wrapped = 1 << 59;
    let ops = [
        Op::SubBuffer(0, vec![m.empty(100), m.empty(100), m.kmalloc(100, 0x40, 8)], Loss::default()),
        Op::SubBufferWith(1, vec![m.empty(100), m.empty(110)], Loss::default(), absolute),
        Op::SubBufferWith(2, vec![m.empty(wrapped + 99), m.empty(wrapped + 120)], Loss::default(), absolute),
    ];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let expected = json::expected(&ops, &file.file, &layout);
    for nth in [1, 2] {
        file.body(b"RAWP", nth, 72, (1 << 58) + 100, 8);
    }
    (file, expected)
}
