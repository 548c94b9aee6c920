//! Objects of a kernel's build folder: the members of its archives, and its modules.
//!
//! Code and data of each object are summed up by its symbols. The symbol tables also have the object of each function, so that
//! allocations of a trace get an object without debug information.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use kmt_common::folder::Folder;
use kmt_common::input::InputBytes;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol, SymbolKind};

use super::sizes::Sizes;
use crate::failure::{Failure, Result};
use crate::source::image::{self, Image};
use crate::source::{Budget, FILES_MAX, PATH_MAX, bytes, directory_of, named};

/// Archives within archives, at most.
const NESTED_MAX: u32 = 16;

/// An object and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizedObject {
    /// Path from the top of the build folder.
    pub path: String,
    pub sizes: Sizes,
}

/// Objects of a folder.
#[derive(Debug, Default)]
pub struct Objects {
    pub objects: Vec<SizedObject>,
    /// Files that were not read, with the reason: no regular files below the folder.
    pub refused: Vec<String>,
}

/// Objects that are linked into the kernel: of `vmlinux.a` since Linux 6.1, else of each `built-in.a`. Source:
/// scripts/link-vmlinux.sh of 5.10 and 6.12.
pub fn objects(build: &Path, functions: &mut FunctionObjects) -> Result<Objects> {
    let mut members = Members::of(Folder::open(build)?);
    if members.folder.has("vmlinux.a") {
        members.add("vmlinux.a", NESTED_MAX)?;
    } else {
        for archive in named(&members.folder, &|name| name == "built-in.a")? {
            members.add(&archive, NESTED_MAX)?;
        }
    }
    let Members { mut folder, files, .. } = members;
    for path in &files {
        folder.add(path, |object, elf| functions.add("", &object.path, elf))?;
    }
    if folder.read.objects.is_empty() {
        let first = folder.read.refused.first().map_or(String::new(), |why| format!(": {why}"));
        let why = format!("{} has no vmlinux.a and no built-in.a with objects{first}", build.display());
        return Err(Failure::new(why).hint(
            "it is the folder in which the kernel was built, with its objects; --vmlinux FILE needs none",
        ));
    }
    Ok(folder.read)
}

/// The kernel of a build, if it has debug information: a file of the folder like its objects.
pub fn lined_kernel(build: &Path) -> Result<Option<PathBuf>> {
    const NAME: &str = "vmlinux";
    let Some(bytes) = bytes(&Folder::open(build)?, NAME)? else { return Ok(None) };
    let vmlinux = build.join(NAME);
    let has_lines = Image::parse(&vmlinux, &bytes).is_ok_and(|image| image.has_debug_information());
    Ok(has_lines.then_some(vmlinux))
}

/// Modules below a folder, as one object each.
pub fn modules(directory: &Path, functions: &mut FunctionObjects) -> Result<Objects> {
    let folder = Folder::open(directory)?;
    let files = named(&folder, &|name| name.ends_with(".ko") || name.ends_with(".ko.debug"))?;
    let mut reading = Reading { folder, read: Objects::default() };
    for path in &files {
        reading.add(path, |module, elf| {
            let path = Path::new(&module.path).to_owned();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(directory) = directory_of(&path) {
                module.path = format!("{directory}/{name}");
            }
            let name = name.split('.').next().unwrap_or_default().replace('-', "_");
            functions.add(&name, &module.path, elf);
        })?;
    }
    Ok(reading.read)
}

/// A folder whose objects are read.
struct Reading {
    folder: Folder,
    read: Objects,
}

impl std::ops::Deref for Reading {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Reading {
    /// Maps a file below the folder; `None`: it is refused.
    fn open(&mut self, path: &str) -> Result<Option<InputBytes>> {
        match bytes(&self.folder, path) {
            Ok(Some(bytes)) => Ok(Some(bytes)),
            Ok(None) => Err(Failure::new(format!("{} is not there", self.folder.path.join(path).display()))),
            Err(refused) => {
                self.read.refused.push(refused.what().to_owned());
                Ok(None)
            }
        }
    }

    /// Adds an object, which `see` is called with.
    fn add(&mut self, path: &str, see: impl FnOnce(&mut SizedObject, &object::File<'_>)) -> Result<()> {
        let Some(bytes) = self.open(path)? else { return Ok(()) };
        let elf = object::File::parse(&*bytes).map_err(|error| {
            Failure::new(format!("{}: not an ELF file: {error}", self.folder.path.join(path).display()))
        })?;
        let path_of = self.folder.path.join(path);
        image::count_names(&elf, &Budget::new(&path_of, bytes.len()))?;
        let mut object = SizedObject { path: path.to_owned(), sizes: Sizes::of(&elf) };
        see(&mut object, &elf);
        self.read.objects.push(object);
        Ok(())
    }
}

/// Members of archives.
struct Members {
    folder: Reading,
    /// Objects, by their paths below the folder.
    files: BTreeSet<String>,
    /// Archives that were read: one may be a member of several.
    archives: BTreeSet<String>,
}

impl Members {
    fn of(folder: Folder) -> Self {
        let folder = Reading { folder, read: Objects::default() };
        Self { folder, files: BTreeSet::new(), archives: BTreeSet::new() }
    }

    /// Adds the objects of an archive. The members of a thin archive are files: their names start at the archive's folder,
    /// or at the build folder. Those of objects in other folders have `..` (drivers/gpu/drm/amd/amdgpu/Makefile of 6.12).
    fn add(&mut self, archive: &str, depth: u32) -> Result<()> {
        if !self.archives.insert(archive.to_owned()) {
            return Ok(());
        }
        let path = self.folder.path.join(archive);
        let fail = |why: String| Failure::new(format!("{}: {why}", path.display()));
        let Some(bytes) = self.folder.open(archive)? else { return Ok(()) };
        let parsed = ArchiveFile::parse(&*bytes).map_err(|error| fail(format!("not an archive: {error}")))?;
        if !parsed.is_thin() {
            // An empty built-in.a is not thin.
            let mut members = parsed.members();
            return members
                .next()
                .map_or(Ok(()), |_| Err(fail("its members are no files of their own".to_owned())));
        }
        let parent = archive.rsplit_once('/').map_or("", |(parent, _)| parent);
        for member in parsed.members() {
            let member = member.map_err(|error| fail(error.to_string()))?;
            let name = match name_below(parent, member.name()) {
                Ok(name) => name,
                Err(why) => {
                    self.folder.read.refused.push(format!("{}: its member {why}", path.display()));
                    continue;
                }
            };
            let found = name.iter().find(|name| self.folder.has(name));
            match found {
                Some(found) if found.ends_with(".a") && depth > 0 => self.add(found, depth - 1)?,
                Some(found) if self.files.len() < FILES_MAX => {
                    self.files.insert(found.clone());
                }
                _ => {
                    let name = String::from_utf8_lossy(member.name());
                    return Err(fail(format!("its member {name} is not there")));
                }
            }
        }
        Ok(())
    }
}

/// Paths below the build folder that a member of an archive in the folder `parent` may have, or why it has none.
fn name_below(parent: &str, name: &[u8]) -> std::result::Result<Vec<String>, String> {
    // An archive may give one long name to each of its members.
    if name.len() > PATH_MAX {
        return Err(format!("{}... is too long for a path", String::from_utf8_lossy(&name[..64])));
    }
    let name = String::from_utf8_lossy(name);
    let beside = if parent.is_empty() { name.to_string() } else { format!("{parent}/{name}") };
    let paths: Vec<String> = [beside.as_str(), &name].into_iter().filter_map(clean).collect();
    if name.starts_with('/') || paths.is_empty() {
        return Err(format!("{name} is outside of the build folder"));
    }
    Ok(paths)
}

/// A path without `.` and `..`; `None` if it leads out.
fn clean(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Longest name of a function: that of the kernel's own table (KSYM_NAME_LEN, include/linux/kallsyms.h of Linux 6.12).
const NAME_MAX: usize = 512;

/// Objects that define functions, by module ("": the kernel itself) and name.
#[derive(Debug, Default)]
pub struct FunctionObjects {
    /// Paths of objects.
    objects: Vec<String>,
    /// Number of the object; `None`: several define a function of that name.
    by_module: HashMap<String, HashMap<String, Option<usize>>>,
}

impl FunctionObjects {
    /// Adds the functions that an object defines.
    pub fn add(&mut self, module: &str, path: &str, elf: &object::File<'_>) {
        let number = self.objects.len();
        self.objects.push(path.to_owned());
        let of_module = self.by_module.entry(module.to_owned()).or_default();
        let defined = elf.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
        for name in defined.filter_map(|symbol| symbol.name().ok()).filter(|name| name.len() < NAME_MAX) {
            let object = of_module.entry(name.to_owned()).or_insert(Some(number));
            if *object != Some(number) {
                *object = None;
            }
        }
    }

    /// Path of the object that defines a function, which is named with its module: `veth_open [veth]`.
    pub fn of(&self, function: &str) -> Option<&str> {
        let (name, module) = match function.split_once(" [") {
            Some((name, module)) => (name, module.strip_suffix(']')?),
            None => (function, ""),
        };
        let number = (*self.by_module.get(module)?.get(name)?)?;
        self.objects.get(number).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_below_the_build_folder() {
        let names = |name: &str| name_below("fs/ext4", name.as_bytes());
        assert_eq!(names("a.o").unwrap(), ["fs/ext4/a.o", "a.o"]);
        assert_eq!(names("./../../mm/a.o").unwrap(), ["mm/a.o"]);
        for outside in ["../../../a.o", "/fs/ext4/a.o", "x/../../../../a.o"] {
            assert!(names(outside).unwrap_err().contains("outside"), "{outside}");
        }
        assert!(name_below("", &[b'a'; PATH_MAX + 1]).unwrap_err().contains("too long"));
    }
}
