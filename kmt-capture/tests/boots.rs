//! Saved ring buffers that would make a wrong report: those of two boots, one that is lost, events without a format or without a
//! time. Made of a real capture, whose sub-buffers get other times; and slices of real ones (tests/data).
#![cfg(feature = "convert")]

#[path = "support/folder.rs"]
mod folder;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use folder::copy;
use kmt_format::kernel::{ByteOrder, HeaderPage, SubBuffer, SubBufferItem};
use kmt_format::read::Trace;

const SUB_BUFFER: usize = 4096;
const CPUS: u32 = 4;
/// How much later the first boot is in its own time, in nanoseconds.
const LATER: u64 = 48_000_000_000;

/// CPU, time and record of an event.
type Event = (u32, u64, Vec<u8>);

/// A copy of a capture, removed at the end.
struct Saved(PathBuf);

impl Saved {
    fn new() -> Self {
        Self::of("../kmt-format/tests/data/x86_64-6.1")
    }

    /// A copy of another capture, by its path.
    fn of(path: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kmt-boots-{}-{number}", std::process::id()));
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &folder.join("saved"));
        Self(folder)
    }

    fn tracefs(&self, name: &str) -> PathBuf {
        self.0.join("saved/tracefs").join(name)
    }

    fn raw(&self, cpu: u32) -> PathBuf {
        self.tracefs(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"))
    }

    /// Puts the events of an earlier boot before those of a CPU: the same ones, later in its own time.
    fn add_boot(&self, cpu: u32) {
        let raw = fs::read(self.raw(cpu)).unwrap();
        let mut both = raw.clone();
        for sub_buffer in both.chunks_mut(SUB_BUFFER) {
            let time = u64::from_le_bytes(sub_buffer[..8].try_into().unwrap());
            sub_buffer[..8].copy_from_slice(&(time + LATER).to_le_bytes());
        }
        both.extend(raw);
        fs::write(self.raw(cpu), both).unwrap();
    }

    fn layout(&self) -> HeaderPage {
        HeaderPage::parse(&fs::read_to_string(self.tracefs("events/header_page")).unwrap()).unwrap()
    }

    fn convert(&self, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        command.arg("convert").arg(self.0.join("saved")).arg("-o").arg(self.file()).arg("--force");
        command.args(options).output().unwrap()
    }

    fn file(&self) -> PathBuf {
        self.0.join("out.kmt")
    }

    /// Events of the file that a conversion makes, and its messages.
    fn events(&self, options: &[&str], code: i32) -> (Vec<Event>, String) {
        let output = self.convert(options);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{options:?}: {told}");
        (read(&self.file()), told)
    }

    /// The conversion is refused with all of these words, and leaves no file.
    fn is_refused(&self, words: &[&str]) {
        let output = self.convert(&[]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        words.iter().for_each(|word| assert!(told.contains(word), "{word}: {told}"));
        assert!(!self.file().exists());
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The events of a file, CPU by CPU.
fn read(path: &Path) -> Vec<Event> {
    let bytes = fs::read(path).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let mut events = Vec::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            let mut record = Vec::new();
            event.to_record(&mut record);
            events.push((event.cpu(), event.time(), record));
        }
    }
    events.sort_by_key(|(cpu, ..)| *cpu);
    events
}

fn later(events: &[Event]) -> Vec<Event> {
    events.iter().map(|(cpu, time, record)| (*cpu, time + LATER, record.clone())).collect()
}

#[test]
fn two_boots_are_refused_and_each_side_can_be_converted() {
    let saved = Saved::new();
    let (one, _) = saved.events(&[], 0);
    let (_, told) = saved.events(&["--boot", "last"], 0);
    assert!(told.contains("--boot: all events are of one boot"), "{told}");
    fs::remove_file(saved.file()).unwrap();
    (0..CPUS).for_each(|cpu| saved.add_boot(cpu));
    saved.is_refused(&[
        "cpu0/trace_pipe_raw: the time of CPU 0 steps back from 56.7",
        " s to 8.708",
        "and that of 4 of 4 CPUs: the buffer holds the events of two boots",
        "hint: --boot last",
    ]);
    for raw in [&[][..], &["--verbatim"]] {
        let (last, _) = saved.events(&[&["--boot", "last"], raw].concat(), 0);
        assert!(last == one, "{} of {} events", last.len(), one.len());
        let (first, told) = saved.events(&[&["--boot", "first"], raw].concat(), 0);
        assert!(first == later(&one), "{} of {} events", first.len(), one.len());
        assert!(told.contains("kallsyms and modules are those of a later boot"), "{told}");
    }
    let bytes = fs::read(saved.file()).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(trace.symbols().is_none_or(|table| table.resolve(0xffff_ffff_8100_0000).is_none()));
    assert!(trace.metadata().attachment("modules").is_none());
}

#[test]
fn one_cpu_with_two_boots_is_enough() {
    let saved = Saved::new();
    let (one, _) = saved.events(&[], 0);
    fs::remove_file(saved.file()).unwrap();
    saved.add_boot(1);
    saved.is_refused(&["cpu1/trace_pipe_raw: the time of CPU 1 steps back", "1 of 4 CPUs"]);
    assert!(saved.events(&["--boot", "last"], 0).0 == one);
    let of_one: Vec<Event> = later(&one).into_iter().filter(|(cpu, ..)| *cpu == 1).collect();
    assert!(saved.events(&["--boot", "first"], 0).0 == of_one);
}

/// One sub-buffer with a time that cannot be costs no conversion.
#[test]
fn a_damaged_time_is_not_a_boot() {
    let saved = Saved::new();
    let mut raw = fs::read(saved.raw(2)).unwrap();
    let time = u64::from_le_bytes(raw[SUB_BUFFER..][..8].try_into().unwrap());
    raw[SUB_BUFFER..][..8].copy_from_slice(&(time + 5 * LATER).to_le_bytes());
    fs::write(saved.raw(2), raw).unwrap();
    saved.events(&[], 0);
}

#[test]
fn one_empty_cpu_beside_full_ones_is_noted() {
    let saved = Saved::new();
    let (_, told) = saved.events(&[], 0);
    assert!(!told.contains("has no events"), "{told}");
    fs::write(saved.raw(0), "").unwrap();
    let (_, told) = saved.events(&[], 0);
    assert!(told.contains("note: CPU 0 has no events, and each other CPU has "), "{told}");
    assert!(told.contains("its buffer may be lost"), "{told}");
    fs::write(saved.raw(3), "").unwrap();
    let (_, told) = saved.events(&[], 0);
    assert!(!told.contains("has no events"), "{told}");
}

#[test]
fn a_persistent_buffer_may_have_symbols_of_another_boot() {
    let saved = Saved::new();
    for (text, is_noted) in [("text delta:\t-1234\n", true), ("# Current\n", false)] {
        fs::write(saved.tracefs("last_boot_info"), text).unwrap();
        let (_, told) = saved.events(&[], 0);
        assert_eq!(
            told.contains("note: last_boot_info: the events may be of an earlier boot"),
            is_noted,
            "{told}"
        );
    }
}

#[test]
fn a_missing_format_costs_the_events_of_its_id() {
    let saved = Saved::new();
    let (whole, _) = saved.events(&[], 0);
    let frees = |events: &[Event], id: u16| {
        events.iter().filter(|(.., record)| record[..2] == id.to_le_bytes()).count()
    };
    let format = saved.tracefs("events/kmem/kmem_cache_free/format");
    let text = fs::read_to_string(&format).unwrap();
    let id: u16 = text.lines().find_map(|line| line.strip_prefix("ID: ")).unwrap().parse().unwrap();
    fs::remove_file(&format).unwrap();
    for options in [&[][..], &["--verbatim"]] {
        let (events, told) = saved.events(options, 3);
        assert_eq!(events.len(), whole.len());
        let count = frees(&events, id);
        assert!(count > 10 && count == frees(&whole, id));
        assert!(
            told.contains(&format!("note: no format of id {id} ({count} events): these events")),
            "{told}"
        );
        // Their times, tasks and bytes are there.
        for (event, with_format) in events.iter().zip(&whole) {
            assert_eq!((event.0, event.1), (with_format.0, with_format.1));
            assert_eq!(event.2[..8], with_format.2[..8]);
        }
        let bytes = fs::read(saved.file()).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        let mut names: BTreeMap<String, u64> = BTreeMap::new();
        let mut merge = trace.merge();
        while let Some(run) = merge.next_run() {
            run.events().for_each(|event| {
                *names.entry(format!("{}:{}", event.class().system, event.class().name)).or_default() += 1;
            });
        }
        assert_eq!(names.get(&format!("unknown:event_{id}")), Some(&(count as u64)), "{names:?}");
        assert!(!names.contains_key("kmem:kmem_cache_free") && names.contains_key("kmem:kfree"), "{names:?}");
    }
}

/// The kernel appended the events of a boot to those of the boot before.
#[test]
fn the_real_buffer_of_two_boots_is_refused_and_has_both() {
    let saved = Saved::of("tests/data/two-boots-6.12");
    saved.is_refused(&[
        "the time of CPU 0 steps back from 16.028425 s to 0.000000 s",
        "and that of 2 of 2 CPUs: the buffer holds the events of two boots",
        "hint: --boot last",
    ]);
    for (boot, count, times) in
        [("first", 330, 15_859_311_298..16_069_920_350), ("last", 289, 0..1_627_804_389u64)]
    {
        let (events, told) = saved.events(&["--boot", boot], 0);
        assert_eq!(events.len(), count, "{boot}: {told}");
        assert!(events.iter().all(|(_, time, _)| times.contains(time)), "{boot}");
    }
}

/// Linux 6.12 shows `local`, whatever clock the boot before had.
#[test]
fn the_clock_of_a_real_buffer_of_another_boot_may_be_another_one() {
    let saved = Saved::of("tests/data/other-clock-6.12");
    let (_, told) = saved.events(&[], 3);
    assert!(told.contains("note: last_boot_info: the events may be of an earlier boot"), "{told}");
    assert!(told.contains("trace_clock is that of the boot in which they were saved"), "{told}");
}

/// The module of 9p was not loaded when the buffer was saved.
#[test]
fn a_real_buffer_has_events_of_a_module_that_is_not_loaded() {
    let saved = Saved::of("tests/data/other-clock-6.12");
    let (events, told) = saved.events(&[], 3);
    assert!(told.contains("note: no format of id 1527 (43 events): these events"), "{told}");
    let unknown = events.iter().filter(|(.., record)| record[..2] == 1527u16.to_le_bytes()).count();
    assert_eq!((events.len(), unknown), (301, 43));
}

#[test]
fn a_cpu_that_linux_7_2_lost_stands_out() {
    let saved = Saved::of("tests/data/empty-cpu-7.2");
    let (events, told) = saved.events(&[], 0);
    assert_eq!(events.len(), 145);
    assert!(told.contains("note: CPU 0 has no events, and each other CPU has 145"), "{told}");
}

/// Before the clock runs, events have the time 0.
#[test]
fn events_without_a_time_are_counted() {
    const WITHOUT: usize = 3;
    let saved = Saved::new();
    let mut raw = fs::read(saved.raw(0)).unwrap();
    raw[..8].fill(0);
    let layout = saved.layout();
    let items: Vec<usize> = {
        let sub_buffer = SubBuffer::parse(&raw[..SUB_BUFFER], &layout, ByteOrder::Little).unwrap();
        let offset = |item| match item {
            Ok(SubBufferItem::Event { offset, .. }) => Some(offset),
            _ => None,
        };
        sub_buffer.items().filter_map(offset).take(WITHOUT).collect()
    };
    for offset in items {
        let word = u32::from_le_bytes(raw[offset..][..4].try_into().unwrap());
        raw[offset..][..4].copy_from_slice(&(word & 31).to_le_bytes());
    }
    fs::write(saved.raw(0), raw).unwrap();
    let (events, told) = saved.events(&[], 0);
    assert_eq!(events.iter().filter(|(_, time, _)| *time == 0).count(), WITHOUT);
    assert!(told.contains("note: 3 events have the time 0"), "{told}");
    let bytes = fs::read(saved.file()).unwrap();
    assert_eq!(Trace::open(&bytes).unwrap().metadata().value("events_at_zero"), Some(&b"3"[..]));
}
