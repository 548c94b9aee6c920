//! `last_boot_info` of a persistent ring buffer: where the kernel was in the boot that filled it.
//!
//! Linux 6.12 to 6.14 print `text delta:\tN` and `data delta:\tN`: addresses of this boot minus those of that boot, in decimal
//! (`tracing_last_boot_read`, kernel/trace/trace.c). 6.15 and later print `ADDRESS\t[kernel]` with the address of `_text`, then
//! `ADDRESS\tMODULE` for each module, in hexadecimal without 0x (`last_boot_seq_ops`). Once the buffer is used in this boot, their
//! first line is `# Current`: the events of the earlier boot are gone then.

use std::collections::BTreeMap;

/// Addresses of the boot that filled the buffer, as far as the kernel has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastBoot {
    /// The buffer has events of this boot only.
    Current,
    /// Functions of this boot are this many bytes above those of that boot.
    Moved(i64),
    /// Addresses of that boot.
    Placed {
        /// Address of `_text`.
        text: u64,
        /// First address of each module.
        modules: BTreeMap<String, u64>,
    },
    /// A text of another form.
    Unknown,
}

impl LastBoot {
    /// Parses the text of the file.
    pub fn parse(text: &str) -> Self {
        if text.starts_with("# Current") {
            return Self::Current;
        }
        let delta = text.lines().find_map(|line| line.strip_prefix("text delta:"));
        if let Some(delta) = delta.and_then(|delta| delta.trim().parse().ok()) {
            return Self::Moved(delta);
        }
        let mut places: BTreeMap<String, u64> = text.lines().filter_map(placed).collect();
        match places.remove("[kernel]") {
            Some(text) => Self::Placed { text, modules: places },
            None => Self::Unknown,
        }
    }
}

/// `ADDRESS\tNAME`.
fn placed(line: &str) -> Option<(String, u64)> {
    let (address, name) = line.split_once('\t')?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    Some((name.trim().to_owned(), address)).filter(|(name, _)| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_its_form() {
        assert_eq!(
            LastBoot::parse("text delta:\t-148897792\ndata delta:\t-148897792\n"),
            LastBoot::Moved(-148_897_792)
        );
        assert_eq!(LastBoot::parse("text delta:\t0\ndata delta:\t0\n"), LastBoot::Moved(0));
        let placed = LastBoot::parse(
            "ffffffff9ae00000\t[kernel]\nffffffffc0a5d000\tvirtio_pci\nffffffffc0a40000\t9pnet\n",
        );
        let modules = [("9pnet", 0xffff_ffff_c0a4_0000), ("virtio_pci", 0xffff_ffff_c0a5_d000)]
            .map(|(n, a)| (n.to_owned(), a));
        assert_eq!(placed, LastBoot::Placed { text: 0xffff_ffff_9ae0_0000, modules: modules.into() });
        assert_eq!(LastBoot::parse("# Current\nffffffffc0a5d000\tvirtio_pci\n"), LastBoot::Current);
        for unknown in
            ["", "text delta:\tx\n", "zz\t[kernel]\n", "ffffffff9ae00000 [kernel]\n", "\u{fffd}\t\n"]
        {
            assert_eq!(LastBoot::parse(unknown), LastBoot::Unknown, "{unknown:?}");
        }
    }
}
