//! Build ids of the kernel and its modules in a perf.data.

use super::super::cursor::{Cursor, Result};
use crate::build_id::hexadecimal;

/// Most build ids that are read: perf lists files of user space too.
const FILES_MAX: usize = 100_000;

/// Flag of a record: the id's length follows its 20 bytes.
const HAS_LEN: u16 = 1 << 15;

/// Build ids by module, "" for the kernel, from records of kind, flags and size, a task, an id, and the name of a file. A list
/// that is not whole gives those before its fault.
///
/// Source: Linux 6.1, tools/perf/util/build-id.c and tools/lib/perf/include/perf/event.h.
pub fn read(cursor: &mut Cursor<'_>) -> Vec<(String, String)> {
    let mut ids = Vec::new();
    for _ in 0..FILES_MAX {
        match record(cursor) {
            Ok(Some(id)) => ids.push(id),
            Ok(None) if !cursor.rest().is_empty() => {}
            _ => break,
        }
    }
    ids
}

fn record(cursor: &mut Cursor<'_>) -> Result<Option<(String, String)>> {
    cursor.take(4, "a build id")?;
    let flags = cursor.u16("a build id")?;
    let len = cursor.u16("a build id")?;
    let body = cursor.take(u64::from(len).saturating_sub(8), "a build id")?;
    let (Some(id), Some(name)) = (body.get(4..24), body.get(28..)) else { return Ok(None) };
    let len = body.get(24).filter(|_| flags & HAS_LEN != 0).map_or(id.len(), |len| usize::from(*len));
    let name = String::from_utf8_lossy(name.split(|&byte| byte == 0).next().unwrap_or_default());
    Ok(module_of(&name).zip(id.get(..len).filter(|id| !id.is_empty()).map(hexadecimal)))
}

/// The module of a file, "" for the kernel; `None`: a file of user space.
fn module_of(file: &str) -> Option<String> {
    if file.starts_with("[kernel.kallsyms]") {
        return Some(String::new());
    }
    if let Some(module) = file.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let is_name = module.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        return is_name.then(|| module.to_owned());
    }
    let (stem, rest) = file.rsplit('/').next()?.split_once(".ko")?;
    (rest.is_empty() || rest.starts_with('.')).then(|| stem.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::ByteOrder;

    use super::*;

    #[test]
    fn files_of_the_kernel_have_build_ids() {
        let record = |name: &str, flags: u16, len: u8| {
            let mut bytes = [67_u32.to_le_bytes(), (u32::from(flags) | 80 << 16).to_le_bytes()].concat();
            bytes.extend((-1_i32).to_le_bytes());
            bytes.extend([0xab; 20]);
            bytes.extend([len, 0, 0, 0]);
            bytes.extend(name.as_bytes());
            bytes.resize(80, 0);
            bytes
        };
        let mut all = record("[kernel.kallsyms]", 1, 0);
        all.extend(record("/usr/bin/cat", 2, 0));
        all.extend(record("/lib/modules/6.1/kernel/fs/nfs-acl.ko.xz", HAS_LEN | 1, 4));
        all.extend([1, 2, 3]);
        let ids = read(&mut Cursor::new(&all, 0, ByteOrder::Little));
        let id = "ab".repeat(20);
        assert_eq!(ids, [(String::new(), id.clone()), ("nfs_acl".to_owned(), id[..8].to_owned())]);
        assert_eq!(module_of("[ext4]").as_deref(), Some("ext4"));
        assert_eq!((module_of("[vdso].x"), module_of("/x/a.kotlin")), (None, None));
    }
}
