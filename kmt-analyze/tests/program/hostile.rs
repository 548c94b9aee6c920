//! Files whose checksums are right and whose contents are not: every report and export says so, and none panics.

use std::fs;
use std::path::PathBuf;

use crate::support::files::{REPORTS, Scratch, data, run, stderr};

/// CRC-32 as the specification has it.
fn crc32(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let crc = bytes.iter().fold(!0u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step));
    (!crc).to_le_bytes()
}

fn number(file: &[u8], at: usize) -> usize {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize
}

/// A capture, each of its chunks of `kind` changed and stamped anew; without an index, which would tell otherwise.
fn changed(scratch: &Scratch, kind: &[u8; 4], change: impl Fn(&mut [u8])) -> PathBuf {
    let path = scratch.convert(&data("x86_64-6.1"));
    let mut file = fs::read(&path).unwrap();
    let mut at = 64;
    while at + 64 <= file.len() && &file[at..at + 4] == b"KMTC" {
        let len = number(&file, at + 16);
        if &file[at + 8..at + 12] == kind {
            change(&mut file[at..at + len]);
            let prefix_len = number(&file, at + 52) & 0xffff_ffff;
            let crcs = [crc32(&file[at + 64..at + len]), crc32(&file[at + 64..at + 64 + prefix_len])];
            file[at + 48..at + 52].copy_from_slice(&crcs[0]);
            file[at + 56..at + 60].copy_from_slice(&crcs[1]);
            let crc = crc32(&file[at..at + 60]);
            file[at + 60..at + 64].copy_from_slice(&crc);
        }
        if &file[at + 8..at + 12] == b"INDX" {
            file.truncate(at);
            break;
        }
        at += len;
    }
    let path = scratch.0.join("changed.kmt");
    fs::write(&path, file).unwrap();
    path
}

fn nothing_panics(file: &std::path::Path) {
    let place = file.with_extension("out");
    let mut asked: Vec<Vec<&str>> = Vec::new();
    for report in REPORTS {
        asked.extend([vec![report], vec![report, "--json"]]);
    }
    for form in ["perfetto", "pprof", "dhat", "folded", "csv", "ndjson"] {
        asked.push(vec!["export", form, "--force", "-o", place.to_str().unwrap()]);
    }
    asked.extend([vec!["all"], vec!["dump"], vec!["info"]]);
    asked.push(vec!["diff", "--time", "+0..+0.01", "--against", "+0.01..+0.02"]);
    for args in asked {
        let output = run(&args, file);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 3)), "{args:?}: {code:?}: {}", stderr(&output));
    }
}

#[test]
fn chunks_that_end_before_they_begin() {
    let scratch = Scratch::new();
    for (base, last) in [(u64::MAX, 0u64), (1 << 40, 5), (u64::MAX, u64::MAX), (0, u64::MAX)] {
        let file = changed(&scratch, b"EVNT", |chunk| {
            chunk[64 + 16..64 + 24].copy_from_slice(&base.to_le_bytes());
            chunk[64 + 24..64 + 32].copy_from_slice(&last.to_le_bytes());
        });
        nothing_panics(&file);
    }
}
