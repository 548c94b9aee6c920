//! The tables of format-spec/ against the code.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::raw;
use crate::schema::{Meaning, Role};
use zerocopy::LittleEndian;

/// Rows of the table under each `### NAME`: offset, size, name.
fn tables() -> HashMap<String, Vec<(usize, usize, String)>> {
    let mut out: HashMap<String, Vec<(usize, usize, String)>> = HashMap::new();
    let mut heading = String::new();
    for line in spec("spec.md").lines() {
        if let Some(name) = line.strip_prefix("### ") {
            heading = name.to_owned();
        } else if line.starts_with("## ") {
            heading.clear();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, offset, size, name, ..] = cells.as_slice() {
            if let (Ok(offset), Ok(size)) = (offset.parse(), size.parse()) {
                out.entry(heading.clone()).or_default().push((offset, size, (*name).to_owned()));
            }
        }
    }
    out
}

fn spec(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec").join(name)).unwrap()
}

/// Structures in the order of the tables, each with its size and its fields.
type Structures = Vec<(&'static str, Vec<(usize, usize, String)>)>;

macro_rules! check {
    ($tables:expr, $name:ident { $($field:ident),* $(,)? }) => {{
        type S = raw::$name<LittleEndian>;
        let mut offsets = vec![$((core::mem::offset_of!(S, $field), stringify!($field))),*];
        offsets.push((size_of::<S>(), ""));
        let code: Vec<(usize, usize, String)> =
            offsets.windows(2).map(|w| (w[0].0, w[1].0 - w[0].0, w[0].1.to_owned())).collect();
        assert_eq!($tables.0.remove(stringify!($name)), Some(code.clone()), stringify!($name));
        $tables.1.push((stringify!($name), code));
    }};
}

#[test]
fn every_table_is_the_code() {
    structures();
}

/// All structures, each compared with its table.
fn structures() -> Structures {
    let mut t = (tables(), Structures::new());
    check!(
        t,
        FileHeader {
            magic,
            bom,
            version_major,
            version_minor,
            header_len,
            incompatible,
            compatible,
            size_short,
            size_int,
            size_long,
            size_long_long,
            size_pointer,
            align_u64,
            page_shift,
            size_user_long,
            reserved_a,
            trace_uuid,
            reserved_b,
            header_crc,
        }
    );
    check!(
        t,
        ChunkHeader {
            sync,
            salt,
            kind,
            flags,
            codec,
            body_version,
            total_len,
            body_len,
            raw_len,
            stream,
            sequence,
            body_crc,
            prefix_len,
            prefix_crc,
            header_crc,
        }
    );
    check!(
        t,
        SchemaHead {
            head_len,
            first_class,
            first_shape,
            class_count,
            field_count,
            shape_count,
            slot_count,
            heap_len,
            class_len,
            field_len,
            shape_len,
            slot_len,
        }
    );
    check!(
        t,
        ClassRow {
            id,
            meaning,
            field_count,
            common_count,
            first_field,
            system,
            name,
            format_text,
            print_fmt,
        }
    );
    check!(
        t,
        FieldRow { name, type_text, offset, size, kind, signed, element_size, reserved, role, reserved_b }
    );
    check!(t, ShapeRow { class, first_slot, descriptor_len, payload_len });
    check!(t, SlotRow { place, stored, transform, base, offset });
    check!(
        t,
        EventsHead {
            head_len,
            loss_flags,
            lost_events,
            t_base,
            t_last,
            first_event,
            record_count,
            descriptor_count,
            context_count,
            epoch_count,
            epochs_offset,
            descriptors_offset,
            contexts_offset,
            records_offset,
            heap_offset,
            heap_len,
            record_stride,
            context_stride,
            reserved,
            classes,
        }
    );
    check!(t, Record64 { time_offset, descriptor, context, value });
    check!(t, Record32 { time_offset, descriptor, context, value });
    check!(t, Epoch { first_record, upper });
    check!(t, ClockHead { head_len, unit, comparable, reserved, name_len });
    check!(
        t,
        SymbolsHead {
            head_len,
            owner_count,
            symbol_count,
            block_count,
            core_start,
            core_end,
            owner_len,
            block_len,
            heap_len,
            reserved
        }
    );
    check!(t, SymbolOwnerRow { base, size, name_offset, name_len });
    check!(t, SymbolBlockRow { address, offset, symbol_count, reserved });
    check!(t, MetaHead { head_len, pair_len, pair_count });
    check!(t, PairHead { key_len, value_len });
    check!(t, AttachmentHead { head_len, name_len, contents_len, time_first, time_last, flags, reserved });
    check!(t, LineRow { address, function, file, line, depth, reserved });
    check!(t, CgroupRow { time, id, pid, hierarchy, path });
    check!(
        t,
        SumsRow {
            time_first,
            time_last,
            call_site,
            events,
            bytes_req,
            bytes_alloc,
            function,
            meaning,
            present,
            reserved,
        }
    );
    check!(t, TaskRow { time, pid, tgid, comm });
    check!(
        t,
        StatsRow {
            cpu,
            taken,
            present,
            reserved,
            entries,
            overrun,
            commit_overrun,
            bytes,
            dropped,
            read,
            oldest_time,
            now_time,
            sub_buffers,
            sub_buffers_damaged,
            discarded,
        }
    );
    check!(
        t,
        SubBuffersHead {
            head_len,
            loss_flags,
            lost_events,
            t_base,
            t_last,
            first_event,
            record_count,
            sub_buffer_len,
            sub_buffer_count,
            timestamp_offset,
            commit_offset,
            commit_size,
            data_offset,
            class_limit,
            classes,
        }
    );
    check!(
        t,
        FoldHead {
            head_len,
            flags,
            number,
            t_begin,
            t_end,
            threshold,
            row_count,
            row_len,
            cpu_count,
            cpu_len,
            bin_count,
            bin_len,
            rows_offset,
            cpus_offset,
            bins_offset,
            events_offset,
            event_count,
        }
    );
    check!(
        t,
        FoldRow {
            alloc,
            free,
            count,
            cross_cpu,
            elsewhere,
            length_sum,
            length_max,
            over_ms,
            over_s,
            first_bin,
            bin_count,
        }
    );
    check!(t, FoldCpu { cpu, reserved, events });
    check!(t, FoldBin { bin, count });
    check!(t, TableHead { head_len, row_len, row_count, heap_len });
    check!(
        t,
        IndexRow {
            offset,
            t_base,
            t_last,
            first_event,
            lost_events,
            record_count,
            loss_flags,
            classes,
            header
        }
    );
    check!(t, Trailer { head_len, chunk_count, file_len, event_count, event_bytes, index_offset });
    assert!(t.0.is_empty(), "tables without a structure: {:?}", t.0.keys());
    t.1
}

/// `format-spec/kmt.h`, made of the code. `KMT_WRITE=1 cargo test -p kmt-format c_header` writes it.
#[test]
fn c_header_is_the_code() {
    let header = c_header(&structures());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/kmt.h");
    if std::env::var_os("KMT_WRITE").is_some() {
        fs::write(&path, &header).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == header, "format-spec/kmt.h is not what the code says");
}

fn c_header(structures: &Structures) -> String {
    let [major, minor] = [raw::VERSION_MAJOR, raw::VERSION_MINOR];
    let mut out = format!(
        "/* The structures of a .kmt file, version {major}.{minor}, as they lie on disk. Made from kmt-format; spec.md says\n\
         \x20* what they mean. Numbers are in the byte order that the file header's byte-order mark tells; nothing is aligned.\n\
         \x20* With KMT_CHECK_LAYOUT the compiler compares sizes and offsets. */\n\
         #ifndef KMT_H\n#define KMT_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n\
         #define KMT_VERSION_MAJOR {major}\n#define KMT_VERSION_MINOR {minor}\n\
         #define KMT_MAGIC \"\\x89KMT\\r\\n\\x1a\\n\"\n#define KMT_BOM 0x{:08x}u\n#define KMT_ALIGNMENT {}\n\n\
         #pragma pack(push, 1)\n\n/* Where a text lies in the heap of its chunk. */\n\
         struct kmt_string_ref {{\n\tuint32_t offset;\n\tuint32_t len;\n}};\n",
        raw::BOM,
        raw::ALIGNMENT
    );
    let mut checks = String::new();
    for (name, fields) in structures {
        let name = snake(name);
        out += &format!("\nstruct kmt_{name} {{\n");
        for (offset, size, field) in fields {
            // Words of C and C++.
            let field = &if matches!(field.as_str(), "signed" | "class") {
                format!("{field}_")
            } else {
                field.clone()
            };
            out += &format!("\t{};\n", c_field(&name, field, *size));
            checks +=
                &format!("_Static_assert(offsetof(struct kmt_{name}, {field}) == {offset}, \"{field}\");\n");
        }
        let len = fields.last().map_or(0, |(offset, size, _)| offset + size);
        checks += &format!("_Static_assert(sizeof(struct kmt_{name}) == {len}, \"{name}\");\n");
        out += "};\n";
    }
    out + &format!("\n#pragma pack(pop)\n\n#ifdef KMT_CHECK_LAYOUT\n{checks}#endif\n\n#endif\n")
}

fn c_field(structure: &str, field: &str, size: usize) -> String {
    let is_text = matches!(
        field,
        "system" | "name" | "format_text" | "print_fmt" | "type_text" | "comm" | "function" | "file" | "path"
    );
    let is_bytes = matches!(field, "magic" | "sync" | "salt" | "trace_uuid")
        || (structure == "chunk_header" && field == "kind");
    match size {
        8 if is_text => format!("struct kmt_string_ref {field}"),
        4 if matches!(field, "pid" | "tgid") => format!("int32_t {field}"),
        1 | 2 | 4 | 8 if !is_bytes => format!("uint{}_t {field}", size * 8),
        _ => format!("uint8_t {field}[{size}]"),
    }
}

/// `Record64` as `record64`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (number, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && number > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Rows of the table under `## TITLE`: the first two cells.
fn registry(title: &str) -> Vec<(String, String)> {
    let text = spec("registry.md");
    let section = text.split("\n## ").find(|s| s.starts_with(title)).unwrap();
    let rows = section.lines().filter(|l| l.starts_with('|')).skip(2);
    rows.map(|l| l.split('|').map(|c| c.trim().to_owned()).collect::<Vec<_>>())
        .map(|cells| (cells[1].clone(), cells[2].clone()))
        .collect()
}

#[test]
fn registry_is_the_code() {
    let kinds = registry("Chunk kinds");
    assert_eq!(kinds.len(), 16);
    for (kind, _) in &kinds {
        assert!(raw::ChunkKind(kind.as_bytes().try_into().unwrap()).is_known(), "{kind}");
    }
    let codecs = registry("Codecs");
    assert_eq!(codecs.last().map(|c| c.0.as_str()), Some(raw::codecs::ZSTD.to_string().as_str()));
    let filters = registry("Filters");
    assert_eq!(filters.last().map(|f| f.0.as_str()), Some(raw::filters::RECORDS.to_string().as_str()));
    let meanings = registry("Meanings of event classes");
    for (number, text) in &meanings {
        for name in text.split([' ', ',']).filter(|w| w.contains(':') && !w.ends_with(':')) {
            let (system, name) = name.split_once(':').unwrap();
            assert_eq!(Meaning::of(system, name).0.to_string(), *number, "{system}:{name}");
        }
    }
    let last =
        |rows: &[(String, String)]| rows.iter().filter_map(|r| r.0.parse::<u16>().ok()).next_back().unwrap();
    assert_eq!(last(&meanings), Meaning::FREE_RCU.0);
    assert_eq!(last(&registry("Roles of fields")), Role::RCU_OBJECT.0);
}

/// Every line of the worked example is in the vector.
#[test]
fn worked_example_is_the_vector() {
    let vector = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors/one-le64.kmt");
    let file = fs::read(vector).unwrap();
    let notes = spec("notes.md");
    let section = notes.split("\n## ").find(|s| s.starts_with("A file, byte by byte")).unwrap();
    let mut lines = 0;
    for line in section.lines().filter(|l| l.starts_with("    ")) {
        let mut words = line.split_whitespace();
        let at: usize = words.next().unwrap().parse().unwrap();
        let is_byte = |w: &&str| w.len() == 2 && w.bytes().all(|b| b.is_ascii_hexdigit());
        let bytes: Vec<u8> = words.take_while(is_byte).map(|w| u8::from_str_radix(w, 16).unwrap()).collect();
        assert!(!bytes.is_empty(), "{line}");
        assert_eq!(file[at..at + bytes.len()], bytes, "{line}");
        lines += 1;
    }
    assert!(lines > 50, "{lines}");
}

/// The limits that the text gives are those of the code.
#[test]
fn limits_are_the_code() {
    let text = spec("spec.md");
    let section = text.split("\n## ").find(|s| s.starts_with("Limits")).unwrap();
    let limits = crate::Limits::default();
    for (name, wanted, value) in [
        ("chunk_len", "1 GiB", limits.chunk_len == 1 << 30),
        ("event_body_len", "64 MiB", limits.event_body_len == 64 << 20),
        ("decoded_len", "256 MiB", limits.decoded_len == 256 << 20),
        ("metadata", "64 MiB and 4 bytes for each byte of the file", limits.metadata == 64 << 20),
        ("events", "64 MiB, plus 16 bytes for each byte of the file", limits.events == 64 << 20),
        ("held_back", "64 MiB", limits.held_back == 64 << 20),
        ("arrays", "4,096 times record_count, plus 16 times the length", limits.arrays == 4096),
        ("records", "2^24", limits.records == 1 << 24),
        ("descriptors", "65,520", limits.descriptors == 65_520),
        ("streams", "16,384", limits.streams == 16_384),
        ("classes", "65,520", limits.classes == 65_520),
        ("shapes", "65,520", limits.shapes == 65_520),
        ("fields", "256", limits.fields == 256),
        ("names", "16,384", limits.names == 16_384),
        ("chunks", "2^32", limits.chunks == 1 << 32),
    ] {
        let row = section.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        let limit = row.split('|').nth(3).unwrap();
        assert!(limit.trim().starts_with(wanted) && value, "{row}");
    }
}
