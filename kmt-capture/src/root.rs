//! The refusal of users who are not root, with the same command line as root.

use std::ffi::OsString;
use std::path::Path;

use kmt_common::shell;

use crate::failure::Failure;

/// Folders in which sudo looks for programs (its secure_path, as distributions set it).
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// True for root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Only root can record.
pub fn needed() -> Failure {
    Failure::new("recording needs root").hint(this_command())
}

/// This command line as root.
pub fn this_command() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let has_sudo = FOLDERS.iter().any(|folder| Path::new(folder).join("sudo").exists());
    as_root(&program, std::env::args_os().skip(1), has_sudo)
}

/// A command line for root. sudo does not find a program outside of its folders by name.
fn as_root(program: &Path, args: impl IntoIterator<Item = OsString>, has_sudo: bool) -> String {
    let is_found =
        program.parent().is_some_and(|folder| FOLDERS.iter().any(|known| folder == Path::new(known)));
    let program = if is_found { "kmt-capture".to_owned() } else { shell::path(program) };
    let words = args.into_iter().map(|word| shell::word(word.as_encoded_bytes()));
    let line = std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ");
    if has_sudo { format!("sudo {line}") } else { format!("run as root: {line}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_line_as_root() {
        let line = |program: &str, has_sudo| {
            as_root(Path::new(program), ["record", "-o", "a b.kmt"].map(OsString::from), has_sudo)
        };
        assert_eq!(line("/usr/bin/kmt-capture", true), "sudo kmt-capture record -o 'a b.kmt'");
        let own = "/home/u/.cargo/bin/kmt-capture";
        assert_eq!(line(own, true), format!("sudo {own} record -o 'a b.kmt'"));
        assert_eq!(line("/bin/kmt-capture", false), "run as root: kmt-capture record -o 'a b.kmt'");
    }
}
