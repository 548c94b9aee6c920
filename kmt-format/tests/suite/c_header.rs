//! A program in C reads a file by `format-spec/kmt.h`. Where there is no C compiler this says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::skip::{Lack, skip};

use kmt_format::read::Trace;

const PROGRAM: &str = r#"
#define KMT_CHECK_LAYOUT
#include "kmt.h"
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    struct kmt_file_header file;
    struct kmt_chunk_header chunk;
    unsigned long chunks = 0, events = 0;
    if (!f || fread(&file, sizeof file, 1, f) != 1 || memcmp(file.magic, KMT_MAGIC, 8) || file.bom != KMT_BOM)
        return 1;
    for (long at = file.header_len; fseek(f, at, SEEK_SET) == 0 && fread(&chunk, sizeof chunk, 1, f) == 1;
         at += chunk.total_len) {
        struct kmt_events_head head;
        chunks++;
        if (memcmp(chunk.kind, "EVNT", 4) == 0 && chunk.codec == 0 && fread(&head, sizeof head, 1, f) == 1)
            events += head.record_count;
    }
    printf("%u.%u %lu %lu\n", file.version_major, file.version_minor, chunks, events);
    return 0;
}
"#;

fn compiler() -> Option<&'static str> {
    ["cc", "gcc", "clang"]
        .into_iter()
        .find(|cc| Command::new(cc).arg("--version").output().is_ok_and(|o| o.status.success()))
}

#[test]
fn a_c_program_finds_the_same_chunks() {
    // The program reads the vector as its own machine's words.
    if cfg!(target_endian = "big") {
        return;
    }
    let Some(cc) = compiler() else { return skip(Lack::Program, "no C compiler") };
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec");
    let folder: PathBuf = std::env::temp_dir().join(format!("kmt-c-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("reader.c"), PROGRAM).unwrap();
    let built = Command::new(cc)
        .args(["-std=c11", "-Wall", "-Werror", "-I"])
        .arg(&spec)
        .arg("-o")
        .arg(folder.join("reader"))
        .arg(folder.join("reader.c"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let vector = spec.join("vectors/one-le64.kmt");
    let file = fs::read(&vector).unwrap();
    let trace = Trace::open(&file).unwrap();
    let said = Command::new(folder.join("reader")).arg(&vector).output().unwrap();
    let header = trace.header();
    let expected = format!(
        "{}.{} {} {}\n",
        header.version_major,
        header.version_minor,
        trace.chunk_count(),
        trace.event_count()
    );
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected);
    fs::remove_dir_all(&folder).unwrap();
}
