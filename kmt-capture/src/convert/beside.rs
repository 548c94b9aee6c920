//! Files of the target that lie beside a foreign file, under the names that `convert` knows from directories.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::input::{STATE, timed_snapshots};

use super::description::Description;

/// The directory of a file.
#[derive(Debug)]
pub struct Beside {
    /// `None`: standard input and pipes lie beside nothing.
    directory: Option<PathBuf>,
}

impl Beside {
    /// The directory that holds `file`.
    pub fn of(file: &Path) -> Result<Self> {
        if file == Path::new("-") || !file.is_file() {
            return Ok(Self { directory: None });
        }
        let absolute = fs::canonicalize(file).map_err(|e| Failure::io("opening", file, &e))?;
        Ok(Self { directory: absolute.parent().map(Path::to_owned) })
    }

    /// A file; one without content counts as not there.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.directory.as_ref()?.join(name)).ok().filter(|bytes| !bytes.is_empty())
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|b| String::from_utf8_lossy(&b).into_owned())
    }

    /// Adds what is there and not known yet.
    pub fn complete(&self, description: &mut Description) {
        if description.uname_text.is_none() {
            description.uname_text = self.text("uname");
        }
        if description.kallsyms.is_none() {
            description.kallsyms = self.bytes("kallsyms").or_else(|| self.bytes("System.map"));
        }
        if description.modules.is_none() {
            description.modules = self.text("modules");
        }
        if let Some(cmdline) = self.bytes("cmdline") {
            description.pairs.push(("cmdline".into(), cmdline.trim_ascii().to_vec()));
        }
        if let Some(size) = self.text("pagesize").and_then(|t| t.trim().parse::<u64>().ok()) {
            if size.is_power_of_two() {
                description.page_size = Some((size, "pagesize"));
            }
        }
        for name in STATE {
            for name in [name.to_owned(), format!("{name}.before"), format!("{name}.after")] {
                if description.files.iter().any(|(have, _)| *have == name) {
                    continue;
                }
                description.files.extend(self.bytes(&name).map(|bytes| (name, bytes)));
            }
        }
        for name in self.directory.iter().flat_map(|folder| timed_snapshots(folder)) {
            description.files.extend(self.bytes(&name).map(|bytes| (name, bytes)));
        }
    }
}
