//! The files that mutations start from, of each kind that the programs read.

use std::fs;
use std::path::Path;

use kmt_format::kernel::ByteOrder;

use super::made;
use super::support::files::{Scratch, data};
use super::support::foreign::{Capture, Packing, Perf};

/// A kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Kmt,
    TraceDat,
    PerfData,
    Perfetto,
    Text,
    Directory,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Kmt, Self::TraceDat, Self::PerfData, Self::Perfetto, Self::Text, Self::Directory];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kmt => "kmt",
            Self::TraceDat => "trace.dat",
            Self::PerfData => "perf.data",
            Self::Perfetto => "perfetto",
            Self::Text => "text",
            Self::Directory => "directory",
        }
    }

    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// An input: one file without a name, or a tree of files.
pub type Input = Vec<(String, Vec<u8>)>;

/// All inputs of a kind.
pub struct Inputs {
    pub kind: Kind,
    pub all: Vec<Input>,
}

const CAPTURES: [(&str, ByteOrder); 3] =
    [("x86_64-6.1", ByteOrder::Little), ("armhf-6.1", ByteOrder::Little), ("s390x-6.1", ByteOrder::Big)];

impl Inputs {
    pub fn make(kind: Kind, scratch: &Scratch) -> Self {
        let one = |bytes| vec![(String::new(), bytes)];
        let mut all = Vec::new();
        for (name, order) in CAPTURES {
            let capture = Capture::new(&data(name), order);
            let kmt = || fs::read(scratch.convert(&data(name))).expect("it was converted");
            match kind {
                Kind::Kmt => all.push(one(kmt())),
                Kind::TraceDat => {
                    all.push(one(capture.v6(None)));
                    all.push(one(capture.v7(Packing::None, 4096)));
                    all.push(one(capture.v7(Packing::Zlib, 4096)));
                }
                Kind::PerfData => {
                    let kmt = kmt();
                    all.push(one(capture.perf(&kmt, Perf::default())));
                    all.push(one(capture.perf(&kmt, Perf { pipe: true, ..Perf::default() })));
                    all.push(one(capture.perf(&kmt, Perf { sampled: true, ..Perf::default() })));
                }
                // Its seeds are of one capture.
                Kind::Perfetto => {}
                Kind::Text => all.push(one(lines(&data(name).join("trace.txt"), 400))),
                Kind::Directory => all.push(tree(&data(name))),
            }
        }
        if kind == Kind::Kmt {
            all.extend((0..24u64).map(|seed| one(made::file(&story(seed)))));
        }
        let seed = |name: &str| {
            let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
            one(fs::read(seeds.join(name)).expect("a seed of a fuzz target"))
        };
        if kind == Kind::Text {
            all.push(seed("ftrace_text/layouts"));
        }
        if kind == Kind::Perfetto {
            let names = ["new", "dense", "zlib", "sources"];
            all.extend(names.map(|name| seed(&format!("perfetto/{name}"))));
        }
        Self { kind, all }
    }
}

fn story(seed: u64) -> Vec<u8> {
    let mut numbers = super::mutation::Numbers::of(seed, "story", 0);
    (0..4_000).map(|_| numbers.below(256) as u8).collect()
}

fn lines(path: &Path, most: usize) -> Vec<u8> {
    let text = fs::read(path).expect("a text of a capture");
    text.split_inclusive(|&b| b == b'\n').take(most).flatten().copied().collect()
}

/// The files of a tree by their names below it.
fn tree(root: &Path) -> Input {
    let mut out = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("trace.txt") {
                let name = path.strip_prefix(root).expect("below it").to_string_lossy().into_owned();
                out.push((name, fs::read(&path).expect("a file")));
            }
        }
    }
    out.sort();
    out
}
