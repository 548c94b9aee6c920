//! Secret keys of an anonymized file, and the replacements made with them.
//!
//! The new value of an address, a frame, a task or a name depends on the key alone, so that the same thing has the same
//! replacement everywhere in a file. A key comes from the kernel's random source, or from a seed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hasher as _;
use std::ops::Range;

use siphasher::sip::SipHasher24;

use super::allowed;
use crate::failure::{Failure, Result};
use crate::trace::names::is_kmalloc;

/// Purpose of a number: the same value has different numbers for different purposes.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum Purpose {
    /// Blocks of page frames, and of the direct map with them.
    Frames = 1,
    /// Blocks of heap addresses where the direct map is unknown.
    Heap,
    /// Pages of all other addresses.
    Pages,
    /// Address of page frame 0.
    DirectMap,
    /// Order of parts of the text.
    TextOrder,
    /// Gaps between parts of the text.
    TextGap,
    /// Task ids.
    Pids,
    Names,
    /// Identifiers without other meaning.
    Identity,
    /// UUID of the file.
    Uuid,
}

/// A key of 128 bits. SipHash-2-4 is a keyed pseudorandom function: without the key, a number reveals nothing about
/// another one.
#[derive(Debug, Clone, Copy)]
pub struct SecretKeys {
    key: (u64, u64),
}

impl SecretKeys {
    /// A key from the kernel's random source, or from a seed, which must not be guessed.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel returns no random bytes.
    pub fn new(seed: Option<u64>) -> Result<Self> {
        if let Some(seed) = seed {
            let word = |number: u64| {
                let mut hasher = SipHasher24::new_with_keys(seed, number);
                hasher.write_u64(seed);
                hasher.finish()
            };
            return Ok(Self { key: (word(0), word(1)) });
        }
        let word = || {
            getrandom::u64().map_err(|e| {
                Failure::new(format!("the kernel gives no random bytes: {e}"))
                    .hint("without them addresses could be guessed; nothing was written")
            })
        };
        Ok(Self { key: (word()?, word()?) })
    }

    /// Number of a value.
    pub fn number(&self, purpose: Purpose, value: u64, attempt: u32) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(&[purpose as u8]);
        hasher.write(&value.to_le_bytes());
        hasher.write(&attempt.to_le_bytes());
        hasher.finish()
    }

    /// Number of a text.
    pub fn text(&self, purpose: Purpose, kind: &str, text: &[u8], attempt: u32) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(&[purpose as u8]);
        hasher.write(&(kind.len() as u64).to_le_bytes());
        hasher.write(kind.as_bytes());
        hasher.write(text);
        hasher.write(&attempt.to_le_bytes());
        hasher.finish()
    }

    /// Draws a number in `range` for each of `values`: distinct, and never the value itself. `None` if there are not
    /// enough.
    pub fn draw(
        &self,
        purpose: Purpose,
        values: &BTreeSet<u64>,
        range: Range<u64>,
    ) -> Option<HashMap<u64, u64>> {
        let len = range.end.saturating_sub(range.start);
        // A quarter stays free, so that few attempts are needed.
        if values.len() as u64 > len / 4 * 3 {
            return None;
        }
        let mut taken = BTreeSet::new();
        let mut drawn = HashMap::with_capacity(values.len());
        for &value in values {
            let candidates = (0..=u32::MAX).map(|i| range.start + self.number(purpose, value, i) % len);
            let number = candidates.into_iter().find(|&n| n != value && !taken.contains(&n))?;
            taken.insert(number);
            drawn.insert(value, number);
        }
        Some(drawn)
    }
}

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
            CacheTexts::Mainline => !allowed::has_cache(own),
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
    fn numbers_are_distinct_and_never_their_own() {
        let keys = SecretKeys::new(Some(7)).unwrap();
        let values: BTreeSet<u64> = (0..75).collect();
        let drawn = keys.draw(Purpose::Pids, &values, 0..100).unwrap();
        let distinct: BTreeSet<u64> = drawn.values().copied().collect();
        assert_eq!(distinct.len(), 75);
        assert!(drawn.iter().all(|(old, new)| old != new && *new < 100));
        assert!(keys.draw(Purpose::Pids, &(0..76).collect(), 0..100).is_none(), "too few to choose from");
    }

    #[test]
    fn fresh_keys_differ_and_seeds_repeat() {
        let number = |seed| SecretKeys::new(seed).unwrap().number(Purpose::Frames, 1, 0);
        assert_ne!(number(None), number(None));
        assert_eq!(number(Some(3)), number(Some(3)));
        assert_ne!(number(Some(3)), number(Some(4)));
    }

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
