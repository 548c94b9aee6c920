//! Vectors with one named defect each, and the error that it must give where.

mod bodies;
mod chunks;
mod codecs;
mod copies;
mod definitions;
mod ends;
mod epochs;
mod events;
mod folds;
mod headers;
mod index;
mod index_steps;
mod limits;
mod metadata;
mod order;
mod places;
mod raw;
mod raw_limits;
mod raw_words;
mod recover;
mod recover_codecs;
mod recover_heads;
mod recover_steps;
mod refused;
mod schema;
mod schema_rows;
mod stored;
mod symbols;

use serde_json::json;

use crate::Vector;
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::{Layout, Loss, Op};

/// The error that a reader must return.
enum Expect {
    /// The file is refused.
    Refused(&'static str, u64),
    /// Damage is listed when the file is opened: code and offset.
    Damage(Vec<(&'static str, u64)>),
    /// Nothing is damaged: only events are missing by the count of their numbers.
    Missing,
    /// Damage; whether the index may be used, and the event chunks that then cannot be read, and that cannot be read
    /// without it.
    ByIndex {
        damages: Vec<(&'static str, u64)>,
        errors: Vec<(&'static str, u64)>,
        unreadable: Vec<(&'static str, u64)>,
        used: bool,
    },
    /// An event chunk cannot be read: code and offset.
    Unreadable(&'static str, u64),
    /// Damage, event chunks that cannot be read, and what a recovery makes of the file.
    Recovered(Vec<(&'static str, u64)>, Vec<(&'static str, u64)>, serde_json::Value),
    /// Damage, event chunks and folded lives that cannot be read, and the intervals of folded lives that are missing.
    Folds(Vec<(&'static str, u64)>, Vec<(&'static str, u64)>, u64),
    /// The file is refused, and no recovery makes anything of it.
    NotRecovered(&'static str, u64),
    /// Damage, and event chunks that cannot be read.
    Both(Vec<(&'static str, u64)>, Vec<(&'static str, u64)>),
    /// The same, and which stack belongs to which of the events that can be read.
    Stacks(&'static str, u64, serde_json::Value),
    /// Damage, and the index may not be used.
    NoIndex(Vec<(&'static str, u64)>),
    /// The same as the other one, for a reader with these limits.
    Within(serde_json::Value, Box<Expect>),
    /// Damage, and whether the file is finished.
    Ended(Vec<(&'static str, u64)>, bool),
}

/// Name, file, and what a reader must say of it.
type Defect = (&'static str, Broken, Expect);

/// Groups that are built in one byte order and word size.
const ONCE: [fn(Maker, Layout) -> Vec<Defect>; 10] = [
    headers::headers,
    stored::stored,
    bodies::bodies,
    schema_rows::schema_rows,
    symbols::symbols,
    places::places,
    raw_limits::heads,
    raw_words::words,
    index_steps::steps,
    recover_steps::steps,
];

fn base_ops(m: Maker) -> Vec<Op> {
    let mut ops = cases::metadata(m);
    ops.extend(cases::two_cpus(m));
    ops.extend([Op::Event(4, m.arrays(5, "task", &[1])), Op::Event(4, m.exit(2_200, 3_000, 2_500))]);
    ops.push(Op::Lost(4, Loss { uncounted: true, ..Loss::default() }));
    ops
}

/// All of them: refused files once, the others in both byte orders and word sizes; where a field may end, in all four.
pub fn vectors() -> Vec<Vector> {
    let mut out: Vec<Vector> =
        refused::refused().into_iter().map(|(name, b, e)| vector(name, "le64", &b, &e)).collect();
    for (suffix, big, long) in [("le64", false, 8), ("be32", true, 4)] {
        let (m, layout) = (Maker { big, long }, Layout::plain(big, long));
        let groups = [
            chunks::chunks,
            codecs::codecs,
            ends::ends,
            metadata::metadata,
            schema::schema,
            definitions::definitions,
            copies::copies,
            limits::limits,
            recover::recover,
            recover_codecs::codecs,
            recover_heads::heads,
            events::events,
            folds::folds,
            epochs::epochs,
            raw::raw,
            index::index,
            order::order,
        ];
        for (name, broken, expect) in groups.into_iter().flat_map(|group| group(m, layout)) {
            out.push(vector(name, suffix, &broken, &expect));
        }
    }
    for group in ONCE {
        let found = group(Maker { big: false, long: 8 }, Layout::plain(false, 8)).into_iter();
        out.extend(found.map(|(name, broken, expect)| vector(name, "le64", &broken, &expect)));
    }
    let (name, broken, expect) = metadata::too_many_cpus();
    out.push(vector(name, "le64-lz4", &broken, &expect));
    for (name, broken, expect) in copies::far_copies() {
        out.push(vector(name, "le64", &broken, &expect));
    }
    for (suffix, big, long) in [("le32", false, 4), ("be64", true, 8)] {
        let (m, layout) = (Maker { big, long }, Layout::plain(big, long));
        let found = schema::field_end(m, layout).into_iter();
        out.extend(found.map(|(name, broken, expect)| vector(name, suffix, &broken, &expect)));
    }
    out
}

fn list(damages: &[(&str, u64)]) -> Vec<serde_json::Value> {
    damages.iter().map(|(code, offset)| json!({"code": code, "offset": offset})).collect()
}

impl Expect {
    /// The same for a reader with this limit.
    fn within(name: &str, limit: u64, expect: Self) -> Self {
        Self::Within(json!({name: limit}), Box::new(expect))
    }

    /// Nothing is damaged.
    fn by_index(errors: Vec<(&'static str, u64)>, unreadable: Vec<(&'static str, u64)>, used: bool) -> Self {
        Self::ByIndex { damages: vec![], errors, unreadable, used }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Refused(code, offset) => json!({"error": {"code": code, "offset": offset}}),
            Self::Damage(damages) => json!({"damages": list(damages)}),
            Self::ByIndex { damages, errors, unreadable, used } => {
                json!({"damages": list(damages), "unreadable": list(unreadable), "unreadable_by_index": list(errors), "index_used": used})
            }
            Self::Folds(damages, unreadable, missing) => {
                json!({"damages": list(damages), "unreadable": list(unreadable), "folds_missing": missing})
            }
            Self::Missing => json!({"damages": [], "unreadable": []}),
            Self::Stacks(code, offset, stacks) => {
                json!({"damages": [], "unreadable": list(&[(code, *offset)]), "stacks": stacks})
            }
            Self::NoIndex(damages) => json!({"damages": list(damages), "index_used": false}),
            Self::Ended(damages, finished) => json!({"damages": list(damages), "finished": finished}),
            Self::Recovered(damages, unreadable, made) => {
                json!({"damages": list(damages), "unreadable": list(unreadable), "recovered": made})
            }
            Self::NotRecovered(code, offset) => {
                json!({"error": {"code": code, "offset": offset}, "recovered": null})
            }
            Self::Both(damages, unreadable) => {
                json!({"damages": list(damages), "unreadable": list(unreadable)})
            }
            Self::Unreadable(code, offset) => json!({"damages": [], "unreadable": list(&[(code, *offset)])}),
            Self::Within(limits, expect) => {
                let mut json = expect.json();
                json["limits"] = limits.clone();
                json
            }
        }
    }
}

fn vector(name: &str, suffix: &str, broken: &Broken, expect: &Expect) -> Vector {
    let name = format!("invalid-{name}-{suffix}");
    Vector { name, bytes: broken.file.bytes.clone(), json: format!("{}\n", expect.json()), script: None }
}
