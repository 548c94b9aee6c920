//! How much of an input is read: a small file must not take all memory, nor a sparse one for ever.

use std::fmt;

use crate::import::{Bounds, inflated_max};

/// Most bytes that are read of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All `trace_pipe_raw` of a directory, without the holes in them.
    pub raw: u64,
    /// `kallsyms`, or `System.map`.
    pub kallsyms: u64,
    /// The `format` of an event.
    pub format: u64,
    /// Any other file of a directory.
    pub file: u64,
    /// All files of a directory but `trace_pipe_raw`: they are held in memory.
    pub directory: u64,
    /// Standard input, or a pipe.
    pub stream: u64,
    /// Content of a compressed file, or of the compressed parts of one; `None`: 256 MiB, and 100 bytes more for each byte
    /// that the file has above 16 MiB.
    pub inflated: Option<u64>,
    /// Limits within a trace.dat, a perf.data or a text.
    pub import: Bounds,
    /// Those of a .kmt file.
    pub kmt: kmt_format::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            raw: 64 << 30,
            kallsyms: 256 << 20,
            format: 1 << 20,
            file: 64 << 20,
            directory: 512 << 20,
            stream: 8 << 30,
            inflated: None,
            import: Bounds::default(),
            kmt: kmt_format::Limits::default(),
        }
    }
}

/// A limit's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Limits::raw`].
    Raw,
    /// [`Limits::kallsyms`], and that of [`Limits::import`].
    Kallsyms,
    /// [`Limits::format`].
    Format,
    /// [`Limits::file`].
    File,
    /// [`Limits::directory`].
    Directory,
    /// [`Limits::stream`].
    Stream,
    /// [`Limits::inflated`].
    Inflated,
    /// One of [`Limits::import`], by its name there.
    Import(&'static str),
    /// One of [`Limits::kmt`], by its name there.
    Kmt(&'static str),
}

impl Kind {
    /// Those of inputs that are no .kmt file.
    const FOREIGN: [(&str, Self); 7] = [
        ("raw", Self::Raw),
        ("kallsyms", Self::Kallsyms),
        ("format", Self::Format),
        ("file", Self::File),
        ("directory", Self::Directory),
        ("stream", Self::Stream),
        ("inflated", Self::Inflated),
    ];

    /// Of a limit by its name on the command line.
    pub fn named(name: &str) -> Result<Self, String> {
        let names = || Self::all().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let found = Self::all().find(|(other, _)| *other == name);
        found.map(|(_, kind)| kind).ok_or_else(|| format!("{name:?} is not one of {}", names()))
    }

    /// All names.
    fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let of_kmt = kmt_format::Limits::NAMES.into_iter().map(|name| (name, Self::Kmt(name)));
        let of_import = Bounds::NAMES.into_iter().map(|name| (name, Self::Import(name)));
        Self::FOREIGN.into_iter().chain(of_import).chain(of_kmt)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::all().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl Limits {
    /// Sets one of them; false if it cannot be so large.
    pub fn set(&mut self, kind: Kind, bytes: u64) -> bool {
        match kind {
            Kind::Kmt(name) => return self.kmt.set(name, bytes),
            Kind::Raw => self.raw = bytes,
            Kind::Import(name) => return self.import.set(name, bytes),
            Kind::Kallsyms => {
                self.kallsyms = bytes;
                return self.import.set("kallsyms", bytes);
            }
            Kind::Format => self.format = bytes,
            Kind::File => self.file = bytes,
            Kind::Directory => self.directory = bytes,
            Kind::Stream => self.stream = bytes,
            Kind::Inflated => self.inflated = Some(bytes),
        }
        true
    }

    /// One of them; that of compressed files for one of `packed` bytes.
    pub fn of(&self, kind: Kind, packed: u64) -> u64 {
        match kind {
            Kind::Raw => self.raw,
            Kind::Kallsyms => self.kallsyms,
            Kind::Format => self.format,
            Kind::File => self.file,
            Kind::Directory => self.directory,
            Kind::Stream => self.stream,
            Kind::Inflated => self.inflated.unwrap_or_else(|| inflated_max(packed)),
            // Checked where such a file is read.
            Kind::Import(_) | Kind::Kmt(_) => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_name() {
        for (name, kind) in Kind::all() {
            assert_eq!((Kind::named(name), kind.to_string().as_str()), (Ok(kind), name));
            let mut limits = Limits::default();
            assert!(limits.set(kind, 7));
            match kind {
                Kind::Kmt(_) => assert_ne!(limits.kmt, kmt_format::Limits::default(), "{name}"),
                Kind::Import(_) => assert_ne!(limits.import, Bounds::default(), "{name}"),
                _ => assert_eq!(limits.of(kind, 1 << 40), 7),
            }
        }
        assert!(!Limits::default().set(Kind::Kmt("fields"), 1 << 40));
        assert!(!Limits::default().set(Kind::Import("layouts"), 1 << 40));
        let names: Vec<&str> = Kind::all().map(|(name, _)| name).collect();
        assert!((1..names.len()).all(|at| !names[..at].contains(&names[at])), "{names:?}");
        let inflated = |packed| Limits::default().of(Kind::Inflated, packed);
        assert_eq!((inflated(0), inflated(16 << 20)), (256 << 20, 256 << 20), "small files stay small");
        assert_eq!(inflated(116 << 20), (256 << 20) + (10_000 << 20));
        assert!(Kind::named("none").unwrap_err().contains("raw, kallsyms, format"));
    }
}
