//! Files of the target that lie beside a foreign file, under the names that `convert` knows from directories.

use std::fs;
use std::path::Path;

use crate::failure::{Failure, Result};
use crate::input::{Budget, Folder, Kind, Limits, STATE, build_ids, timed_snapshots};

use super::description::Description;

/// The directory of a file.
#[derive(Debug)]
pub struct TargetFiles {
    /// `None`: standard input and pipes lie beside nothing.
    directory: Option<Folder>,
}

impl TargetFiles {
    /// The directory that holds `file`.
    pub fn of(file: &Path, limits: Limits) -> Result<Self> {
        if file == Path::new("-") || !file.is_file() {
            return Ok(Self { directory: None });
        }
        let absolute = fs::canonicalize(file).map_err(|e| Failure::io("opening", file, &e))?;
        let budget = Budget::new(limits);
        let directory = absolute.parent().map(|parent| Folder::open(parent, &budget)).transpose()?;
        Ok(Self { directory })
    }

    /// A file; one without content counts as not there.
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(folder) = &self.directory else { return Ok(None) };
        let kind = if matches!(name, "kallsyms" | "System.map") { Kind::Kallsyms } else { Kind::File };
        Ok(folder.read(name, kind)?.filter(|bytes| !bytes.is_empty()))
    }

    /// A file as text; one without content counts as not there.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        Ok(self.bytes(name)?.map(|b| String::from_utf8_lossy(&b).into_owned()))
    }

    /// Adds what is there and not known yet.
    pub fn complete(&self, description: &mut Description) -> Result<()> {
        if description.uname_text.is_none() {
            description.uname_text = self.text("uname")?;
        }
        for name in ["kallsyms", "System.map"] {
            if description.kallsyms.is_none() {
                description.kallsyms = self.bytes(name)?;
            }
        }
        if description.modules.is_none() {
            description.modules = self.text("modules")?;
        }
        if let Some(cmdline) = self.bytes("cmdline")? {
            description.pairs.push(("cmdline".into(), cmdline.trim_ascii().to_vec()));
        }
        if let Some(folder) = &self.directory {
            description.pairs.extend(build_ids(folder, description.order())?);
        }
        if let Some(size) = self.text("pagesize")?.and_then(|t| t.trim().parse::<u64>().ok()) {
            if size.is_power_of_two() {
                description.page_size = Some((size, "pagesize"));
            }
        }
        for name in STATE {
            for name in [name.to_owned(), format!("{name}.before"), format!("{name}.after")] {
                if description.files.iter().any(|(have, _)| *have == name) {
                    continue;
                }
                description.files.extend(self.bytes(&name)?.map(|bytes| (name, bytes)));
            }
        }
        for name in self.directory.as_ref().map_or(Ok(Vec::new()), timed_snapshots)? {
            description.files.extend(self.bytes(&name)?.map(|bytes| (name, bytes)));
        }
        Ok(())
    }
}
