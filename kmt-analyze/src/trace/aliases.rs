//! Aliases of caches that SLUB has merged.
//!
//! Events name the cache that was created first, and other caches share it. Links are in the snapshot of
//! /sys/kernel/slab. `reports/caches`, `--by accounted` and the verdicts of `leaks` ask for the other names.

use std::collections::BTreeMap;

use kmt_common::text::escaped;
use kmt_format::read::Metadata;

/// Most other names of a cache that are listed, and bytes of one: each of its rows lists them.
const LISTED_MAX: usize = 128;
const NAME_MAX: usize = 256;

/// Links of /sys/kernel/slab: one for each merged cache, `ALIAS -> CACHE` in the recording's snapshot.
///
/// Both may be links to a generated name of the form `:0000192`; events have the name of the cache that was created
/// first, which is one of the aliases then.
#[derive(Debug, Default)]
pub struct Aliases {
    /// Target of each link.
    target: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first links to each target.
    links: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    recorded: bool,
}

impl Aliases {
    /// Parses the snapshot, if there is one.
    pub fn parse(snapshot: Option<&[u8]>) -> Self {
        let mut out = Self { recorded: snapshot.is_some(), ..Self::default() };
        for line in snapshot.unwrap_or_default().split(|&b| b == b'\n') {
            let Some(at) = line.windows(4).position(|w| w == b" -> ") else { continue };
            let (alias, target) = line.split_at(at);
            let target = target.get(4..).unwrap_or_default();
            let target = target.rsplit(|&b| b == b'/').next().unwrap_or_default();
            out.target.insert(alias.to_vec(), target.to_vec());
            let links = out.links.entry(target.to_vec()).or_default();
            // One more than are listed: a cache does not list itself.
            if links.len() <= LISTED_MAX && alias.len() <= NAME_MAX {
                links.push(alias.to_vec());
            }
        }
        out
    }

    /// Aliases of a trace; none if /sys/kernel/slab was not recorded.
    pub fn of(metadata: &Metadata<'_>) -> Self {
        let names = ["slab_sysfs.after", "slab_sysfs.before"];
        Self::parse(names.iter().find_map(|name| metadata.attachment(name)))
    }

    /// True if the file has any links.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// True if objects of a cache are accounted to memory cgroups: the generated name of such caches has an A before its
    /// size (`create_unique_id`, mm/slub.c, 4.5 to 7.2). `None`: the cache has no such name, or it is not recorded.
    pub fn is_accounted(&self, name: &[u8]) -> Option<bool> {
        let target = self.target.get(name).map_or(name, Vec::as_slice);
        let flags = target.strip_prefix(b":")?.split(|&b| b == b'-' || b.is_ascii_digit()).next()?;
        Some(flags.contains(&b'A'))
    }

    /// True if the shown name of a cache, or another name of it, contains the text.
    pub fn is_named(&self, name: &str, text: &str) -> bool {
        let others = || self.others(name.as_bytes()).unwrap_or_default();
        name.contains(text) || others().iter().any(|other| escaped(other).contains(text))
    }

    /// Other names of the cache that events name `name`, the first 128; `None`: unknown.
    pub fn others(&self, name: &[u8]) -> Option<Vec<&[u8]>> {
        if !self.recorded {
            return None;
        }
        let target = self.target.get(name).map_or(name, Vec::as_slice);
        let links = self.links.get(target).map(Vec::as_slice).unwrap_or_default();
        let others = links.iter().map(Vec::as_slice).filter(|link| *link != name);
        Some(others.take(LISTED_MAX).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_cache_are_found_from_each() {
        let aliases =
            Aliases::parse(Some(b":0000192 object_size=192\nbio-184 -> :0000192\ndmaengine -> :0000192\n"));
        assert_eq!(aliases.others(b"bio-184"), Some(vec![&b"dmaengine"[..]]));
        assert_eq!(aliases.others(b"dmaengine"), Some(vec![&b"bio-184"[..]]));
        assert_eq!(aliases.others(b"dentry"), Some(Vec::new()));
        assert_eq!(Aliases::parse(None).others(b"dentry"), None);
        let many: String = (0..1_000).map(|i| format!("c{i} -> :0000192\n")).collect();
        let aliases = Aliases::parse(Some(many.as_bytes()));
        assert_eq!([&b"c7"[..], b"c999"].map(|name| aliases.others(name).unwrap().len()), [LISTED_MAX; 2]);
    }

    #[test]
    fn a_letter_of_the_generated_name_tells_that_a_cache_is_accounted() {
        let accounted =
            Aliases::parse(Some(b"filp -> :aA-0000256\nbio-184 -> :0000192\ncred -> :A-0000192\n"));
        let names = [&b"filp"[..], b"cred", b"bio-184", b"dentry"];
        assert_eq!(
            names.map(|name| accounted.is_accounted(name)),
            [Some(true), Some(true), Some(false), None]
        );
    }
}
