//! The first screen of kmt-analyze, where it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use kmt_common::shell;

/// Prints the findings of a file, or the command that does.
pub fn print(path: &Path) {
    if path.is_file() {
        let begins = |path: &Path| path.as_os_str().as_encoded_bytes().starts_with(b"-");
        let file = if begins(path) { Path::new(".").join(path) } else { path.to_owned() };
        match Command::new(program()).arg(&file).status() {
            Ok(_) => kmt_common::tell!("{}", path.display()),
            Err(_) => kmt_common::tell!("kmt-analyze {}", shell::path(path)),
        }
    }
}

/// The program beside this one, else that of PATH.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    Some(own.with_file_name("kmt-analyze"))
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("kmt-analyze"))
}
