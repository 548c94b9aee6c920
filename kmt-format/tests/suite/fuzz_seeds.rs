//! The checks of the fuzz targets, over their seeds and over the conformance vectors.
#![cfg(feature = "zstd")]

use std::fs;

use crate::support as second;
use crate::support::seeds::{folder, seeds};

#[path = "../../../fuzz/src/codec.rs"]
mod codec;
#[path = "../../../fuzz/src/cutting.rs"]
mod cutting;
#[path = "../../../fuzz/src/differential.rs"]
mod differential;
#[path = "../../../fuzz/src/event_format.rs"]
mod event_format;
#[path = "../../../fuzz/src/index.rs"]
mod index;
#[path = "../../../fuzz/src/kernel_text.rs"]
mod kernel_text;
#[path = "../../../fuzz/src/look.rs"]
mod look;
#[path = "../../../fuzz/src/open.rs"]
mod open;
#[path = "../../../fuzz/src/open_repaired.rs"]
mod open_repaired;
#[path = "../../../fuzz/src/print_fmt.rs"]
mod print_fmt;
#[path = "../../../fuzz/src/recover.rs"]
mod recover;
#[path = "../../../fuzz/src/repair.rs"]
mod repair;
#[path = "../../../fuzz/src/round_trip.rs"]
mod round_trip;
#[path = "../../../fuzz/src/story.rs"]
mod story;
#[path = "../../../fuzz/src/subbuffer.rs"]
mod subbuffer;

/// The vectors, and each cut in the middle and with a byte flipped.
fn vectors(run: fn(&[u8])) {
    for file in folder("format-spec/vectors").iter().filter(|f| f.extension().is_some_and(|e| e == "kmt")) {
        let mut bytes = fs::read(file).unwrap();
        run(&bytes);
        run(&bytes[..bytes.len() / 2]);
        let middle = bytes.len() / 3;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0x40;
        }
        run(&bytes);
    }
}

#[test]
fn seeds_of_event_format() {
    seeds("event_format", event_format::run);
}

#[test]
fn seeds_of_kernel_text() {
    seeds("kernel_text", kernel_text::run);
}

#[test]
fn seeds_of_print_fmt() {
    seeds("print_fmt", print_fmt::run);
}

#[test]
fn seeds_of_subbuffer() {
    seeds("subbuffer", subbuffer::run);
}

#[test]
fn seeds_of_round_trip() {
    seeds("round_trip", round_trip::run);
}

#[test]
fn vectors_through_open() {
    vectors(open::run);
}

#[test]
fn vectors_through_open_repaired() {
    vectors(open_repaired::run);
}

#[test]
fn vectors_through_cutting() {
    vectors(cutting::run);
}

#[test]
fn vectors_through_differential() {
    vectors(differential::run);
}

/// Kinds of chunks are shown alike by both readers.
#[test]
fn a_kind_of_chunk_beyond_ascii_through_differential() {
    let input = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/kind-beyond-ascii.kmt");
    differential::run(&fs::read(input).unwrap());
}

#[test]
fn vectors_through_index() {
    vectors(index::run);
}

#[test]
fn vectors_through_recover() {
    vectors(recover::run);
}

#[test]
fn vectors_through_codec() {
    vectors(codec::run);
}
