//! Files whose checksums are right and whose contents are not: every report and export says so, and none panics.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::kernel::CpuStats;
use kmt_format::write::{Loss, StatsTaken};

use super::model::{BASE, Crafted};
use crate::support::files::{Scratch, data, reports, run, stderr};
use crate::support::hostile::crc32;
use crate::support::model::{Event, What};

mod budget;
mod dimensions;
mod files;
mod growth;
mod memory;
mod products;

fn number(file: &[u8], at: usize) -> usize {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize
}

/// A capture, each of its chunks of `kind` changed and stamped anew; without an index, which would tell otherwise.
fn changed(scratch: &Scratch, kind: &[u8; 4], change: impl Fn(&mut [u8])) -> PathBuf {
    changed_of(&scratch.convert(&data("x86_64-6.1")), scratch, kind, change)
}

fn changed_of(path: &Path, scratch: &Scratch, kind: &[u8; 4], change: impl Fn(&mut [u8])) -> PathBuf {
    let mut file = fs::read(path).unwrap();
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
    for report in reports() {
        asked.extend([vec![report], vec![report, "--json"]]);
    }
    for form in ["perfetto", "pprof", "dhat", "folded", "csv", "ndjson"] {
        asked.push(vec!["export", form, "--force", "-o", place.to_str().unwrap()]);
    }
    asked.extend([vec!["dump"], vec!["info"]]);
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

/// A field may lie 4 GiB behind the begin of its event: what copies events does not make room for that.
#[test]
fn fields_beyond_any_record_take_no_memory() {
    let scratch = Scratch::new();
    let plain = scratch.0.join("plain.kmt");
    let place = plain.to_str().unwrap();
    run(&["slice", "--compress", "none", "-o", place], &scratch.convert(&data("x86_64-6.1")));
    let file = changed_of(&plain, &scratch, b"SCHM", |chunk| {
        assert_eq!(chunk[13], 0, "no codec");
        let count = |at: usize| number(chunk, 64 + at) & 0xffff_ffff;
        // Header, rows of classes, then those of fields: `spec.md`, "SCHM".
        let (classes, fields) = (count(12), count(16));
        let first = 64 + 40 + classes * 44;
        for field in (9..fields).step_by(10) {
            chunk[first + field * 32 + 19] = 0xff;
        }
    });
    for command in ["slice", "anonymize", "recover"] {
        let limited = format!(
            "ulimit -v 2000000 && {} {command} {} -o {}",
            env!("CARGO_BIN_EXE_kmt-analyze"),
            file.display(),
            scratch.0.join(command).with_extension("kmt").display()
        );
        let output = std::process::Command::new("sh").args(["-c", &limited]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{command}: {}", stderr(&output));
    }
    let told = stderr(&run(&["summary"], &file));
    assert!(told.contains("a field is beyond the end of any event"), "{told}");
}

/// Sizes and counts at the end of 64 bits: sums of them are numbers.
#[test]
fn sums_do_not_overflow() {
    let mut crafted = Crafted::new();
    let mut all = CpuStats::default();
    (all.overrun, all.dropped) = (Some(u64::MAX), Some(u64::MAX));
    crafted.writer.add_stats(StatsTaken::After, &[(0, all)]).unwrap();
    for n in 0..6 {
        crafted.writer.add_loss(n as u32 % 2, Loss::counted(u64::MAX)).unwrap();
        let what = What::Alloc {
            kmalloc: n % 2 == 0,
            site: n % 3,
            ptr: BASE + n * 64,
            req: u64::MAX - n,
            alloc: u64::MAX,
        };
        crafted.event(&Event { time: 1_000 + n, cpu: n % 2, pid: 7, what });
    }
    let scratch = Scratch::new();
    let file = scratch.0.join("sums.kmt");
    fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    nothing_panics(&file);
    let followed = run(&["dump", "--follow"], &file);
    assert!(matches!(followed.status.code(), Some(0 | 3)), "{}", stderr(&followed));
}
