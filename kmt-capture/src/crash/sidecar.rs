//! The sidecar: facts that a persistent ring buffer does not keep, written to disk when it is armed.
//!
//! A text: a first line with the version, lines of `KEY VALUE`, then files, each as `file LENGTH NAME`, its bytes and an end of
//! line; `end` is the last line. The files have the names of a saved tracefs folder, so that they are laid out as they are. It is
//! written by root to a folder of root; its content is checked all the same.

use std::collections::HashSet;
use std::path::Path;

use kmt_format::kernel::parse_modules;

use super::rebase::{Addresses, Build};
use crate::failure::{Failure, Result};

/// First line.
const MAGIC: &str = "kmt-capture armed 1";
/// Last line.
const END: &str = "end";
/// Largest sidecar: its files are formats and lists of tasks and modules.
pub const LEN_MAX: u64 = 8 << 20;
/// Files that it has at most.
const FILES_MAX: usize = 4_096;

/// Facts at the time of arming.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sidecar {
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Name of the instance.
    pub instance: String,
    /// The kernel that recorded.
    pub build: Build,
    /// Address of `_text`; `None`: hidden.
    pub text: Option<u64>,
    /// Time of day when it was armed, in nanoseconds since 1970; 0 if unknown.
    pub armed_ns: u64,
    /// Files by their names in a saved tracefs folder.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Sidecar {
    /// A file of it.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(have, _)| have == name).map(|(_, bytes)| bytes.as_slice())
    }

    /// Where the armed boot had its kernel and its modules.
    pub fn addresses(&self) -> Addresses {
        let modules = String::from_utf8_lossy(self.file("modules").unwrap_or_default());
        Addresses { build: self.build.clone(), text: self.text, modules: parse_modules(&modules) }
    }

    /// The text of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = self.text.map(|text| format!("{text:#x}")).unwrap_or_default();
        let mut out = format!("{MAGIC}\n").into_bytes();
        for (key, value) in [
            ("boot_id", &self.boot_id),
            ("instance", &self.instance),
            ("release", &self.build.release),
            ("version", &self.build.version),
            ("machine", &self.build.machine),
            ("text", &text),
            ("armed_ns", &self.armed_ns.to_string()),
        ] {
            let value = value.replace('\n', " ");
            out.extend_from_slice(format!("{key} {value}\n").as_bytes());
        }
        for (name, bytes) in &self.files {
            out.extend_from_slice(format!("file {} {name}\n", bytes.len()).as_bytes());
            out.extend_from_slice(bytes);
            out.push(b'\n');
        }
        out.extend_from_slice(format!("{END}\n").as_bytes());
        out
    }

    /// Parses the text of the file; `path` is its name in messages.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let mut reader = Reader { bytes, at: 0 };
        let wrong = |at: usize, what: &str| {
            Failure::new(format!("{}: offset {at}: {what}", path.display())).hint(
                "the sidecar is damaged or of another version; --same-kernel does without it, if the boot before this one ran this kernel",
            )
        };
        if reader.line() != Some(MAGIC) {
            return Err(wrong(0, "not a sidecar of `kmt-capture arm`"));
        }
        let mut sidecar = Self::default();
        let mut names = HashSet::new();
        loop {
            let at = reader.at;
            let Some(line) = reader.line() else {
                return Err(wrong(at, "the file ends before its last line"));
            };
            if line == END {
                break;
            }
            let Some((key, value)) = line.split_once(' ') else {
                return Err(wrong(at, "a line without a value"));
            };
            if key != "file" {
                sidecar.set(key, value).ok_or_else(|| wrong(at, "a value that is not a number"))?;
                continue;
            }
            let file = value.split_once(' ').and_then(|(len, name)| Some((len.parse::<usize>().ok()?, name)));
            let Some((len, name)) = file.filter(|(_, name)| is_safe(name)) else {
                return Err(wrong(at, "not the length and the name of a file"));
            };
            let Some(content) = reader.file(len) else {
                return Err(wrong(at, "the file ends before its last line"));
            };
            if names.len() >= FILES_MAX || !names.insert(name.to_owned()) {
                return Err(wrong(at, "a second file of that name, or too many files"));
            }
            sidecar.files.push((name.to_owned(), content.to_vec()));
        }
        Ok(sidecar)
    }

    /// Takes in a line; keys of later versions are passed over. `None`: the value is wrong.
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let slot = match key {
            "boot_id" => &mut self.boot_id,
            "instance" => &mut self.instance,
            "release" => &mut self.build.release,
            "version" => &mut self.build.version,
            "machine" => &mut self.build.machine,
            "text" if value.is_empty() => return Some(()),
            "text" => {
                self.text = Some(u64::from_str_radix(value.strip_prefix("0x")?, 16).ok()?);
                return Some(());
            }
            "armed_ns" => {
                self.armed_ns = value.parse().ok()?;
                return Some(());
            }
            _ => return Some(()),
        };
        value.clone_into(slot);
        Some(())
    }
}

/// Position in the bytes of a sidecar.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    /// The next line, if it is UTF-8 and has its end.
    fn line(&mut self) -> Option<&'b str> {
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().position(|&byte| byte == b'\n')?;
        self.at += len + 1;
        std::str::from_utf8(rest.get(..len)?).ok()
    }

    /// The next bytes, and the end of line behind them.
    fn file(&mut self, len: usize) -> Option<&'b [u8]> {
        let end = self.at.checked_add(len)?;
        let content = self.bytes.get(self.at..end)?;
        (self.bytes.get(end) == Some(&b'\n')).then_some(())?;
        self.at = end + 1;
        Some(content)
    }
}

/// True for a relative path that stays in its folder.
fn is_safe(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain);
    name.len() <= 200 && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar() -> Sidecar {
        Sidecar {
            boot_id: "0f9d4b4e-3c3e-4a39-a4b2-3f60b6a0b1c2".to_owned(),
            instance: "boot_map".to_owned(),
            build: Build {
                release: "6.12.107+deb13-amd64".to_owned(),
                version: "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1".to_owned(),
                machine: "x86_64".to_owned(),
            },
            text: Some(0xffff_ffff_9ae0_0000),
            armed_ns: 1_795_277_288_000_000_000,
            files: vec![
                ("modules".to_owned(), b"9pnet 106496 1 9p, Live 0xffffffffc0a40000\n".to_vec()),
                ("events/kmem/kfree/format".to_owned(), b"name: kfree\nend\nfile 3 x\n".to_vec()),
                ("notes".to_owned(), b"\0\xff\n\n".to_vec()),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = sidecar();
        assert_eq!(Sidecar::parse(&written.to_bytes(), Path::new("s")).unwrap(), written);
        assert_eq!(written.addresses().modules[0].base, 0xffff_ffff_c0a4_0000);
        let hidden = Sidecar { text: None, ..written };
        let bytes = hidden.to_bytes();
        assert_eq!(Sidecar::parse(&bytes, Path::new("s")).unwrap(), hidden);
        let later =
            String::from_utf8_lossy(&bytes[..40]).replacen("boot_id", "key of a later version\nboot_id", 1);
        let later = [later.as_bytes(), &bytes[40..]].concat();
        assert_eq!(Sidecar::parse(&later, Path::new("s")).unwrap(), hidden);
    }

    #[test]
    fn every_cut_and_every_name_that_leads_out_is_refused() {
        let bytes = sidecar().to_bytes();
        for len in 0..bytes.len() {
            let failure = Sidecar::parse(&bytes[..len], Path::new("/s")).unwrap_err().to_string();
            assert!(
                failure.starts_with("/s: offset ") && failure.contains("--same-kernel"),
                "{len}: {failure}"
            );
        }
        for name in ["/etc/x", "../x", "a/../b", "a//b", "", "a/.hidden", "a b", "a/\u{e9}"] {
            let text = format!("{MAGIC}\nfile 1 {name}\nx\n{END}\n");
            assert!(Sidecar::parse(text.as_bytes(), Path::new("s")).is_err(), "{name:?}");
        }
        for text in [
            "file 99999999999999999999 a\n",
            "file 18446744073709551615 a\n",
            "text 12\n",
            "armed_ns x\n",
            "word\n",
        ] {
            let text = format!("{MAGIC}\n{text}x\n{END}\n");
            assert!(Sidecar::parse(text.as_bytes(), Path::new("s")).is_err(), "{text:?}");
        }
        let twice = format!("{MAGIC}\nfile 1 a\nx\nfile 1 a\nx\n{END}\n");
        assert!(Sidecar::parse(twice.as_bytes(), Path::new("s")).is_err());
    }
}
