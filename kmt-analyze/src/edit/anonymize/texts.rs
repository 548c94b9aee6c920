//! Replacement names: a text has the same replacement everywhere in a file.

use std::collections::{HashMap, HashSet};

use super::keys::{Purpose, SecretKeys};
use super::mainline;
use crate::trace::names::is_kmalloc;

/// Names of caches to replace. Suffixes of memory cgroups are always replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTexts {
    /// None.
    Keep,
    /// Those that mainline Linux does not have.
    Mainline,
    /// All but kmalloc's.
    Hide,
}

/// Replaced texts.
#[derive(Debug)]
pub struct Texts {
    keys: SecretKeys,
    caches: CacheTexts,
    numbers: HashMap<(&'static str, Vec<u8>), u64>,
    taken: HashSet<(&'static str, u64)>,
}

impl Texts {
    /// No replacements.
    pub fn new(keys: SecretKeys, caches: CacheTexts) -> Self {
        Self { keys, caches, numbers: HashMap::new(), taken: HashSet::new() }
    }

    /// Number of replaced texts of a kind.
    pub fn count(&self, kind: &str) -> usize {
        self.numbers.keys().filter(|(k, _)| *k == kind).count()
    }

    /// Replacement of a task's name.
    pub fn task(&mut self, name: &[u8]) -> Vec<u8> {
        match name {
            b"" | b"<idle>" | b"<...>" => name.to_vec(),
            _ if name.starts_with(b"swapper") => b"swapper".to_vec(),
            _ => self.name(name, "task"),
        }
    }

    /// Replacement of a cache's name.
    pub fn cache(&mut self, name: &[u8]) -> Vec<u8> {
        let own = name.split(|&b| b == b'(').next().unwrap_or_default();
        let is_hidden = match self.caches {
            CacheTexts::Keep => false,
            CacheTexts::Mainline => !mainline::has_cache(own),
            CacheTexts::Hide => !is_kmalloc(own),
        };
        if is_hidden || own.len() < name.len() { self.name(own, "cache") } else { name.to_vec() }
    }

    /// Replacement of a name of that kind, with a random number.
    pub fn name(&mut self, name: &[u8], kind: &'static str) -> Vec<u8> {
        let (keys, taken) = (self.keys, &mut self.taken);
        let number = *self.numbers.entry((kind, name.to_vec())).or_insert_with(|| {
            // Six digits as long as they suffice, so that a task's name fits in 16 bytes.
            let range = |attempt: u32| if attempt < 64 { 1_000_000 } else { 1_000_000_000 };
            let numbers = (0..u32::MAX).map(|i| keys.text(Purpose::Names, kind, name, i) % range(i));
            let number = numbers.into_iter().find(|&n| taken.insert((kind, n)));
            number.unwrap_or_default()
        });
        format!("{kind}-{number:06}").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_apart() {
        let mut texts = Texts::new(SecretKeys::new(Some(1)).unwrap(), CacheTexts::Keep);
        let first = texts.task(b"bash");
        assert!(first.starts_with(b"task-") && first.len() == 11);
        assert_ne!(texts.task(b"secret"), first);
        assert_eq!(texts.task(b"bash"), first);
        assert_eq!(texts.task(b"swapper/3"), b"swapper");
        assert_eq!(texts.cache(b"dentry"), b"dentry");
        assert!(texts.cache(b"dentry(77:docker-abc.scope)").starts_with(b"cache-"));
        assert_eq!((texts.count("task"), texts.count("cache")), (2, 1));
    }

    #[test]
    fn what_mainline_does_not_have_is_hidden_in_public() {
        let mut texts = Texts::new(SecretKeys::new(Some(1)).unwrap(), CacheTexts::Mainline);
        for known in ["dentry", "kmalloc-cg-64", "ext4_inode_cache", "vm_area_struct", "bio-120"] {
            assert_eq!(texts.cache(known.as_bytes()), known.as_bytes());
        }
        assert!(texts.cache(b"acme_secret").starts_with(b"cache-"));
    }
}
