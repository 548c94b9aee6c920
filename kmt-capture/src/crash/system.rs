//! The running system as `arm` and `collect` read it: texts of /proc and /sys below one folder, which tests replace.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use kmt_format::kernel::{Module, parse_modules};

use super::rebase::{Addresses, Build};

/// The running system.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self::at("/")
    }
}

impl System {
    /// With its /proc and /sys below this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Path of a file, such as `proc/modules`.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A file of it.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path(name)).ok()
    }

    /// A file of it as text, without the end of line.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.read(name)?).trim_end().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Identity of this boot; empty if unknown.
    pub(super) fn boot_id(&self) -> String {
        self.text("proc/sys/kernel/random/boot_id").unwrap_or_default()
    }

    /// The kernel that runs.
    pub(super) fn build(&self) -> Build {
        let uname = rustix::system::uname();
        let word = |name: &str, word: &std::ffi::CStr| {
            self.text(&format!("proc/sys/kernel/{name}"))
                .unwrap_or_else(|| word.to_string_lossy().into_owned())
        };
        Build {
            release: word("osrelease", uname.release()),
            version: word("version", uname.version()),
            machine: uname.machine().to_string_lossy().into_owned(),
        }
    }

    /// As `uname -a` prints it.
    pub(super) fn uname_line(&self) -> String {
        let Build { release, version, machine } = self.build();
        let host = self
            .text("proc/sys/kernel/hostname")
            .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
        format!("Linux {host} {release} {version} {machine} GNU/Linux\n")
    }

    /// True if some possible CPUs are not online.
    pub(super) fn has_offline_cpus(&self) -> bool {
        let list = |name: &str| self.text(&format!("sys/devices/system/cpu/{name}"));
        list("possible") != list("online")
    }

    /// Where it has its kernel and its modules.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { build: self.build(), text: self.text_address(), modules: self.modules() }
    }

    fn modules(&self) -> Vec<Module> {
        let text = self.read("proc/modules").unwrap_or_default();
        parse_modules(&String::from_utf8_lossy(&text))
    }

    /// Address of `_text`; `None` if there is none, or it is hidden.
    pub(super) fn text_address(&self) -> Option<u64> {
        let kallsyms = BufReader::new(File::open(self.path("proc/kallsyms")).ok()?);
        for line in kallsyms.split(b'\n').map_while(|line| line.ok()) {
            let Some(address) = line.strip_suffix(b" _text") else { continue };
            let address = String::from_utf8_lossy(address.split(|&byte| byte == b' ').next()?).into_owned();
            return u64::from_str_radix(&address, 16).ok().filter(|&address| address != 0);
        }
        None
    }
}

/// Nanoseconds since 1970; 0 if the clock is wrong.
pub(super) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|now| now.as_nanos());
    now.ok().and_then(|now| u64::try_from(now).ok()).unwrap_or(0)
}
