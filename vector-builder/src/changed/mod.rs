//! Sound files that no writer of these vectors makes: built, and then changed by hand.

mod arrays;
pub(crate) mod blocks;
mod definitions;
mod edges;
mod heads;
mod lengths;
mod not_checked;
mod numbers;
mod roles;
mod rows;
mod scalars;
mod slots;
mod stored;
pub(crate) mod sub_buffers;
pub(crate) mod symbols;
mod tables;
mod waiting;
mod words;

pub(crate) use lengths::set_class_65;
pub(crate) use scalars::put_character;
use serde_json::Value as Json;

use crate::Vector;
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::json;
use crate::model::{Layout, Op};

/// A changed file, and what a reader finds in it.
type Changed = (Broken, Json);

/// A file, and what a reader finds in it before it is changed.
fn built(ops: &[Op], layout: Layout) -> Changed {
    let file = Broken::new(ops, layout);
    let expected = json::expected(ops, &file.file, &layout);
    (file, expected)
}

/// Several frames of Zstandard in each body.
fn frames(m: Maker, layout: Layout) -> Changed {
    let ops = cases::many(m);
    let layout = Layout { codec: 2, frames: 3, ..layout };
    let file = Broken::new(&ops, layout);
    let expected = json::expected(&ops, &file.file, &layout);
    (file, expected)
}

/// Those that are built in one byte order and word size.
fn once(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    let layout = Layout { index: false, trailer: false, ..layout };
    [heads::heads, stored::stored, rows::rows, definitions::definitions]
        .into_iter()
        .flat_map(|group| group(m, layout))
        .collect()
}

/// The vectors; those about numbers in every byte order and word size.
pub fn vectors() -> Vec<Vector> {
    let mut out = Vec::new();
    for (big, long) in [(false, 8), (true, 8), (false, 4), (true, 4)] {
        let (m, layout) = (Maker { big, long }, Layout::plain(big, long));
        let suffix = format!("{}{}", if big { "be" } else { "le" }, long * 8);
        let mut cases: Vec<(&str, Changed)> = vec![
            ("differences", slots::differences(m, layout)),
            ("not-checked", not_checked::not_checked(m, layout)),
        ];
        if (big, long) == (false, 8) || (big, long) == (true, 4) {
            cases.push(("epochs-stay", numbers::epochs(m, layout, false)));
            cases.push(("epochs-behind", numbers::epochs(m, layout, true)));
            cases.push(("gaps", numbers::gaps(m, layout)));
            cases.push(("words", words::words(m, layout)));
            cases.push(("many-frames-zstd", frames(m, layout)));
            cases.push(("short-prefixes", edges::short_prefixes(m, layout)));
            cases.push(("alike", edges::alike(m, layout)));
            cases.push(("array-at-id", edges::array_at_id(m, layout)));
            cases.push(("last-event-number", edges::last_event_number(m, layout)));
            cases.push(("stack-elements", edges::stack_elements(m, layout)));
            cases.push(("no-sub-buffers", edges::no_sub_buffers(m, layout)));
            cases.push(("ignored-flags", edges::ignored_flags(m, layout)));
            cases.push(("behind-nul", edges::behind_nul(m, layout)));
            cases.push(("overwritten-alone", edges::overwritten_alone(m, layout)));
            cases.push(("roles-of-stacks", roles::roles_of_stacks(m, layout)));
            cases.push(("roles-in-sub-buffers", roles::roles_in_sub_buffers(m, layout)));
            cases.push(("common-unknown", roles::common_unknown(m, layout)));
            cases.push(("cut-arrays", arrays::cut_arrays(m, layout)));
            cases.push(("narrow", scalars::narrow(m, layout)));
            cases.push(("bases", scalars::bases(m, layout)));
            cases.push(("print-fmt-character", scalars::character(m, layout)));
            cases.push(("alike-slots", scalars::alike_slots(m, layout)));
            cases.push(("steps", scalars::steps(m, layout)));
            cases.push(("long-numbers", symbols::long_numbers(m, layout)));
            cases.push(("long-names", symbols::long_names(m, layout)));
            cases.push(("nul-inside", arrays::nul_inside(m, layout)));
            cases.push(("locator-sizes", arrays::locator_sizes(layout)));
            cases.push(("record-of-4", edges::record_of_4(m, layout)));
            cases.push(("odd-heads", lengths::odd_heads(m, layout)));
            cases.push(("class-65", lengths::class_65(m, layout)));
            cases.push(("commit-bits", lengths::commit_bits(m, layout)));
            cases.push(("depth-unknown", roles::depth_unknown(layout)));
        }
        if (big, long) == (false, 8) {
            cases.extend(once(m, layout));
        }
        for (name, (file, expected)) in cases {
            let name = format!("{name}-{suffix}");
            out.push(Vector { name, bytes: file.file.bytes, json: json::text(&expected), script: None });
        }
    }
    let (m, layout) = (Maker { big: false, long: 8 }, Layout { index: false, ..Layout::plain(false, 8) });
    for (name, (file, expected)) in [blocks::cases, tables::cases, waiting::cases, sub_buffers::cases]
        .into_iter()
        .flat_map(|group| group(m, layout))
    {
        let name = format!("{name}-le64");
        out.push(Vector { name, bytes: file.file.bytes, json: json::text(&expected), script: None });
    }
    out
}
