//! Functions that allocate for their callers.

use super::frame::Frame;

/// The rules of this program.
const RULES: &str = include_str!("wrappers.txt");

/// Rules that name functions and files.
#[derive(Debug, Clone)]
pub struct Wrappers {
    names: Vec<Rule>,
    files: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    text: String,
    /// The text is the begin of a name.
    is_open: bool,
}

impl Rule {
    fn matches(&self, name: &str) -> bool {
        if self.is_open { name.starts_with(&self.text) } else { name == self.text }
    }
}

impl Default for Wrappers {
    fn default() -> Self {
        Self::parse(RULES)
    }
}

impl Wrappers {
    /// Rules, one a line.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rule = |line: &str| match line.strip_suffix('*') {
            Some(text) => Rule { text: text.to_owned(), is_open: true },
            None => Rule { text: line.to_owned(), is_open: false },
        };
        let (files, names) = lines.map(rule).partition(|rule| rule.text.contains('/'));
        Self { names, files }
    }

    /// True if a rule names the function or its file.
    pub fn has(&self, frame: &Frame<'_>) -> bool {
        // Compilers add .constprop.0 and the like.
        let function = frame.function.split('.').next().unwrap_or_default();
        self.names.iter().any(|rule| rule.matches(function))
            || self.files.iter().any(|rule| rule.matches(&frame.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_functions_and_files() {
        let frame = |function: &'static str, file: &'static str| Frame {
            function: function.into(),
            file: file.into(),
            line: 1,
        };
        let wrappers = Wrappers::default();
        assert!(wrappers.has(&frame("kmemdup_noprof", "mm/util.c")));
        assert!(wrappers.has(&frame("kzalloc_wrapper", "include/linux/slab.h")));
        assert!(wrappers.has(&frame("__alloc_skb.constprop.0", "net/core/skbuff.c")));
        assert!(!wrappers.has(&frame("ext4_alloc_inode", "fs/ext4/super.c")));
        let own = Wrappers::parse("# mine\nmy_alloc*\nlib/own.c\n");
        assert!(own.has(&frame("my_alloc_one", "x.c")) && own.has(&frame("f", "lib/own.c")));
        assert!(!own.has(&frame("kmalloc", "include/linux/slab.h")));
    }
}
