//! The memory for metadata is counted for rows that are right: a wrong row costs its chunk, not the file.

use crate::support::model;
use crate::support::stamp::stamp;
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;
use kmt_format::tables::SourceLine;
use kmt_format::write::{Writer, WriterOptions};
use kmt_format::{Compression, ErrorKind, Limits};

/// A file of two events of two classes. Its classes stand in front of the events, and once more at the end.
fn file_of(compression: Compression) -> Vec<u8> {
    let options = WriterOptions::new(ByteOrder::Little, 8).compression(compression);
    let mut writer = Writer::new(options).unwrap();
    for class in &model::CLASSES[..2] {
        let id = writer.add_format(class.system, &class.format_text(8)).unwrap();
        writer.declare(id).unwrap();
        let mut record = [0; 256];
        record[..2].copy_from_slice(&id.to_le_bytes());
        writer.add_event(0, 1, &record).unwrap();
    }
    writer.finish().unwrap()
}

/// The file after a change to its first schema chunk, header included; its checksums are right.
fn with_schema(mut file: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let at = Trace::open(&file).unwrap().chunks().find(|c| c.kind.0 == *b"SCHM").unwrap().offset as usize;
    change(&mut file[at..]);
    stamp(&mut file, at);
    file
}

/// Offsets in a schema chunk of the lengths of the strings of its first class and its first field.
fn string_lengths(chunk: &[u8]) -> [usize; 6] {
    let number = |at: usize, len: usize| ByteOrder::Little.uint(&chunk[64 + at..64 + at + len]) as usize;
    let class = 64 + number(0, 4);
    let field = class + number(12, 4) * number(32, 2);
    [class + 16, class + 24, class + 32, class + 40, field + 4, field + 12]
}

/// Opens a file that must not be refused; its one damage, classes and events.
fn read(file: &[u8], limits: Limits, what: &str) -> (String, usize, usize) {
    let trace = Trace::builder().limits(limits).open(file);
    let trace = trace.unwrap_or_else(|e| panic!("{what}: the file is refused: {e}"));
    let codes: Vec<&str> = trace.damages().iter().map(|d| d.error.code()).collect();
    let mut merge = trace.merge();
    let mut events = 0;
    while let Some(run) = merge.next_run() {
        events += run.range.len();
    }
    (codes.join(" "), trace.schema().classes().count(), events)
}

#[test]
fn a_wrong_length_of_a_string_costs_only_its_chunk() {
    let file = file_of(Compression::None);
    for limits in [Limits::default(), Limits::default().metadata(1 << 20)] {
        for (string, bits) in (0..6).flat_map(|s| (16..32).map(move |bits| (s, bits))) {
            let wrong = with_schema(file.clone(), |chunk| {
                let at = string_lengths(chunk)[string];
                chunk[at..at + 4].copy_from_slice(&(1u32 << bits).to_le_bytes());
            });
            let what = format!("string {string} of 2^{bits} bytes");
            assert_eq!(read(&wrong, limits, &what), ("malformed".to_owned(), 2, 2), "{what}");
        }
    }
}

/// A byte of LZ4 makes at most 255 bytes, four bytes of Zstandard at most 128 KiB.
#[test]
fn a_decoded_length_that_no_codec_makes_costs_only_its_chunk() {
    let limits = Limits::default().metadata(1 << 20);
    for compression in [Compression::Lz4, Compression::Zstd].into_iter().filter(|c| c.is_available()) {
        let wrong = with_schema(file_of(compression), |chunk| {
            assert_ne!(chunk[13], 0, "the chunk has a codec");
            chunk[32..40].copy_from_slice(&(250u64 << 20).to_le_bytes());
        });
        let what = format!("{compression:?}");
        assert_eq!(read(&wrong, limits, &what), ("codec".to_owned(), 2, 2), "{what}");
    }
}

/// The checksum comes first: the length of a damaged body is not counted.
#[test]
fn a_damaged_body_is_not_counted() {
    let limits = Limits::default().metadata(1 << 20);
    let mut wrong = with_schema(file_of(Compression::Lz4), |chunk| {
        chunk[32..40].copy_from_slice(&(1u64 << 21).to_le_bytes());
    });
    let at = wrong.windows(4).position(|w| w == b"SCHM").unwrap() - 8;
    wrong[at + 70] ^= 1;
    assert_eq!(read(&wrong, limits, "damaged"), ("checksum".to_owned(), 2, 2));
}

fn lines(count: u64, compression: Compression) -> Vec<u8> {
    let options = WriterOptions::new(ByteOrder::Little, 8).compression(compression);
    let mut writer = Writer::new(options).unwrap();
    let function = [b'f'; 4096];
    let line = |address| {
        let mut line = SourceLine::new(address);
        line.function = function.as_slice().into();
        line
    };
    writer.add_lines(&(0..count).map(line).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap()
}

/// Every row of a table may name the same text, which readers work through for each row. Where the body was encoded,
/// each has a copy of it.
#[test]
fn shared_texts_of_a_table_count_for_each_row() {
    let limits = Limits::default().metadata(1 << 20);
    let open = |file: &[u8]| {
        let trace = Trace::builder().limits(limits).open(file);
        trace.map(|t| t.metadata().lines.len()).map_err(|e| e.kind().clone())
    };
    for compression in [Compression::None, Compression::Lz4] {
        assert_eq!(open(&lines(100, compression)), Ok(100));
        let refused = open(&lines(1_000, compression));
        assert!(matches!(refused, Err(ErrorKind::LimitExceeded { name: "metadata", .. })), "{refused:?}");
    }
}
