//! Names of migrate types.

use kmt_format::read::Metadata;

/// Most migrate types of a kernel, and bytes of a name; Linux 7.2 has 6, the longest with 10 (mm/vmstat.c).
const TYPES_MAX: usize = 64;
const NAME_MAX: usize = 64;

/// Names of types that a line of /proc/pagetypeinfo lists, as many as a kernel can have.
pub fn names_in(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace().take_while(|name| name.len() <= NAME_MAX).take(TYPES_MAX)
}

/// Names in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct MigrateTypes(Vec<String>);

impl MigrateTypes {
    /// Those of the target: /proc/pagetypeinfo lists the types of each zone in the order of their numbers. Without it, the
    /// four of all kernels since 4.4 (enum migratetype, include/linux/mmzone.h).
    pub fn of(metadata: &Metadata<'_>) -> Self {
        let files = ["pagetypeinfo.before", "pagetypeinfo.after", "pagetypeinfo"];
        let text = files.iter().find_map(|n| metadata.attachment(n)).unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for line in String::from_utf8_lossy(text).lines() {
            // Node    0, zone      DMA, type    Unmovable      1 ...
            let Some((_, rest)) = line.split_once(", type") else { continue };
            let Some(name) = names_in(rest).next() else { break };
            if names.len() == TYPES_MAX || names.iter().any(|n| n == name) {
                break;
            }
            names.push(name.to_owned());
        }
        if names.is_empty() {
            names = ["Unmovable", "Movable", "Reclaimable", "HighAtomic"].map(str::to_owned).to_vec();
        }
        Self(names)
    }

    /// Name of a migrate type, if it is known.
    pub fn get(&self, number: i32) -> Option<&str> {
        usize::try_from(number).ok().and_then(|number| self.0.get(number)).map(String::as_str)
    }

    /// Name of a migrate type, or its number.
    pub fn name(&self, number: i32) -> String {
        self.get(number).map_or_else(|| number.to_string(), str::to_owned)
    }
}
