//! A sample: the memory of each watched series at one time, from the texts of /proc.
//!
//! Series are the caches of /proc/slabinfo that the kernel cannot reclaim (active objects times their size), and lines of
//! /proc/meminfo. Memory in no account is MemTotal less all accounts, each with its largest amount: docs/balance.md has them. Of CMA
//! memory in use, only the part of drivers is subtracted, and only if it is known: the rest are movable pages, which other accounts
//! have. Accounts can overlap, so memory in no account can be negative; only its changes matter. Texts are those of Linux 4.4 to 7.2 (fs/proc/meminfo.c, mm/vmstat.c, mm/slab_common.c).

/// What a series counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Active objects of a slab cache.
    Cache,
    /// SUnreclaim: all caches that cannot be reclaimed, and large kmallocs.
    SlabUnreclaimable,
    /// PageTables and SecPageTables.
    PageTables,
    /// Percpu.
    Percpu,
    /// VmallocUsed without kernel stacks.
    Vmalloc,
    /// KernelStack; it is the measure of the number of tasks too.
    KernelStacks,
    /// MemTotal less all accounts.
    NoAccount,
    /// Anonymous memory, tmpfs and used swap: a load, not judged.
    Anonymous,
    /// SReclaimable: a load, not judged.
    SlabReclaimable,
}

/// Kinds with their keys in a state file and their names in messages. Caches have names of their own.
const NAMES: [(Kind, &str, &str); 9] = [
    (Kind::Cache, "cache", "slab cache"),
    (Kind::SlabUnreclaimable, "slab_unreclaimable", "unreclaimable slab"),
    (Kind::PageTables, "page_tables", "page tables"),
    (Kind::Percpu, "percpu", "percpu"),
    (Kind::Vmalloc, "vmalloc", "vmalloc"),
    (Kind::KernelStacks, "kernel_stacks", "kernel stacks"),
    (Kind::NoAccount, "in_no_account", "memory in no account"),
    (Kind::Anonymous, "anonymous", "anonymous memory"),
    (Kind::SlabReclaimable, "slab_reclaimable", "reclaimable slab"),
];

impl Kind {
    /// Key in a state file.
    pub fn key(self) -> &'static str {
        NAMES.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, key, _)| key)
    }

    /// Name in messages.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., name)| name)
    }

    /// The kind of a key.
    pub fn of_key(key: &str) -> Option<Self> {
        NAMES.iter().find(|(_, of, _)| *of == key).map(|(kind, ..)| *kind)
    }

    /// True for a series that only explains the growth of others.
    pub fn is_load(self) -> bool {
        matches!(self, Self::Anonymous | Self::SlabReclaimable)
    }
}

/// Memory of one series at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'t> {
    /// What it counts.
    pub kind: Kind,
    /// Cache; empty for other kinds.
    pub name: &'t str,
    /// Memory in KiB; below 0 only if it is memory in no account.
    pub kib: i64,
    /// Bytes of an object of the cache; 0 for other kinds.
    pub object_size: u32,
}

/// The memory of all series at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample<'t> {
    /// Seconds since boot.
    pub time: u64,
    /// MemTotal in KiB.
    pub memory_kib: u64,
    /// Series.
    pub values: Vec<Value<'t>>,
}

/// Texts of one time; an empty one could not be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'t> {
    /// /proc/meminfo
    pub meminfo: &'t str,
    /// /proc/slabinfo
    pub slabinfo: &'t str,
    /// /proc/zoneinfo
    pub zoneinfo: &'t str,
    /// /proc/vmstat
    pub vmstat: &'t str,
    /// Pages of CMA areas that drivers have; `None`: unknown.
    pub cma_pages: Option<u64>,
    /// True if kernel stacks are areas of vmalloc; `None`: unknown.
    pub vmap_stacks: Option<bool>,
}

impl<'t> Sample<'t> {
    /// Parses the texts. `None`: meminfo has no MemTotal.
    ///
    /// Lines that cannot be parsed are skipped. `page_size` is in bytes, `time` in seconds since boot.
    pub fn of(texts: &Texts<'t>, page_size: u64, time: u64) -> Option<Self> {
        let lines = Lines::of(texts.meminfo);
        let memory_kib = lines.kib("MemTotal").filter(|kib| *kib > 0)?;
        let mut sample = Self { time, memory_kib, values: Vec::new() };
        let caches: Vec<Value<'_>> = texts.slabinfo.lines().filter_map(cache).collect();
        let stacks = match caches.iter().any(|value| value.name == "thread_stack") {
            true => Stacks::Slabs,
            false => Stacks::of(&lines, texts.vmap_stacks),
        };
        let swap = lines.or_zero("SwapTotal").saturating_sub(lines.or_zero("SwapFree"));
        let anonymous = lines.kib("AnonPages").map(|kib| kib + lines.or_zero("Shmem") + swap);
        let tables = lines.kib("PageTables").map(|kib| kib + lines.or_zero("SecPageTables"));
        let rest = in_no_account(&lines, texts, page_size, stacks);
        let line = |kib: Option<u64>| kib.map(clamped);
        let sums = [
            (Kind::SlabUnreclaimable, line(lines.kib("SUnreclaim"))),
            (Kind::PageTables, line(tables)),
            (Kind::Percpu, line(lines.kib("Percpu"))),
            (Kind::Vmalloc, line(lines.vmalloc(stacks))),
            (Kind::KernelStacks, line(lines.kib("KernelStack"))),
            (Kind::NoAccount, rest),
            (Kind::Anonymous, line(anonymous)),
            (Kind::SlabReclaimable, line(lines.kib("SReclaimable"))),
        ];
        let sums = sums
            .into_iter()
            .filter_map(|(kind, kib)| Some(Value { kind, name: "", kib: kib?, object_size: 0 }));
        // Sums first: there may be more caches than are watched.
        sample.values.extend(sums);
        sample.values.extend(caches);
        Some(sample)
    }
}

fn clamped(kib: u64) -> i64 {
    i64::try_from(kib).unwrap_or(i64::MAX)
}

/// The memory that kernel stacks are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stacks {
    /// Areas of vmalloc: VmallocUsed has them.
    Areas,
    /// Objects of the cache thread_stack: SUnreclaim has them.
    Slabs,
    /// Pages that no other line has.
    Pages,
}

impl Stacks {
    /// Those of a kernel whose configuration may be unknown: then areas, unless these are smaller.
    fn of(lines: &Lines<'_>, are_areas: Option<bool>) -> Self {
        let may_be = || lines.kib("VmallocUsed").is_none_or(|used| used >= lines.or_zero("KernelStack"));
        if are_areas.unwrap_or_else(may_be) { Self::Areas } else { Self::Pages }
    }
}

/// A line of slabinfo 2.1.
fn cache(line: &str) -> Option<Value<'_>> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().filter(|name| !name.starts_with('#'))?;
    let active: u64 = words.next()?.parse().ok()?;
    let size: u64 = words.nth(1)?.parse().ok()?;
    let kib = active.saturating_mul(size) / 1024;
    let object_size = u32::try_from(size).unwrap_or(u32::MAX);
    Some(Value { kind: Kind::Cache, name, kib: clamped(kib), object_size })
}

/// Lines of meminfo in KiB, and those without a unit.
struct Lines<'t>(Vec<(&'t str, u64)>);

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let line = |line: &'t str| {
            let (name, rest) = line.split_once(':')?;
            let number: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
            // No line of a sane kernel comes near: sums below cannot overflow.
            Some((name.trim(), number.min(1 << 50)))
        };
        Self(text.lines().filter_map(line).collect())
    }

    fn kib(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(of, _)| *of == name).map(|(_, kib)| *kib)
    }

    fn or_zero(&self, name: &str) -> u64 {
        self.kib(name).unwrap_or(0)
    }

    /// Pages of vmalloc without stacks. 4.4 to 5.2 print 0: unknown.
    fn vmalloc(&self, stacks: Stacks) -> Option<u64> {
        let used = self.kib("VmallocUsed").filter(|used| *used > 0)?;
        let of_stacks = if stacks == Stacks::Areas { self.or_zero("KernelStack") } else { 0 };
        Some(used.saturating_sub(of_stacks))
    }

    fn hugetlb(&self) -> u64 {
        let of_default_size = || self.or_zero("HugePages_Total").saturating_mul(self.or_zero("Hugepagesize"));
        self.kib("Hugetlb").unwrap_or_else(of_default_size)
    }
}

/// Lines of meminfo that are accounts as they are.
const ACCOUNTS: [&str; 17] = [
    "MemFree",
    "AnonPages",
    // With Shmem in it.
    "Cached",
    "Buffers",
    "SwapCached",
    "SReclaimable",
    "SUnreclaim",
    "PageTables",
    "SecPageTables",
    "Percpu",
    "Balloon",
    "GPUActive",
    "GPUReclaim",
    "Bounce",
    "WritebackTmp",
    "Quicklists",
    "HardwareCorrupted",
];

/// MemTotal less all accounts, in KiB. `None`: a text that it needs is missing.
fn in_no_account(lines: &Lines<'_>, texts: &Texts<'_>, page_size: u64, stacks: Stacks) -> Option<i64> {
    let kib_of_pages = |pages: u64| pages.saturating_mul(page_size) / 1024;
    let total = lines.kib("MemTotal")?;
    let lists = kib_of_pages(pages_on_cpu_lists(texts.zoneinfo)?);
    let stat = |name: &str| number_of(texts.vmstat, name).map(kib_of_pages).filter(|kib| *kib <= total);
    let inflated = stat("balloon_inflate").zip(stat("balloon_deflate"));
    let balloon = inflated.map_or(0, |(given, back)| given.saturating_sub(back));
    let cma = lines.or_zero("CmaTotal").saturating_sub(lines.or_zero("CmaFree"));
    let other = [
        lists,
        lines.or_zero("KReclaimable").saturating_sub(lines.or_zero("SReclaimable")),
        texts.cma_pages.map_or(0, kib_of_pages).min(cma),
        lines.vmalloc(stacks).unwrap_or(0),
        lines.hugetlb(),
        // Pages of zswap are pages of zsmalloc, except with other allocators until 6.14.
        stat("nr_zspages").unwrap_or(0).max(lines.or_zero("Zswap")),
        stat("nr_memmap_pages").unwrap_or(0),
        balloon,
        if stacks == Stacks::Slabs { 0 } else { lines.or_zero("KernelStack") },
    ];
    let named = ACCOUNTS.iter().map(|name| lines.or_zero(name));
    let known = named.chain(other).fold(0, u64::saturating_add);
    Some(clamped(total).saturating_sub(clamped(known)))
}

/// Pages of `count:` in zoneinfo; `None`: it has none.
fn pages_on_cpu_lists(zoneinfo: &str) -> Option<u64> {
    let counts = zoneinfo.lines().filter_map(|line| line.trim_start().strip_prefix("count:"));
    counts.filter_map(|number| number.trim().parse::<u64>().ok()).reduce(u64::saturating_add)
}

/// A number of vmstat.
fn number_of(vmstat: &str, name: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal: 10000 kB\nMemFree: 1000 kB\nBuffers: 10 kB\nCached: 2000 kB\nShmem: 300 kB\n\
        SwapTotal: 50 kB\nSwapFree: 40 kB\nAnonPages: 3000 kB\nSReclaimable: 500 kB\nKReclaimable: 520 kB\nSUnreclaim: 400 kB\n\
        KernelStack: 100 kB\nPageTables: 90 kB\nSecPageTables: 8 kB\nVmallocUsed: 250 kB\nPercpu: 64 kB\n";
    const SLABINFO: &str = "slabinfo - version: 2.1\n# name <active_objs>\nfilp 4 8 1024 16 1 : tunables\n\
        kmalloc-64 32 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\nbroken x 1 2\nshort 1\n";

    fn sample<'t>(texts: &Texts<'t>) -> Sample<'t> {
        Sample::of(texts, 4096, 7).unwrap_or_else(|| panic!("{texts:?}"))
    }

    fn kib(sample: &Sample<'_>, kind: Kind) -> Option<i64> {
        sample.values.iter().find(|value| value.kind == kind).map(|value| value.kib)
    }

    #[test]
    fn series_are_those_of_the_texts() {
        let zoneinfo = "Node 0, zone DMA\n  cpu: 0\n    count: 5\n    high: 9\n  cpu: 1\n    count:    20\n";
        let vmstat = "nr_free_pages 7\nnr_zspages 2\nballoon_inflate 3\nballoon_deflate 2\n";
        let texts = Texts { meminfo: MEMINFO, slabinfo: SLABINFO, zoneinfo, vmstat, ..Texts::default() };
        let sample = sample(&texts);
        let caches: Vec<_> = sample.values.iter().filter(|value| value.kind == Kind::Cache).collect();
        let names: Vec<_> = caches.iter().map(|value| (value.name, value.kib, value.object_size)).collect();
        assert_eq!(names, [("filp", 4, 1024), ("kmalloc-64", 2, 64)]);
        assert_eq!((sample.time, sample.memory_kib), (7, 10_000));
        let expected = [
            (Kind::SlabUnreclaimable, 400),
            (Kind::PageTables, 98),
            (Kind::Percpu, 64),
            (Kind::Vmalloc, 150),
            (Kind::KernelStacks, 100),
            (Kind::Anonymous, 3310),
            (Kind::SlabReclaimable, 500),
        ];
        for (kind, expected) in expected {
            assert_eq!(kib(&sample, kind), Some(expected), "{kind:?}");
        }
        // Lines 7,072, other reclaimable 20, vmalloc and stacks 250, lists 100, zsmalloc 8, balloon 4.
        assert_eq!(kib(&sample, Kind::NoAccount), Some(10_000 - 7_072 - 20 - 250 - 100 - 8 - 4));
    }

    /// Memory in no account of some lines, beside 10,000 kB of which 4,000 are free.
    fn rest(more: &str, texts: Texts<'_>) -> Option<i64> {
        let meminfo = format!("MemTotal: 10000 kB\nMemFree: 4000 kB\n{more}");
        kib(&sample(&Texts { meminfo: &meminfo, zoneinfo: "count: 0\n", ..texts }), Kind::NoAccount)
    }

    #[test]
    fn accounts_that_overlap_leave_a_negative_rest() {
        let texts = Texts::default();
        assert_eq!(rest("AnonPages: 5900 kB\nSwapCached: 300 kB\n", texts), Some(-200));
        assert_eq!(rest("AnonPages: 5900 kB\nSwapCached: 200 kB\n", texts), Some(-100));
    }

    #[test]
    fn movable_pages_in_cma_are_in_their_own_account() {
        let lines = "AnonPages: 3000 kB\nCmaTotal: 2000 kB\nCmaFree: 500 kB\n";
        let of = |cma_pages| rest(lines, Texts { cma_pages, ..Texts::default() });
        assert_eq!(of(None), Some(3000), "the part of drivers is unknown");
        assert_eq!(of(Some(100)), Some(2600));
        assert_eq!(of(Some(1000)), Some(1500), "no more than is in use");
    }

    #[test]
    fn pages_of_zswap_count_once() {
        let of = |zswap: &str, vmstat| rest(zswap, Texts { vmstat, ..Texts::default() });
        assert_eq!(of("Zswap: 800 kB\n", "nr_zspages 250\n"), Some(5000), "zswap and zram in zsmalloc");
        assert_eq!(of("Zswap: 800 kB\n", "nr_free_pages 7\n"), Some(5200), "zswap with another allocator");
    }

    #[test]
    fn stacks_count_once_wherever_they_are() {
        let lines = "VmallocUsed: 900 kB\nKernelStack: 300 kB\n";
        let of = |vmap_stacks, slabinfo| {
            let texts = Texts { vmap_stacks, slabinfo, ..Texts::default() };
            let meminfo = format!("MemTotal: 10000 kB\n{lines}");
            let vmalloc = kib(&sample(&Texts { meminfo: &meminfo, ..texts }), Kind::Vmalloc);
            (vmalloc, rest(lines, texts))
        };
        let areas = (Some(600), Some(6000 - 900));
        assert_eq!((of(Some(true), ""), of(None, "")), (areas, areas), "in VmallocUsed");
        assert_eq!(of(Some(false), ""), (Some(900), Some(6000 - 1200)), "pages of their own");
        assert_eq!(
            of(None, "thread_stack 9 9 16384 1 4 : tunables\n"),
            (Some(900), Some(6000 - 900)),
            "in slab"
        );
    }

    #[test]
    fn missing_texts_leave_series_out_and_broken_ones_do_not_panic() {
        let texts =
            Texts { meminfo: "MemTotal: 64 kB\nSUnreclaim: 99999999999999999999 kB\n", ..Texts::default() };
        assert_eq!(sample(&texts).values, []);
        for meminfo in ["", "MemTotal:", "MemTotal: x kB", "MemTotal: 0 kB", ":::\n\n"] {
            assert_eq!(Sample::of(&Texts { meminfo, ..texts }, 4096, 0), None, "{meminfo:?}");
        }
        let meminfo = "MemTotal: 18446744073709551615 kB\nAnonPages: 18446744073709551615 kB\nShmem: 18446744073709551615 kB\n";
        let slabinfo = "huge 18446744073709551615 1 18446744073709551615 1 1\n";
        let zoneinfo = "count: 18446744073709551615\ncount: 18446744073709551615\n";
        let sample = sample(&Texts { meminfo, slabinfo, zoneinfo, vmstat: "nr_zspages -1\n", ..texts });
        assert!(
            sample.values.iter().all(|value| value.kib >= 0 || value.kind == Kind::NoAccount),
            "{sample:?}"
        );
    }
}
