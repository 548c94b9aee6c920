//! Accounts of memory that do not overlap, made of the kernel's own counts.
//!
//! Lines of /proc/meminfo overlap (Cached has Shmem in it, VmallocUsed has kernel stacks), and some memory is in none of them. Each
//! account here takes from the texts what no other account has, so that accounts and the rest add up to MemTotal.
//! docs/balance.md has the same table, with the place of each count in the kernel's source.

mod amount;
mod series;
mod texts;

pub use amount::{Amount, Doubt};
pub use series::{Readings, Recording};
pub use texts::{SavedText, SavedTexts, TEXT_NAMES, Texts, attached, name_at};

/// An account.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Name in JSON and CSV.
    pub key: &'static str,
    /// Name in tables.
    pub name: &'static str,
    /// Name in sentences, without a comma.
    pub in_sentences: &'static str,
    /// Lines of the texts that it is made of.
    pub fields: &'static str,
    /// Memory of the account; `None`: the texts do not report it.
    amount: fn(&Texts) -> Option<Amount>,
}

/// Key of what is in no account.
pub const REST: &str = "in_no_account";

/// Keys of memory of processes, and of the page cache of files.
pub const ANONYMOUS: &str = "anonymous";
pub const PAGE_CACHE: &str = "page_cache";

/// Key of free memory.
pub const FREE: &str = "free";

/// Key of free memory in lists of the CPUs, which MemFree lacks.
pub const CPU_LISTS: &str = "cpu_lists";

/// Accounts of free memory: pages move between them all the time.
pub const FREE_ACCOUNTS: [&str; 2] = [FREE, CPU_LISTS];

const fn account(
    key: &'static str,
    name: &'static str,
    fields: &'static str,
    amount: fn(&Texts) -> Option<Amount>,
) -> Account {
    Account { key, name, in_sentences: name, fields, amount }
}

impl Account {
    /// The account with a name of its own in sentences.
    const fn in_sentences(self, in_sentences: &'static str) -> Self {
        Self { in_sentences, ..self }
    }
}

/// Name of an account in sentences.
pub fn name_in_sentences(key: &str) -> &'static str {
    ACCOUNTS.iter().find(|account| account.key == key).map_or("in no account", |account| account.in_sentences)
}

/// All accounts, in the order of the screen.
pub const ACCOUNTS: [Account; 25] = [
    account(FREE, "free", "MemFree", |t| t.line("MemFree")).in_sentences("free memory"),
    account(CPU_LISTS, "free, in per-CPU lists", "zoneinfo: count", |t| {
        t.cpu_list_pages().map(Amount::exact)
    })
    .in_sentences("free pages on per-CPU lists"),
    account(ANONYMOUS, "anonymous memory", "AnonPages", |t| t.line("AnonPages")),
    account(PAGE_CACHE, "page cache of files", "Cached - Shmem", |t| {
        let cached = t.bytes("Cached")?;
        Some(Amount::exact(cached.saturating_sub(t.bytes("Shmem").unwrap_or(0))))
    }),
    account("shmem", "tmpfs and shared memory", "Shmem", |t| t.line("Shmem")),
    account("buffers", "page cache of block devices", "Buffers", |t| t.line("Buffers")),
    account("swap_cache", "swap cache", "SwapCached", |t| {
        Some(Amount::at_most(t.bytes("SwapCached")?, Doubt::Part))
    }),
    account("slab_reclaimable", "slab, reclaimable", "SReclaimable", |t| t.line("SReclaimable"))
        .in_sentences("reclaimable slab"),
    account("slab_unreclaimable", "slab, not reclaimable", "SUnreclaim", |t| t.line("SUnreclaim"))
        .in_sentences("unreclaimable slab"),
    account("misc_reclaimable", "other reclaimable", "KReclaimable - SReclaimable", misc_reclaimable)
        .in_sentences("other reclaimable memory"),
    account("page_tables", "page tables", "PageTables", |t| t.line("PageTables")),
    account("sec_page_tables", "page tables of guests, IOMMU", "SecPageTables", |t| t.line("SecPageTables"))
        .in_sentences("page tables of guests and IOMMUs"),
    account("kernel_stacks", "kernel stacks", "KernelStack", kernel_stacks),
    account("vmalloc", "vmalloc", "VmallocUsed - KernelStack", vmalloc),
    account("percpu", "percpu", "Percpu", |t| {
        // The first chunk is from the boot allocator, outside of MemTotal.
        Some(Amount::at_most(t.bytes("Percpu")?, Doubt::Constant))
    }),
    account("hugetlb", "hugetlb", "Hugetlb", hugetlb),
    account("cma", "CMA, in use", "CmaTotal - CmaFree", |t| {
        let Some(total) = t.bytes("CmaTotal") else { return Some(Amount::exact(0)) };
        let used = total.saturating_sub(t.bytes("CmaFree").unwrap_or(0));
        Some(Amount::at_most(used, Doubt::Part))
    })
    .in_sentences("CMA memory in use"),
    account("zsmalloc", "compressed (zswap, zram)", "nr_zspages, Zswap", compressed)
        .in_sentences("compressed memory of zswap and zram"),
    account("balloon", "balloon of the hypervisor", "Balloon", balloon),
    account("gpu", "GPU drivers", "GPUActive + GPUReclaim", |t| {
        let line = |name| t.bytes(name).unwrap_or(0);
        Some(Amount::exact(line("GPUActive").saturating_add(line("GPUReclaim"))))
    })
    .in_sentences("memory of GPU drivers"),
    account("memmap", "struct page, page_ext", "vmstat: nr_memmap_pages", memmap)
        .in_sentences("memory of struct page and page_ext"),
    account("bounce", "bounce buffers", "Bounce", |t| t.line_or_none("Bounce")),
    account("writeback_tmp", "FUSE writeback", "WritebackTmp", |t| t.line_or_none("WritebackTmp")),
    account("quicklists", "quicklists", "Quicklists", |t| t.line_or_none("Quicklists")),
    account("hardware_corrupted", "poisoned", "HardwareCorrupted", |t| {
        Some(Amount::at_most(t.bytes("HardwareCorrupted").unwrap_or(0), Doubt::Part))
    })
    .in_sentences("pages with memory errors"),
];

/// `NR_KERNEL_MISC_RECLAIMABLE`: it has a line of its own in vmstat alone.
fn misc_reclaimable(texts: &Texts) -> Option<Amount> {
    let lines = texts.bytes("KReclaimable").zip(texts.bytes("SReclaimable"));
    lines.map(|(all, slab)| Amount::exact(all.saturating_sub(slab)))
}

/// Stacks that are objects of a cache are slab memory already (`thread_stack`, kernel/fork.c: pages larger than stacks).
fn kernel_stacks(texts: &Texts) -> Option<Amount> {
    if texts.are_stacks_slabs() { Some(Amount::exact(0)) } else { texts.line("KernelStack") }
}

/// Pages of vmalloc without stacks. 4.4 to 5.2 print 0.
fn vmalloc(texts: &Texts) -> Option<Amount> {
    let used = texts.bytes("VmallocUsed").filter(|used| *used > 0)?;
    let stacks = texts.bytes("KernelStack").unwrap_or(0).min(used);
    Some(match texts.has_vmap_stacks() {
        Some(true) => Amount::exact(used - stacks),
        Some(false) => Amount::exact(used),
        None => Amount { most: used, doubtful: stacks, doubt: Doubt::Whole },
    })
}

/// Huge pages of all sizes; before 4.15 of the default size alone: others are in no account.
fn hugetlb(texts: &Texts) -> Option<Amount> {
    match (texts.bytes("Hugetlb"), texts.count("HugePages_Total")) {
        (Some(bytes), _) => Some(Amount::exact(bytes)),
        (None, Some(0) | None) => Some(Amount::exact(0)),
        (None, Some(pages)) => Some(Amount::exact(pages.saturating_mul(texts.bytes("Hugepagesize")?))),
    }
}

/// Pages of zsmalloc, and of other allocators that zswap had until 6.14. Which one zswap uses is not reported.
fn compressed(texts: &Texts) -> Option<Amount> {
    let zswap = texts.bytes("Zswap").unwrap_or(0);
    // nr_zone_inactive_anon is as old as nr_zspages, 4.8: a kernel that has it alone was built without zsmalloc.
    let pages = match (texts.bytes_of_pages("nr_zspages"), texts.bytes_of_pages("nr_zone_inactive_anon")) {
        (Some(pages), _) => pages,
        (None, Some(_)) => 0,
        (None, None) => return None,
    };
    let most = pages.saturating_add(zswap);
    Some(Amount { most, doubtful: pages.min(zswap), doubt: Doubt::Whole })
}

/// struct pages of the page allocator. A kernel before 6.11 does not count them. A counter that fell below 0 is printed as a huge
/// number.
fn memmap(texts: &Texts) -> Option<Amount> {
    if !texts.has_vmstat() {
        return None;
    }
    let bytes = texts.bytes_of_pages("nr_memmap_pages").filter(|bytes| *bytes <= texts.total());
    Some(Amount::exact(bytes.unwrap_or(0)))
}

/// Pages in balloons. Most drivers take them out of MemTotal; virtio does not where the guest may take them back.
fn balloon(texts: &Texts) -> Option<Amount> {
    let line = texts.bytes("Balloon");
    let inflated = || texts.bytes_of_pages("balloon_inflate").zip(texts.bytes_of_pages("balloon_deflate"));
    let bytes = match line.or_else(|| inflated().map(|(given, back)| given.saturating_sub(back))) {
        Some(bytes) => bytes,
        // Without the events, the kernel has no balloon.
        None if texts.has_vmstat() => 0,
        None => return None,
    };
    Some(Amount::at_most(bytes, Doubt::Whole))
}

/// All accounts at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// MemTotal.
    pub total: u64,
    /// Memory of [`ACCOUNTS`]; `None`: not reported.
    pub amounts: Vec<Option<Amount>>,
}

impl Balance {
    /// The accounts of these texts.
    pub fn of(texts: &Texts) -> Self {
        Self {
            total: texts.total(),
            amounts: ACCOUNTS.iter().map(|account| (account.amount)(texts)).collect(),
        }
    }

    /// Accounts at two times. A part that is elsewhere at both is at most the smaller one.
    pub fn of_two(before: &Texts, after: &Texts) -> [Self; 2] {
        let [mut first, mut last] = [before, after].map(Self::of);
        for (first, last) in first.amounts.iter_mut().zip(&mut last.amounts) {
            if first.is_none() || last.is_none() {
                // Reported once, it cannot be compared.
                (*first, *last) = (None, None);
            }
            if let (Some(first), Some(last)) = (first, last) {
                if first.doubt == Doubt::Constant {
                    let least = first.doubtful.min(last.doubtful);
                    (first.doubtful, last.doubtful) = (least, least);
                }
            }
        }
        [first, last]
    }

    /// Smallest and largest rest: MemTotal less all accounts. The smallest is `None` if an account is not reported, as its
    /// memory is in the rest.
    pub fn rest(&self) -> (Option<i64>, i64) {
        let known = || self.amounts.iter().flatten();
        let total = i128::from(self.total);
        let most: i128 = known().map(|amount| i128::from(amount.most)).sum();
        let least: i128 = known().map(|amount| i128::from(amount.least())).sum();
        (self.is_whole().then(|| clamped(total - most)), clamped(total - least))
    }

    /// True if all accounts are reported.
    pub fn is_whole(&self) -> bool {
        self.amounts.iter().all(Option::is_some)
    }

    /// Smallest and largest change of the rest. Accounts that are not reported are in it: the change is that of both together.
    pub fn rest_change(&self, later: &Self) -> (i64, i64) {
        let total = i128::from(later.total) - i128::from(self.total);
        let (mut least, mut most) = (total, total);
        for pair in self.amounts.iter().zip(&later.amounts) {
            let (Some(first), Some(last)) = pair else { continue };
            let change = first.change_to(last);
            least -= change.1;
            most -= change.0;
        }
        (clamped(least), clamped(most))
    }
}

/// A sum as 64 bits.
pub fn clamped(sum: i128) -> i64 {
    i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
}
