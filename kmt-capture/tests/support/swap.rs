//! An attack on a program that writes where others may write too.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

const MINE: &[u8] = b"mine, and not to be written to\n";

/// Somebody who makes a path a pipe and a link to a victim's file in turn, as quickly as possible.
pub struct Swapper {
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Swapper {
    /// Starts in a folder that is there.
    pub fn start(folder: &Path) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        fs::write(folder.join("victim"), MINE).unwrap();
        let pipe = folder.join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        // Held open and emptied, so that no writer waits for a reader.
        let flags = OFlags::RDWR | OFlags::NONBLOCK;
        let mut reader = File::from(rustix::fs::open(&pipe, flags, Mode::empty()).unwrap());
        let stopped = stop.clone();
        let empty = thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while !stopped.load(Ordering::Relaxed) {
                if reader.read(&mut bytes).is_err() {
                    thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        });
        let (stopped, count, place) = (stop.clone(), swaps.clone(), folder.to_owned());
        let swap = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                swap(&place);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { folder: folder.to_owned(), stop, swaps, threads: vec![empty, swap] }
    }

    /// Kind of change.
    pub fn path(&self) -> PathBuf {
        self.folder.join("out")
    }

    /// How often it changed.
    pub fn swaps(&self) -> u64 {
        self.swaps.load(Ordering::Relaxed)
    }

    /// The victim's file is as it was.
    pub fn assert_harmless(&self) {
        let victim = self.folder.join("victim");
        assert!(fs::read(&victim).unwrap() == MINE, "the victim was written to");
        let metadata = fs::symlink_metadata(victim).unwrap();
        assert!(metadata.is_file() && metadata.nlink() == 1);
    }
}

fn swap(folder: &Path) {
    let (path, next) = (folder.join("out"), folder.join("next"));
    // Whatever the program put there goes too.
    let _ = fs::remove_file(&next);
    let _ = symlink(folder.join("victim"), &next).and_then(|()| fs::rename(&next, &path));
    let _ = fs::remove_file(&next);
    let _ = fs::hard_link(folder.join("pipe"), &next).and_then(|()| fs::rename(&next, &path));
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
