//! A recording for `kmt-capture remote`: standard output is the line to the other machine, standard input the line from it.
//!
//! The other machine sends [`BEAT`] several times a second and [`STOP`] once, to end the recording. The recorder sends
//! frames: a kind, the length as a 32-bit little-endian number, and the bytes. A line that is silent or closed ends the
//! recording at once.

use std::io::Stdin;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Sent to show that the line works. A shell that gets one between two commands does nothing.
#[cfg_attr(not(feature = "convert"), allow(dead_code))] // For `remote`.
pub const BEAT: u8 = b':';
/// Sent to end the recording.
pub const STOP: u8 = b'q';
/// Kind of a frame with bytes of the file.
pub const DATA: u8 = b'D';
/// Kind of a frame with a line of status.
pub const STATUS: u8 = b'S';
/// Kind of the last frame: the file is complete.
pub const END: u8 = b'E';
/// Bytes of a frame before its content.
pub const HEADER_LEN: usize = 5;
/// Name of the program in its folder.
pub const PROGRAM: &str = "kmt-capture";

/// Option `--line` of `record`.
#[derive(Debug, Clone)]
pub struct LineOptions {
    /// Folder that was made for the program, and is removed when it runs.
    pub folder: PathBuf,
    /// Silence of the line that ends the recording.
    pub silence_max: Duration,
}

/// Kind and length of a frame.
pub fn header(kind: u8, len: usize) -> [u8; HEADER_LEN] {
    let [a, b, c, d] = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    [kind, a, b, c, d]
}

/// Removes the program and its folder. The running program needs neither.
pub fn remove(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(PROGRAM));
    let _ = std::fs::remove_dir(folder);
}

/// The line from the other machine.
#[derive(Debug)]
pub struct Line {
    stdin: Stdin,
    heard: Instant,
    silence_max: Duration,
    is_over: bool,
}

impl Line {
    /// A line that works now.
    pub fn new(options: &LineOptions) -> Self {
        let silence_max = options.silence_max;
        Self { stdin: std::io::stdin(), heard: Instant::now(), silence_max, is_over: false }
    }

    /// File descriptor of the line, to wait for input.
    pub fn fd(&self) -> &Stdin {
        &self.stdin
    }

    /// Requests to end the recording that came since the last call: 1 for [`STOP`], 2 for the end of the line.
    pub fn asked(&mut self) -> usize {
        let mut asked = 0;
        // A closed line can be read for ever.
        while !self.is_over && self.is_readable() {
            let mut bytes = [0; 64];
            match rustix::io::read(&self.stdin, &mut bytes) {
                Ok(0) => self.is_over = true,
                Ok(len) => {
                    self.heard = Instant::now();
                    asked += usize::from(bytes.iter().take(len).any(|&byte| byte == STOP));
                    continue;
                }
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => self.is_over = true,
            }
            asked += 2;
        }
        if !self.is_over && self.heard.elapsed() > self.silence_max {
            self.is_over = true;
            asked += 2;
        }
        asked
    }

    fn is_readable(&self) -> bool {
        let mut fds = [PollFd::new(&self.stdin, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&now)), Ok(1..))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// One is on its way when a script ends. Shells of POSIX end at a `.` without a file.
    #[test]
    fn a_beat_that_a_shell_reads_as_a_command_does_nothing() {
        for shell in [&["sh"][..], &["bash", "--posix"]] {
            let script = format!("printf '{}\\necho ok\\n' | {}", char::from(super::BEAT), shell.join(" "));
            let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{shell:?}");
        }
    }
}
