//! Part of the kernel that a function is in, by its name: for traces without debug information.
//!
//! The names are in subsystems.txt, which `.ci/subsystems` makes from debug packages of distributions. A function is
//! found by its whole name, else by its longest begin that ends with `_`; names that occur in several parts have none.
//! `source/table` uses it for addresses without lines, and marks these directories as inferred.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Names by part of the kernel, made by `.ci/subsystems` from debug packages.
const RULES: &str = include_str!("subsystems.txt");

/// The part of names that are in several.
const SEVERAL: &str = "?";

/// Begins of the kernel's names for the function of a system call: arch/*/include/asm/syscall_wrapper.h of Linux 6.12.
const CALLS: [&str; 5] = ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];

/// The part of what each machine has of its own.
const ARCH: &str = "arch";

/// Machines, as `uname -m` begins, and their directories in `arch`.
const MACHINES: [(&str, &str); 16] = [
    ("x86", "arch/x86"),
    ("i3", "arch/x86"),
    ("i4", "arch/x86"),
    ("i5", "arch/x86"),
    ("i6", "arch/x86"),
    ("aarch64", "arch/arm64"),
    ("arm64", "arch/arm64"),
    ("arm", "arch/arm"),
    ("riscv", "arch/riscv"),
    ("mips", "arch/mips"),
    ("ppc", "arch/powerpc"),
    ("s390", "arch/s390"),
    ("loongarch", "arch/loongarch"),
    ("sparc", "arch/sparc"),
    ("parisc", "arch/parisc"),
    ("m68k", "arch/m68k"),
];

/// The subsystem of a function in a module, or in the kernel itself, of a machine.
pub fn subsystem(function: &str, module: Option<&str>, machine: Option<&str>) -> Option<&'static str> {
    let part = module.and_then(of_module).or_else(|| of_function(function))?;
    let own = || MACHINES.iter().find(|(begin, _)| machine.is_some_and(|machine| machine.starts_with(begin)));
    Some(if part == ARCH { own().map_or(part, |(_, directory)| directory) } else { part })
}

fn of_function(function: &str) -> Option<&'static str> {
    // A mangled name of Rust, whose drivers are modules.
    if function.starts_with("_R") {
        return Some("rust");
    }
    by_name(function, |name| table().get(name).copied()).filter(|part| *part != SEVERAL)
}

/// That of a module's name, or of functions whose names begin with it.
fn of_module(module: &str) -> Option<&'static str> {
    let named = table().get(format!("[{module}]").as_str()).copied();
    named.or_else(|| of_function(&format!("{module}_")))
}

fn table() -> &'static HashMap<&'static str, &'static str> {
    static TABLE: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    TABLE.get_or_init(|| parse(RULES))
}

/// Longest begin of a name that is looked up: none of the table, and no module's name, is longer.
const BEGIN_MAX: usize = 64;

/// The value of a name: its own, else that of its longest begin that ends with `_`.
pub fn by_name<T>(function: &str, of: impl Fn(&str) -> Option<T>) -> Option<T> {
    // Compilers add .constprop.0 and the like.
    let function = function.split('.').next().unwrap_or(function);
    let call = CALLS.iter().find_map(|begin| function.strip_prefix(begin));
    let name = call.map_or(function.trim_start_matches('_').to_owned(), |call| format!("sys_{call}"));
    let ends = name.rmatch_indices('_').filter(|(at, _)| *at < BEGIN_MAX);
    let begins = ends.filter_map(|(at, _)| name.get(..=at));
    of(&name).or_else(|| begins.into_iter().find_map(of))
}

/// Lines of a part and its names: functions, their begins with `_` at the end, modules in brackets.
fn parse(text: &str) -> HashMap<&str, &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(part, names)| names.split(' ').map(move |name| (name, part)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Directory;

    #[test]
    fn the_longest_begin_of_a_name_decides() {
        let table = parse("# made\nfs/ext4: ext4_ ext4\nmm: vm_ vm_area_ do_brk\n?: vm_area_x\n");
        let part = |name: &str| by_name(name, |name| table.get(name).copied());
        assert_eq!(part("__ext4_new_inode.isra.0"), Some("fs/ext4"));
        assert_eq!(part("vm_area_dup"), Some("mm"));
        assert_eq!(part("vm_area_x"), Some("?"));
        assert_eq!((part("do_brk"), part("do_brk_flags"), part("brk")), (Some("mm"), None, None));
    }

    #[test]
    fn few_begins_of_a_long_name_are_looked_up() {
        let looked_up = std::cell::RefCell::new(Vec::new());
        let found: Option<()> = by_name(&"a_".repeat(500), |name| {
            looked_up.borrow_mut().push(name.len());
            None
        });
        let expected: Vec<usize> = [1000].into_iter().chain((2..=BEGIN_MAX).rev().step_by(2)).collect();
        assert_eq!((found, looked_up.into_inner()), (None, expected));
    }

    #[test]
    fn no_begin_of_the_table_is_longer_than_those_that_are_looked_up() {
        assert!(table().keys().filter(|key| key.ends_with('_')).all(|key| key.len() <= BEGIN_MAX));
    }

    #[test]
    fn the_table_has_well_known_functions() {
        for (name, module, part) in [
            ("ext4_alloc_inode", None, "fs/ext4"),
            ("__x64_sys_openat", None, "fs"),
            ("alloc_skb_with_frags", None, "net/core"),
            ("e1000_probe", None, "drivers/net"),
            ("seq_open", None, "fs"),
            ("copy_thread", None, "arch/riscv"),
            ("no_such_function_anywhere", None, ""),
            ("no_such_function_anywhere", Some("bluetooth"), "net/bluetooth"),
        ] {
            assert_eq!(subsystem(name, module, Some("riscv64")).unwrap_or_default(), part, "{name}");
        }
        assert_eq!(subsystem("copy_thread", None, None), Some("arch"));
    }

    /// Functions of a kernel that the table was not made from, as `.ci/subsystems functions` lists them.
    #[test]
    #[ignore = "needs KMT_FUNCTIONS"]
    fn the_table_holds_for_another_kernel() {
        let path = std::env::var_os("KMT_FUNCTIONS").expect("KMT_FUNCTIONS");
        let text = std::fs::read_to_string(path).unwrap();
        let machine = std::env::var("KMT_MACHINE").unwrap_or("x86_64".to_owned());
        for is_loaded in [false, true] {
            let (mut all, mut found, mut right) = (0, 0, 0);
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let row: Vec<&str> = line.split('\t').collect();
                let [function, directory, module] = row[..] else { panic!("{line}") };
                // Functions of headers are those of the files that include them.
                if directory.starts_with("include")
                    || directory.starts_with("tools")
                    || module.is_empty() == is_loaded
                {
                    continue;
                }
                let file = format!("{directory}/x.c");
                let true_one = Directory::of(&file).subsystem().to_owned();
                let inferred =
                    subsystem(function, Some(module).filter(|module| !module.is_empty()), Some(&machine));
                all += 1;
                found += usize::from(inferred.is_some());
                right += usize::from(inferred == Some(&true_one));
            }
            let (found_share, right_share) = (found as f64 / all as f64, right as f64 / found as f64);
            println!("modules {is_loaded}: {all} functions, found {found_share:.4}, right {right_share:.4}");
            assert!(found_share >= 0.8 && right_share >= 0.99, "{all} {found} {right}");
        }
    }
}
