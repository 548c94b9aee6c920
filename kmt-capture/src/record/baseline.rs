//! Memory that is allocated at the begin and the end of a recording, by call site, as the kernel itself accounts for it.
//!
//! The files of debugfs have an entry for each page or object and may be gigabytes long: they are summed up while they are
//! read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use kmt_common::allocators::is_allocator;
use kmt_format::write::Writer;

use super::snapshot::When;

/// Accounts of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Baseline {
    /// /proc/allocinfo: 6.10 and later with CONFIG_MEM_ALLOC_PROFILING
    Allocinfo,
    // /sys/kernel/debug/page_owner; also needs CONFIG_PAGE_OWNER.
    /// Pages by call site from debugfs: page_owner=on
    #[value(name = "page_owner", alias = "page-owner")]
    PageOwner,
    // `alloc_traces` of each cache in /sys/kernel/debug/slab; also needs CONFIG_SLUB_DEBUG.
    /// Slab objects by cache and call site from debugfs: slub_debug=U
    #[value(name = "slab_traces", alias = "slab-traces")]
    SlabTraces,
}

/// Call sites that are kept at most.
const SITES_MAX: usize = 65_536;
/// Longest line that is looked at.
const LINE_MAX: u64 = 4_096;
/// A file that is larger is left out.
const ALLOCINFO_MAX: u64 = 4 << 20;

/// Pages or objects by call site.
type SiteSums = BTreeMap<String, u64>;

impl Baseline {
    /// Name on the command line and in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocinfo => "allocinfo",
            Self::PageOwner => "page_owner",
            Self::SlabTraces => "slab_traces",
        }
    }

    /// Text of the account; `None`: the kernel does not have it.
    fn text(self, root: &Path) -> Option<Vec<u8>> {
        let debug = root.join("sys/kernel/debug");
        match self {
            Self::Allocinfo => {
                let bytes = fs::read(root.join("proc/allocinfo")).ok()?;
                (bytes.len() as u64 <= ALLOCINFO_MAX).then_some(bytes)
            }
            Self::PageOwner => {
                let open = |path: &str| File::open(debug.join(path)).ok().map(BufReader::new);
                // A stack once, not once for each page: a hundredth of the time.
                let sums = open("page_owner_stacks/show_stacks").and_then(page_owner_stacks);
                Some(lines_of(&sums.or_else(|| open("page_owner").map(page_owner))?))
            }
            Self::SlabTraces => slab_traces(&debug.join("slab")).map(|sums| lines_of(&sums)),
        }
        .filter(|text| !text.is_empty())
    }
}

/// Accounts at one time, by what they are; `None`: the kernel does not have it.
pub struct Accounts(Vec<(Baseline, Option<Vec<u8>>)>);

/// Reads accounts.
pub fn read(of: &[Baseline]) -> Accounts {
    Accounts(of.iter().map(|baseline| (*baseline, baseline.text(Path::new("/")))).collect())
}

impl Accounts {
    /// Writes them into the file; returns the names of those that the kernel does not have.
    pub fn write(self, writer: &mut Writer, when: When) -> kmt_format::Result<Vec<&'static str>> {
        let mut missing = Vec::new();
        for (baseline, text) in self.0 {
            match text {
                Some(text) => writer.add_file(&format!("{}.{}", baseline.name(), when.suffix()), &text)?,
                None => missing.push(baseline.name()),
            }
        }
        Ok(missing)
    }
}

/// `AMOUNT NAME`, a line each.
fn lines_of(sums: &SiteSums) -> Vec<u8> {
    sums.iter().map(|(name, amount)| format!("{amount} {name}\n")).collect::<String>().into_bytes()
}

/// Calls `each` with the lines of a file, cut if they are very long.
fn each_line(mut file: impl BufRead, mut each: impl FnMut(&str)) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut file).take(LINE_MAX).read_until(b'\n', &mut line);
        if !matches!(read, Ok(read) if read > 0) {
            return;
        }
        each(String::from_utf8_lossy(&line).trim_end_matches('\n'));
    }
}

fn add(sums: &mut SiteSums, name: &str, amount: u64) {
    let name = if sums.len() < SITES_MAX || sums.contains_key(name) { name } else { "?" };
    let sum = sums.entry(name.to_owned()).or_default();
    *sum = sum.saturating_add(amount);
}

/// The function of a line of a stack, if it is outside the allocator.
fn call_site(line: &str) -> Option<&str> {
    let frame = line.strip_prefix(' ')?.trim();
    (frame.contains("+0x") && !is_allocator(frame.as_bytes())).then_some(frame)
}

/// Pages by the first function of their stack outside the allocator (`stack_print`, mm/page_owner.c, 6.10 to 7.2): a function
/// on each line, then `nr_base_pages: N`. `None`: it counts allocations (6.9), or has no stacks.
fn page_owner_stacks(file: impl BufRead) -> Option<SiteSums> {
    let mut sums = SiteSums::new();
    let mut site: Option<String> = None;
    each_line(file, |line| {
        if let Some(pages) = line.strip_prefix("nr_base_pages: ").and_then(|pages| pages.parse().ok()) {
            add(&mut sums, site.take().as_deref().unwrap_or("?"), pages);
        } else if site.is_none() {
            site = call_site(line).map(str::to_owned);
        }
    });
    (!sums.is_empty()).then_some(sums)
}

/// Pages by call site, from the entries of all pages (`print_page_owner`, mm/page_owner.c, 4.4 to 7.2): `Page allocated via
/// order 0, mask …`, a line on the frame, then a function on each line until an empty one.
fn page_owner(file: impl BufRead) -> SiteSums {
    let mut sums = SiteSums::new();
    // Pages of the entry, and its call site once it is found.
    let mut entry: Option<(u64, Option<String>)> = None;
    let mut end = |entry: &mut Option<(u64, Option<String>)>| {
        if let Some((pages, site)) = entry.take() {
            add(&mut sums, site.as_deref().unwrap_or("?"), pages);
        }
    };
    each_line(file, |line| {
        if let Some(rest) = line.strip_prefix("Page allocated via order ") {
            end(&mut entry);
            let order = rest.split(',').next().and_then(|order| order.trim().parse::<u32>().ok());
            entry = order.filter(|order| *order < 32).map(|order| (1 << order, None));
        } else if line.is_empty() {
            end(&mut entry);
        } else if let Some((_, site @ None)) = &mut entry {
            *site = call_site(line).map(str::to_owned);
        }
    });
    end(&mut entry);
    sums
}

/// Objects of each cache by call site (`slab_debugfs_show`, mm/slub.c, 5.15 to 7.2): `COUNT FUNCTION [waste=…] age=…`. Since
/// 6.1 stacks follow on lines of their own.
fn slab_traces(slab: &Path) -> Option<SiteSums> {
    let mut caches: Vec<PathBuf> = fs::read_dir(slab).ok()?.flatten().map(|entry| entry.path()).collect();
    caches.sort();
    // The first opening of a file of debugfs allocates an object that stays.
    caches.iter().for_each(|path| drop(File::open(path.join("alloc_traces"))));
    let mut sums = SiteSums::new();
    for path in caches {
        let Ok(file) = File::open(path.join("alloc_traces")) else { continue };
        let cache = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        each_line(BufReader::new(file), |line| {
            let mut words = line.split_ascii_whitespace();
            let objects = words.next().and_then(|objects| objects.parse::<u64>().ok());
            let site = words.next().filter(|site| site.contains("+0x"));
            if let Some((objects, site)) = objects.zip(site) {
                add(&mut sums, &format!("{cache} {site}"), objects);
            }
        });
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_for_the_function_outside_the_allocator() {
        let text = "Page allocated via order 2, mask 0x1 (GFP_KERNEL), pid 7, tgid 7 (sh), ts 5 ns\n\
            PFN 0x100 type Unmovable Block 0 type Unmovable Flags 0x0\n post_alloc_hook+0x1/0x2\n \
            get_page_from_freelist+0x3/0x4\n user+0x5/0x6 [mod]\n outer+0x7/0x8\n\n\
            Page allocated via order 0, mask 0x1, pid 7, ts 6 ns\nPFN 1 type\n user+0x5/0x6 [mod]\nPage has been migrated\n\n\
            Page allocated via order 0, mask 0x1\nPFN 2 type\n\n Page allocated via order 99, mask\n user+0x5/0x6\n";
        let sums = page_owner(text.as_bytes());
        assert_eq!(lines_of(&sums), b"1 ?\n5 user+0x5/0x6 [mod]\n");
    }

    #[test]
    fn pages_of_stacks_count_for_the_same_function() {
        let text = " post_alloc_hook+0x1/0x2\n user+0x5/0x6 [mod]\n outer+0x7/0x8\nnr_base_pages: 16\n\n \
            get_page_from_freelist+0x3/0x4\nnr_base_pages: 3\n\n user+0x5/0x6 [mod]\nnr_base_pages: 4\n\n";
        let sums = page_owner_stacks(text.as_bytes()).unwrap();
        assert_eq!(lines_of(&sums), b"3 ?\n20 user+0x5/0x6 [mod]\n");
        let allocations = " user+0x5/0x6 [mod]\nstack_count: 4\n\n";
        assert_eq!(page_owner_stacks(allocations.as_bytes()), None);
    }

    #[test]
    fn objects_count_for_their_cache_and_call_site() {
        let root = std::env::temp_dir().join(format!("kmt-baseline-{}", std::process::id()));
        let cache = root.join("sys/kernel/debug/slab/dentry");
        fs::create_dir_all(&cache).unwrap();
        fs::write(
            cache.join("alloc_traces"),
            "     12 __d_alloc+0x29/0x1a0 waste=96/8 age=1/2/3 pid=1-9 cpus=0-1\n        __d_alloc+0x29/0x1a0\n        \
             d_alloc+0x1/0x2\n\n      3 other+0x1/0x9 age=5 pid=1\n      1 <not-available> age=5\n",
        )
        .unwrap();
        let text = Baseline::SlabTraces.text(&root).unwrap();
        let missing = [Baseline::PageOwner, Baseline::Allocinfo].map(|baseline| baseline.text(&root));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(text, b"12 dentry __d_alloc+0x29/0x1a0\n3 dentry other+0x1/0x9\n");
        assert_eq!(missing, [None, None]);
    }
}
