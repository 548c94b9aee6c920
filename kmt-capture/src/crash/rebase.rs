//! Symbols of the boot that filled a persistent ring buffer, from those of the boot that reads it.
//!
//! KASLR moves kernel and modules in each boot. Two boots of one build differ by one distance for the kernel, and by one for the
//! text of each module. Addresses come from `last_boot_info` and the sidecar. A symbol that neither of them places is left out:
//! a bare address is better than the name of another function.

use std::collections::BTreeMap;

use kmt_common::text::{count, shown};
use kmt_format::kernel::Module;

use super::last_boot::LastBoot;

/// Names of modules that a note lists.
const NAMED_MAX: usize = 8;

/// Identity of a kernel build: words of `uname`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub machine: String,
}

/// Where a boot has its kernel and its modules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The build that it runs.
    pub build: Build,
    /// Address of `_text`; `None`: not known, or hidden.
    pub text: Option<u64>,
    /// Loaded modules; their base is 0 where it is hidden.
    pub modules: Vec<Module>,
}

/// Distances from this boot to the boot that filled the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebase {
    /// `_text` of this boot.
    text: u64,
    /// Distance of the kernel, modulo 2^64.
    kernel: u64,
    /// Modules that are loaded in both boots.
    modules: BTreeMap<String, Moved>,
    /// Modules of that boot, with their addresses there.
    pub then: Vec<Module>,
    /// Remarks on the placed symbols, a sentence each.
    pub notes: Vec<String>,
}

/// A module in this boot, and its distance.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Moved {
    now: Module,
    by: u64,
}

/// Why symbols are left out, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The names of this boot do not apply to that boot, or its addresses are not known.
    Bare(String),
    /// The buffer was filled in another boot than the one of the sidecar.
    OtherBoot(String),
}

/// Finds the distances. `armed` is the boot of the sidecar, `now` the boot that reads; without `armed` both run the same build.
pub fn rebase(last: &LastBoot, armed: Option<&Addresses>, now: &Addresses) -> Result<Rebase, Refusal> {
    if let Some(armed) = armed.filter(|armed| armed.build != now.build) {
        return Err(Refusal::Bare(format!(
            "this boot runs another build of the kernel ({}) than the one that recorded ({}): addresses have no names",
            described(&now.build),
            described(&armed.build)
        )));
    }
    let Some(text) = now.text else {
        return Err(Refusal::Bare(
            "/proc/kallsyms does not show the address of _text: addresses have no names".to_owned(),
        ));
    };
    let by_kernel = match last {
        LastBoot::Moved(delta) => Some(text.wrapping_sub(*delta as u64)),
        LastBoot::Placed { text, .. } => Some(*text),
        LastBoot::Current | LastBoot::Unknown => None,
    };
    let by_sidecar = armed.and_then(|armed| armed.text);
    if let Some((kernel, sidecar)) = by_kernel.zip(by_sidecar).filter(|(kernel, sidecar)| kernel != sidecar) {
        return Err(Refusal::OtherBoot(format!(
            "the buffer was filled in another boot than the armed one: there _text was at {kernel:#x}, in the armed boot at {sidecar:#x}"
        )));
    }
    let Some(then) = by_kernel.or(by_sidecar) else {
        return Err(Refusal::Bare(
            "neither last_boot_info nor the sidecar has the address of _text: addresses have no names"
                .to_owned(),
        ));
    };
    let mut found = Rebase {
        text,
        kernel: then.wrapping_sub(text),
        modules: BTreeMap::new(),
        then: Vec::new(),
        notes: vec![moved_note(text, then)],
    };
    found.place_modules(last, armed, now);
    Ok(found)
}

impl Rebase {
    fn place_modules(&mut self, last: &LastBoot, armed: Option<&Addresses>, now: &Addresses) {
        let recorded: &[Module] = armed.map_or(&[], |armed| &armed.modules);
        let size_then =
            |name: &str| recorded.iter().find(|module| module.name == name).map(|module| module.size);
        let bases: BTreeMap<&str, u64> = match last {
            LastBoot::Placed { modules, .. } => {
                modules.iter().map(|(name, base)| (name.as_str(), *base)).collect()
            }
            _ => recorded.iter().map(|module| (module.name.as_str(), module.base)).collect(),
        };
        let mut unplaced = Vec::new();
        for (name, base) in bases.into_iter().filter(|(_, base)| *base != 0) {
            let loaded = now.modules.iter().find(|module| module.name == name && module.base != 0);
            let size = size_then(name).or(loaded.map(|module| module.size));
            self.then.extend(size.map(|size| Module { name: name.to_owned(), base, size }));
            // A module of another size is of another build.
            match loaded.filter(|module| size == Some(module.size)) {
                Some(module) => {
                    let moved = Moved { now: module.clone(), by: base.wrapping_sub(module.base) };
                    self.modules.insert(name.to_owned(), moved);
                }
                None => unplaced.push(shown(name.as_bytes())),
            }
        }
        let from = match last {
            LastBoot::Placed { .. } => "the kernel has their addresses",
            _ => "with their addresses at the time of arming",
        };
        self.notes.push(format!("{} placed, {from}", count(self.modules.len() as u64, "module")));
        if !unplaced.is_empty() {
            let named = unplaced.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            let more = if unplaced.len() > NAMED_MAX { " and others" } else { "" };
            self.notes.push(format!(
                "functions of these modules have no names, as this boot does not have the same modules: {named}{more}"
            ));
        }
    }

    /// Appends a line of /proc/kallsyms as it was in that boot; nothing for a symbol whose address there is not known.
    pub fn line(&self, line: &[u8], out: &mut Vec<u8>) {
        let Some((address, kind, rest)) = split(line) else { return };
        let owner = rest.iter().position(|&byte| byte == b'\t').and_then(|tab| rest.get(tab + 1..));
        let address = match owner {
            None => self.of_kernel(address, kind),
            Some(owner) => match self.of_module(address, kind, owner) {
                Some(address) => address,
                None => return,
            },
        };
        out.extend_from_slice(format!("{address:016x} {} ", char::from(kind)).as_bytes());
        out.extend_from_slice(rest);
        out.push(b'\n');
    }

    /// Absolute symbols, and offsets in the per-CPU area, do not move.
    fn of_kernel(&self, address: u64, kind: u8) -> u64 {
        let moves = address >= self.text && !matches!(kind, b'a' | b'A');
        if moves { address.wrapping_add(self.kernel) } else { address }
    }

    /// Only the text of a module moves with its base: its data is elsewhere since 6.4 (`module_memory`, kernel/module).
    fn of_module(&self, address: u64, kind: u8, owner: &[u8]) -> Option<u64> {
        let name = std::str::from_utf8(owner.strip_prefix(b"[")?.strip_suffix(b"]")?).ok()?;
        let moved = self.modules.get(name)?;
        let offset = address.checked_sub(moved.now.base)?;
        let is_text = matches!(kind, b't' | b'T') && offset < moved.now.size;
        is_text.then(|| address.wrapping_add(moved.by))
    }

    /// /proc/modules of that boot, with the known modules.
    pub fn modules(&self) -> String {
        let line =
            |module: &Module| format!("{} {} 0 - Live {:#018x}\n", module.name, module.size, module.base);
        self.then.iter().map(line).collect()
    }
}

fn moved_note(now: u64, then: u64) -> String {
    format!("_text was at {then:#x} in that boot, and is at {now:#x} in this one")
}

fn described(build: &Build) -> String {
    shown(format!("{} {} {}", build.release, build.version, build.machine).as_bytes())
}

/// Address, letter, and the name with the module behind it.
fn split(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let blank = line.iter().position(|&byte| byte == b' ')?;
    let address = std::str::from_utf8(line.get(..blank)?).ok()?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (&kind, rest) = line.get(blank + 1..)?.split_first()?;
    Some((address, kind, rest.strip_prefix(b" ").filter(|rest| !rest.is_empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    fn module(name: &str, base: u64, size: u64) -> Module {
        Module { name: name.to_owned(), base, size }
    }

    fn boot(text: u64, modules: Vec<Module>) -> Addresses {
        let build = Build {
            release: "6.12.107+deb13-amd64".to_owned(),
            version: "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1".to_owned(),
            machine: "x86_64".to_owned(),
        };
        Addresses { build, text: Some(text), modules }
    }

    fn lines(rebase: &Rebase, text: &str) -> String {
        let mut out = Vec::new();
        text.lines().for_each(|line| rebase.line(line.as_bytes(), &mut out));
        String::from_utf8(out).unwrap()
    }

    const KALLSYMS: &str = "0000000000000000 A fixed_percpu_data\n000000000001f000 a cpu_tss_rw\n\
        ffffffff81000000 T _text\nffffffff81000100 t do_open\nffffffff83000000 B _end\n\
        ffffffffc0100010 t p9_read\t[9pnet]\nffffffffc0900000 d p9_data\t[9pnet]\n\
        ffffffffc0200000 t other\t[gone]\nffffffffc0300000 t prog\t[bpf]\nnot a line\n";

    #[test]
    fn the_kernel_moves_by_the_delta_of_6_12_and_modules_by_the_sidecar() {
        let armed = boot(TEXT + 0x1200_0000, vec![module("9pnet", 0xffff_ffff_c050_0000, 8_192)]);
        let now = boot(TEXT, vec![module("9pnet", 0xffff_ffff_c010_0000, 8_192)]);
        let found = rebase(&LastBoot::Moved(-0x1200_0000), Some(&armed), &now).unwrap();
        assert_eq!(
            lines(&found, KALLSYMS),
            "0000000000000000 A fixed_percpu_data\n000000000001f000 a cpu_tss_rw\n\
             ffffffff93000000 T _text\nffffffff93000100 t do_open\nffffffff95000000 B _end\n\
             ffffffffc0500010 t p9_read\t[9pnet]\n"
        );
        assert_eq!(found.modules(), "9pnet 8192 0 - Live 0xffffffffc0500000\n");
        assert_eq!(found.notes[1], "1 module placed, with their addresses at the time of arming");
    }

    #[test]
    fn the_kernel_of_7_2_places_modules_by_itself() {
        let bases = [
            ("9pnet", 0xffff_ffff_c0a0_0000),
            ("late", 0xffff_ffff_c0b0_0000),
            ("away", 0xffff_ffff_c0c0_0000),
        ];
        let modules = bases.map(|(name, base)| (name.to_owned(), base)).into();
        let last = LastBoot::Placed { text: TEXT - 0x100, modules };
        let armed = boot(TEXT - 0x100, vec![module("9pnet", 0xffff_ffff_c0ee_0000, 8_192)]);
        let now = boot(
            TEXT,
            vec![module("9pnet", 0xffff_ffff_c010_0000, 8_192), module("late", 0xffff_ffff_c020_0000, 4_096)],
        );
        let found = rebase(&last, Some(&armed), &now).unwrap();
        let text = "ffffffffc0100010 t p9_read\t[9pnet]\nffffffffc0200ff0 T f\t[late]\nffffffffc0201000 T g\t[late]\n";
        assert_eq!(
            lines(&found, text),
            "ffffffffc0a00010 t p9_read\t[9pnet]\nffffffffc0b00ff0 T f\t[late]\n",
            "the reloaded module is where the kernel has it"
        );
        assert_eq!(found.then.len(), 2, "the size of the third is unknown");
        assert!(found.notes[2].ends_with("does not have the same modules: away"), "{:?}", found.notes);
        // Without the sidecar the build is the caller's assumption.
        assert!(rebase(&last, None, &now).is_ok());
    }

    #[test]
    fn another_build_or_another_boot_is_refused() {
        let armed = boot(TEXT, vec![module("m", 0xffff_ffff_c050_0000, 8_192)]);
        let mut now = boot(TEXT, vec![module("m", 0xffff_ffff_c010_0000, 4_096)]);
        let found = rebase(&LastBoot::Unknown, Some(&armed), &now).unwrap();
        assert_eq!(
            lines(&found, "ffffffffc0100010 t f\t[m]\n"),
            "",
            "a module of another size is another one"
        );
        let Err(Refusal::OtherBoot(text)) = rebase(&LastBoot::Moved(0x1000), Some(&armed), &now) else {
            panic!()
        };
        assert!(text.contains("0xffffffff80fff000") && text.contains("0xffffffff81000000"), "{text}");
        assert!(matches!(rebase(&LastBoot::Unknown, None, &now), Err(Refusal::Bare(_))));
        now.text = None;
        assert!(matches!(rebase(&LastBoot::Moved(0), Some(&armed), &now), Err(Refusal::Bare(_))));
        now = boot(TEXT, Vec::new());
        now.build.version = "#2 SMP".to_owned();
        let Err(Refusal::Bare(text)) = rebase(&LastBoot::Moved(0), Some(&armed), &now) else { panic!() };
        assert!(text.contains("another build of the kernel (6.12.107+deb13-amd64 #2 SMP x86_64)"), "{text}");
    }
}
