//! Screens of `balance`: the answer, names of accounts in sentences, ranges in words. The texts are those of `balance`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::balance::{account, balance, check_sums, folders, rows};
use crate::support::files::{Scratch, at, stdout};

#[test]
fn a_screen_has_the_answer_first_and_the_recording_last() {
    let scratch = Scratch::new();
    let [a, b] = folders(&scratch, &[("config", "CONFIG_VMAP_STACK=y\n")]);
    let text = stdout(&balance(&[], &[&a, &b])).replace('\n', " ");
    let first = "Free memory fell by 98.0 MiB to 1.82 GiB of 3.81 GiB: memory in no account (drivers, ring buffers, network) took at least 62.6 MiB, page cache of files 19.5 MiB,";
    assert!(text.starts_with(first), "{text}");
    for words in ["dentry", "MemTotal", "≤ 5.41 MiB", "kmt-capture record -p pages -d 60s -o who.kmt"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("In no account at the end: at most"), "{text}");
    // A range that includes 0 has both ends, another one its upper end.
    for words in ["-400 KiB to +400 KiB", "-5.41 MiB to +5.41 MiB", "~+74.2 MiB"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let exact = stdout(&balance(&["--bytes"], &[&a, &b]));
    assert!(exact.contains("-102,400,000"), "{exact}");
    // One folder: no changes.
    let one = stdout(&balance(&[], &[&a]));
    assert!(
        one.starts_with("1.91 GiB of 3.81 GiB are free (50 %). Largest accounts: in no account"),
        "{one}"
    );
    assert!(!one.contains("change"), "{one}");
    let csv = stdout(&balance(&["--csv"], &[&a, &b]));
    let head = "account,name,fields,bytes_before,bytes_min_before,bytes,bytes_min,bytes_change,bytes_change_min,percent";
    assert_eq!(csv.lines().next(), Some(head));
    assert_eq!(csv.lines().count(), 1 + 25 + 1, "{csv}");
    let limited: Value = serde_json::from_slice(&balance(&["--json", "-l", "1"], &[&a, &b]).stdout).unwrap();
    assert_eq!(at(&limited, "/accounts").as_array().unwrap().len(), 26);
}

/// Names in tables have commas and brackets, those in sentences are whole.
#[test]
fn accounts_have_names_of_their_own_in_sentences() {
    for (name, from, to, words) in [
        (
            "meminfo",
            "SecPageTables: 700",
            "SecPageTables: 90700",
            "page tables of guests and IOMMUs took 87.9 MiB",
        ),
        ("meminfo", "SReclaimable: 45000", "SReclaimable: 95000", "reclaimable slab took 53.7 MiB"),
        ("meminfo", "SUnreclaim: 30000", "SUnreclaim: 130000", "unreclaimable slab took 97.7 MiB"),
        ("meminfo", "MemFree", "GPUActive: 100000 kB\nMemFree", "memory of GPU drivers took 97.7 MiB"),
        (
            "vmstat",
            "nr_memmap_pages 10",
            "nr_memmap_pages 25010",
            "memory of struct page and page_ext took 97.7 MiB",
        ),
        ("vmstat", "nr_zspages 100", "nr_zspages 25100", "compressed memory of zswap and zram took 97.7 MiB"),
        (
            "meminfo",
            "CmaFree: 60000",
            "CmaFree: 10000",
            "≤: a part of swap cache, percpu and CMA memory in use may",
        ),
    ] {
        let scratch = Scratch::new();
        let [a, b] = folders(&scratch, &[("config", "CONFIG_VMAP_STACK=y\n")]);
        let text = fs::read_to_string(b.join(name)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(b.join(name), text.replace(from, to)).unwrap();
        let text = stdout(&balance(&[], &[&a, &b])).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// MemFree lacks the pages on per-CPU lists: where its change is another one, both are named.
#[test]
fn pages_on_lists_of_cpus_are_named_beside_mem_free() {
    let scratch = Scratch::new();
    let [a, b] = folders(&scratch, &[]);
    let replace = |folder: &Path, name: &str, from: &str, to: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(folder.join(name), text.replace(from, to)).unwrap();
    };
    // 1,000,000 kB on the lists of a CPU before, 420,000 after; MemFree rises by 148,480.
    replace(&a, "zoneinfo", "count: 1000\n", "count: 250000\n");
    replace(&b, "zoneinfo", "count: 1000\n", "count: 105000\n");
    replace(&b, "meminfo", "MemFree: 1900000", "MemFree: 2148480");
    let text = stdout(&balance(&[], &[&a, &b])).replace('\n', " ");
    let first = "Free memory fell by 422 MiB to 2.45 GiB of 3.81 GiB, with pages on per-CPU lists (MemFree alone grew by 145 MiB to 2.05 GiB): ";
    assert!(text.starts_with(first), "{text}");
    // With lists at one time alone, there is MemFree alone.
    fs::remove_file(a.join("zoneinfo")).unwrap();
    let text = stdout(&balance(&[], &[&a, &b])).replace('\n', " ");
    let first = "Free memory without pages on per-CPU lists grew by 145 MiB to 2.05 GiB of 3.81 GiB: ";
    assert!(text.starts_with(first), "{text}");
}

/// Most of CMA in use are movable pages, which other accounts have: its lower end is small.
#[test]
fn upper_ends_of_one_time_are_no_facts() {
    let scratch = Scratch::new();
    let [a, _] = folders(&scratch, &[]);
    let meminfo = fs::read_to_string(a.join("meminfo")).unwrap();
    let full = meminfo.replace("CmaTotal: 65536 kB\nCmaFree: 60000", "CmaTotal: 1262144 kB\nCmaFree: 10000");
    assert_ne!(full, meminfo);
    fs::write(a.join("meminfo"), full).unwrap();
    let text = stdout(&balance(&[], &[&a])).split_whitespace().collect::<Vec<_>>().join(" ");
    let (sentence, rest) = text.split_once(" In no account: ").unwrap();
    assert!(!sentence.contains("CMA"), "{text}");
    assert!(sentence.contains("anonymous memory (244 MiB), page cache of files (244 MiB)"), "{text}");
    assert!(sentence.contains("in no account (at most ") || !sentence.contains("in no account"), "{text}");
    assert!(rest.starts_with("at most ") && rest.contains("CMA, in use ≤ 1.19 GiB"), "{text}");
    let report = rows(&[&a]);
    check_sums(&report);
}

/// Counts that were read while they changed may add up to more than there is.
#[test]
fn accounts_beyond_all_memory_are_reported() {
    let scratch = Scratch::new();
    let [a, b] = folders(&scratch, &[("config", "CONFIG_VMAP_STACK=y\n")]);
    let meminfo = fs::read_to_string(b.join("meminfo")).unwrap();
    fs::write(b.join("meminfo"), meminfo.replace("AnonPages: 250000", "AnonPages: 2250000")).unwrap();
    let report = rows(&[&a, &b]);
    let rest = account(&report, "in_no_account")["bytes"].as_i64().unwrap();
    assert!(rest < 0, "{report}");
    let text = stdout(&balance(&[], &[&a, &b])).split_whitespace().collect::<Vec<_>>().join(" ");
    let words = format!(
        "Accounts at the end add up to at least {:.0} MiB more than MemTotal (",
        -rest as f64 / 1048576.0
    );
    assert!(text.contains(&words), "{words}: {text}");
    assert!(!text.contains("In no account at the end"), "{text}");
}
