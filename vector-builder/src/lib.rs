//! Makes the conformance vectors of `format-spec/vectors`.
//!
//! Written from the specification alone: it shares no layout with kmt-format, so that a vector and a reader cannot be
//! wrong in the same way. The expected results of a vector are made from its model, not by a reader.

mod broken;
pub mod bytes;
pub mod cases;
pub mod changed;
pub mod classes;
pub mod codec;
pub mod events;
pub mod file;
pub mod folds;
pub mod growth;
pub mod invalid;
pub mod json;
pub mod kernel;
pub mod lookups;
pub mod model;
pub mod odd_classes;
pub mod rows;
pub mod schema;
pub mod tables;

/// A vector: its name, its bytes, and what every reader must find in it.
#[derive(Debug, Clone)]
pub struct Vector {
    /// Name of the files, without ending.
    pub name: String,
    /// The .kmt file.
    pub bytes: Vec<u8>,
    /// The .json file.
    pub json: String,
    /// The calls of a writer that make the same bytes; `None` if the library's writer makes others.
    pub script: Option<(model::Layout, Vec<model::Op>)>,
}

/// All vectors: the sound ones, then those with a defect each.
pub fn vectors() -> Vec<Vector> {
    let mut out = Vec::new();
    for (big, long) in [(false, 8), (true, 8), (false, 4), (true, 4)] {
        for (case, ops) in cases::all(cases::Maker { big, long }) {
            for (variant, layout) in cases::layouts(case) {
                if (layout.big, layout.long) != (big, long) {
                    continue;
                }
                let file = file::build(&ops, layout);
                let json = json::text(&json::expected(&ops, &file, &layout));
                let has_unknown = ops.iter().any(|op| matches!(op, model::Op::Unknown(..)));
                let script = (layout.is_writers() && !has_unknown).then(|| (layout, ops.clone()));
                out.push(Vector { name: format!("{case}-{variant}"), bytes: file.bytes, json, script });
            }
        }
    }
    out.extend(growth::vectors());
    out.extend(lookups::vectors());
    out.extend(changed::vectors());
    out.extend(invalid::vectors());
    out
}
