//! `/proc/modules`: where modules lie.

use std::collections::HashMap;

/// One loaded module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name.
    pub name: String,
    /// First address; 0 where the kernel hides it.
    pub base: u64,
    /// Size in bytes, all its parts together.
    pub size: u64,
}

/// Modules by name; of those of one name the first.
pub(crate) fn by_name(modules: &[Module]) -> HashMap<&[u8], &Module> {
    let mut places = HashMap::new();
    for module in modules {
        places.entry(module.name.as_bytes()).or_insert(module);
    }
    places
}

/// Parses `/proc/modules`: `NAME SIZE REFS DEPENDENTS STATE ADDRESS [TAINT]`. Lines that are none are passed over.
pub fn parse_modules(text: &str) -> Vec<Module> {
    let module = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?.to_owned();
        let size = words.next()?.parse().ok()?;
        let base = words.find_map(|w| u64::from_str_radix(w.strip_prefix("0x")?, 16).ok())?;
        Some(Module { name, base, size })
    };
    text.lines().filter_map(module).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_text() {
        let modules =
            parse_modules("9p 65536 1 - Live 0xbf0a4000\nfscache 200704 1 9p, Live 0xbf064000 (E)\nbad\n");
        assert_eq!(modules.len(), 2);
        assert_eq!(modules[1], Module { name: "fscache".into(), base: 0xbf06_4000, size: 200_704 });
    }
}
