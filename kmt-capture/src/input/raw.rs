//! A file of sub-buffers, read past the holes in it: a hole is zeros, which hold no events.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom as Position};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// A `trace_pipe_raw` that was saved.
#[derive(Debug)]
pub struct Raw {
    file: File,
    sub_buffer_len: u64,
    at: u64,
}

impl Raw {
    /// From its beginning.
    pub fn new(file: File, sub_buffer_len: usize) -> Self {
        Self { file, sub_buffer_len: (sub_buffer_len as u64).max(1), at: 0 }
    }

    /// Fills `buffer`, whose length is a multiple of that of sub-buffers, with the next ones: their offset in the file,
    /// and how many bytes there are. At the end 0.
    pub fn next(&mut self, buffer: &mut [u8]) -> io::Result<(u64, usize)> {
        match seek(&self.file, SeekFrom::Data(self.at)) {
            Ok(data) => self.at = self.at.max(data - data % self.sub_buffer_len),
            // Only a hole is left, or nothing.
            Err(Errno::NXIO) => return Ok((self.at, 0)),
            // File systems that do not tell.
            Err(_) => {}
        }
        let start = self.at;
        self.file.seek(Position::Start(start))?;
        let len = read_up_to(&mut self.file, buffer)?;
        self.at += len as u64;
        Ok((start, len))
    }
}

/// Reads until the buffer is full or the file ends.
fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|r| !r.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_are_passed_over() {
        let path = std::env::temp_dir().join(format!("kmt-raw-{}", std::process::id()));
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        file.write_all_at(b"event", (1 << 39) + 8).unwrap();
        let mut raw = Raw::new(file, 4096);
        let mut buffer = vec![0; 8192];
        let mut found = Vec::new();
        loop {
            let (at, len) = raw.next(&mut buffer).unwrap();
            if len == 0 {
                break;
            }
            found.push((at, buffer[8..13].to_vec()));
            assert!(found.len() < 1000, "holes are read");
        }
        assert_eq!(found.first(), Some(&(1 << 39, b"event".to_vec())));
        std::fs::remove_file(path).unwrap();
    }
}
