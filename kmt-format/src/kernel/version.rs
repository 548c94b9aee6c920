//! The output of `uname -a`.

/// Major and minor version of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

impl KernelVersion {
    /// That version.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Parses the start of a release such as `6.1.0-50-amd64`.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        Some(Self { major, minor })
    }
}

/// The words of `uname -a` that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uname {
    /// Release, such as `6.1.0-50-amd64`.
    pub release: String,
    /// Machine, such as `x86_64`; empty if unknown.
    pub machine: String,
}

impl Uname {
    /// Parses the output of `uname -a`, or a bare release.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let release = words.iter().find(|w| KernelVersion::parse(w).is_some())?;
        // `uname -a` ends in MACHINE [PROCESSOR PLATFORM] OS.
        const MACHINES: [&str; 16] = [
            "x86_64",
            "i386",
            "i486",
            "i586",
            "i686",
            "aarch64",
            "armv",
            "s390",
            "ppc",
            "mips",
            "riscv",
            "loongarch",
            "parisc",
            "sparc",
            "alpha",
            "m68k",
        ];
        let machine = words.iter().rev().find(|w| MACHINES.iter().any(|m| w.starts_with(m)));
        let machine = machine.filter(|m| *m != release).map_or(String::new(), |m| (*m).to_owned());
        Some(Self { release: (*release).to_owned(), machine })
    }

    /// The version in the release.
    pub fn version(&self) -> Option<KernelVersion> {
        KernelVersion::parse(&self.release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_uname() {
        let text = "Linux (none) 6.1.0-50-armmp #1 SMP Debian 6.1.176-1 (2026-07-02) armv7l GNU/Linux\n";
        let uname = Uname::parse(text).unwrap();
        assert_eq!((uname.release.as_str(), uname.machine.as_str()), ("6.1.0-50-armmp", "armv7l"));
        assert_eq!(uname.version(), Some(KernelVersion::new(6, 1)));
        assert_eq!(Uname::parse("5.10.223-rt\n").unwrap().version(), Some(KernelVersion::new(5, 10)));
        assert!(Uname::parse("Linux").is_none());
    }
}
