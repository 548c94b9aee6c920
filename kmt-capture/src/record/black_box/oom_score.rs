//! Protection from the OOM killer: the recorder is to outlive the kill that it records.
//!
//! Source: /proc/self/oom_score_adj (Documentation/filesystems/proc.rst). A lower value needs CAP_SYS_RESOURCE. Processes that are
//! started later inherit it, so that a command is started before.

use std::fs;
use std::path::{Path, PathBuf};

/// Adjustment of this process.
const OWN: &str = "/proc/self/oom_score_adj";
/// Adjustment of a process that the OOM killer never chooses (`OOM_SCORE_ADJ_MIN`).
const NEVER: &str = "-1000";

/// Keeps the OOM killer from this process until it is dropped.
#[derive(Debug)]
pub struct OomScore {
    path: PathBuf,
    /// The adjustment before; `None`: it could not be lowered.
    before: Option<String>,
}

impl OomScore {
    /// Lowers the adjustment, where this process may.
    pub fn lower() -> Self {
        Self::at(Path::new(OWN))
    }

    fn at(path: &Path) -> Self {
        let before = fs::read_to_string(path).ok().filter(|_| fs::write(path, NEVER).is_ok());
        Self { path: path.to_owned(), before }
    }
}

impl Drop for OomScore {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // It was this value before, and a process may always raise it.
            let _ = fs::write(&self.path, before.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adjustment_is_lowered_and_put_back() {
        let path = std::env::temp_dir().join(format!("kmt-oom-score-{}", std::process::id()));
        fs::write(&path, "200\n").unwrap();
        let lowered = OomScore::at(&path);
        assert_eq!(fs::read_to_string(&path).unwrap(), NEVER);
        drop(lowered);
        assert_eq!(fs::read_to_string(&path).unwrap(), "200");
        fs::remove_file(&path).unwrap();
        drop(OomScore::at(&path));
        assert!(!path.exists(), "without /proc nothing is written");
    }
}
