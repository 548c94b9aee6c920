//! Functions that allocate for their callers.
//!
//! The rules are in wrappers.txt; an option can add a file with others. Of the functions at an address, `table` shows
//! the innermost one that no rule names, so that memory is reported at the function that asked for it.

use std::collections::HashSet;

use super::frame::Frame;

/// The rules of this program.
const RULES: &str = include_str!("wrappers.txt");

/// Rules that name functions and files.
#[derive(Debug, Clone)]
pub struct Wrappers {
    names: Rules,
    files: Rules,
}

/// Names, and begins of names. One lookup in each answers, however many they are.
#[derive(Debug, Clone)]
struct Rules {
    whole: HashSet<String>,
    /// Sorted; none is the begin of another.
    begins: Vec<String>,
}

impl Rules {
    fn new(lines: Vec<&str>) -> Self {
        let mut begins: Vec<String> =
            lines.iter().filter_map(|line| line.strip_suffix('*')).map(str::to_owned).collect();
        begins.sort_unstable();
        // Those that begin with another one come right after it.
        begins.dedup_by(|longer, shorter| longer.starts_with(shorter.as_str()));
        let whole = lines.iter().filter(|line| !line.ends_with('*')).map(|&line| line.to_owned()).collect();
        Self { whole, begins }
    }

    fn has(&self, name: &str) -> bool {
        // A text between a begin of the name and the name has that begin too, and is not in the list.
        let after = self.begins.partition_point(|begin| begin.as_str() <= name);
        let nearest = after.checked_sub(1).and_then(|at| self.begins.get(at));
        self.whole.contains(name) || nearest.is_some_and(|begin| name.starts_with(begin.as_str()))
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
        let (files, names) = lines.partition(|line| line.contains('/'));
        Self { names: Rules::new(names), files: Rules::new(files) }
    }

    /// True if a rule names the function or its file.
    pub fn has(&self, frame: &Frame<'_>) -> bool {
        // Compilers add .constprop.0 and the like.
        let function = frame.function.split('.').next().unwrap_or_default();
        self.names.has(function) || self.files.has(&frame.file)
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

    /// The lookup gives the answers of one rule after the other.
    #[test]
    fn one_lookup_finds_what_every_rule_finds() {
        let lines = ["a*", "ab*", "abc", "b", "ba_*", "bab*", "b_a*", "b_a", "aa*", "c_*", "c", "bb*"];
        let letters = ["a", "b", "c", "_", ""];
        for count in 0..=lines.len() {
            let rules = Rules::new(lines[count..].to_vec());
            for at in 0..letters.len().pow(4) {
                let name: String =
                    (0..4).map(|digit| letters[at / letters.len().pow(digit) % letters.len()]).collect();
                let expected = lines[count..].iter().any(|line| match line.strip_suffix('*') {
                    Some(begin) => name.starts_with(begin),
                    None => name == *line,
                });
                assert_eq!(rules.has(&name), expected, "{name} of {:?}", &lines[count..]);
            }
        }
        assert!(Rules::new(vec!["*"]).has("any") && !Rules::new(Vec::new()).has(""));
    }
}
