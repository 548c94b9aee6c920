//! NUMA node of each CPU, and the number of CPUs, from the lists of CPUs that the kernel prints: `0-3,8`.
//!
//! The lists are in the metadata of a file. `reports/crosscpu` tells frees on another node by them, and passes and
//! `reports/areas` take the number of possible CPUs from here.

use kmt_format::read::Metadata;

/// NUMA node of each CPU.
///
/// Ranges are kept as they are in the file, and never counted through: a file can give any number of CPUs.
#[derive(Debug, Default)]
pub struct CpuNodes {
    /// First and last CPU, and their node; sorted by the first CPU.
    ranges: Vec<(u32, u32, u32)>,
}

impl CpuNodes {
    /// Nodes in the metadata of a trace: `node0.cpus`, `node1.cpus` and so on; `None`: not in the file.
    pub fn of(metadata: &Metadata<'_>) -> Option<Self> {
        let mut ranges = Vec::new();
        for (key, value) in &metadata.pairs {
            let number = key.strip_prefix("node").and_then(|k| k.strip_suffix(".cpus"));
            let Some(node) = number.and_then(|n| n.parse().ok()) else { continue };
            let list = std::str::from_utf8(value).unwrap_or_default();
            ranges.extend(rising(list).map(|(first, last)| (first, last, node)));
        }
        // Stable: of two ranges that begin at one CPU the later one in the file counts.
        ranges.sort_by_key(|&(first, ..)| first);
        (!ranges.is_empty()).then_some(Self { ranges })
    }

    /// Node of a CPU; of ranges that overlap, which no kernel prints, the one that begins last counts.
    pub fn get(&self, cpu: u32) -> Option<u32> {
        let behind = self.ranges.partition_point(|&(first, ..)| first <= cpu);
        let &(_, last, node) = self.ranges.get(behind.checked_sub(1)?)?;
        (cpu <= last).then_some(node)
    }
}

/// Number of possible CPUs; `None`: not in the file.
pub fn possible(metadata: &Metadata<'_>) -> Option<u64> {
    let ranges = rising(metadata.text("cpus.possible")?);
    let count = ranges.fold(0, |sum: u64, (first, last)| sum.saturating_add(u64::from(last - first) + 1));
    (count > 0).then_some(count)
}

/// First and last CPU of each range of a list. The kernel prints a bitmap, so that ranges rise (bitmap_list_string(),
/// lib/vsprintf.c); others are left out.
fn rising(list: &str) -> impl Iterator<Item = (u32, u32)> + '_ {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse::<u32>().ok()?))
    };
    let mut behind = Some(0u32);
    list.split(',').filter_map(range).filter(move |&(first, last)| {
        let is_next = first <= last && behind.is_some_and(|behind| first >= behind);
        if is_next {
            behind = last.checked_add(1);
        }
        is_next
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(lists: &[(&'static str, &'static [u8])]) -> Option<CpuNodes> {
        let mut metadata = Metadata::default();
        metadata.pairs = lists.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        CpuNodes::of(&metadata)
    }

    #[test]
    fn lists_of_cpus() {
        let nodes = nodes(&[("node0.cpus", b"0-2,8\n"), ("node1.cpus", b"4-7, 9"), ("other", b"3")]).unwrap();
        let found: Vec<Option<u32>> = (0..11).map(|cpu| nodes.get(cpu)).collect();
        let (zero, one) = (Some(0), Some(1));
        assert_eq!(found, [zero, zero, zero, None, one, one, one, one, zero, one, None]);
    }

    #[test]
    fn possible_cpus() {
        let count = |list: &'static [u8]| {
            let mut metadata = Metadata::default();
            metadata.pairs = vec![("cpus.possible".into(), list.into())];
            possible(&metadata)
        };
        assert_eq!(
            [count(b"0"), count(b"0-3,6\n"), count(b""), count(b"3-1")],
            [Some(1), Some(5), None, None]
        );
        assert_eq!(count(b"0-4294967295"), Some(1 << 32));
        assert_eq!(possible(&Metadata::default()), None);
    }

    #[test]
    fn lists_that_no_kernel_prints() {
        assert!(nodes(&[]).is_none());
        assert!(nodes(&[("node0.cpus", b""), ("node1.cpus", b"x-3,7-5"), ("nodex.cpus", b"1")]).is_none());
        let all = nodes(&[("node3.cpus", b"0-4294967295,0-4294967295,5")]).unwrap();
        assert_eq!((all.ranges.len(), all.get(0), all.get(u32::MAX)), (1, Some(3), Some(3)));
    }
}
