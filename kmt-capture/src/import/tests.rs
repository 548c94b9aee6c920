//! Files that say the same thing over and over, or hold far more than they weigh.

use super::perf_data::{Item, PerfData, Rounds};
use super::trace_dat::TraceDat;
use super::*;

const CPUS: u32 = 4096;

fn number(out: &mut Vec<u8>, value: u64, size: usize) {
    out.extend_from_slice(&value.to_le_bytes()[..size]);
}

fn start(version: &[u8]) -> Vec<u8> {
    let mut out = [tracing_data::MAGIC, version, &[0, 0, 8]].concat();
    number(&mut out, 4096, 4);
    out
}

/// Version 6: formats, kallsyms and the like are empty, and that many buffers are described by the same bytes.
fn version_6(buffers: usize, cpus: u32) -> Vec<u8> {
    let mut out = start(b"6");
    for name in [&b"header_page\0"[..], b"header_event\0"] {
        out.extend_from_slice(name);
        number(&mut out, 0, 8);
    }
    // Formats of ftrace, systems, kallsyms, printk_formats, saved_cmdlines.
    out.extend_from_slice(&[0; 4 * 4 + 8]);
    number(&mut out, cpus.into(), 4);
    out.extend_from_slice(b"options  \0");
    let top = out.len() + buffers * 16 + 2;
    for _ in 0..buffers {
        number(&mut out, 3, 2);
        number(&mut out, 10, 4);
        number(&mut out, top as u64, 8);
        out.extend_from_slice(b"x\0");
    }
    number(&mut out, 0, 2);
    out.extend_from_slice(b"flyrecord\0");
    let data = out.len() + cpus as usize * 16;
    for _ in 0..cpus {
        number(&mut out, data as u64, 8);
        number(&mut out, 64, 8);
    }
    out.resize(data + 64, 0);
    out
}

#[test]
fn buffers_that_share_their_description_are_counted() {
    let open = |buffers| {
        TraceDat::open(&version_6(buffers, CPUS), 1 << 20, Bounds::default()).map(|file| file.instances.len())
    };
    assert_eq!(open(2), Ok(3));
    let fault = open(1000).unwrap_err();
    assert!(fault.what.contains("more than fit into the file"), "{fault}");
}

#[test]
fn data_belong_to_one_cpu() {
    let (one, two) = (version_6(0, 1), version_6(0, 2));
    assert_eq!(
        TraceDat::open(&one, 1 << 20, Bounds::default()).unwrap().instances[0].check_overlaps(),
        Ok(())
    );
    let fault =
        TraceDat::open(&two, 1 << 20, Bounds::default()).unwrap().instances[0].check_overlaps().unwrap_err();
    assert_eq!(fault.what, "the data of CPU 0 and of CPU 1 overlap");
}

/// Version 7 with one section of `id`, and this number of options that name it.
fn version_7(id: u16, section: &[u8], options: usize) -> Vec<u8> {
    let mut out = start(b"7");
    out.extend_from_slice(b"none\x001\0");
    let at = out.len() + 8;
    number(&mut out, (at + 16 + section.len()) as u64, 8);
    for (id, body) in [(id, section.to_vec()), (0, Vec::new())] {
        number(&mut out, id.into(), 8);
        let mut body = body;
        if id == 0 {
            for _ in 0..options {
                number(&mut body, 20, 2);
                number(&mut body, 8, 4);
                number(&mut body, at as u64, 8);
            }
        }
        number(&mut out, body.len() as u64, 8);
        out.extend_from_slice(&body);
    }
    out
}

#[test]
fn a_section_costs_each_time_it_is_named() {
    let mut section = Vec::new();
    number(&mut section, 10_000, 4);
    section.resize(10_004, b'x');
    let fault = |options| {
        TraceDat::open(&version_7(20, &section, options), 4 << 20, Bounds::default()).unwrap_err().what
    };
    assert!(fault(10).contains("ends without a buffer"), "{}", fault(10));
    assert!(fault(200).contains("sections have more than 1048576 bytes"), "{}", fault(200));
    assert!(fault(200).contains("--limit inflated=SIZE"));
}

#[test]
fn a_part_that_does_not_belong_has_no_room() {
    for (id, size, line) in [(19, 4, "1 t a\n"), (21, 8, "1 a\n"), (25, 4, "a 1 0x1\n")] {
        let text = line.repeat(if id == 19 { 2_100_000 } else { 1_100_000 });
        let mut section = Vec::new();
        number(&mut section, text.len() as u64, size);
        section.extend_from_slice(text.as_bytes());
        let fault = TraceDat::open(&version_7(id, &section, 0), u64::MAX, Bounds::default()).unwrap_err();
        assert!(fault.what.contains("ends without"), "nothing names it: {fault}");
        let mut file = version_7(id, &section, 1);
        // The option names kind 20; make it this one.
        let at = file.len() - 14;
        file[at] = id as u8;
        let fault = TraceDat::open(&file, u64::MAX, Bounds::default()).unwrap_err();
        let name = match id {
            19 => "kallsyms",
            21 => "saved_cmdlines",
            _ => "modules",
        };
        assert!(fault.what.contains("more than"), "{id}: {fault}");
        assert!(fault.what.contains(&format!("--limit {name}=SIZE raises the limit")), "{fault}");
        let fault = TraceDat::open(&file, u64::MAX, with(name, 1 << 30)).unwrap_err();
        assert!(fault.what.contains("ends without"), "raised: {fault}");
    }
}

/// Those of a file, one raised or lowered.
fn with(name: &str, value: u64) -> Bounds {
    let mut bounds = Bounds::default();
    assert!(bounds.set(name, value));
    bounds
}

#[test]
fn what_exceeds_a_bound_names_it() {
    let is_named = |fault: &ImportError, name: &str| {
        assert!(fault.what.contains("more than"), "{fault}");
        assert!(fault.what.contains(&format!("--limit {name}=SIZE raises the limit")), "{name}: {fault}");
    };
    // One format of 100 bytes, and nothing else.
    let mut formats = Vec::new();
    number(&mut formats, 1, 4);
    number(&mut formats, 100, 8);
    formats.resize(4 + 8 + 100, b'x');
    let mut file = version_7(17, &formats, 1);
    let at = file.len() - 14;
    file[at] = 17;
    let open = |bounds| TraceDat::open(&file, u64::MAX, bounds).unwrap_err();
    is_named(&open(with("formats", 99)), "formats");
    assert!(open(with("formats", 100 + "ftrace".len() as u64)).what.contains("ends without"));
    // The name of the system counts with each of its formats.
    let mut formats = Vec::new();
    number(&mut formats, 1, 4);
    formats.extend_from_slice(&[b's'; 100]);
    formats.push(0);
    number(&mut formats, 2, 4);
    formats.resize(formats.len() + 2 * 8, 0);
    let mut system = version_7(18, &formats, 1);
    let at = system.len() - 14;
    system[at] = 18;
    let of_system = |bytes| TraceDat::open(&system, u64::MAX, with("formats", bytes)).unwrap_err();
    is_named(&of_system(199), "formats");
    assert!(of_system(200).what.contains("ends without"));
    is_named(&open(with("options", 0)), "options");
    let v6 = version_6(4, 1);
    let v6 = |options| TraceDat::open(&v6, 1 << 20, with("options", options)).map(|_| ());
    is_named(&v6(3).unwrap_err(), "options");
    assert_eq!(v6(5), Ok(()));
    let perf_of = |ids| PerfData::open(&perf(2, 64, &record(68, b"")), with("ids", ids)).map(|_| ());
    is_named(&perf_of(15).unwrap_err(), "ids");
    assert_eq!(perf_of(16), Ok(()));
    let codec = Codec::named("zlib", 0).unwrap().unwrap();
    is_named(&codec.inflate(&[], 101, 100, 0).unwrap_err(), "compressed_part");
}

const HEADER_LEN: u64 = 104;

/// A file of perf: attributes whose ids are `ids` bytes at the start of the file, and records.
fn perf(attrs: usize, ids: u64, records: &[u8]) -> Vec<u8> {
    let mut out = b"PERFILE2".to_vec();
    let attrs_len = attrs as u64 * 128;
    let data = HEADER_LEN + attrs_len;
    for word in [HEADER_LEN, 128, HEADER_LEN, attrs_len, data, records.len() as u64, 0, 0, 0, 0, 0, 0] {
        number(&mut out, word, 8);
    }
    for _ in 0..attrs {
        let start = out.len();
        number(&mut out, 2 | 112 << 32, 8);
        // Type, period, what samples hold (time), what counts hold, flags: all records have a trailer.
        for word in [100, 1, 1 << 2, 0, 1 << 18] {
            number(&mut out, word, 8);
        }
        out.resize(start + 112, 0);
        number(&mut out, 0, 8);
        number(&mut out, ids, 8);
    }
    out.extend_from_slice(records);
    out
}

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    number(&mut out, kind.into(), 4);
    number(&mut out, 0, 2);
    number(&mut out, 8 + body.len() as u64, 2);
    out.extend_from_slice(body);
    out
}

#[test]
fn attributes_that_share_their_ids_are_counted() {
    assert!(PerfData::open(&perf(2, 64, &record(68, b"")), Bounds::default()).is_ok());
    let fault = PerfData::open(&perf(1500, 8000, &record(68, b"")), Bounds::default()).unwrap_err();
    assert!(fault.what.contains("more than 1048576 ids"), "{fault}");
}

#[test]
fn names_of_tasks_are_as_long_as_the_kernels() {
    let comm = [&[7, 0, 0, 0, 7, 0, 0, 0][..], &[b'x'; 1000], &[0; 8], &[1; 8]].concat();
    let bytes = perf(1, 0, &record(3, &comm));
    let mut names = Vec::new();
    let file = PerfData::open(&bytes, Bounds::default()).unwrap();
    let read = Rounds::new(&file).read::<()>(&mut |item| {
        if let Item::Comm { comm, .. } = item {
            names.push(comm.to_vec());
        }
        Ok(())
    });
    assert_eq!(read, Ok(None));
    assert_eq!(names, [vec![b'x'; 16]]);
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_records_have_a_limit_together() {
    let comm = record(3, &[[7; 8], *b"comm\0\0\0\0", [1; 8]].concat()).repeat(100_000);
    let packed = zstd::stream::encode_all(&comm[..], 3).unwrap();
    let bytes = perf(1, 0, &record(81, &packed));
    let read = |inflated_max| {
        let mut file = PerfData::open(&bytes, Bounds::default()).unwrap();
        file.inflated_max = inflated_max;
        Rounds::new(&file).read::<()>(&mut |_| Ok(())).unwrap()
    };
    assert_eq!(read(64 << 20), None);
    let one = |len| {
        let file = PerfData::open(&bytes, with("compressed_record", len)).unwrap();
        Rounds::new(&file).read::<()>(&mut |_| Ok(())).unwrap()
    };
    assert!(one(1 << 20).unwrap().what.contains("--limit compressed_record=SIZE raises the limit"));
    assert_eq!(one(8 << 20), None);
    assert!(read(1 << 20).unwrap().what.contains("more than 1048576 bytes; --limit inflated=SIZE"));
}
