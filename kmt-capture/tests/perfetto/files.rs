//! Compressed, torn and damaged files.

use std::io::Write as _;

use super::encoder::{Message, all, bundle, kfree, kmalloc, msg, num, packet, system_info};
use super::{converted, refused};

const PTR: u64 = 0xffff_8880_0400_0040;

/// Packets with an event each.
fn packets() -> Vec<Message> {
    let mut out = vec![system_info("6.1.0", "x86_64")];
    out.extend(
        (0..20).map(|at| packet(2, [bundle(at % 2, [kmalloc(10 + 2 * at, PTR), kfree(11 + 2 * at, PTR)])])),
    );
    out
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn each_packing_gives_the_same_events() {
    let plain = converted(&packets().concat());
    assert_eq!((plain.code, plain.lines.len()), (Some(0), 40), "{}", plain.stderr);
    let packed = |pack: &dyn Fn(&[u8]) -> Message| -> Message {
        all(packets().chunks(3).map(|chunk| msg(1, pack(&chunk.concat()))))
    };
    #[cfg_attr(not(feature = "zstd"), allow(unused_mut))]
    let mut files = vec![
        ("gzip", gzip(&packets().concat())),
        ("zlib of the file", zlib(&packets().concat())),
        ("zlib", packed(&|bytes| msg(50, zlib(bytes)))),
        (
            "empty packets and other fields",
            [msg(1, []), packets().concat(), num(2, 7), msg(3, "other")].concat(),
        ),
    ];
    #[cfg(feature = "zstd")]
    files.push(("zstd", packed(&|bytes| msg(133, zstd::encode_all(bytes, 1).unwrap()))));
    for (what, bytes) in files {
        let converted = converted(&bytes);
        assert_eq!(converted.code, Some(0), "{what}: {}", converted.stderr);
        assert!(converted.lines == plain.lines, "{what}: {:?}", converted.lines);
    }
}

#[test]
fn a_torn_file_is_used_up_to_the_damage() {
    let (whole, trace) = (converted(&packets().concat()), packets().concat());
    let torn = converted(&trace[..trace.len() * 2 / 3]);
    assert_eq!(torn.code, Some(3), "{}", torn.stderr);
    assert!(torn.lines.len() > 20 && torn.lines.len() < 40);
    assert!(torn.lines.iter().all(|line| whole.lines.contains(line)));
    assert!(torn.stderr.contains("are left") && torn.stderr.contains("is damaged"), "{}", torn.stderr);
    assert!(
        torn.losses.iter().map(|l| l.0).eq([0, 1]) && torn.losses.iter().all(|l| l.2.damaged_input),
        "{:?}",
        torn.losses
    );
}

#[test]
fn a_damaged_part_does_not_end_the_reading() {
    let good = zlib(&packet(2, [bundle(0, [kmalloc(10, PTR)])]));
    let late = packet(2, [bundle(0, [kfree(20, PTR)])]);
    for (what, bad) in [
        ("decompressing", msg(50, &good[..good.len() - 6])),
        ("compressed packet", msg(50, zlib(&[0x0a, 0x7f, 1]))),
        ("needs", [msg(1, [0x08, 0, 0x12, 0x7f, 1]), num(10, 2)].concat()),
        ("not the number of a field", vec![0]),
    ] {
        let trace = [packet(2, [bundle(0, [kmalloc(10, PTR)])]), msg(1, bad), late.clone()].concat();
        let converted = converted(&trace);
        assert_eq!((converted.code, converted.lines.len()), (Some(3), 2), "{what}: {}", converted.stderr);
        assert!(converted.stderr.contains(what), "{what}: {}", converted.stderr);
        assert!(converted.losses.iter().any(|loss| loss.2.damaged_input), "{what}: {:?}", converted.losses);
    }
}

#[test]
fn limits_are_named() {
    let trace = packets().concat();
    let bomb = [trace.clone(), msg(1, msg(50, zlib(&vec![0; 1 << 20])))].concat();
    for (limit, name) in [("compressed_packet=1K", "compressed_packet"), ("inflated=1K", "inflated")] {
        let folder = super::Folder::new();
        let (code, stderr, _) = folder.run(&bomb, &["--limit", limit]);
        assert_eq!(code, Some(3), "{stderr}");
        assert!(stderr.contains(&format!("--limit {name}=SIZE raises the limit")), "{stderr}");
    }
    let sources = all((0..3).map(|sequence| packet(sequence + 2, [bundle(sequence, [kmalloc(10, PTR)])])));
    let (code, stderr, file) = super::Folder::new().run(&sources, &["--limit", "sequences=2"]);
    let few = super::read(code, stderr, file);
    assert_eq!((few.code, few.lines.len()), (Some(3), 2), "{}", few.stderr);
    assert!(few.stderr.contains("--limit sequences=SIZE raises the limit"), "{}", few.stderr);
    let message = refused(&trace, &["--verbatim"]);
    assert!(message.contains("holds messages, not sub-buffers"), "{message}");
    let message = refused(&trace, &["--instance", "x"]);
    assert!(message.contains("has no instances"), "{message}");
}

#[test]
fn a_text_of_atrace_can_be_compressed() {
    let line = "              sh-2011    [001] d..1.   454.000001: kfree: call_site=f+0x1/0x20 ptr=ffff888004000040\n";
    let text = ["# tracer: nop\n", line, line].concat();
    for title in ["", "capturing trace... done\nTRACE:\n"] {
        let converted = converted(&[title.as_bytes(), &zlib(text.as_bytes())].concat());
        assert_eq!((converted.code, converted.lines.len()), (Some(0), 2), "{}", converted.stderr);
    }
}
