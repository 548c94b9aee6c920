//! Fields of an event: its pairs, texts without pairs, keys that are not the names of fields, and flags by name.
//!
//! Source: include/trace/events/{vmscan,migrate}.h, 3.1 to 7.2.

use super::args::{Arg, args};
use super::notation::has_number;

/// Names of numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    /// True if several may be set, with | between.
    pub is_flags: bool,
    /// Text for 0.
    pub none: Option<&'static str>,
    /// Each.
    pub rows: &'static [(&'static str, u64)],
}

impl Names {
    /// The number that a text names; `None` if a name is not known.
    pub fn value(&self, text: &[u8]) -> Option<u64> {
        if self.none.is_some_and(|none| none.as_bytes() == text) {
            return Some(0);
        }
        let one = |word: &[u8]| {
            self.rows.iter().find(|(name, _)| name.as_bytes() == word.trim_ascii()).map(|(_, bits)| *bits)
        };
        if !self.is_flags {
            return one(text);
        }
        text.split(|&b| b == b'|').try_fold(0, |sum, word| Some(sum | one(word)?))
    }

    /// The conversion of a `print fmt` that prints the names of the field.
    pub fn print(&self, field: &str) -> String {
        let rows: Vec<String> =
            self.rows.iter().map(|(name, bits)| format!("{{ {bits:#x}UL, \"{name}\" }}")).collect();
        let rows = rows.join(", ");
        match (self.is_flags, self.none) {
            (true, Some(none)) => {
                format!("(REC->{field}) ? __print_flags(REC->{field}, \"|\", {rows}) : \"{none}\"")
            }
            (true, None) => format!("__print_flags(REC->{field}, \"|\", {rows})"),
            (false, _) => format!("__print_symbolic(REC->{field}, {rows})"),
        }
    }
}

/// How reclaim works.
static RECLAIM: Names = Names {
    is_flags: true,
    none: Some("RECLAIM_WB_NONE"),
    rows: &[
        ("RECLAIM_WB_ANON", 0x1),
        ("RECLAIM_WB_FILE", 0x2),
        ("RECLAIM_WB_MIXED", 0x10),
        ("RECLAIM_WB_SYNC", 0x4),
        ("RECLAIM_WB_ASYNC", 0x8),
    ],
};

/// enum lru_list.
static LRU: Names = Names {
    is_flags: false,
    none: None,
    rows: &[
        ("inactive_anon", 0),
        ("active_anon", 1),
        ("inactive_file", 2),
        ("active_file", 3),
        ("unevictable", 4),
    ],
};

/// The fields of an event: its pairs, or the values at known columns of a text without pairs. False if there are more
/// than `most`, which are left out.
pub fn fields_of<'a>(event: &[u8], text: &'a [u8], most: usize, out: &mut Vec<Arg<'a>>) -> bool {
    if by_template(event, text, out) {
        return true;
    }
    let is_whole = args(text, most, out);
    let is_alias = out.iter().all(|arg| arg.key != b"call_site");
    for arg in out.iter_mut() {
        arg.name = field_of(event, arg.key, is_alias);
    }
    if is_kmem(event) && out.iter().any(|arg| rest_of(arg).is_some()) {
        split_rests(most, out);
    }
    is_whole
}

/// The name that an event has since Linux 3.3.
pub fn event_name(name: &[u8]) -> &[u8] {
    match name {
        b"mm_page_free_direct" => b"mm_page_free",
        b"mm_pagevec_free" => b"mm_page_free_batched",
        _ => name,
    }
}

/// Events of the system kmem that reports use.
pub(super) fn is_kmem(event: &[u8]) -> bool {
    const KMEM: [&[u8]; 12] = [
        b"kmalloc",
        b"kmalloc_node",
        b"kfree",
        b"kmem_cache_alloc",
        b"kmem_cache_alloc_node",
        b"kmem_cache_free",
        b"mm_page_alloc",
        b"mm_page_free",
        b"mm_page_free_batched",
        b"mm_page_alloc_zone_locked",
        b"mm_page_pcpu_drain",
        b"mm_page_alloc_extfrag",
    ];
    KMEM.contains(&event)
}

/// True if an event of a system is worth nothing where that field cannot be read.
pub(super) fn is_needed(system: &str, args: &[Arg<'_>], field: &[u8]) -> bool {
    let is_known = matches!(system, "kmem" | "vmscan" | "compaction" | "migrate") && has_number(field);
    // A frame number says which page that is.
    is_known && !(field == b"page" && args.iter().any(|arg| arg.name == b"pfn"))
}

/// Offset of what follows a number in its value, as some kernels print: `805ee260 caller(f+0x24/0x28)`.
fn rest_of(arg: &Arg<'_>) -> Option<usize> {
    let is_number = has_number(arg.name) && arg.name != b"gfp_flags";
    let blank = arg.value.iter().position(|&b| b == b' ').filter(|_| is_number)?;
    let rest = arg.value.get(blank..)?.trim_ascii_start();
    // `f+0x1/0x20 [ext4]`, `0x40 (64)`.
    (!rest.starts_with(b"[") && !rest.starts_with(b"(")).then_some(blank)
}

/// Makes fields of what follows numbers.
fn split_rests(most: usize, out: &mut Vec<Arg<'_>>) {
    let mut before_next = None;
    for mut arg in std::mem::take(out) {
        if let Some(before) = before_next.take() {
            arg.before = before;
        }
        let value = arg.value;
        let Some(blank) = rest_of(&arg).filter(|_| out.len() + 1 < most) else {
            out.push(arg);
            continue;
        };
        arg.value = value.get(..blank).unwrap_or_default();
        out.push(arg);
        let rest = value.get(blank..).unwrap_or_default();
        let inner = || {
            let open = rest.iter().position(|&b| b == b'(')?;
            let (name, value) = (rest.get(1..open)?, rest.get(open + 1..)?.strip_suffix(b")")?);
            let is_name = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
            is_name.then_some((rest.get(..=open)?, name, value))
        };
        if let Some((before, name, value)) = inner() {
            before_next = Some(&b") "[..]);
            out.push(Arg { before, key: b"", name, value });
        } else {
            out.push(Arg { before: b" ", key: b"", name: b"text", value: rest.trim_ascii_start() });
        }
    }
}

/// The names that a field's numbers have.
pub fn names_of(field: &[u8]) -> Option<&'static Names> {
    match field {
        b"reclaim_flags" => Some(&RECLAIM),
        b"lru" => Some(&LRU),
        _ => None,
    }
}

/// Name of the field that an event prints under a key. `is_alias`: no key is `call_site`.
fn field_of<'a>(event: &[u8], key: &'a [u8], is_alias: bool) -> &'a [u8] {
    let is_reclaim = matches!(
        event,
        b"mm_vmscan_lru_shrink_inactive"
            | b"mm_vmscan_lru_shrink_active"
            | b"mm_vmscan_writepage"
            | b"mm_vmscan_write_folio"
    );
    match key {
        b"flags" if is_reclaim => b"reclaim_flags",
        b"nr_succeeded" if event == b"mm_migrate_pages" => b"succeeded",
        b"nr_failed" if event == b"mm_migrate_pages" => b"failed",
        // Kernels of vendors.
        b"caller" if is_alias && is_kmem(event) => b"call_site",
        _ => key,
    }
}

/// One value of a text: the literals that may stand before it, its field, and whether some kernels leave it out.
struct TemplateValue(&'static [&'static str], &'static str, bool);

/// Fields that every text of a shrinker begins with.
const SHRINKER: [TemplateValue; 3] = [
    TemplateValue(&[""], "shrink", false),
    TemplateValue(&[" "], "shr", false),
    TemplateValue(&[": nid: "], "nid", true),
];

/// Texts without pairs, by event: what follows the shrinker. Before 3.12 no node is in it, before 4.16 the pages of the
/// LRU lists are.
const TEMPLATES: [(&str, &[TemplateValue]); 2] = [
    (
        "mm_shrink_slab_start",
        &[
            TemplateValue(&[": objects to shrink ", " objects to shrink "], "nr_objects_to_shrink", false),
            TemplateValue(&[" gfp_flags "], "gfp_flags", false),
            TemplateValue(&[" pgs_scanned "], "pgs_scanned", true),
            TemplateValue(&[" lru_pgs "], "lru_pgs", true),
            TemplateValue(&[" cache items "], "cache_items", false),
            TemplateValue(&[" delta "], "delta", false),
            TemplateValue(&[" total_scan "], "total_scan", false),
            TemplateValue(&[" priority "], "priority", true),
        ],
    ),
    (
        "mm_shrink_slab_end",
        &[
            TemplateValue(&[": unused scan count ", " unused scan count "], "unused_scan", false),
            TemplateValue(&[" new scan count "], "new_scan", false),
            TemplateValue(&[" total_scan "], "total_scan", true),
            TemplateValue(&[" last shrinker return val "], "retval", false),
        ],
    ),
];

/// The fields of a text that is written by a template; false if none fits.
fn by_template<'a>(event: &[u8], text: &'a [u8], out: &mut Vec<Arg<'a>>) -> bool {
    out.clear();
    let template = TEMPLATES.iter().find(|(name, _)| name.as_bytes() == event);
    template.is_some_and(|(_, values)| fits(values, text, out))
}

/// Parses a text from its end: there a literal cannot be part of the value before it.
fn fits<'a>(values: &[TemplateValue], text: &'a [u8], out: &mut Vec<Arg<'a>>) -> bool {
    let mut rest = text.trim_ascii_end();
    for TemplateValue(literals, field, is_optional) in SHRINKER.iter().chain(values).rev() {
        let found = literals.iter().find_map(|literal| {
            let at = match literal.len() {
                0 => 0,
                len => rest.windows(len).rposition(|w| w == literal.as_bytes())?,
            };
            Some((literal.as_bytes(), rest.get(..at)?, rest.get(at + literal.len()..)?.trim_ascii()))
        });
        let Some((before, left, value)) = found else {
            if *is_optional {
                continue;
            }
            return false;
        };
        if value.is_empty() || value.contains(&b'=') {
            return false;
        }
        out.push(Arg { before, key: b"", name: field.as_bytes(), value });
        rest = left;
    }
    out.reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinkers() {
        let mut out = Vec::new();
        let text = b"mb_scan+0x0/0x10 [mbcache] ffffffff938d69c0: nid: 0 objects to shrink 4 gfp_flags GFP_KERNEL|__GFP_COMP cache items 10 delta 0 total_scan 7 priority 12";
        assert!(by_template(b"mm_shrink_slab_start", text, &mut out));
        let value = |out: &Vec<Arg<'_>>, name: &[u8]| {
            String::from_utf8_lossy(out.iter().find(|a| a.name == name).unwrap().value).into_owned()
        };
        assert_eq!(value(&out, b"shrink"), "mb_scan+0x0/0x10 [mbcache]");
        assert_eq!(value(&out, b"shr"), "ffffffff938d69c0");
        assert_eq!(value(&out, b"gfp_flags"), "GFP_KERNEL|__GFP_COMP");
        assert_eq!((value(&out, b"total_scan"), value(&out, b"priority")), ("7".into(), "12".into()));
        let text = b"f+0x0/0x10 0xffffffff938d69c0: nid: 0 unused scan count 1 new scan count 2 total_scan 3 last shrinker return val 4";
        assert!(by_template(b"mm_shrink_slab_end", text, &mut out));
        assert_eq!((value(&out, b"shrink"), value(&out, b"retval")), ("f+0x0/0x10".into(), "4".into()));
        // 3.1 to 3.11: no node; up to 4.15: pages of the LRU lists.
        let text = b"f+0x0/0x10 ffffffff938d69c0: objects to shrink 4 gfp_flags GFP_KERNEL pgs_scanned 5 lru_pgs 6 cache items 10 delta 0 total_scan 7";
        assert!(by_template(b"mm_shrink_slab_start", text, &mut out));
        assert_eq!((value(&out, b"shr"), value(&out, b"lru_pgs")), ("ffffffff938d69c0".into(), "6".into()));
        assert!(out.iter().all(|a| a.name != b"nid" && a.name != b"priority"));
        assert!(!by_template(b"mm_shrink_slab_end", b"something else", &mut out));
        assert!(!by_template(b"kmalloc", b"something else", &mut out));
    }

    #[test]
    fn flags_by_name() {
        assert_eq!(RECLAIM.value(b"RECLAIM_WB_FILE|RECLAIM_WB_ASYNC"), Some(0xa));
        assert_eq!(RECLAIM.value(b"RECLAIM_WB_NONE"), Some(0));
        assert_eq!(RECLAIM.value(b"RECLAIM_WB_TOMORROW"), None);
        assert_eq!(LRU.value(b"inactive_file"), Some(2));
    }
}
