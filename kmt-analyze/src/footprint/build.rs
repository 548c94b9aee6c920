//! Objects of a kernel's build folder: the members of its archives, and its modules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;

use super::functions::FunctionObjects;
use super::sizes::Sizes;
use crate::failure::{Failure, Result};
use crate::files::Files;
use crate::source::directory_of;
use crate::source::image::{self, Image};

/// Folders below the build folder, at most.
const DEPTH_MAX: u32 = 32;
/// Objects at most: a kernel with all options has some 30,000.
const OBJECTS_MAX: usize = 500_000;
/// Archives within archives, at most.
const NESTED_MAX: u32 = 16;

/// An object and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizedObject {
    /// Path from the top of the build folder.
    pub path: String,
    pub sizes: Sizes,
}

/// Objects that are linked into the kernel: of `vmlinux.a` since Linux 6.1, else of each `built-in.a`. Source:
/// scripts/link-vmlinux.sh of 5.10 and 6.12.
pub fn objects(build: &Path, functions: &mut FunctionObjects) -> Result<Vec<SizedObject>> {
    let mut members = Members::default();
    let whole = build.join("vmlinux.a");
    let archives = if whole.is_file() { vec![whole] } else { named(build, &|name| name == "built-in.a")? };
    for archive in &archives {
        members.add(build, archive, NESTED_MAX)?;
    }
    let files = members.files;
    if files.is_empty() {
        return Err(Failure::new(format!("{} has no vmlinux.a and no built-in.a", build.display())).hint(
            "it is the folder in which the kernel was built, with its objects; --vmlinux FILE needs none",
        ));
    }
    files.iter().map(|path| object(build, path, |object, elf| functions.add("", &object.path, elf))).collect()
}

/// The kernel of a build, if it has debug information.
pub fn lined_kernel(build: &Path) -> Option<PathBuf> {
    let vmlinux = build.join("vmlinux");
    let bytes = image::bytes(&vmlinux, &Files::default()).ok()?;
    let has_lines = Image::parse(&vmlinux, &bytes).ok()?.has_debug_information();
    has_lines.then_some(vmlinux)
}

/// Modules below a folder, as one object each.
pub fn modules(directory: &Path, functions: &mut FunctionObjects) -> Result<Vec<SizedObject>> {
    let files = named(directory, &|name| name.ends_with(".ko") || name.ends_with(".ko.debug"))?;
    let placed = |path: &PathBuf| {
        object(directory, path, |module, elf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(directory) = directory_of(Path::new(&module.path)) {
                module.path = format!("{directory}/{name}");
            }
            let name = name.split('.').next().unwrap_or_default().replace('-', "_");
            functions.add(&name, &module.path, elf);
        })
    };
    files.iter().map(placed).collect()
}

fn object(
    top: &Path,
    path: &Path,
    see: impl FnOnce(&mut SizedObject, &object::File<'_>),
) -> Result<SizedObject> {
    let bytes = image::bytes(path, &Files::default())?;
    let elf = object::File::parse(&*bytes)
        .map_err(|error| Failure::new(format!("{}: not an ELF file: {error}", path.display())))?;
    let relative = path.strip_prefix(top).unwrap_or(path).display().to_string();
    let mut object = SizedObject { path: relative, sizes: Sizes::of(&elf) };
    see(&mut object, &elf);
    Ok(object)
}

/// Members of archives.
#[derive(Default)]
struct Members {
    /// Objects.
    files: BTreeSet<PathBuf>,
    /// Archives that were read: one may be a member of several.
    archives: BTreeSet<PathBuf>,
}

impl Members {
    /// Adds the objects of an archive. The members of a thin archive are files: their names start at the archive's folder,
    /// or at the build folder.
    fn add(&mut self, build: &Path, archive: &Path, depth: u32) -> Result<()> {
        if !self.archives.insert(clean(archive)) {
            return Ok(());
        }
        let fail = |why: String| Failure::new(format!("{}: {why}", archive.display()));
        let bytes = image::bytes(archive, &Files::default())?;
        let parsed = ArchiveFile::parse(&*bytes).map_err(|error| fail(format!("not an archive: {error}")))?;
        if !parsed.is_thin() {
            // An empty built-in.a is not thin.
            let mut members = parsed.members();
            return members
                .next()
                .map_or(Ok(()), |_| Err(fail("its members are no files of their own".to_owned())));
        }
        for member in parsed.members() {
            let member = member.map_err(|error| fail(error.to_string()))?;
            let name = String::from_utf8_lossy(member.name()).into_owned();
            let beside = archive.parent().unwrap_or(build).join(&name);
            let path = if beside.is_file() { beside } else { build.join(&name) };
            if name.ends_with(".a") && depth > 0 {
                self.add(build, &path, depth - 1)?;
            } else if path.is_file() && self.files.len() < OBJECTS_MAX {
                self.files.insert(clean(&path));
            } else {
                return Err(fail(format!("its member {name} is not there")));
            }
        }
        Ok(())
    }
}

/// A path without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// Files below a folder whose name is wanted, sorted.
fn named(directory: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![(directory.to_owned(), DEPTH_MAX)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| Failure::io("reading", &folder, &e))?;
        for entry in entries.filter_map(|entry| entry.ok()) {
            let name = entry.file_name();
            let kind = entry.file_type();
            if kind.as_ref().is_ok_and(|kind| kind.is_dir()) && depth > 0 {
                folders.push((entry.path(), depth - 1));
            } else if name.to_str().is_some_and(is_wanted) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
