//! Names for names: the same text gets the same one everywhere in a file.

use std::collections::HashMap;

/// All texts that were replaced.
#[derive(Debug, Default)]
pub struct Texts {
    numbers: HashMap<(&'static str, Vec<u8>), usize>,
    counts: HashMap<&'static str, usize>,
}

impl Texts {
    /// How many were replaced.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// A task's name, or any other text.
    pub fn task(&mut self, name: &[u8]) -> Vec<u8> {
        match name {
            b"" | b"<idle>" | b"<...>" => name.to_vec(),
            _ if name.starts_with(b"swapper") => b"swapper".to_vec(),
            _ => self.name(name, "task"),
        }
    }

    /// A cache's name: kept, but for what a memory cgroup adds to it.
    pub fn cache(&mut self, name: &[u8], is_hidden: bool) -> Vec<u8> {
        match name.iter().position(|&b| b == b'(') {
            _ if is_hidden && !name.starts_with(b"kmalloc-") => self.name(name, "cache"),
            Some(at) => self.name(name.get(..at).unwrap_or_default(), "cache"),
            None => name.to_vec(),
        }
    }

    /// A name of that kind.
    pub fn name(&mut self, name: &[u8], kind: &'static str) -> Vec<u8> {
        let counts = &mut self.counts;
        let number = *self.numbers.entry((kind, name.to_vec())).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            *count
        });
        format!("{kind}-{number}").into_bytes()
    }

    /// The replacement of a text in bytes of a fixed length: what does not fit is cut, what is left becomes NUL.
    pub fn fitting(&mut self, bytes: &[u8], replace: impl FnOnce(&mut Self, &[u8]) -> Vec<u8>) -> Vec<u8> {
        let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
        let mut out = replace(self, text);
        out.truncate(bytes.len().saturating_sub(usize::from(bytes.contains(&0))));
        out.resize(bytes.len(), 0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_apart_and_fit() {
        let mut texts = Texts::default();
        assert_eq!(texts.task(b"bash"), b"task-1");
        assert_eq!(texts.task(b"secret"), b"task-2");
        assert_eq!(texts.task(b"bash"), b"task-1");
        assert_eq!(texts.fitting(b"bash\0\0\0\0", Texts::task), b"task-1\0\0");
        assert_eq!(texts.fitting(b"sec\0", Texts::task), b"tas\0");
        assert_eq!(texts.cache(b"dentry", false), b"dentry");
        assert_eq!(texts.cache(b"dentry(77:docker-abc.scope)", false), b"cache-1");
    }
}
