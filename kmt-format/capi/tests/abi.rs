//! The functions of C, called as C calls them.

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use std::path::PathBuf;

use kmt::abi::{
    Item as Step, KMT_ROLE_CALL_SITE, KMT_ROLE_PTR, Kind, Trace as Opened, kmt_bytes, kmt_class,
    kmt_clock_is_ns, kmt_close, kmt_comm, kmt_cpu, kmt_damage_count, kmt_duplicate_call_site, kmt_error_code,
    kmt_error_text, kmt_event_count, kmt_events_close, kmt_events_open, kmt_field_count, kmt_field_kind,
    kmt_field_with, kmt_folded_event_count, kmt_is_big_endian, kmt_is_finished, kmt_is_folded, kmt_long_size,
    kmt_loss_after, kmt_loss_before, kmt_loss_damaged, kmt_loss_is_minimum, kmt_loss_lost, kmt_meaning,
    kmt_name, kmt_next, kmt_number, kmt_pid, kmt_signed, kmt_stack_of, kmt_symbol, kmt_system, kmt_time,
    kmt_unsigned,
};
use kmt_format::kernel::{ByteOrder, FieldKind};
use kmt_format::print::PrintEnv;
use kmt_format::read::{DuplicateKmallocs, Item, StackJoiner, Trace};
use kmt_format::schema::Role;
use kmt_format::write::{Writer, WriterOptions};

/// The vectors: sound files and damaged ones.
fn vectors() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../format-spec/vectors");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "kmt"));
    files.sort();
    // Miri is slow, and one of its checks a file is enough.
    let stride = if cfg!(miri) { 24 } else { 1 };
    let file = |path: PathBuf| (path.display().to_string(), std::fs::read(path).unwrap());
    files.into_iter().step_by(stride).map(file).collect()
}

fn text(pointer: *const c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: what the functions return ends in NUL and is valid until the next call.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn number(of: impl FnOnce(Option<&mut MaybeUninit<u64>>) -> bool) -> Option<u64> {
    let mut value = MaybeUninit::new(77);
    let is_there = of(Some(&mut value));
    // SAFETY: it was set above.
    let value = unsafe { value.assume_init() };
    assert!(is_there || value == 77, "left as it was");
    is_there.then_some(value)
}

/// The file stays as it is as long as the trace is used.
fn open_memory(file: &[u8]) -> Option<Box<Opened>> {
    // SAFETY: as said.
    unsafe { kmt::abi::kmt_open_memory(file.as_ptr(), file.len()) }
}

fn open_with_limits(path: &CStr, limits: &CStr) -> Option<Box<Opened>> {
    // SAFETY: both are strings.
    unsafe { kmt::abi::kmt_open_with_limits(path.as_ptr(), limits.as_ptr()) }
}

/// One line an event or loss, by the functions of C.
fn by_c(file: &[u8]) -> Option<Vec<String>> {
    let trace = open_memory(file)?;
    let mut events = kmt_events_open(Some(&trace)).expect("a trace has events");
    let symbols = open_memory(file).expect("it was opened above");
    // They keep what they need.
    kmt_close(Some(trace));
    let mut lines = Vec::new();
    loop {
        let item = kmt_next(Some(&mut events));
        let on = Some(&*events);
        let cpu = kmt_cpu(on);
        match item {
            Step::Failed => panic!("{}", text(kmt_error_text())),
            Step::End => break,
            Step::Loss => {
                let after = number(|time| kmt_loss_after(on, time));
                let (lost, damaged) = (kmt_loss_lost(on), kmt_loss_damaged(on));
                lines
                    .push(format!("{cpu} lost {lost} {damaged} {} after {after:?}", kmt_loss_is_minimum(on)));
            }
            Step::Event => {
                let fields = (0..kmt_field_count(on) as i32).map(|field| {
                    let mut size = MaybeUninit::new(0);
                    let bytes = kmt_bytes(on, field, Some(&mut size));
                    // SAFETY: it was set above, and again by the call; the bytes are there until `kmt_next`.
                    let bytes = (!bytes.is_null())
                        .then(|| unsafe { core::slice::from_raw_parts(bytes, size.assume_init()) });
                    let mut name = [0; 64];
                    // SAFETY: a buffer of that size.
                    unsafe { kmt::abi::kmt_field_name(on, field, name.as_mut_ptr(), name.len()) };
                    let name = text(name.as_ptr());
                    let kind = kmt_field_kind(on, field);
                    let mut signed = MaybeUninit::new(0);
                    // SAFETY: it was set above.
                    let signed =
                        kmt_signed(on, field, Some(&mut signed)).then(|| unsafe { signed.assume_init() });
                    format!(
                        " {name}={kind:?} {:?} {signed:?} {bytes:?}",
                        number(|v| kmt_unsigned(on, field, v))
                    )
                });
                let head = format!("{cpu} {} {}:{}", kmt_time(on), text(kmt_system(on)), text(kmt_name(on)));
                let (mut stack, of) = ([0; 64], kmt_stack_of(on));
                // SAFETY: an array of that length.
                let frames = unsafe { kmt::abi::kmt_stack(on, stack.as_mut_ptr(), stack.len()) };
                let stack = stack.get(..frames).unwrap_or(&stack);
                let fields = fields.collect::<String>();
                let mut symbol = [0; 200];
                let site = number(|v| kmt_unsigned(on, kmt_field_with(on, KMT_ROLE_CALL_SITE), v));
                // SAFETY: a buffer of that size.
                let site = site.map(|site| unsafe {
                    kmt_symbol(Some(&symbols), site, symbol.as_mut_ptr(), symbol.len())
                });
                let pid = kmt_pid(on);
                let first = number(|v| kmt_duplicate_call_site(on, v));
                let comm = kmt_comm(Some(&mut events));
                let comm = if comm.is_null() { String::new() } else { text(comm) };
                let symbol = text(symbol.as_ptr());
                lines.push(format!(
                    "{head}{fields} {comm}-{pid} {symbol} {site:?} first {first:?} stack {frames} {stack:x?} of {of}"
                ));
            }
        }
    }
    kmt_events_close(Some(events));
    Some(lines)
}

/// The same by kmt-format.
fn by_rust(file: &[u8]) -> Option<Vec<String>> {
    let trace = Trace::open(file).ok()?;
    let header = trace.header();
    let names = PrintEnv::new(header.order, header.long_size).with_symbols(trace.symbols());
    let (mut lines, mut joiner, mut number) = (Vec::new(), StackJoiner::default(), 0);
    let mut duplicates = DuplicateKmallocs::new(&trace);
    for item in trace.items() {
        let event = match item {
            Item::Event(event) => event,
            Item::Loss(gap) => {
                joiner.gap(gap.cpu);
                let (lost, damaged, after) = (gap.loss.counted, gap.events_damaged, gap.after);
                let is_minimum = gap.loss.uncounted || gap.loss.damaged_input;
                lines.push(format!("{} lost {lost} {damaged} {is_minimum} after {after:?}", gap.cpu));
                continue;
            }
            _ => unreachable!("there are two kinds"),
        };
        number += 1;
        let fields = event.class().fields.iter().enumerate().map(|(index, field)| {
            let is_text = field.kind != FieldKind::Scalar && field.is_text();
            let bytes = if is_text { event.text(index) } else { event.bytes(index) };
            let kind = match field.kind {
                FieldKind::Scalar if field.signed => Kind::Signed,
                FieldKind::Scalar => Kind::Unsigned,
                _ if field.is_text() => Kind::Text,
                _ => Kind::Bytes,
            };
            let (unsigned, signed) = (event.uint(index), event.uint(index).map(|n| n as i64));
            format!(" {}={kind:?} {unsigned:?} {signed:?} {bytes:?}", field.name)
        });
        let class = event.class();
        let head = format!("{} {} {}:{}", event.cpu(), event.time(), class.system, class.name);
        let (fields, of) = (fields.collect::<String>(), joiner.see(&event, number).unwrap_or(0));
        let stack: Vec<u64> = event.stack().into_iter().flat_map(|s| s.addresses()).collect();
        let (frames, pid) = (stack.len(), event.pid());
        let first = duplicates.see(&event, event.uint_with(Role::CALL_SITE)).flatten();
        let comm = event.comm().map(String::from_utf8_lossy).unwrap_or_default();
        let site = event.uint_with(Role::CALL_SITE).map(|site| names.symbol_with_offset(site));
        let symbol =
            site.as_deref().map(|s| &s[..s.len().min(199)]).map(String::from_utf8_lossy).unwrap_or_default();
        let site = site.as_ref().map(Vec::len);
        lines.push(format!(
            "{head}{fields} {comm}-{pid} {symbol} {site:?} first {first:?} stack {frames} {stack:x?} of {of}"
        ));
    }
    Some(lines)
}

#[test]
fn events_of_every_vector_are_those_of_the_library() {
    let (mut opened, mut events, mut losses, mut stacks) = (0, 0, 0, 0);
    for (name, file) in vectors() {
        let found = by_c(&file);
        assert_eq!(found, by_rust(&file), "{name}");
        let lines = found.unwrap_or_default();
        opened += usize::from(!lines.is_empty());
        losses += lines.iter().filter(|l| l.contains(" lost ")).count();
        stacks += lines.iter().filter(|l| l.contains("kernel_stack") && !l.ends_with(" of 0")).count();
        events += lines.len();
    }
    if !cfg!(miri) {
        let found = format!("{opened} files, {events} events, {losses} losses, {stacks} stacks");
        assert!(opened > 100 && events > 300 && losses > 10 && stacks > 10, "{found}");
    }
}

/// A file with a kmalloc of 16 KiB, reported at these call sites.
fn reported_at(sites: &[u64]) -> Vec<u8> {
    let format = "name: kmalloc\nID: 11\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:size_t bytes_alloc;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8).page_size(4096)).unwrap();
    writer.add_format("kmem", format).unwrap();
    for (time, site) in (1_000..).zip(sites) {
        let mut record = vec![11, 0, 0, 0, 77, 0, 0, 0];
        let numbers = [*site, 0xffff_8880_0123_4000, 10_000, 16_384];
        record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        writer.add_event(0, time, &record).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn the_second_event_of_a_large_kmalloc_has_the_call_site_of_the_first() {
    let file = reported_at(&[0x111, 0x222, 0x333]);
    let trace = open_memory(&file).unwrap();
    let mut events = kmt_events_open(Some(&trace)).unwrap();
    let mut found = Vec::new();
    while kmt_next(Some(&mut events)) == Step::Event {
        let first = number(|site| kmt_duplicate_call_site(Some(&events), site));
        assert_eq!(kmt_duplicate_call_site(Some(&events), None), first.is_some());
        found.push(first);
    }
    assert_eq!(found, [None, Some(0x111), Some(0x222)]);
    assert!(!kmt_duplicate_call_site(Some(&events), None), "behind the last event");
    kmt_events_close(Some(events));
    kmt_close(Some(trace));
    assert_eq!(by_c(&file), by_rust(&file));
}

#[test]
fn a_file_with_folded_lives_says_so() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../format-spec/vectors");
    for (name, events, folded, minimum) in [
        ("one-le64", 1, None, false),
        ("folded-be32", 3, Some(26 + (1 << 34)), false),
        ("folded-gap-le64", 0, Some(2 * (1 << 34) + 8), true),
        ("invalid-fold-checksum-le64", 3, Some((1 << 34) + 3), true),
    ] {
        let file = std::fs::read(folder.join(name).with_extension("kmt")).unwrap();
        let trace = open_memory(&file).unwrap();
        let mut is_minimum = MaybeUninit::new(!minimum);
        let count = kmt_folded_event_count(Some(&trace), Some(&mut is_minimum));
        // SAFETY: it was set above, and again by the call.
        assert_eq!((count, unsafe { is_minimum.assume_init() }), (folded.unwrap_or(0), minimum), "{name}");
        assert_eq!((kmt_is_folded(Some(&trace)), kmt_event_count(Some(&trace))), (folded.is_some(), events));
        kmt_close(Some(trace));
    }
}

#[test]
fn null_is_allowed_everywhere() {
    assert!(kmt_events_open(None).is_none());
    assert_eq!(kmt_next(None), Step::End);
    assert_eq!((kmt_time(None), kmt_cpu(None), kmt_number(None), kmt_class(None)), (0, 0, 0, u32::MAX));
    assert_eq!((kmt_meaning(None), kmt_pid(None), kmt_stack_of(None)), (0, 0, 0));
    assert_eq!((text(kmt_name(None)), text(kmt_system(None))), (String::new(), String::new()));
    assert!(kmt_comm(None).is_null() && kmt_bytes(None, 0, None).is_null());
    assert_eq!((kmt_loss_lost(None), kmt_loss_damaged(None)), (0, 0));
    assert!(!kmt_duplicate_call_site(None, None));
    assert!(!kmt_loss_is_minimum(None) && !kmt_loss_after(None, None) && !kmt_loss_before(None, None));
    assert_eq!((kmt_field_count(None), kmt_field_with(None, KMT_ROLE_PTR)), (0, -1));
    assert_eq!(kmt_field_kind(None, 0), Kind::None);
    assert!(!kmt_unsigned(None, 0, None) && !kmt_signed(None, 0, None));
    assert_eq!((kmt_event_count(None), kmt_damage_count(None), kmt_long_size(None)), (0, 0, 0));
    assert!(!kmt_is_folded(None));
    assert_eq!(kmt_folded_event_count(None, None), 0);
    assert!(!kmt_is_finished(None) && !kmt_is_big_endian(None) && !kmt_clock_is_ns(None));
    kmt_close(None);
    kmt_events_close(None);
}

#[test]
fn null_is_allowed_for_strings_and_buffers() {
    use kmt::abi::{kmt_attachment, kmt_damage_text, kmt_field_name, kmt_field_named, kmt_meta, kmt_open};
    use kmt::abi::{kmt_open_memory, kmt_stack};
    // SAFETY: NULL, strings, and one length that is refused before the pointer is used.
    unsafe {
        assert_eq!(kmt_stack(None, null_mut(), 9), 0);
        assert_eq!((kmt_field_named(None, c"ptr".as_ptr()), kmt_field_named(None, null())), (-1, -1));
        assert_eq!(kmt_field_name(None, 0, null_mut(), 9), 0);
        assert!(kmt_meta(None, c"x".as_ptr(), None).is_null() && kmt_meta(None, null(), None).is_null());
        assert!(kmt_attachment(None, null(), None).is_null());
        assert_eq!((kmt_symbol(None, 1, null_mut(), 9), kmt_damage_text(None, 0, null_mut(), 9)), (0, 0));
        assert!(kmt_open(null()).is_none());
        assert_eq!(text(kmt_error_code()), "usage");
        assert!(kmt_open_memory(null(), 64).is_none());
        assert!(kmt_open_memory([0u8].as_ptr(), usize::MAX).is_none());
    }
}

#[test]
fn errors_have_a_code_and_a_text() {
    let junk = [b'x'; 200];
    assert!(open_memory(&junk).is_none());
    assert_eq!(text(kmt_error_code()), "not-kmt");
    assert!(text(kmt_error_text()).contains("not a .kmt file"));
    std::thread::spawn(|| assert_eq!(text(kmt_error_text()), "", "each thread has its own")).join().unwrap();
    // What is passed on after an error keeps its text.
    assert!(kmt_events_open(None).is_none());
    assert_eq!(text(kmt_error_code()), "not-kmt");
    let path = c"/nowhere/x.kmt";
    assert!(open_with_limits(path, c"metadata=much").is_none());
    assert_eq!(text(kmt_error_code()), "usage");
    assert!(text(kmt_error_text()).contains("\"metadata=much\" is not a limit"));
    assert!(open_with_limits(path, c" metadata=1  chunks=9 ").is_none());
    assert_eq!(text(kmt_error_code()), "io", "{}", text(kmt_error_text()));
}

#[test]
#[cfg_attr(miri, ignore = "files cannot be mapped there")]
fn files_are_opened_within_limits() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../format-spec/vectors/one-le64.kmt\0");
    let path = CStr::from_bytes_with_nul(path.as_bytes()).unwrap();
    // SAFETY: a string.
    let trace = unsafe { kmt::abi::kmt_open(path.as_ptr()) }.expect("a vector");
    assert_eq!((kmt_event_count(Some(&trace)), kmt_long_size(Some(&trace))), (1, 8));
    kmt_close(Some(trace));
    assert!(open_with_limits(path, c"fields=1").is_none_or(|t| kmt_damage_count(Some(&t)) > 0));
    assert!(open_with_limits(c"/dev/null", c"").is_none(), "empty, and not a regular file");
    assert_eq!(text(kmt_error_code()), "not-kmt");
}
