//! Large holes of a mapped file, as zeros without a file: reading them would fill the page cache with zeros.

use std::fs::File;

use memmap2::Mmap;
use rustix::fs::{SeekFrom, seek};
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Holes from this length on are mapped as zeros, and no more than this many of a file.
const HOLE_LEN: u64 = 16 << 20;
const HOLES_MAX: usize = 256;
/// Pages of all machines are parts of this.
const HOLE_ALIGN: u64 = 2 << 20;

/// Maps zeros over the large holes of a file. Where that fails they stay mapped as the file has them.
pub(crate) fn blank_holes(map: &Mmap, file: &File) {
    let len = map.len() as u64;
    let mut at = 0;
    for _ in 0..HOLES_MAX {
        let Ok(start) = seek(file, SeekFrom::Hole(at)) else { return };
        // No data after it: the hole reaches to the end.
        let end = seek(file, SeekFrom::Data(start)).unwrap_or(len).min(len);
        if start >= end {
            return;
        }
        // The last page of the file may be a part of one.
        let (start, size) =
            (start.next_multiple_of(HOLE_ALIGN), end.saturating_sub(start.next_multiple_of(HOLE_ALIGN)));
        let size = size - size % HOLE_ALIGN;
        if size >= HOLE_LEN {
            let (Ok(start), Ok(size)) = (usize::try_from(start), usize::try_from(size)) else { return };
            let place = map.as_ptr().wrapping_add(start).cast_mut().cast();
            // SAFETY: the range is within `map`, which is only read, and has whole pages. What was mapped there are zeros
            // of the file too, or what another process writes there now, so that the bytes may change under us as those of
            // the map may. The map unmaps its whole range when it is dropped.
            let mapped = unsafe {
                rustix::mm::mmap_anonymous(place, size, ProtFlags::READ, MapFlags::PRIVATE | MapFlags::FIXED)
            };
            if mapped.is_err() {
                return;
            }
            // SAFETY: the range was just mapped, is private and without a file: the advice concerns the size of its pages.
            let _ = unsafe { rustix::mm::madvise(place, size, Advice::LinuxHugepage) };
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use std::fs::File;

    use crate::mapping::Mapping;

    #[test]
    fn holes_are_zeros_between_data() {
        let path = std::env::temp_dir().join(format!("kmt-holes-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let places = [0, 3 << 20, 40 << 20, (90 << 20) + 12_345];
        for place in places {
            file.write_all_at(b"data", place).unwrap();
        }
        file.set_len((150 << 20) + 777).unwrap();
        let mapping = Mapping::of(&path, &file).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mapping.len(), (150 << 20) + 777);
        let mut expected = vec![0; mapping.len()];
        for place in places {
            expected[place as usize..][..4].copy_from_slice(b"data");
        }
        assert!(*mapping == expected[..]);
        mapping.release_pages().unwrap();
        assert!(*mapping == expected[..]);
    }
}
