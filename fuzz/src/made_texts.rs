//! Texts of a kernel for [`made`](super::made): symbols, and snapshots with changed numbers.

use arbitrary::{Result, Unstructured};

use super::made_numbers::edge;

/// Two symbols a page, so that call sites have names; one module.
pub const KALLSYMS: &[u8] =
    b"ffffffff81000000 T _stext\nffffffff81000080 T do_fork\nffffffff81000100 t alloc_inode\n\
    ffffffff81000400 T __x64_sys_openat\nffffffff81000800 T kmem_cache_alloc\nffffffff81001000 B _end\n\
    ffffffffc0000000 t mod_func\t[mod]\nc1000000 T arm_text\nc1000800 t arm_func\n";

/// One module.
pub const MODULES: &str = "mod 16384 0 - Live 0xffffffffc0000000\n";

/// Names of snapshots, and a text of each kind.
pub const SNAPSHOTS: [(&str, &str); 28] = [
    ("slabinfo.before", SLABINFO),
    ("slabinfo.after", SLABINFO),
    ("slabinfo.meanwhile", SLABINFO),
    ("slabinfo", SLABINFO),
    (
        "slab_sysfs.after",
        ":0000064 object_size=64\n:0000064 slab_size=64\nkmalloc-64 -> :0000064\ndentry aliases=2\n",
    ),
    ("buddyinfo.before", BUDDYINFO),
    ("buddyinfo.after", BUDDYINFO),
    ("pagetypeinfo.before", PAGETYPEINFO),
    ("pagetypeinfo.after", PAGETYPEINFO),
    ("zoneinfo.before", ZONEINFO),
    ("zoneinfo.after", ZONEINFO),
    ("vmallocinfo", VMALLOCINFO),
    ("vmallocinfo.before", VMALLOCINFO),
    ("vmallocinfo.after", VMALLOCINFO),
    ("allocinfo.before", ALLOCINFO),
    ("allocinfo.after", ALLOCINFO),
    ("page_owner.before", SITES),
    ("page_owner.after", SITES),
    ("slab_traces.before", SITES),
    ("slab_traces.after", SITES),
    ("meminfo.before", MEMINFO),
    ("meminfo.after", MEMINFO),
    ("vmstat.before", VMSTAT),
    ("vmstat.after", VMSTAT),
    ("cgroups.before", "7 /user.slice/a\n8 /\n-1 /system.slice\n"),
    (
        "event_conditions",
        "kmem:kmalloc filter=bytes_req > 100\nkmem:kfree enable=0\nkmem:kmalloc trigger=stacktrace:unlimited\n",
    ),
    ("modules", MODULES),
    ("printk_formats", "0xffffffff82000000 : \"said %d\\n\"\n"),
];

const SLABINFO: &str = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> \
    <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n\
    dentry              1200   1300    192   21    1 : tunables    0    0    0 : slabdata     62     62      0\n\
    kmalloc-rcl-64       100    128     64   64    1 : tunables    0    0    0 : slabdata      2      2      0\n\
    kmalloc-8k            10     12   8192    4    8 : tunables    0    0    0 : slabdata      3      3      0\n\
    kmalloc-128          400    416    128   32    1 : tunables    0    0    0 : slabdata     13     13      0\n\
    kmalloc-64           900   1024     64   64    1 : tunables    0    0    0 : slabdata     16     16      0\n\
    kmalloc-32           500    512     32  128    1 : tunables    0    0    0 : slabdata      4      4      0\n";

const ZONEINFO: &str = "Node 0, zone   Normal\n  pages free     3000\n        min      100\n        spanned  8192\n  start_pfn: 16\n";

const MEMINFO: &str = "MemTotal:        1000000 kB\nSlab:   20000 kB\nPercpu:     1200 kB\n";

const VMSTAT: &str = "nr_free_pages 1000\npgfault 7\n";

const VMALLOCINFO: &str =
    "0xffffc90000000000-0xffffc90000005000   20480 do_fork+0x10/0x80 pages=4 vmalloc N0=4\n";

const ALLOCINFO: &str = "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n\
    4096        1 fs/inode.c:7 func:alloc_inode\n640       10 mod.c:9 [mod] func:mod_func\n";

/// Amounts by call site, or by cache and call site.
const SITES: &str =
    "12 do_fork+0x10/0x80\n7 dentry alloc_inode+0x8/0x300\n3 kmalloc-cg-64 mod_func+0x1/0x2 [mod]\n";

const BUDDYINFO: &str = "Node 0, zone      DMA      0      0      0      0      0      0      1      1      0      1      3 \n\
    Node 0, zone   Normal     10      9      8      7      6      5      4      3      2      1      0 \n";

const PAGETYPEINFO: &str = "Page block order: 9\nPages per block:  512\n\n\
    Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10 \n\
    Node    0, zone   Normal, type    Unmovable      0      1      0      1      1      0      0      1      0      0      0 \n\
    Node    0, zone   Normal, type      Movable      1      2      3      0      0      0      0      0      0      1      3 \n\n\
    Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate \n\
    Node 0, zone   Normal            3            7            1            0            0 \n";

/// A snapshot, with up to four numbers or words of it changed.
pub fn snapshot(u: &mut Unstructured<'_>) -> Result<(String, Vec<u8>)> {
    let (name, text) = *u.choose(&SNAPSHOTS)?;
    let mut words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
    for _ in 0..u.int_in_range(0..=4)? {
        let at = u.choose_index(words.len())?;
        match u.int_in_range(0..=4)? {
            0 => words[at] = format!("{} ", edge(u)?),
            1 => words[at].clear(),
            2 => words[at] = u.choose(&words)?.clone(),
            3 => words[at].push_str("-1 99999999999999999999999 "),
            _ => words.truncate(at.max(1)),
        }
    }
    Ok((name.to_owned(), words.concat().into_bytes()))
}
