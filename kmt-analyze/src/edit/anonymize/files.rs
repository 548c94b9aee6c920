//! Attached files that stay: counters of the memory management, and only lines in which each word is a word of the
//! kernel.
//!
//! Allow-lists of words are in `allowed`; a line with any other word is left out. Names of caches and aliases are
//! replaced in slabinfo and in the attributes of /sys/kernel/slab, and are sorted, because the order shows when they
//! were created. Other attached files are removed.

use kmt_format::read::Attachment;

use super::allowed;
use super::keys::Texts;
use super::record::Masks;
use crate::trace::slabinfo::sysfs_line;

/// The file under its new name; `None`: it is removed.
pub fn masked(file: &Attachment<'_>, masks: &mut Masks) -> Option<(String, Vec<u8>)> {
    let (stem, rest) = file.name.split_once('.').unwrap_or((&file.name, ""));
    if !matches!(rest, "" | "before" | "after") {
        return None;
    }
    let text = String::from_utf8_lossy(&file.contents);
    let contents = match stem {
        "slabinfo" => slabinfo(&text, &mut masks.texts),
        "slab_sysfs" => slab_sysfs(&text, &mut masks.texts),
        "event_conditions" => conditions(&text),
        "buddyinfo" | "pagetypeinfo" | "zoneinfo" | "meminfo" | "vmstat" => {
            text.lines().filter(|line| is_plain(line)).map(|line| format!("{line}\n")).collect()
        }
        _ => return None,
    };
    Some((file.name.clone().into_owned(), contents.into_bytes()))
}

/// True if all words of a line are numbers or words of the kernel, and none is a position of a zone.
fn is_plain(line: &str) -> bool {
    let is_count = |word: &str| {
        let digits = word.trim_start_matches(['(', '>', '-']).trim_end_matches([')', ',', ':']);
        digits.is_empty() || digits.len() <= 20 && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    let word = |word: &str| is_count(word) || allowed::has_word(word.trim_matches([':', ',']).as_bytes());
    !line.contains("start_pfn") && line.split_ascii_whitespace().all(word)
}

/// Lines of caches, sorted by name: the kernel lists them in the order of their creation.
fn slabinfo(text: &str, texts: &mut Texts) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.starts_with("slabinfo")) {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        let is_known = |word: &str| {
            matches!(word, ":" | "tunables" | "slabdata" | "globalstat" | "cpustat")
                || word.bytes().all(|b| b.is_ascii_digit())
        };
        if rest.split_ascii_whitespace().all(is_known) {
            lines.push(format!("{} {rest}\n", String::from_utf8_lossy(&texts.cache(name.as_bytes()))));
        }
    }
    lines.sort_unstable();
    let heading = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n";
    heading.to_owned() + &lines.concat()
}

/// `CACHE FILE=VALUE FILE=VALUE …` and `ALIAS -> CACHE`.
fn slab_sysfs(text: &str, texts: &mut Texts) -> String {
    const FILES: [&str; 14] = [
        "object_size",
        "slab_size",
        "order",
        "objs_per_slab",
        "red_zone",
        "poison",
        "store_user",
        "reclaim_account",
        "destroy_by_rcu",
        "align",
        "cpu_partial",
        "min_partial",
        "sanity_checks",
        "trace",
    ];
    let mut name = |name: &str| String::from_utf8_lossy(&texts.cache(name.as_bytes())).into_owned();
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some((alias, cache)) = line.split_once(" -> ") {
            lines.push(format!("{} -> {}\n", name(alias), name(cache)));
            continue;
        }
        let Some((cache, files)) = sysfs_line(line) else { continue };
        let is_number = |value: &str| !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
        let kept: String = files
            .filter(|(file, value)| FILES.contains(file) && is_number(value))
            .map(|(file, value)| format!(" {file}={value}"))
            .collect();
        if !kept.is_empty() {
            lines.push(format!("{}{kept}\n", name(cache)));
        }
    }
    lines.sort_unstable();
    lines.concat()
}

/// Names of recorded events, and that there was a filter, without the filter.
fn conditions(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let Some((event, (what, value))) =
            line.split_once(' ').and_then(|(e, r)| Some((e, r.split_once('=')?)))
        else {
            continue;
        };
        if !event.split_once(':').is_some_and(|(system, name)| allowed::has_event(system, name)) {
            continue;
        }
        let value = match (what, value.trim()) {
            ("enable", value @ ("0" | "1" | "0*" | "1*")) => value,
            ("filter", _) => "hidden",
            ("trigger", value) if value.starts_with("stacktrace") => "stacktrace",
            _ => continue,
        };
        out += &format!("{event} {what}={value}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::keys::{CacheTexts, SecretKeys};
    use super::*;

    #[test]
    fn lines_with_unknown_words_go() {
        assert!(is_plain("MemTotal:        1530284 kB") && is_plain("nr_free_pages 343276"));
        assert!(is_plain("Node 0, zone    DMA32   13   9 >100000"));
        assert!(is_plain("        protection: (0, 1436, 1436, 1436)"));
        assert!(
            !is_plain("  start_pfn:           4096")
                && !is_plain("Serial: X123")
                && !is_plain("AcmeHeap: 1 kB")
        );
    }

    #[test]
    fn conditions_lose_their_texts() {
        let text = "kmem:kmalloc enable=1\nkmem:kfree filter=comm == \"secret\"\nacme:x enable=1\nkmem:kmalloc trigger=stacktrace:unlimited\nkmem:kmalloc secret\n";
        let expected = "kmem:kmalloc enable=1\nkmem:kfree filter=hidden\nkmem:kmalloc trigger=stacktrace\n";
        assert_eq!(conditions(text), expected);
    }

    #[test]
    fn caches_stand_in_the_order_of_their_names() {
        let mut texts = Texts::new(SecretKeys::new(Some(1)).unwrap(), CacheTexts::Keep);
        let text = "slabinfo - version: 2.1\n# name\nzz 1 2 3 : tunables 0 0 0 : slabdata 1 1 0\naa 1 2 secret\nbb 4 5 6\n";
        let lines = slabinfo(text, &mut texts);
        let names: Vec<&str> = lines.lines().skip(2).filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(names, ["bb", "zz"]);
    }
}
