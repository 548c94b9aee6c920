//! What an anonymized file shows to anybody.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kmt_format::read::Trace;
use kmt_format::schema::Role;

/// Frames of a block that moves as one, with pages of 4 KiB.
pub const BLOCK: u64 = 1 << 10;

/// What a file shows.
pub struct View {
    /// The file.
    pub bytes: Vec<u8>,
    pub is_little: bool,
    pub long_size: usize,
    pub sites: Vec<u64>,
    pub objects: Vec<u64>,
    pub frames: Vec<u64>,
    /// Address, size, name of functions, in the order of the file.
    pub symbols: Vec<(u64, u64, Vec<u8>)>,
    pub files: Vec<String>,
}

impl View {
    pub fn of(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        let mut view = Self {
            bytes: Vec::new(),
            is_little: trace.header().order == kmt_format::kernel::ByteOrder::Little,
            long_size: trace.header().long_size,
            sites: Vec::new(),
            objects: Vec::new(),
            frames: Vec::new(),
            symbols: Vec::new(),
            files: Vec::new(),
        };
        let mut merge = trace.merge();
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                view.sites.extend(event.uint_with(Role::CALL_SITE));
                view.objects.extend(event.uint_with(Role::PTR));
                let frame = event.uint_with(Role::PFN).filter(|&pfn| pfn < 1 << 48 && pfn != 0xffff_ffff);
                view.frames.extend(frame);
            }
        }
        let symbols = trace.symbols().into_iter().flat_map(|table| table.entries());
        view.symbols = symbols.map(|s| (s.address, s.size, s.name.to_vec())).collect();
        let files = trace.metadata().attachments.iter();
        view.files = files.map(|f| String::from_utf8_lossy(&f.contents).into_owned()).collect();
        view.bytes = bytes;
        view
    }

    pub fn symbol(&self, name: &[u8]) -> Option<u64> {
        self.symbols.iter().find(|s| s.2 == name).map(|s| s.0)
    }

    /// All words anywhere in the file.
    pub fn words(&self) -> Vec<u64> {
        let word = |bytes: &[u8]| {
            let value = bytes.iter().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
            if self.is_little { value.swap_bytes() >> (64 - 8 * bytes.len()) } else { value }
        };
        let all = (0..self.bytes.len() / 4).filter_map(|i| self.bytes.get(i * 4..i * 4 + self.long_size));
        let mut words: Vec<u64> = all.map(word).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Blocks of frames in the order of their first use.
    pub fn blocks(&self) -> Vec<u64> {
        let mut seen = BTreeSet::new();
        self.frames.iter().map(|pfn| pfn / BLOCK).filter(|&block| seen.insert(block)).collect()
    }

    /// The function that holds an address: index in `symbols`.
    pub fn function(&self, address: u64) -> Option<usize> {
        let holds = |s: &&(usize, &(u64, u64, Vec<u8>))| s.1.0 <= address && address - s.1.0 < s.1.1.max(1);
        self.symbols.iter().enumerate().find(|s| holds(&s)).map(|(index, _)| index)
    }
}
