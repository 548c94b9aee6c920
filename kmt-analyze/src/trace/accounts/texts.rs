//! Copies of the kernel's texts at one time: meminfo, and what makes accounts exact.
//!
//! They are attached to recordings, or saved in folders by bug reports. meminfo alone is enough. The forms are those of
//! fs/proc/meminfo.c, mm/vmstat.c and mm/slab_common.c, 4.4 to 7.2.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kmt_common::failure::{Failure, Result};
use kmt_common::kernel_stacks;
use kmt_common::text::shown;
use kmt_format::read::Metadata;

use super::Amount;
use crate::trace::meminfo::{ZonePages, zone_pages};
use crate::trace::slabinfo::{self, SlabCaches};

/// Names of the texts in a folder. meminfo is the one that is needed.
pub const TEXT_NAMES: [&str; 7] =
    ["meminfo", "zoneinfo", "vmstat", "slabinfo", "vmallocinfo", "config", "pagesize"];

/// Remedy where a text is missing or is another one.
const SAVE: &str = "save /proc/meminfo, zoneinfo, vmstat and slabinfo as root, under these names in one folder for each time";

/// One text.
#[derive(Debug, Clone)]
pub struct SavedText<'t> {
    /// Path of the text, for messages.
    pub path: String,
    pub bytes: Cow<'t, [u8]>,
}

/// Texts of one time by their names, of [`TEXT_NAMES`].
pub type SavedTexts<'t> = BTreeMap<&'static str, SavedText<'t>>;

/// Name of a text at one time, `before` or `after`. Two are the same at both.
pub fn name_at(name: &str, when: &str) -> String {
    if matches!(name, "config" | "pagesize") { name.to_owned() } else { format!("{name}.{when}") }
}

/// Texts of a recording.
pub fn attached<'m>(metadata: &'m Metadata<'_>, when: &str) -> SavedTexts<'m> {
    let text = |name: &'static str| {
        let path = name_at(name, when);
        let bytes = Cow::Borrowed(metadata.attachment(&path)?);
        Some((name, SavedText { path, bytes }))
    };
    TEXT_NAMES.into_iter().filter_map(text).collect()
}

/// Numbers by name.
type Numbers = BTreeMap<String, u64>;

/// Counts of one time.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// Sizes of meminfo, in bytes.
    bytes: Numbers,
    /// Numbers of meminfo without a unit.
    counts: Numbers,
    vmstat: Option<Numbers>,
    zones: Option<ZonePages>,
    caches: Option<SlabCaches>,
    page_size: Option<u64>,
    has_vmap_stacks: Option<bool>,
    /// True if kernel stacks are objects of a cache.
    are_stacks_slabs: bool,
}

impl Texts {
    /// MemAvailable, in bytes: what programs can get without swapping, by the kernel's own estimate (`si_mem_available`,
    /// mm/show_mem.c). It overlaps the accounts; `None`: not reported.
    pub fn available(&self) -> Option<u64> {
        self.bytes("MemAvailable")
    }

    /// Parses the texts of `place`, a folder or a recording. The page size is found in them where it is not known.
    pub fn parse(place: &str, saved: &SavedTexts<'_>, page_size: Option<u64>) -> Result<Self> {
        // Without the rights for a text, a copy of it is empty.
        let given = |name: &str| saved.get(name).filter(|text| !text.bytes.trim_ascii().is_empty());
        let Some(meminfo) = given("meminfo") else {
            return Err(Failure::new(format!("{place}: no meminfo")).hint(SAVE));
        };
        let mut texts = Self::of_meminfo(meminfo)?;
        texts.vmstat = given("vmstat").map(vmstat).transpose()?;
        texts.zones = given("zoneinfo").map(zones).transpose()?;
        texts.caches = given("slabinfo").map(caches).transpose()?;
        let own = given("pagesize").map(page_size_of).transpose()?;
        texts.page_size = page_size.or(own).or_else(|| texts.derived_page_size());
        texts.are_stacks_slabs =
            texts.caches.as_ref().is_some_and(|caches| caches.contains_key("thread_stack"));
        texts.has_vmap_stacks = texts.vmap_stacks(given("config"), given("vmallocinfo"));
        Ok(texts)
    }

    /// Lines `NAME: NUMBER kB`, and those without a unit.
    fn of_meminfo(text: &SavedText<'_>) -> Result<Self> {
        let mut texts = Self::default();
        for_lines(text, "NAME: NUMBER kB, as in /proc/meminfo", |line| {
            let (name, rest) = line.split_once(':')?;
            let mut words = rest.split_ascii_whitespace();
            let number: u64 = words.next()?.parse().ok()?;
            let (numbers, number) = match words.next() {
                Some("kB") => (&mut texts.bytes, number.checked_mul(1024)?),
                None => (&mut texts.counts, number),
                Some(_) => return None,
            };
            numbers.insert(name.trim().to_owned(), number);
            Some(())
        })?;
        for name in ["MemTotal", "MemFree"] {
            if !texts.bytes.contains_key(name) {
                return Err(Failure::new(format!("{}: no line {name}", text.path)).hint(SAVE));
            }
        }
        Ok(texts)
    }

    /// Size of a page by what two texts have of the same memory, or by the huge page that a page table of pages makes.
    fn derived_page_size(&self) -> Option<u64> {
        let free = self.vmstat.as_ref().and_then(|vmstat| vmstat.get("nr_free_pages").copied());
        let managed = self.zones.map(|zones| zones.managed);
        let by_pages = |bytes: Option<u64>, pages: Option<u64>| size_of_page(bytes?, pages?);
        let by_huge_page = || match self.bytes("Hugepagesize")? >> 10 {
            // 1 MiB: s390.
            1024 | 2048 => Some(4096),
            32_768 => Some(16_384),
            524_288 => Some(65_536),
            _ => None,
        };
        by_pages(self.bytes("MemTotal"), managed)
            .or_else(|| by_pages(self.bytes("MemFree"), free))
            .or_else(by_huge_page)
    }

    /// True if kernel stacks are areas of vmalloc (CONFIG_VMAP_STACK); `None`: unknown.
    fn vmap_stacks(&self, config: Option<&SavedText<'_>>, areas: Option<&SavedText<'_>>) -> Option<bool> {
        // Only kernels with pages larger than stacks have that cache (kernel/fork.c), and stacks are in no areas then.
        if self.are_stacks_slabs {
            return Some(false);
        }
        let text = |saved: &SavedText<'_>| String::from_utf8_lossy(&saved.bytes).into_owned();
        let (config, areas) = (config.map(text), areas.map(text));
        let stacks = self.bytes("KernelStack").unwrap_or(0);
        let is_smaller = self.bytes("VmallocUsed").is_some_and(|used| used > 0 && used < stacks);
        kernel_stacks::are_areas(config.as_deref(), areas.as_deref()).or(is_smaller.then_some(false))
    }

    /// MemTotal.
    pub fn total(&self) -> u64 {
        self.bytes("MemTotal").unwrap_or(0)
    }

    /// Bytes of a line of meminfo.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        self.bytes.get(name).copied()
    }

    /// A line of meminfo without a unit.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counts.get(name).copied()
    }

    /// A line of meminfo as an account.
    pub fn line(&self, name: &str) -> Option<Amount> {
        self.bytes(name).map(Amount::exact)
    }

    /// The same; a kernel without the line has no such memory.
    pub fn line_or_none(&self, name: &str) -> Option<Amount> {
        Some(Amount::exact(self.bytes(name).unwrap_or(0)))
    }

    /// Bytes of a number of pages in vmstat.
    pub fn bytes_of_pages(&self, name: &str) -> Option<u64> {
        let pages = self.vmstat.as_ref()?.get(name)?;
        Some(pages.saturating_mul(self.page_size?))
    }

    /// True if vmstat is there, and its pages have a size.
    pub fn has_vmstat(&self) -> bool {
        self.vmstat.is_some() && self.page_size.is_some()
    }

    /// Bytes of free pages in lists of CPUs.
    pub fn cpu_list_pages(&self) -> Option<u64> {
        Some(self.zones?.on_cpu_lists.saturating_mul(self.page_size?))
    }

    /// Size of a page; `None`: unknown.
    pub fn page_size(&self) -> Option<u64> {
        self.page_size
    }

    /// True if kernel stacks are areas of vmalloc; `None`: unknown.
    pub fn has_vmap_stacks(&self) -> Option<bool> {
        self.has_vmap_stacks
    }

    /// Caches of slabinfo.
    pub fn caches(&self) -> Option<&SlabCaches> {
        self.caches.as_ref()
    }

    /// True if kernel stacks are objects of a cache, which slabinfo has.
    pub fn are_stacks_slabs(&self) -> bool {
        self.are_stacks_slabs
    }

    /// Takes what does not change from texts of another time: some readings are of few texts.
    pub fn complete(&mut self, other: &Self) {
        self.page_size = self.page_size.or(other.page_size);
        self.are_stacks_slabs |= other.are_stacks_slabs;
        // Areas of stacks prove them; without any, they are unlikely.
        self.has_vmap_stacks = match (self.has_vmap_stacks, other.has_vmap_stacks) {
            _ if self.are_stacks_slabs => Some(false),
            (Some(own), Some(others)) => Some(own || others),
            (own, others) => own.or(others),
        };
    }

    /// Texts of two times, each completed from the other.
    pub fn of_two(mut first: Self, mut last: Self) -> (Self, Self) {
        first.complete(&last);
        last.complete(&first);
        (first, last)
    }
}

/// Parses each line that is not blank; refused: one that `parse` refuses.
fn for_lines(text: &SavedText<'_>, expected: &str, mut parse: impl FnMut(&str) -> Option<()>) -> Result<()> {
    for (index, line) in text.bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let parsed = std::str::from_utf8(line).ok().and_then(&mut parse);
        if parsed.is_none() {
            let found = shown(line.trim_ascii());
            let line = index.saturating_add(1);
            return Err(Failure::new(format!(
                "{}: line {line}: expected {expected}; found: {found}",
                text.path
            ))
            .hint(SAVE));
        }
    }
    Ok(())
}

fn vmstat(text: &SavedText<'_>) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    for_lines(text, "NAME NUMBER, as in /proc/vmstat", |line| {
        let mut words = line.split_ascii_whitespace();
        let (name, number) = (words.next()?, words.next()?.parse().ok()?);
        numbers.insert(name.to_owned(), number);
        words.next().is_none().then_some(())
    })?;
    Ok(numbers)
}

fn zones(text: &SavedText<'_>) -> Result<ZonePages> {
    zone_pages(&text.bytes).ok_or_else(|| {
        Failure::new(format!("{}: line 1: expected Node N, zone NAME, as in /proc/zoneinfo", text.path))
            .hint(SAVE)
    })
}

fn caches(text: &SavedText<'_>) -> Result<SlabCaches> {
    let caches = slabinfo::parse(&text.bytes);
    if caches.is_empty() {
        return Err(
            Failure::new(format!("{}: line 1: expected slabinfo of version 2.1", text.path)).hint(SAVE)
        );
    }
    Ok(caches)
}

/// Output of `getconf PAGESIZE`.
fn page_size_of(text: &SavedText<'_>) -> Result<u64> {
    let size = std::str::from_utf8(&text.bytes).ok().and_then(|text| text.trim().parse::<u64>().ok());
    size.filter(|size| (10..=20).any(|bit| *size == 1 << bit)).ok_or_else(|| {
        Failure::new(format!("{}: line 1: expected a page size in bytes, such as 4096", text.path))
            .hint("`getconf PAGESIZE` prints it; the file is not needed with zoneinfo or vmstat")
    })
}

/// The power of two that is nearest to the bytes of a page.
fn size_of_page(bytes: u64, pages: u64) -> Option<u64> {
    let is_near = |size: &u64| {
        let (have, made) = (u128::from(bytes) * 4, u128::from(pages) * u128::from(*size));
        have >= made * 3 && have < made * 6
    };
    (10..=20).map(|bit| 1 << bit).find(is_near)
}
