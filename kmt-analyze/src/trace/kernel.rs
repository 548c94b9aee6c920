//! The kernel that was traced.

use kmt_format::kernel::{KernelVersion, Uname};
use kmt_format::read::Metadata;

/// Version of the kernel in the metadata.
pub fn version(metadata: &Metadata<'_>) -> Option<KernelVersion> {
    let release = metadata.text("kernel.release").and_then(KernelVersion::parse);
    release.or_else(|| metadata.text("uname").and_then(Uname::parse)?.version())
}
