//! Aliases of caches that SLUB has merged.

use std::collections::BTreeMap;

/// Links of /sys/kernel/slab: one for each merged cache, `ALIAS -> CACHE` in the recording's snapshot.
///
/// Both may be links to a generated name of the form `:0000192`; events have the name of the cache that was created
/// first, which is one of the aliases then.
#[derive(Debug, Default)]
pub struct Aliases {
    /// Target of each link.
    target: BTreeMap<Vec<u8>, Vec<u8>>,
    /// All links to a target.
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
            out.links.entry(target.to_vec()).or_default().push(alias.to_vec());
        }
        out
    }

    /// True if the file has any links.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Other names of the cache that events name `name`; `None`: unknown.
    pub fn of(&self, name: &[u8]) -> Option<Vec<&[u8]>> {
        if !self.recorded {
            return None;
        }
        let target = self.target.get(name).map_or(name, Vec::as_slice);
        let links = self.links.get(target).map(Vec::as_slice).unwrap_or_default();
        Some(links.iter().filter(|l| l.as_slice() != name).map(Vec::as_slice).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_cache_are_found_from_each() {
        let aliases =
            Aliases::parse(Some(b":0000192 object_size=192\nbio-184 -> :0000192\ndmaengine -> :0000192\n"));
        assert_eq!(aliases.of(b"bio-184"), Some(vec![&b"dmaengine"[..]]));
        assert_eq!(aliases.of(b"dmaengine"), Some(vec![&b"bio-184"[..]]));
        assert_eq!(aliases.of(b"dentry"), Some(Vec::new()));
        assert_eq!(Aliases::parse(None).of(b"dentry"), None);
    }
}
