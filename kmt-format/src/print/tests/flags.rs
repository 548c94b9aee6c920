//! Flags of a value by the list of its `print fmt`, on formats of real kernels.

use std::path::Path;

use crate::kernel::ByteOrder;
use crate::print::{EventText, PrintEnv};
use crate::read::Trace;
use crate::write::{Writer, WriterOptions};

/// Text of the allocation flags of a page, and the names of all of them, with the format of a capture.
fn names(capture: &str, gfp_flags: u64) -> (String, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(capture);
    let format = folder.join("tracefs/events/kmem/mm_page_alloc/format");
    let mut writer =
        Writer::new(WriterOptions::new(ByteOrder::Little, 8).trace_uuid([0; 16]).page_size(4096)).unwrap();
    let id = writer.add_format("kmem", &std::fs::read_to_string(format).unwrap()).unwrap();
    let mut record = id.to_le_bytes().to_vec();
    record.extend([0; 6]);
    [7, 0, gfp_flags, 0].iter().for_each(|word: &u64| record.extend(word.to_le_bytes()));
    writer.add_event(0, 1_000, &record).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let event = trace.events().unwrap().next().unwrap();
    let env = PrintEnv::new(ByteOrder::Little, 8);
    let text = EventText::new(event.class(), &env);
    let field = |name: &str| event.class().fields.iter().position(|field| field.name == name).unwrap();
    assert!(text.field_flags(field("pfn"), 7).is_none(), "a number");
    let all = text.field_flags(field("gfp_flags"), gfp_flags).unwrap();
    let all = all.map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
    (String::from_utf8(text.field_text(field("gfp_flags"), &event, &env).unwrap()).unwrap(), all)
}

#[test]
fn flags_are_known_where_the_text_has_another_name_for_them() {
    for (capture, gfp_flags, text, flag, is_set) in [
        // GFP_NOWAIT has __GFP_NOWARN from 6.8 on.
        ("x86_64-6.12", 0x44_28c0, "GFP_NOWAIT|__GFP_IO|__GFP_FS|__GFP_COMP|__GFP_ACCOUNT", "NOWARN", true),
        ("x86_64-6.1", 0x44_08c0, "GFP_NOWAIT|__GFP_IO|__GFP_FS|__GFP_COMP|__GFP_ACCOUNT", "NOWARN", false),
        ("x86_64-6.12", 0x10_0cca, "GFP_HIGHUSER_MOVABLE", "HARDWALL", true),
        ("x86_64-6.12", 0x10_0cca, "GFP_HIGHUSER_MOVABLE", "ZERO", false),
    ] {
        let (found, names) = names(capture, gfp_flags);
        assert_eq!(found, text, "{capture} {gfp_flags:#x}");
        let flag = format!("__GFP_{flag}");
        assert!(!found.contains(&flag), "{capture} {gfp_flags:#x}");
        assert_eq!(names.contains(&flag), is_set, "{capture} {gfp_flags:#x}: {names:?}");
    }
    let (_, names) = names("x86_64-6.12", 0);
    assert_eq!(names, Vec::<String>::new());
}
