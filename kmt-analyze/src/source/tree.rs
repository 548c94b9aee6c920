//! Files below a directory that the command line gives: found by their names, and opened only if they are regular files
//! below it.
//!
//! Directories may be of other users and may change while they are read: links are not followed, and numbers of files
//! and levels have limits. `modules` and `dwarf/find` use it for modules and debug information.

use std::io::Read;

use kmt_common::folder::Folder;
#[cfg(feature = "dwarf")]
use kmt_common::input::InputBytes;

use crate::failure::{Failure, Result};

/// Directories below one that is searched, at most.
const DEPTH_MAX: u32 = 32;
/// Files at most: a kernel with all options has some 30,000 objects.
pub const FILES_MAX: usize = 500_000;

/// Paths of wanted files below a directory, from there, sorted. Links to directories are not followed.
pub fn named(folder: &Folder, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![(String::new(), DEPTH_MAX)];
    while let Some((path, depth)) = folders.pop() {
        for (name, is_directory) in folder.entries(if path.is_empty() { "." } else { &path })? {
            // Neither the kernel nor its modules have other names.
            let Some(name) = name.to_str() else { continue };
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            if is_directory && depth > 0 {
                folders.push((path, depth - 1));
            } else if is_wanted(name) {
                found.push(path);
            }
        }
        if found.len().max(folders.len()) > FILES_MAX {
            return Err(Failure::new(format!("{} has more than {FILES_MAX} files", folder.path.display()))
                .hint("name the folder of one kernel"));
        }
    }
    found.sort();
    Ok(found)
}

/// Maps a file; `None` if there is none.
#[cfg(feature = "dwarf")]
pub fn bytes(folder: &Folder, path: &str) -> Result<Option<InputBytes>> {
    let Some((file, _)) = folder.file(path)? else { return Ok(None) };
    // A regular file without a length is empty, or made by the kernel when it is read: neither is an object.
    InputBytes::of_file(&folder.path.join(path), file, |_| Ok(Vec::new())).map(Some)
}

/// Text of a file; empty if there is none.
pub fn text(folder: &Folder, path: &str, bytes_max: u64) -> Result<String> {
    let Some((file, _)) = folder.file(path)? else { return Ok(String::new()) };
    let name = folder.path.join(path);
    let mut bytes = Vec::new();
    let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| Failure::io("reading", &name, &e))?;
    if bytes.len() as u64 > bytes_max {
        return Err(Failure::new(format!("{} has more than {bytes_max} bytes", name.display()))
            .hint("a kernel's own has less than 100 KiB"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
