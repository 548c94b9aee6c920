//! `arm` and `collect` on a folder in the shape of tracefs, over two boots of a made machine: the events of a real capture are those
//! that come back, and the file has to equal a conversion of that capture.
#![cfg(all(feature = "convert", target_endian = "little", target_pointer_width = "64"))]

#[path = "support/folder.rs"]
mod folder;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use kmt_capture::convert::{ConvertOptions, Limits, convert};
use kmt_capture::crash::{ArmOptions, CollectOptions, SaveOptions, System, arm, collect, save};
use kmt_capture::failure::{Failure, Outcome};
use kmt_capture::record::{RecordOptions, Symbols};
use kmt_capture::tracefs::EventSpec;
use kmt_format::Compression;
use kmt_format::read::Trace;

/// How far the second boot is above the first one, in bytes.
const MOVED: u64 = 0x1200_0000;
/// Another distance, of a module.
const MODULE_MOVED: u64 = 0x7000;
const EVENTS: [&str; 9] = [
    "kmalloc",
    "kfree",
    "kmem_cache_alloc",
    "kmem_cache_free",
    "mm_page_alloc",
    "mm_page_alloc_zone_locked",
    "mm_page_free",
    "mm_page_free_batched",
    "rss_stat",
];
const CPUS: u32 = 4;

/// A machine with its /proc and its tracefs, removed at the end.
struct Machine(PathBuf);

impl Machine {
    /// In its first boot, with an empty persistent instance.
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let machine = Self(std::env::temp_dir().join(format!("kmt-crash-{}-{number}", std::process::id())));
        for (name, text) in [
            ("proc/sys/kernel/osrelease", "6.12.107+deb13-amd64\n"),
            ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1\n"),
            ("proc/sys/kernel/hostname", "board\n"),
            ("proc/sys/kernel/random/boot_id", "11111111-aaaa\n"),
            ("proc/cmdline", "reserve_mem=24M:4096:kmt trace_instance=boot_map^traceoff@kmt\n"),
        ] {
            machine.put(name, text);
        }
        machine.put("proc/kallsyms", fs::read_to_string(data("kallsyms")).unwrap() + &Self::of_module(0));
        machine.put("proc/modules", Self::module(0));
        let top = "tracefs";
        for name in ["trace_clock", "events/header_page", "events/header_event"] {
            let from = data(&format!("tracefs/{name}"));
            machine.put(&format!("{top}/{name}"), fs::read_to_string(from).unwrap());
        }
        let own = "tracefs/instances/boot_map";
        for (name, text) in [
            ("last_boot_info", "text delta:\t0\ndata delta:\t0\n"),
            ("tracing_on", "0\n"),
            ("trace", ""),
            ("trace_clock", "[local] global mono\n"),
            ("options/overwrite", "1\n"),
            ("events/enable", "0\n"),
            ("set_event", ""),
        ] {
            machine.put(&format!("{own}/{name}"), text);
        }
        let options = fs::read_to_string(data("tracefs/trace_options")).unwrap();
        machine.put(&format!("{own}/trace_options"), options);
        for event in EVENTS {
            let format = fs::read_to_string(data(&format!("tracefs/events/kmem/{event}/format"))).unwrap();
            machine.put(&format!("{top}/events/kmem/{event}/format"), format);
            for place in [top, own] {
                machine.put(&format!("{place}/events/kmem/{event}/enable"), "0\n");
                machine.put(&format!("{place}/events/kmem/{event}/filter"), "none\n");
                machine.put(&format!("{place}/events/kmem/{event}/trigger"), "# Available triggers:\n");
            }
        }
        for cpu in 0..CPUS {
            machine.put(&format!("{own}/per_cpu/cpu{cpu}/trace_pipe_raw"), "");
            machine.put(&format!("{own}/per_cpu/cpu{cpu}/buffer_size_kb"), "6110\n");
            machine.put(&format!("{own}/per_cpu/cpu{cpu}/stats"), "entries: 0\nnow ts:    5.000000\n");
        }
        machine
    }

    fn module(moved: u64) -> String {
        format!("demo 8192 0 - Live {:#x}\n", 0xffff_ffff_c090_0000 + moved)
    }

    fn of_module(moved: u64) -> String {
        format!("{:x} t demo_alloc\t[demo]\n", 0xffff_ffff_c090_0010 + moved)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn instance(&self, name: &str) -> String {
        self.text(&format!("tracefs/instances/boot_map/{name}")).trim_end().to_owned()
    }

    fn system(&self) -> System {
        System::at(&self.0)
    }

    fn arm_options(&self) -> ArmOptions {
        let events = ["kmem:*", "kmem:rss_stat"].map(|text| EventSpec::parse(text).unwrap()).to_vec();
        ArmOptions {
            selection: RecordOptions { events, task_events: true, ..RecordOptions::default() },
            sidecar: Some(self.path("armed")),
            tracefs: Some(self.path("tracefs")),
            quiet: true,
            ..ArmOptions::default()
        }
    }

    fn arm(&self) -> Result<Outcome, Failure> {
        arm(&self.arm_options(), &self.system())
    }

    fn collect_options(&self) -> CollectOptions {
        let save = SaveOptions {
            sidecar: Some(self.path("armed")),
            tracefs: Some(self.path("tracefs")),
            quiet: true,
            ..SaveOptions::default()
        };
        CollectOptions { save, output: self.path("crash.kmt"), ..CollectOptions::default() }
    }

    fn collect(&self) -> Result<Outcome, Failure> {
        collect(&self.collect_options(), &self.system())
    }

    /// The machine crashes, boots again with other addresses, and has the events of the capture in its buffer.
    fn crash(&self) {
        self.put("proc/sys/kernel/random/boot_id", "22222222-bbbb\n");
        let text = fs::read_to_string(data("kallsyms")).unwrap();
        let (mut moved, mut is_above) = (String::new(), false);
        for line in text.lines() {
            is_above |= line.ends_with(" _text");
            let (address, rest) = line.split_once(' ').unwrap();
            let address = u64::from_str_radix(address, 16).unwrap();
            let stays = !is_above || rest.starts_with(['a', 'A']);
            moved += &format!("{:016x} {rest}\n", if stays { address } else { address + MOVED });
        }
        self.put("proc/kallsyms", moved + &Self::of_module(MODULE_MOVED));
        self.put("proc/modules", Self::module(MODULE_MOVED));
        let own = "tracefs/instances/boot_map";
        self.put(&format!("{own}/last_boot_info"), format!("text delta:\t{MOVED}\ndata delta:\t{MOVED}\n"));
        self.put(&format!("{own}/tracing_on"), "0\n");
        self.put(&format!("{own}/events/enable"), "0\n");
        for cpu in 0..CPUS {
            let raw = fs::read(data(&format!("tracefs/per_cpu/cpu{cpu}/trace_pipe_raw"))).unwrap();
            self.put(&format!("{own}/per_cpu/cpu{cpu}/trace_pipe_raw"), raw);
            let stats = fs::read_to_string(data(&format!("tracefs/per_cpu/cpu{cpu}/stats"))).unwrap();
            self.put(&format!("{own}/per_cpu/cpu{cpu}/stats"), stats);
        }
    }

    /// A conversion of the capture itself.
    fn reference(&self) -> Vec<u8> {
        let output = self.path("reference.kmt");
        convert(&ConvertOptions {
            input: data(""),
            output: output.clone(),
            force: true,
            compression: Compression::None,
            symbols: Symbols::Used,
            verbatim: false,
            quiet: true,
            instance: None,
            boot: None,
            survivors: None,
            limits: Limits::default(),
        })
        .unwrap();
        fs::read(output).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data/x86_64-6.1").join(name)
}

/// CPU, time and record of each event.
fn events(trace: &Trace<'_>) -> Vec<(u32, u64, Vec<u8>)> {
    let mut out = Vec::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            let mut record = Vec::new();
            event.to_record(&mut record);
            out.push((event.cpu(), event.time(), record));
        }
    }
    out
}

/// Address and name of each symbol.
fn symbols(trace: &Trace<'_>) -> Vec<(u64, String)> {
    let entries = trace
        .symbols()
        .into_iter()
        .flat_map(|table| table.entries().map(|e| (e.address, format!("{:?}", e.name))));
    let mut found: Vec<_> = entries.collect();
    found.sort();
    found
}

fn values(trace: &Trace<'_>, key: &str) -> Vec<String> {
    let pairs = trace.metadata().pairs.iter().filter(|(have, _)| have == key);
    pairs.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

fn begins_overwritten(trace: &Trace<'_>) -> bool {
    let mut first = trace.streams().values().filter_map(|stream| stream.chunks.first());
    first.any(|(_, info)| info.loss.overwritten)
}

#[test]
fn the_events_before_a_crash_come_back_with_the_names_of_that_boot() {
    let machine = Machine::new();
    assert_eq!(machine.arm().unwrap(), Outcome::Done);
    assert_eq!(
        (machine.instance("tracing_on"), machine.instance("events/kmem/kfree/enable")),
        ("1".into(), "1".into())
    );
    let mode = fs::metadata(machine.path("armed")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    machine.crash();
    let refused = machine.arm().unwrap_err().to_string();
    assert!(refused.contains("1,013 events of an earlier boot") && refused.contains("collect"), "{refused}");
    assert_eq!(machine.collect().unwrap(), Outcome::Done);
    let (bytes, reference) = (fs::read(machine.path("crash.kmt")).unwrap(), machine.reference());
    let (trace, reference) = (Trace::open(&bytes).unwrap(), Trace::open(&reference).unwrap());
    assert_eq!(events(&trace).len(), 1_013);
    assert_eq!(events(&trace), events(&reference));
    assert!(symbols(&reference).len() > 20);
    assert_eq!(symbols(&trace), symbols(&reference));
    assert_eq!(values(&trace, "boot_id"), ["11111111-aaaa"]);
    assert_eq!(values(&trace, "record.stopped_by"), ["a crash, a reset or a reboot"]);
    assert_eq!(values(&trace, "kernel.release"), ["6.12.107+deb13-amd64"]);
    let pair = values(&trace, "clock.pair");
    assert!(pair.len() == 1 && pair[0].starts_with("5000000000 1"), "{pair:?}");
    let notes = values(&trace, "record.note");
    assert!(notes.iter().any(|note| note.contains("1 module placed")), "{notes:?}");
    let own = std::process::id() as i32;
    assert!(trace.metadata().tasks.iter().any(|task| task.pid == own), "a task that ran when it was armed");
    assert!(!machine.path("crash.kmt.saved").exists() && !machine.path("armed").exists());
    assert!(!begins_overwritten(&trace), "the buffers had room");
}

#[test]
fn a_delta_of_an_older_boot_is_not_used_where_cpus_are_offline() {
    let machine = Machine::new();
    machine.arm().unwrap();
    machine.crash();
    machine.put("tracefs/instances/boot_map/last_boot_info", "text delta:\t4096\ndata delta:\t4096\n");
    machine.put("sys/devices/system/cpu/possible", "0-7\n");
    machine.put("sys/devices/system/cpu/online", "0-3\n");
    machine.collect().unwrap();
    let (bytes, reference) = (fs::read(machine.path("crash.kmt")).unwrap(), machine.reference());
    let (trace, reference) = (Trace::open(&bytes).unwrap(), Trace::open(&reference).unwrap());
    assert_eq!(symbols(&trace), symbols(&reference), "the sidecar has the address");
}

#[test]
fn a_full_buffer_may_have_overwritten_older_events() {
    let machine = Machine::new();
    machine.arm().unwrap();
    machine.crash();
    // Three sub-buffers came back.
    machine.put("tracefs/instances/boot_map/per_cpu/cpu1/buffer_size_kb", "12\n");
    machine.collect().unwrap();
    let bytes = fs::read(machine.path("crash.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(begins_overwritten(&trace));
    assert_eq!(events(&trace).len(), 1_013);
}

#[test]
fn another_build_leaves_addresses_without_names() {
    let machine = Machine::new();
    machine.arm().unwrap();
    machine.crash();
    machine.put("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1\n");
    // Beside the output, but of this boot.
    fs::copy(machine.path("proc/kallsyms"), machine.path("kallsyms")).unwrap();
    machine.collect().unwrap();
    let bytes = fs::read(machine.path("crash.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert_eq!((symbols(&trace).len(), events(&trace).len()), (0, 1_013));
    let notes = values(&trace, "record.note");
    assert!(notes.iter().any(|note| note.contains("another build of the kernel")), "{notes:?}");
    assert_eq!(
        values(&trace, "uname"),
        ["Linux board 6.12.107+deb13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 x86_64 GNU/Linux"
            .replace("x86_64", std::env::consts::ARCH)]
    );
}

#[test]
fn nothing_is_read_where_the_events_are_not_of_the_armed_boot() {
    let machine = Machine::new();
    let refused = |machine: &Machine, words: &str| {
        let text = machine.collect().unwrap_err().to_string();
        assert!(text.contains(words), "{words}: {text}");
        assert!(!machine.path("crash.kmt").exists() && !machine.path("crash.kmt.saved").exists());
    };
    refused(&machine, "has no events");
    machine.arm().unwrap();
    machine.put("tracefs/instances/boot_map/per_cpu/cpu0/stats", "entries: 7\n");
    refused(&machine, "was armed in this boot");
    machine.crash();
    machine.put("tracefs/instances/boot_map/last_boot_info", "text delta:\t4096\ndata delta:\t4096\n");
    refused(&machine, "filled in another boot than the armed one");
    machine.put("tracefs/instances/boot_map/last_boot_info", "# Current\n");
    refused(&machine, "has only events of this boot");
    machine.put("tracefs/instances/boot_map/last_boot_info", format!("text delta:\t{MOVED}\n"));
    fs::rename(machine.path("armed"), machine.path("elsewhere")).unwrap();
    refused(&machine, "--same-kernel");
    machine.put("armed", "kmt-capture armed 1\nboot_id x\n");
    refused(&machine, "armed: offset 30: the file ends before its last line");
    fs::rename(machine.path("elsewhere"), machine.path("armed")).unwrap();
    machine.put("crash.kmt", "x");
    let text = machine.collect().unwrap_err().to_string();
    assert!(text.contains("crash.kmt already exists"), "{text}");
}

#[test]
fn a_buffer_that_did_not_survive_the_restart_is_told_from_one_that_was_never_armed() {
    let machine = Machine::new();
    machine.arm().unwrap();
    machine.crash();
    for cpu in 0..CPUS {
        machine.put(&format!("tracefs/instances/boot_map/per_cpu/cpu{cpu}/stats"), "entries: 0\n");
    }
    let text = machine.collect().unwrap_err().to_string();
    assert!(text.contains("its memory was not kept over the restart"), "{text}");
    // Arming again is a new beginning.
    machine.arm().unwrap();
    let text = machine.collect().unwrap_err().to_string();
    assert!(text.contains("boot_map has no events"), "{text}");
}

#[test]
fn without_a_sidecar_the_running_kernel_describes_the_events_if_the_user_says_so() {
    let machine = Machine::new();
    machine.crash();
    let mut options = machine.collect_options();
    options.save.is_same_kernel = true;
    collect(&options, &machine.system()).unwrap();
    let (bytes, reference) = (fs::read(machine.path("crash.kmt")).unwrap(), machine.reference());
    let (trace, reference) = (Trace::open(&bytes).unwrap(), Trace::open(&reference).unwrap());
    assert_eq!(events(&trace), events(&reference));
    let core = |trace: &Trace<'_>| symbols(trace);
    assert_eq!(core(&trace), core(&reference));
    assert!(
        values(&trace, "boot_id").is_empty() && values(&trace, "clock.pair").is_empty(),
        "they are of this boot"
    );
}

#[test]
fn two_boots_in_the_buffer_stay_saved_and_unconverted() {
    const SUB_BUFFER: usize = 4096;
    let machine = Machine::new();
    machine.arm().unwrap();
    machine.crash();
    for cpu in 0..CPUS {
        let name = format!("tracefs/instances/boot_map/per_cpu/cpu{cpu}/trace_pipe_raw");
        let raw = fs::read(machine.path(&name)).unwrap();
        let mut both = raw.clone();
        for sub_buffer in both.chunks_mut(SUB_BUFFER) {
            let time = u64::from_le_bytes(sub_buffer[..8].try_into().unwrap());
            sub_buffer[..8].copy_from_slice(&(time + 48_000_000_000).to_le_bytes());
        }
        both.extend(raw);
        machine.put(&name, both);
    }
    let text = machine.collect().unwrap_err().to_string();
    assert!(
        text.contains("the buffer holds the events of two boots") && text.contains("--boot last"),
        "{text}"
    );
    assert!(
        machine.path("crash.kmt.saved/tracefs/last_boot_info").exists() && machine.path("armed").exists()
    );
    assert!(!machine.path("crash.kmt").exists());
    let again = machine.collect().unwrap_err().to_string();
    assert!(again.contains("crash.kmt.saved already exists"), "{again}");
}

#[test]
fn the_copy_that_the_kernel_made_is_read_in_place_of_the_buffer_in_use() {
    let machine = Machine::new();
    machine.arm().unwrap();
    machine.crash();
    let (own, backup) = ("tracefs/instances/boot_map", "tracefs/instances/backup");
    folder::copy(&machine.path(&format!("{own}/per_cpu")), &machine.path(&format!("{backup}/per_cpu")));
    let text = fs::read_to_string(machine.path("proc/kallsyms")).unwrap();
    let text = text.lines().find(|line| line.ends_with(" _text")).unwrap();
    let address = u64::from_str_radix(text.split(' ').next().unwrap(), 16).unwrap() - MOVED;
    let module = Machine::module(0).split("0x").nth(1).unwrap().trim().to_owned();
    machine.put(&format!("{backup}/last_boot_info"), format!("{address:x}\t[kernel]\n{module}\tdemo\n"));
    machine.put(&format!("{own}/last_boot_info"), "# Current\n");
    for cpu in 0..CPUS {
        machine.put(&format!("{own}/per_cpu/cpu{cpu}/trace_pipe_raw"), "");
        machine.put(&format!("{own}/per_cpu/cpu{cpu}/stats"), "entries: 0\n");
    }
    machine.put(&format!("{own}/tracing_on"), "1\n");
    machine.collect().unwrap();
    let (bytes, reference) = (fs::read(machine.path("crash.kmt")).unwrap(), machine.reference());
    let (trace, reference) = (Trace::open(&bytes).unwrap(), Trace::open(&reference).unwrap());
    assert_eq!((events(&trace), symbols(&trace)), (events(&reference), symbols(&reference)));
    assert_eq!(machine.instance("tracing_on"), "1", "the buffer in use records on");
}

#[test]
fn a_saved_folder_converts_as_collect_does_and_a_short_buffer_is_reported() {
    let machine = Machine::new();
    machine.arm().unwrap();
    machine.crash();
    machine.put("tracefs/instances/boot_map/per_cpu/cpu3/stats", "entries: 300\n");
    let options = SaveOptions { folder: machine.path("saved"), ..machine.collect_options().save };
    let saved = save(&options, &machine.system()).unwrap();
    assert_eq!((saved.events, saved.is_short), (1_013, true));
    let mode = fs::metadata(machine.path("saved/tracefs/kallsyms")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
        .arg("convert")
        .arg(machine.path("saved"))
        .arg("-o")
        .arg(machine.path("by-hand.kmt"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (bytes, reference) = (fs::read(machine.path("by-hand.kmt")).unwrap(), machine.reference());
    let (trace, reference) = (Trace::open(&bytes).unwrap(), Trace::open(&reference).unwrap());
    assert_eq!((events(&trace), symbols(&trace)), (events(&reference), symbols(&reference)));
    let notes = values(&trace, "record.note");
    assert!(notes.iter().any(|note| note == "CPU 3: 267 of 300 events could be read"), "{notes:?}");
}

#[test]
fn arming_again_keeps_the_recording_of_others_and_what_was_not_collected() {
    let machine = Machine::new();
    let own = "tracefs/instances/boot_map";
    machine.put(&format!("{own}/set_event"), "kmem:kmalloc\n");
    machine.put(&format!("{own}/tracing_on"), "1\n");
    let refused = machine.arm().unwrap_err().to_string();
    assert!(refused.contains("records already, with 1 enabled event"), "{refused}");
    machine.put(&format!("{own}/tracing_on"), "0\n");
    machine.put(&format!("{own}/trace_clock"), "local [mono]\n");
    machine.arm().unwrap();
    assert_eq!(machine.instance("trace_clock"), "local");
    // Once more in the same boot, with other events.
    let mut options = machine.arm_options();
    options.selection.events = vec![EventSpec::parse("kmem:kfree if ptr > 7").unwrap()];
    arm(&options, &machine.system()).unwrap();
    assert_eq!(machine.instance("events/kmem/kfree/filter"), "ptr > 7");
    let armed = fs::read(machine.path("armed")).unwrap();
    let armed = String::from_utf8_lossy(&armed).into_owned();
    assert!(armed.contains("events/kmem/kfree/filter\nptr > 7\n") && !armed.contains("kmem_cache_alloc"));
    machine.crash();
    options.is_discarding = true;
    arm(&options, &machine.system()).unwrap();
    assert_eq!(machine.instance("tracing_on"), "1");
}

#[test]
fn a_boot_without_a_persistent_buffer_is_told_from_one_with_several() {
    let machine = Machine::new();
    folder::copy(&machine.path("tracefs/instances/boot_map"), &machine.path("tracefs/instances/second"));
    let several = machine.arm().unwrap_err().to_string();
    assert!(
        several.contains("2 persistent instances: boot_map, second") && several.contains("--instance"),
        "{several}"
    );
    let mut options = machine.arm_options();
    options.instance = Some("third".to_owned());
    assert!(
        arm(&options, &machine.system())
            .unwrap_err()
            .to_string()
            .contains("no persistent instance \"third\"")
    );
    options.instance = Some("second".to_owned());
    arm(&options, &machine.system()).unwrap();
    fs::remove_dir_all(machine.path("tracefs/instances")).unwrap();
    let none = machine.collect().unwrap_err().to_string();
    assert!(none.contains("no persistent ring buffer") && none.contains("kmt-capture arm"), "{none}");
}
