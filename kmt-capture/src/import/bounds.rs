//! How much of another tool's file is taken in, by name.

/// Most of each kind of thing that a foreign file may hold. Every bound that refuses a file, or leaves out what it holds,
/// is here; what a kernel or a format cannot exceed is a constant where it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// All formats of a trace.dat or perf.data and the names of their systems, in bytes; those of Linux have some 6 MB.
    pub formats: u64,
    /// kallsyms in such a file, in bytes, with a line for each 16 of them; a kernel with many modules has 300,000 symbols.
    pub kallsyms: u64,
    /// saved_cmdlines in such a file, in bytes, with a line for each 32 of them; the kernel keeps 32,768 names at most.
    pub saved_cmdlines: u64,
    /// modules in a trace.dat, in bytes, with a line for each 64 of them.
    pub modules: u64,
    /// Options and buffers of a trace.dat; there is one for each CPU's counters.
    pub options: u64,
    /// One compressed part of a trace.dat, in bytes.
    pub compressed_part: u64,
    /// One compressed record of a perf.data, in bytes: perf flushes a buffer into it, which has some MiB.
    pub compressed_record: u64,
    /// Event attributes, and ids of them, of a perf.data: one for each event and CPU.
    pub ids: u64,
    /// Compressed packets in one packet of a Perfetto trace, in bytes.
    pub compressed_packet: u64,
    /// Sequences of packets with events in a Perfetto trace: one for each data source.
    pub sequences: u64,
    /// Tasks of a Perfetto trace whose names are kept.
    pub tasks: u64,
    /// Records of a perf.data, and events of several data sources of a Perfetto trace, that wait to be sorted, in bytes; `None`: a quarter of the file, 64 to 256 MiB.
    pub waiting: Option<u64>,
    /// Call sites of which a perf.data's sampled events are added up one by one.
    pub sampled_sites: u64,
    /// Layouts of records that the events of a text or of a Perfetto trace need.
    pub layouts: u64,
    /// Functions that a text or a Perfetto trace names.
    pub functions: u64,
    /// `key=value` pairs of one event of a text; fields of an event that a Perfetto trace describes.
    pub pairs: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            formats: 16 << 20,
            kallsyms: 32 << 20,
            saved_cmdlines: 32 << 20,
            modules: 4 << 20,
            options: 65_536,
            compressed_part: 256 << 20,
            compressed_record: 64 << 20,
            ids: 1 << 20,
            compressed_packet: 64 << 20,
            sequences: 256,
            tasks: 262_144,
            waiting: None,
            sampled_sites: 65_536,
            layouts: 4096,
            functions: 1 << 20,
            pairs: 64,
        }
    }
}

impl Bounds {
    /// Names of all of them but `kallsyms`, whose name can be that of a directory as well.
    pub const NAMES: [&'static str; 15] = [
        "formats",
        "saved_cmdlines",
        "modules",
        "options",
        "compressed_part",
        "compressed_record",
        "ids",
        "compressed_packet",
        "sequences",
        "tasks",
        "waiting",
        "sampled_sites",
        "layouts",
        "functions",
        "pairs",
    ];
    /// Event ids have 16 bits, of which some are the kernel's own.
    const LAYOUTS_MAX: u64 = 65_000;
    /// A class has 256 fields, the common ones among them.
    const PAIRS_MAX: u64 = 240;

    /// Sets the bound of that name; false if there is none, or if it cannot be so large.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        match name {
            "formats" => self.formats = value,
            "kallsyms" => self.kallsyms = value,
            "saved_cmdlines" => self.saved_cmdlines = value,
            "modules" => self.modules = value,
            "options" => self.options = value,
            "compressed_part" => self.compressed_part = value,
            "compressed_record" => self.compressed_record = value,
            "ids" => self.ids = value,
            "compressed_packet" => self.compressed_packet = value,
            "sequences" => self.sequences = value,
            "tasks" => self.tasks = value,
            "waiting" => self.waiting = Some(value),
            "sampled_sites" => self.sampled_sites = value,
            "layouts" if value <= Self::LAYOUTS_MAX => self.layouts = value,
            "functions" => self.functions = value,
            "pairs" if value <= Self::PAIRS_MAX => self.pairs = value,
            _ => return false,
        }
        true
    }
}

/// The remedy where the bound of that name is exceeded.
pub(crate) fn raise(name: &str) -> String {
    format!("--limit {name}=SIZE raises the limit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_can_be_set_by_its_name() {
        for name in Bounds::NAMES.into_iter().chain(["kallsyms"]) {
            let mut bounds = Bounds::default();
            assert!(bounds.set(name, 77) && bounds != Bounds::default(), "{name}");
            let set = format!("{bounds:?}");
            assert!(
                set.contains(&format!("{name}: 77")) || set.contains(&format!("{name}: Some(77)")),
                "{name}"
            );
        }
        let fields = format!("{:?}", Bounds::default()).matches(": ").count();
        assert_eq!(fields, Bounds::NAMES.len() + 1);
        for (name, value) in [("layouts", 65_001), ("pairs", 241), ("nonsense", 1)] {
            assert!(!Bounds::default().set(name, value), "{name}");
        }
    }
}
