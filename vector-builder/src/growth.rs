//! A file of a later minor version: everything that a reader may meet and need not know.

use serde_json::{Value as Json, json};

use crate::Vector;
use crate::broken::Broken;
use crate::cases::Maker;
use crate::json;
use crate::model::{Layout, Loss, Op};

/// A number that no registry has.
const UNKNOWN: u64 = 0x77;

/// Index of a field of kmem:kmalloc.
const BYTES_REQ: usize = 6;
const BYTES_ALLOC: usize = 7;
const GFP_FLAGS: usize = 8;
const NODE: usize = 9;
const FIELDS: usize = 10;

fn ops(m: Maker) -> Vec<Op> {
    vec![
        Op::Clock("later", true, false),
        Op::Meta(vec![("a key of a later version", b"its value")]),
        Op::Unknown(*b"xNEW", 2, b"a chunk of a later version"),
        Op::Tasks(vec![(0, 42, 41, "a task")]),
        Op::Stats(vec![(0, UNKNOWN, [Some(1); 11]), (0, 1, std::array::from_fn(|i| (i < 8).then_some(2)))]),
        Op::Event(0, m.kmalloc(1_000, 0x40, 100)),
        Op::Event(0, m.page(1_001, 0x1234, 2)),
        Op::Lost(0, Loss { uncounted: true, ..Loss::default() }),
        Op::Event(0, m.kmalloc(1_010, 0x80, 9)),
    ]
}

/// Changes both copies of the classes; kmem:kmalloc is the first of two.
fn schema(file: &mut Broken) {
    for copy in [0, 1] {
        let (offset, _) = file.chunk(b"SCHM", copy);
        let head = |at: usize, len: usize| file.number(offset + 64 + at, len) as usize;
        let (head_len, classes, fields, shapes) = (head(0, 4), head(12, 4), head(16, 4), head(20, 4));
        let [class_len, field_len, shape_len, slot_len] = [32, 34, 36, 38].map(|at| head(at, 2));
        let fields_at = head_len + classes * class_len;
        let slots_at = fields_at + fields * field_len + shapes * shape_len;
        file.body(b"SCHM", copy, fields_at + NODE * field_len + 24, UNKNOWN, 1);
        file.body(b"SCHM", copy, fields_at + BYTES_REQ * field_len + 28, UNKNOWN, 2);
        for shape in 0..3 {
            let slot = |field: usize| slots_at + (shape * FIELDS + field) * slot_len;
            file.body(b"SCHM", copy, slot(GFP_FLAGS) + 2, UNKNOWN, 1);
            file.body(b"SCHM", copy, slot(BYTES_ALLOC), UNKNOWN, 1);
        }
    }
}

/// Expected results: fields of unknown kinds have no value, everything else is unchanged.
fn expected(json: &mut Json) {
    for class in json["classes"].as_array_mut().into_iter().flatten() {
        if class["name"] == "kmem:kmalloc" {
            class["fields"][NODE][4] = json!(UNKNOWN);
            class["fields"][BYTES_REQ][7] = json!(UNKNOWN);
        }
    }
    for event in json["events"].as_array_mut().into_iter().flatten() {
        if event["class"] == "kmem:kmalloc" {
            for name in ["bytes_alloc", "gfp_flags", "node"] {
                event["fields"][name] = Json::Null;
            }
        }
    }
    // A row of counters that is not understood is passed over.
    json["stats"] = json!([json["stats"][1]]);
}

/// The vectors of this case, in all byte orders and word sizes.
pub fn vectors() -> Vec<Vector> {
    let mut out = Vec::new();
    for (big, long) in [(false, 8), (true, 8), (false, 4), (true, 4)] {
        let layout = Layout { padded: true, index: false, ..Layout::plain(big, long) };
        let ops = ops(Maker { big, long });
        let mut file = Broken::new(&ops, layout);
        let (clock, _) = file.chunk(b"CLOK", 0);
        assert_eq!(file.number(clock + 64 + 4, 1), 1, "the unit stands there");
        file.body(b"CLOK", 0, 4, UNKNOWN, 1);
        file.body(b"EVNT", 1, 4, 1 << 20, 4);
        file.header(b"META", 0, 12, 2 | 0x80, 1);
        schema(&mut file);
        let mut json = json::expected(&ops, &file.file, &layout);
        expected(&mut json);
        let name = format!("growth-{}{}", if big { "be" } else { "le" }, long * 8);
        out.push(Vector { name, bytes: file.file.bytes, json: json::text(&json), script: None });
    }
    out
}
