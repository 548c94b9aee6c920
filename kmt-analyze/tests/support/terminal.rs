//! The program on a pseudo terminal of a given width.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Standard output of a command line on a terminal of that many columns, as the terminal receives it.
pub fn on_terminal(args: &[&str], file: &Path, columns: u16, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    command
        .args(args)
        .arg(file)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env_remove("PAGER")
        .env("TERM", "xterm")
        .envs(environment.iter().copied())
        .stderr(Stdio::null());
    command_on_terminal(command, columns)
}

/// Standard output of a command, as the terminal receives it.
pub fn command_on_terminal(mut command: Command, columns: u16) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave: OwnedFd = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(slave).spawn().unwrap();
    // It holds the other side of the terminal open.
    drop(command);
    let mut terminal = File::from(master);
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    // A terminal whose other side is closed ends with EIO.
    while let Ok(length) = terminal.read(&mut buffer) {
        if length == 0 {
            break;
        }
        out.extend_from_slice(&buffer[..length]);
    }
    child.wait().unwrap();
    String::from_utf8(out).unwrap().replace("\r\n", "\n")
}

/// The same without escape sequences of colour.
pub fn without_colour(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}
