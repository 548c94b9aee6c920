//! Files about a kernel's memory that have no events: both programs name them, with what to do.

use std::path::Path;

use crate::failure::Failure;
use crate::folder::Folder;
use crate::shell;

/// A kind of file without events.
#[derive(Debug)]
pub struct Foreign {
    /// What it is: `FILE is NAME`.
    pub name: &'static str,
    /// What to do instead.
    pub remedy: &'static str,
    marks: &'static [Mark],
}

/// How a file is recognised.
#[derive(Debug, Clone, Copy)]
enum Mark {
    /// Bytes at an offset.
    At(usize, &'static [u8]),
    /// A line begins so, after blanks.
    Line(&'static str),
    /// A text has it anywhere.
    Text(&'static str),
    /// A test of the beginning.
    Is(fn(&[u8]) -> bool),
}
use Mark::{At, Is, Line, Text};

/// Bytes that are looked at.
const START_LEN: usize = 1 << 20;

const RECORD: &str = "it has no events; record them with `kmt-capture record`, `trace-cmd record -e kmem` or `perf record -e 'kmem:*' -a`";
const UNPACK: &str = "unpack it into a folder; `kmt-capture convert FOLDER -o trace.kmt` converts the recording in that folder";
const COPY: &str = "save the text itself, and convert that file";

/// Kinds that their contents show, the more specific ones first.
const KINDS: [Foreign; 31] = [
    kind(
        "a copy of /proc/slabinfo",
        "it has counts of objects and no events; `kmt-analyze slabinfo BEFORE AFTER` shows the changes between two copies; beside a recording, called slabinfo.before or slabinfo.after, `kmt-analyze slabinfo` compares it; `kmt-capture record` records the events",
        &[Line("slabinfo - version"), Text("<active_objs> <num_objs>")],
    ),
    kind("output of slabtop", RECORD, &[Text("Active / Total Objects (% used)")]),
    kind(
        "a report of kmemleak",
        "it has leaked objects and no events; `kmt-analyze leaks` finds them in a recording: `kmt-capture record`",
        &[Text("unreferenced object 0x"), Text(" new suspected memory leaks (see ")],
    ),
    kind(
        "a copy of page_owner",
        "it has the pages of one moment and no events; `kmt-capture record --baseline page_owner` records both",
        &[Text("Page allocated via order ")],
    ),
    kind(
        "a copy of SLUB's alloc_traces or free_traces",
        "it has the objects of one moment and no events; `kmt-capture record --baseline slab_traces` records both",
        &[Is(is_slab_traces)],
    ),
    kind(
        "a copy of /proc/allocinfo",
        "`kmt-analyze allocinfo FILE` shows it, and with two copies what grew",
        &[Line("allocinfo - version:"), Text("<size>  <calls> <tag info>")],
    ),
    kind(
        "a kernel log with a page allocation failure",
        RECORD,
        &[Text("page allocation failure"), Text("page allocation stalls for")],
    ),
    kind(
        "a kernel log with a report of the OOM killer",
        RECORD,
        &[Text("invoked oom-killer:"), Text("Out of memory: Kill"), Text("emory cgroup out of memory")],
    ),
    kind("a kernel log with a report of KASAN", RECORD, &[Text("BUG: KASAN:")]),
    kind(
        "output of bcc's memleak",
        RECORD,
        &[Text(" stacks with outstanding allocations"), Line("Attaching to kernel allocators")],
    ),
    kind("output of bpftrace", RECORD, &[Is(is_bpftrace)]),
    kind(
        "output of perf kmem stat",
        "convert the perf.data that it read",
        &[Line("SUMMARY (SLAB allocator)"), Line("SUMMARY (page allocator)")],
    ),
    kind(
        "output of perf report",
        "convert the perf.data that it read, or the output of `perf script`",
        &[Line("# Overhead"), Line("# To display the perf.data header info")],
    ),
    kind("a histogram of a hist trigger", RECORD, &[Line("# event histogram")]),
    kind("a copy of /proc/meminfo", RECORD, &[Line("MemTotal:")]),
    kind("a copy of /proc/vmallocinfo", RECORD, &[Is(is_vmallocinfo)]),
    kind("a copy of /proc/buddyinfo or zoneinfo", RECORD, &[Line("Node 0, zone")]),
    kind("a copy of /proc/vmstat", RECORD, &[Line("nr_free_pages ")]),
    kind(
        "a list of kernel symbols (kallsyms or System.map)",
        "put it beside a recording: convert finds it there",
        &[Is(is_symbols)],
    ),
    kind(
        "a crash dump of a kernel (vmcore)",
        "the extension `trace` of crash writes its ring buffers: `trace dump -t trace.dat`; convert that file",
        &[
            Is(|start| elf_type(start) == Some(4)),
            At(0, b"KDUMP   "),
            At(0, b"DISKDUMP"),
            At(0, b"makedumpfile\0"),
        ],
    ),
    kind(
        "an ELF file, such as a vmlinux or a module",
        "it has no events; kmt-analyze reads it with --vmlinux or --modules",
        &[Is(|start| elf_type(start).is_some())],
    ),
    kind("BTF of a kernel", RECORD, &[At(0, b"\x9f\xeb\x01"), At(0, b"\xeb\x9f\x01")]),
    kind(
        "a CTF trace, such as of LTTng",
        CTF_REMEDY,
        &[
            At(0, b"\xc1\x1f\xfc\xc1"),
            At(0, b"\xc1\xfc\x1f\xc1"),
            At(0, b"\x57\x1d\xd1\x75"),
            At(0, b"\x75\xd1\x1d\x57"),
            At(0, b"/* CTF "),
        ],
    ),
    kind(
        "a journal of systemd",
        "convert its text: `journalctl --file FILE -k -o short-monotonic > log.txt`",
        &[At(0, b"LPKSHHRH")],
    ),
    kind(
        "an archive (zip, tar, 7z or rar)",
        UNPACK,
        &[
            At(0, b"PK\x03\x04"),
            At(0, b"PK\x05\x06"),
            At(0, b"PK\x07\x08"),
            At(257, b"ustar"),
            At(0, b"7z\xbc\xaf\x27\x1c"),
            At(0, b"Rar!\x1a\x07"),
        ],
    ),
    kind(
        "a file compressed with bzip2 or lz4",
        "decompress it, and convert the content; convert reads .gz, .xz and .zst itself",
        &[At(4, b"1AY&SY"), At(0, b"\x04\x22\x4d\x18")],
    ),
    kind("a picture", COPY, &[At(0, b"\x89PNG\r\n"), At(0, b"\xff\xd8\xff"), At(0, b"GIF8")]),
    kind("a PDF document", COPY, &[At(0, b"%PDF-")]),
    kind(
        "a page of systrace without events as text",
        "its data is compressed or of another kind; record again, with atrace without -z",
        &[Is(is_systrace)],
    ),
    kind(
        "a page of HTML",
        "it has no lines of a trace; download the file that it shows (\"raw\", \"download\")",
        &[Is(is_html)],
    ),
    kind(
        "a trace of Chrome in JSON",
        RECORD,
        &[Is(|start| start.trim_ascii_start().starts_with(b"{") && has(start, "\"traceEvents\""))],
    ),
];

/// Kinds of texts in which something is missing.
const GENERAL: [Foreign; 2] = [
    kind(
        "output of ftrace without events",
        "enable the events of kmem before recording, and save `trace` before it is cleared: reading trace_pipe removes events; or use `kmt-capture record`",
        &[Line("# tracer:"), Line("# entries-in-buffer")],
    ),
    kind("a kernel log without events", RECORD, &[Is(is_kernel_log)]),
];

const CTF_REMEDY: &str =
    "it is not read; `babeltrace2` prints it; record the events with `kmt-capture record`, trace-cmd or perf";

const fn kind(name: &'static str, remedy: &'static str, marks: &'static [Mark]) -> Foreign {
    Foreign { name, remedy, marks }
}

impl Foreign {
    /// The kind of a file, by its contents.
    pub fn of(bytes: &[u8]) -> Option<&'static Self> {
        Self::among(&KINDS, bytes)
    }

    /// The kind of a text, where all else says nothing.
    pub fn in_general(bytes: &[u8]) -> Option<&'static Self> {
        Self::among(&GENERAL, bytes)
    }

    fn among(kinds: &'static [Self], bytes: &[u8]) -> Option<&'static Self> {
        let start = bytes.get(..bytes.len().min(START_LEN)).unwrap_or_default();
        kinds.iter().find(|kind| kind.marks.iter().any(|mark| mark.is_in(start)))
    }

    /// The refusal of a file of this kind.
    pub fn refuse(&self, path: &Path) -> Failure {
        Failure::new(format!("{} is {}", path.display(), self.name))
            .hint(self.remedy.replace("FILE", &shell::path(path)))
    }
}

/// The refusal of an empty file.
pub fn empty(path: &Path) -> Failure {
    Failure::new(format!("{} is empty", path.display())).hint(
        "it has no data that can be recovered; record again, for example `sudo kmt-capture record -d 30s -o trace.kmt`",
    )
}

/// The refusal of a folder with a CTF trace; `None` if it has none.
pub fn ctf_folder(path: &Path) -> Option<Failure> {
    use std::io::Read;
    let folder = Folder::open(path).ok()?;
    let is_ctf = ["metadata", "kernel/metadata"].iter().any(|name| {
        let mut start = Vec::new();
        let file = folder.file(name).ok().flatten();
        let is_read = file.is_some_and(|(file, _)| file.take(16).read_to_end(&mut start).is_ok());
        is_read && Foreign::of(&start).is_some_and(|kind| kind.remedy == CTF_REMEDY)
    });
    is_ctf.then(|| {
        Failure::new(format!("{} is a folder with a CTF trace, such as of LTTng", path.display()))
            .hint(CTF_REMEDY)
    })
}

impl Mark {
    fn is_in(self, start: &[u8]) -> bool {
        match self {
            At(offset, bytes) => start.get(offset..).is_some_and(|rest| rest.starts_with(bytes)),
            Line(begin) => lines(start).any(|line| line.trim_ascii_start().starts_with(begin.as_bytes())),
            Text(part) => has(start, part),
            Is(test) => test(start),
        }
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n')
}

fn has(text: &[u8], part: &str) -> bool {
    let part = part.as_bytes();
    text.windows(part.len()).any(|window| window.first() == part.first() && window == part)
}

/// `     12 alloc_inode+0x1b/0x80 age=1/2/3 pid=1-12 cpus=0-3`.
fn is_slab_traces(start: &[u8]) -> bool {
    lines(start).any(|line| {
        let count = line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit);
        count && has(line, " age=") && has(line, " pid=")
    })
}

/// `Attaching 2 probes...`, `@bytes[kmalloc+10, 12]: 34`.
fn is_bpftrace(start: &[u8]) -> bool {
    lines(start).any(|line| {
        let is_head = line.starts_with(b"Attaching ") && has(line, " probe");
        is_head || line.starts_with(b"@") && (has(line, "]: ") || line.trim_ascii_end().ends_with(b"["))
    })
}

/// `0xffffc90000000000-0xffffc90000005000   20480 f+0x1/0x2 pages=4 vmalloc`.
fn is_vmallocinfo(start: &[u8]) -> bool {
    lines(start).next().is_some_and(|line| line.starts_with(b"0x") && has(line, "-0x"))
}

/// `ffffffff81000000 T _text`.
fn is_symbols(start: &[u8]) -> bool {
    let line = lines(start).next().unwrap_or_default();
    let mut words = line.split(|&b| b == b' ');
    let address = words.next().unwrap_or_default();
    let is_address = matches!(address.len(), 8 | 16) && address.iter().all(u8::is_ascii_hexdigit);
    is_address && words.next().is_some_and(|kind| kind.len() == 1) && words.next().is_some()
}

/// A file type of ELF, in its own byte order.
fn elf_type(start: &[u8]) -> Option<u16> {
    let rest = start.strip_prefix(b"\x7fELF")?;
    let bytes = [*rest.get(12)?, *rest.get(13)?];
    Some(if rest.get(1) == Some(&2) { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
}

fn is_html(start: &[u8]) -> bool {
    let head = start.trim_ascii_start();
    let head = head.get(..head.len().min(15)).unwrap_or_default().to_ascii_lowercase();
    head.starts_with(b"<!doctype html") || head.starts_with(b"<html")
}

fn is_systrace(start: &[u8]) -> bool {
    is_html(start)
        && ["trace-data", "linuxPerfData", "Android System Trace"].iter().any(|mark| has(start, mark))
}

/// `[   12.345678] `, maybe behind a level.
fn is_kernel_log(start: &[u8]) -> bool {
    lines(start).any(|line| {
        let line = line.get(line.iter().position(|&b| b == b'[').filter(|&at| at < 64).unwrap_or(0)..);
        let inner = line.and_then(|line| line.strip_prefix(b"["));
        let close = inner.and_then(|inner| inner.iter().take(20).position(|&b| b == b']'));
        let time = inner.zip(close).and_then(|(inner, close)| inner.get(..close)).unwrap_or_default();
        time.contains(&b'.') && time.trim_ascii().iter().all(|b| b.is_ascii_digit() || *b == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::recording;

    #[test]
    fn each_kind_has_a_remedy_and_a_sample() {
        for (sample, name) in SAMPLES {
            let found = Foreign::of(sample).or_else(|| Foreign::in_general(sample));
            assert!(found.is_some_and(|kind| kind.name.contains(name)), "{name}: {found:?}");
            assert_eq!(recording(sample), None, "{name}");
        }
        for kind in KINDS.iter().chain(&GENERAL) {
            assert!(
                SAMPLES.iter().any(|(sample, _)| Foreign::of(sample)
                    .or_else(|| Foreign::in_general(sample))
                    .is_some_and(|found| found.name == kind.name)),
                "{} has no sample",
                kind.name
            );
            assert!(kind.remedy.len() > 20);
        }
        assert!(Foreign::of(b"some text\n").is_none() && Foreign::of(b"").is_none());
        assert!(Foreign::in_general(b"some text\n").is_none());
    }

    const SAMPLES: [(&[u8], &str); 40] = [
        (b"slabinfo - version: 2.1\n# name <active_objs> <num_objs>\n", "slabinfo"),
        (b" Active / Total Objects (% used)    : 1 / 2 (50.0%)\n", "slabtop"),
        (b"unreferenced object 0xffff888100001000 (size 64):\n  comm \"sh\", pid 1\n", "kmemleak"),
        (b"[    9.1] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)\n", "kmemleak"),
        (b"Page allocated via order 0, mask 0x1\nPFN 1\n", "page_owner"),
        (b"     12 alloc_inode+0x1b/0x80 age=1/2/3 pid=1-12 cpus=0-3\n", "alloc_traces"),
        (b"allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n", "allocinfo"),
        (b"[ 9.1] sh: page allocation failure: order:4, mode:0x1\n", "page allocation failure"),
        (b"[ 9.1] sh invoked oom-killer: gfp_mask=0x1\n", "OOM"),
        (b"[ 9.1] Out of memory: Killed process 7 (sh)\n", "OOM"),
        (b"[ 9.1] BUG: KASAN: use-after-free\n", "KASAN"),
        (b"[09:00:00] Top 10 stacks with outstanding allocations:\n", "memleak"),
        (b"Attaching 2 probes...\n", "bpftrace"),
        (b"\n@bytes[kmalloc+10, 12]: 34\n", "bpftrace"),
        (b"SUMMARY (SLAB allocator)\n======\n", "perf kmem"),
        (b"# To display the perf.data header info, please use\n", "perf report"),
        (b"# event histogram\n#\n", "hist trigger"),
        (b"MemTotal:       1 kB\n", "meminfo"),
        (b"0xffffc90000000000-0xffffc90000005000   20480 f+0x1/0x2 pages=4 vmalloc\n", "vmallocinfo"),
        (b"Node 0, zone      DMA      1      0\n", "buddyinfo"),
        (b"nr_free_pages 12\n", "vmstat"),
        (b"ffffffff81000000 T _text\n", "kallsyms"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0", "vmcore"),
        (b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x04\0\x3e", "vmcore"),
        (b"KDUMP   \x06\0\0\0", "vmcore"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0", "vmlinux"),
        (b"\x9f\xeb\x01\0", "BTF"),
        (b"\xc1\x1f\xfc\xc1\0", "CTF"),
        (b"/* CTF 1.8 */\n", "CTF"),
        (b"LPKSHHRH\0", "journal"),
        (b"PK\x03\x04\x14\0", "archive"),
        (b"BZh91AY&SY\0", "bzip2"),
        (b"\x89PNG\r\n\x1a\n", "picture"),
        (b"%PDF-1.7\n", "PDF"),
        (b"<!DOCTYPE HTML>\n<html>\n<title>Android System Trace</title>", "systrace"),
        (b"<html><body>bug 12</body></html>", "HTML"),
        (b"{\"traceEvents\":[]}", "Chrome"),
        (b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:4\n", "ftrace"),
        (b"<6>[    1.000000] Linux version 6.1\n", "kernel log"),
        (b"Nov 28 09:00:00 box kernel: [    1.000000] Linux version 6.1\n", "kernel log"),
    ];
}
