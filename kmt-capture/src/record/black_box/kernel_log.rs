//! Lines of the kernel log since the wait began: the report of an OOM kill is among them.
//!
//! Source: /dev/kmsg, a record for each read: `PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT`, then lines of `KEY=VALUE` that begin
//! with a blank (Documentation/ABI/testing/dev-kmsg).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes of text that are kept, the newest.
const LEN_MAX: usize = 256 << 10;
/// Longest record (`CONSOLE_EXT_LOG_MAX` of older kernels, `PRINTKRB_RECORD_MAX` and prefix of newer ones).
const RECORD_LEN: usize = 16 << 10;

/// The kernel log from a time on.
#[derive(Debug)]
pub struct KernelLog(File);

impl KernelLog {
    /// The log from now on; `None` where it cannot be read.
    pub fn from_now() -> Option<Self> {
        open_at_end().map(Self)
    }

    /// Lines since it was opened or read, as `[SECONDS.MICROSECONDS] TEXT`.
    pub fn text(&mut self) -> String {
        let mut lines = Newest::default();
        let mut record = vec![0; RECORD_LEN];
        loop {
            match self.0.read(&mut record) {
                Ok(0) => break,
                Ok(len) => lines.add(line(record.get(..len).unwrap_or_default())),
                // EPIPE: records were overwritten; the next read continues behind them.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lines.0.into_iter().collect()
    }
}

/// The log behind its last line; `None` where it cannot be read.
pub(super) fn open_at_end() -> Option<File> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut file = File::options().read(true).custom_flags(nonblock).open("/dev/kmsg").ok()?;
    file.seek(SeekFrom::End(0)).ok()?;
    Some(file)
}

/// Leaves out the lines that are there.
pub(super) fn seek_to_end(log: &mut File) {
    // It has failed in no kernel; a line that stays would wake us once a second.
    let _ = log.seek(SeekFrom::End(0));
}

/// The newest lines, up to a number of bytes.
#[derive(Debug, Default)]
struct Newest(VecDeque<String>, usize);

impl Newest {
    fn add(&mut self, line: Option<String>) {
        let Some(line) = line else { return };
        self.1 += line.len();
        self.0.push_back(line);
        while self.1 > LEN_MAX {
            let Some(oldest) = self.0.pop_front() else { return };
            self.1 -= oldest.len();
        }
    }
}

/// The text of a record.
fn line(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (head, text) = record.split_once(';')?;
    let micros: u64 = head.split(',').nth(2)?.parse().ok()?;
    let text = text.lines().next().unwrap_or_default();
    Some(format!("[{:5}.{:06}] {text}\n", micros / 1_000_000, micros % 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_lines() {
        let record = b"3,1234,5140900123,-;Out of memory: Killed process 7 (a b)\n SUBSYSTEM=x\n DEVICE=y\n";
        let expected = "[ 5140.900123] Out of memory: Killed process 7 (a b)\n";
        assert_eq!(line(record).as_deref(), Some(expected));
        assert_eq!(line(b"6,1,12,c;a;b\n").as_deref(), Some("[    0.000012] a;b\n"));
        for wrong in [&b""[..], b";", b"6,1;x", b"6,1,x,-;y"] {
            assert_eq!(line(wrong), None);
        }
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let mut lines = Newest::default();
        (0..10_000).for_each(|number| lines.add(Some(format!("{number:05} {}\n", "x".repeat(93)))));
        let len: usize = lines.0.iter().map(String::len).sum();
        assert!(len <= LEN_MAX && len > LEN_MAX - 200 && len == lines.1, "{len}");
        assert!(lines.0.back().is_some_and(|line| line.starts_with("09999")));
    }
}
