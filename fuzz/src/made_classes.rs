//! Classes of [`made`](super::made) files, as kernels have them: names, fields, formats, and what their fields hold.

use std::ops::Range;

use arbitrary::{Result, Unstructured};

use super::made_numbers::edge;

/// Size of a field in bytes; a `long` of the target, text by its place, or addresses to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Is(usize),
    Long,
    Text,
    Tail,
}
pub use Size::{Is, Long, Tail, Text};

/// Type, name, size.
pub type Field = (&'static str, &'static str, Size);

const SITE: Field = ("unsigned long", "call_site", Long);
const PTR: Field = ("const void *", "ptr", Long);
const REQ: Field = ("size_t", "bytes_req", Long);
const ALLOC: Field = ("size_t", "bytes_alloc", Long);
const GFP: Field = ("unsigned long", "gfp_flags", Long);
const NODE: Field = ("int", "node", Is(4));
const NAME: Field = ("__data_loc char[]", "name", Text);
const PFN: Field = ("unsigned long", "pfn", Long);
const ORDER: Field = ("unsigned int", "order", Is(4));
const TYPE: Field = ("int", "migratetype", Is(4));
const DEPTH: Field = ("int", "depth", Is(4));
const PID: Field = ("pid_t", "pid", Is(4));
const SIZE: Field = ("size_t", "size", Long);
const FUNC: Field = ("unsigned long", "func", Long);

/// System, name and fields: include/trace/events/{kmem,vmscan,compaction,sched,task,vmalloc,percpu,cgroup,migrate}.h,
/// kernel/trace/trace_entries.h.
pub const CLASSES: [(&str, &str, &[Field]); 42] = [
    ("kmem", "kmalloc", &[SITE, PTR, REQ, ALLOC, GFP, NODE]),
    ("kmem", "kfree", &[SITE, PTR]),
    ("kmem", "kmem_cache_alloc", &[SITE, PTR, REQ, ALLOC, GFP, NODE, ("bool", "accounted", Is(1))]),
    ("kmem", "kmem_cache_free", &[SITE, PTR, NAME]),
    ("kmem", "mm_page_alloc", &[PFN, ORDER, GFP, TYPE]),
    ("kmem", "mm_page_free", &[PFN, ORDER]),
    ("kmem", "kmalloc_node", &[SITE, PTR, REQ, ALLOC, GFP, NODE]),
    ("kmem", "kmem_cache_alloc_node", &[SITE, PTR, NAME, REQ, ALLOC, GFP, NODE]),
    ("kmem", "mm_page_free_batched", &[PFN]),
    ("kmem", "mm_page_pcpu_drain", &[PFN, ORDER, TYPE]),
    ("kmem", "mm_page_alloc_zone_locked", &[PFN, ORDER, TYPE]),
    (
        "kmem",
        "mm_page_alloc_extfrag",
        &[
            PFN,
            ("int", "alloc_order", Is(4)),
            ("int", "fallback_order", Is(4)),
            ("int", "alloc_migratetype", Is(4)),
            ("int", "fallback_migratetype", Is(4)),
            ("int", "change_ownership", Is(4)),
        ],
    ),
    (
        "kmem",
        "rss_stat",
        &[("unsigned int", "mm_id", Is(4)), ("int", "member", Is(4)), ("long", "size", Long)],
    ),
    ("ftrace", "kernel_stack", &[("int", "size", Is(4)), ("unsigned long", "caller[]", Tail)]),
    (
        "kmt",
        "kvfree_call_rcu",
        &[("u64", "head", Is(8)), ("u64", "object", Is(8)), ("u64", "call_site", Is(8))],
    ),
    ("vmscan", "mm_vmscan_direct_reclaim_begin", &[ORDER, GFP]),
    ("vmscan", "mm_vmscan_direct_reclaim_end", &[("unsigned long", "nr_reclaimed", Long)]),
    ("vmscan", "mm_vmscan_kswapd_wake", &[("int", "nid", Is(4)), ORDER]),
    ("vmscan", "mm_vmscan_kswapd_sleep", &[("int", "nid", Is(4))]),
    ("vmscan", "mm_shrink_slab_start", &[("struct shrinker *", "shr", Long), ("void *", "shrink", Long)]),
    (
        "vmscan",
        "mm_shrink_slab_end",
        &[("struct shrinker *", "shr", Long), ("void *", "shrink", Long), ("int", "retval", Is(4))],
    ),
    ("compaction", "mm_compaction_begin", &[("unsigned long", "zone_start", Long)]),
    ("compaction", "mm_compaction_end", &[("unsigned long", "zone_start", Long)]),
    ("ftrace", "funcgraph_entry", &[FUNC, DEPTH]),
    ("ftrace", "funcgraph_exit", &[FUNC, DEPTH, ("u64", "calltime", Is(8)), ("u64", "rettime", Is(8))]),
    ("task", "task_newtask", &[PID, ("char", "comm[16]", Is(16)), ("unsigned long", "clone_flags", Long)]),
    ("task", "task_rename", &[PID, ("char", "newcomm[16]", Is(16))]),
    ("sched", "sched_switch", &[("char", "prev_comm[16]", Is(16)), ("pid_t", "next_pid", Is(4))]),
    ("ours", "other", &[("u8", "a", Is(1)), ("s64", "b", Is(8)), ("__data_loc char[]", "c", Text)]),
    ("sched", "sched_process_exit", &[("char", "comm[16]", Is(16)), PID]),
    ("vmalloc", "alloc_vmap_area", &[("unsigned long", "addr", Long), SIZE, ("int", "failed", Is(4))]),
    ("vmalloc", "free_vmap_area_noflush", &[("unsigned long", "va_start", Long)]),
    ("percpu", "percpu_alloc_percpu", &[SITE, SIZE, ("void *", "ptr", Long), ALLOC, GFP]),
    ("percpu", "percpu_alloc_percpu_fail", &[SIZE]),
    ("percpu", "percpu_free_percpu", &[("void *", "ptr", Long)]),
    (
        "cgroup",
        "cgroup_attach_task",
        &[("int", "dst_root", Is(4)), PID, ("__data_loc char[]", "dst_path", Text)],
    ),
    ("vmscan", "mm_vmscan_memcg_reclaim_begin", &[ORDER, GFP]),
    ("vmscan", "mm_vmscan_memcg_reclaim_end", &[("unsigned long", "nr_reclaimed", Long)]),
    ("vmscan", "mm_vmscan_wakeup_kswapd", &[("int", "nid", Is(4)), ORDER]),
    (
        "vmscan",
        "mm_vmscan_lru_isolate",
        &[
            ("unsigned long", "nr_scanned", Long),
            ("unsigned int", "isolate_mode", Is(4)),
            ("int", "lru", Is(4)),
        ],
    ),
    (
        "compaction",
        "mm_compaction_isolate_migratepages",
        &[("unsigned long", "nr_scanned", Long), ("unsigned long", "nr_taken", Long)],
    ),
    (
        "migrate",
        "mm_migrate_pages",
        &[("unsigned long", "succeeded", Long), ("unsigned long", "failed", Long)],
    ),
];
/// Place of `kernel_stack`.
pub const STACK: usize = 13;
/// Slab objects and pages.
pub const OBJECTS_AND_PAGES: Range<usize> = 0..6;
/// vmalloc areas and percpu allocations.
pub const AREAS: Range<usize> = 30..35;
/// Event id of the first class.
pub const FIRST_ID: u16 = 300;

/// A number that a field of that name holds.
pub fn number(u: &mut Unstructured<'_>, name: &str, long: usize) -> Result<u64> {
    if u.ratio(1, 24)? {
        return edge(u);
    }
    let (text, data) =
        if long == 8 { (0xffff_ffff_8100_0000, 0xffff_8880_0000_0000) } else { (0xc100_0000, 0xc000_0000) };
    let few = u64::from(u.arbitrary::<u8>()?);
    Ok(match name {
        "call_site" | "func" | "shrink" => text + few % 24 * 0x80 + 4,
        // Some addresses often.
        "ptr" | "object" | "head" => data + (16 << 12) + ((few % 64) >> (few / 64)) * 0x60,
        "shr" => data + few % 4 * 0x1000,
        "bytes_req" => [8, 30, 64, 100, 192, 4_000, 16_000, 100_000][few as usize % 8],
        "bytes_alloc" => [8, 32, 64, 128, 192, 4_096, 16_384, 131_072][few as usize % 8],
        "gfp_flags" => [0xcc0, 0xdc0, 0x140_dca, 0x820, 0][few as usize % 5],
        "node" => [0, 1, u64::MAX, 2][few as usize % 4],
        "pfn" => 16 + few % 32,
        "order" | "alloc_order" | "fallback_order" => [0, 0, 0, 1, 2, 3, 9, 10][few as usize % 8],
        "migratetype" | "alloc_migratetype" | "fallback_migratetype" => few % 6,
        "depth" => few % 5,
        "addr" | "va_start" => data + (1 << 30) + few % 16 * 0x5000,
        "size" => [8, 4_096, 20_480, 1 << 21][few as usize % 4],
        "failed" => u64::from(few % 8 == 0),
        "dst_root" => few % 2,
        "clone_flags" => [0x11, 0x0001_0000, 0x2_0000_0000, 0][few as usize % 4],
        "pid" | "next_pid" => 7 + few % 3,
        "calltime" | "rettime" => 1_000_000_000 + few * 1_000_000,
        _ => few,
    })
}

/// Offsets of the fields of a class, and where they end.
pub fn places(class: usize, long: usize) -> (Vec<usize>, usize) {
    let mut at = 8usize;
    let mut out = Vec::new();
    for (_, _, size) in CLASSES[class].2 {
        let (len, align) = match size {
            Is(16) => (16, 1),
            Is(len) => (*len, *len),
            Long => (long, long),
            Text => (4, 4),
            Tail => (0, long),
        };
        at = at.next_multiple_of(align);
        out.push(at);
        at += len;
    }
    (out, at.next_multiple_of(4))
}

/// The format file of a class.
pub fn format(class: usize, long: usize) -> String {
    let (_, name, fields) = CLASSES[class];
    let mut out = format!("name: {name}\nID: {}\nformat:\n", usize::from(FIRST_ID) + class);
    out += "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
    out += "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n";
    out += "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n";
    out += "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    let (mut print, mut values) = (String::new(), String::new());
    for ((kind, name, size), at) in fields.iter().zip(places(class, long).0) {
        let len = match size {
            Is(len) => *len,
            Long => long,
            Text => 4,
            Tail => 0,
        };
        let signed = u8::from(["int", "long", "s64", "pid_t", "char"].contains(kind));
        out += &format!("\tfield:{kind} {name};\toffset:{at};\tsize:{len};\tsigned:{signed};\n");
        let plain = name.split('[').next().unwrap_or_default();
        let (spec, value) = match size {
            Text => ("%s", format!("__get_str({plain})")),
            Is(16) => ("%s", format!("REC->{plain}")),
            Tail => continue,
            _ => ("%lx", format!("REC->{plain}")),
        };
        print += &format!("{plain}={spec} ");
        values += &format!(", {value}");
    }
    out + &format!("\nprint fmt: \"{print}\"{values}\n")
}
