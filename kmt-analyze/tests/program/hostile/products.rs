//! No command's work is a product of two counts of a file. Each file is of a size at which such work takes minutes, and
//! is answered in seconds of CPU time, also by a program that is not optimised.

use std::fs;

use super::budget::taken;
use super::dimensions::*;
use crate::footprint::thin_archive;
use crate::support::files::{Scratch, run, stderr};

/// CPU time of a command that is not optimised: several times what the work takes, and a fraction of what a product takes.
const SECONDS_MAX: f64 = 20.0;
const BYTES_MAX: u64 = 512 << 20;

/// Checks that the commands answer a file within the limits.
fn bounded(file: &[u8], commands: &[&str]) {
    let scratch = Scratch::new();
    let path = scratch.0.join("file.kmt");
    fs::write(&path, file).unwrap();
    let out = scratch.0.join("out");
    for command in commands {
        let words: Vec<&str> =
            command.split(' ').map(|word| if word == "OUT" { out.to_str().unwrap() } else { word }).collect();
        let taken = taken(&words, &path, SECONDS_MAX);
        let is_fine = matches!(taken.code, Some(0 | 3)) && taken.bytes <= BYTES_MAX;
        assert!(is_fine, "{command}: {taken:?}, {} bytes", file.len());
    }
}

#[test]
fn freeing_sites_of_one_call_site() {
    bounded(&freeing_sites(150_000), &["lifetimes --json", "crosscpu --json", "lifetimes --by cpu --json"]);
}

#[test]
fn cache_names_of_one_call_site() {
    bounded(&cache_names(15_000), &["summary", "caches --json"]);
    bounded(&cache_names(50_000), &["export csv --of objects --force -o OUT"]);
}

#[test]
fn stalls_that_never_end() {
    bounded(&open_stalls(60_000), &["latency --json"]);
    bounded(&deep_graph(120_000), &["latency --json"]);
}

#[test]
fn shrinkers_that_share_a_function() {
    bounded(&shrinkers_of_a_function(20_000), &["latency --json", "latency"]);
}

#[test]
fn owners_of_symbols() {
    bounded(&symbol_owners(60_000), &["slice --force -o OUT"]);
}

#[test]
fn cpus_with_a_page_each() {
    bounded(&page_on_each_cpu(16_000), &["summary", "export perfetto --force -o OUT"]);
}

#[test]
fn names_of_one_task() {
    let commands = ["summary --comm new1", "export csv --of events --comm new1 --force -o OUT"];
    bounded(&renames(30_000), &commands);
    bounded(&naming_classes(20_000, 60_000), &commands);
}

#[test]
fn snapshots_and_call_sites() {
    bounded(&snapshots(600, 50_000), &["slabinfo --json"]);
}

#[test]
fn pairs_of_call_site_and_cache() {
    bounded(&sites_and_caches(100_000), &["export dhat --force -o OUT"]);
}

/// Conditions look at all paths above one.
#[test]
fn parts_of_a_path() {
    bounded(&texts::directories(200_000), &["callers --where dir~a --json"]);
    bounded(&texts::cgroup_parents(200_000), &["callers --where cgroup~a --json"]);
}

#[test]
fn names_and_values_of_a_cache() {
    bounded(&attached::slab_sysfs(10_000), &["fragmentation --json", "caches --json"]);
}

#[test]
fn paths_that_many_rows_have() {
    bounded(&texts::call_sites_of_a_long_path(20_000), &["memory --by cgroup,call_site --json"]);
    let of_tasks = ["callers --by subsystem,file,task --json"];
    bounded(&texts::tasks_of_a_long_path(20_000), &of_tasks);
    bounded(&texts::tasks_of_inlined_functions(20_000), &of_tasks);
}

#[test]
fn names_of_flags() {
    bounded(&texts::long_flag(20_000), &["callers --by task,cache,gfp --json"]);
}

#[test]
fn names_of_migrate_types() {
    bounded(&attached::types_of_pages(100_000), &["dump", "pages --json"]);
    bounded(&attached::long_type_of_pages(10_000), &["fragmentation --json"]);
}

/// Screens show the beginning of a long text, and break it into lines once.
#[test]
fn long_texts() {
    let screens = ["info", "summary", "all", "info --diff"];
    bounded(&long::metadata(4_000_000), &screens);
    bounded(&long::words_of_metadata(4_000_000), &screens);
    bounded(&long::filter(16_000_000), &screens);
    bounded(&long::words_of_filter(16_000_000), &screens);
    bounded(&long::attached_lines(1_000_000), &screens);
    bounded(&long::names(60_000), &screens);
    bounded(&long::class(16_000), &screens);
}

/// What screens and messages show of a long text has its length; JSON has the text.
#[test]
fn long_texts_are_cut_except_in_json() {
    const LEN: u64 = 50_000;
    const CUT: &str = "50000 bytes in all";
    let scratch = Scratch::new();
    let path = scratch.0.join("file.kmt");
    let words = |bytes: &[u8]| {
        assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
        String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (made, command) in [(long::metadata(LEN), "info"), (long::filter(LEN), "summary")] {
        fs::write(&path, made).unwrap();
        let screen = words(&run(&[command], &path).stdout);
        assert!(screen.contains(CUT), "{command}: {screen}");
        let json = String::from_utf8(run(&[command, "--json"], &path).stdout).unwrap();
        assert!(json.contains(&"x".repeat(LEN as usize)), "{command}: {} bytes", json.len());
    }
    fs::write(&path, long::names(LEN)).unwrap();
    let told = words(&run(&["info", "--show", "none"], &path).stderr);
    assert!(told.contains("hint: it has") && told.contains(CUT), "{told}");
}

/// Lines × steps: 30 million numbers of each kind.
#[test]
fn lines_of_a_timeline() {
    let commands = [
        "timeline --by call-site --lines 100000 --steps 1000 --json",
        "chart timeline --by call-site --lines 100000 --steps 1000 --force -o OUT",
        "export perfetto --lines 100000 --force -o OUT",
    ];
    bounded(&objects::lives_of_call_sites(30_000), &commands);
}

/// Each function of a file against each rule that the user has.
#[test]
fn rules_on_wrappers() {
    let scratch = Scratch::new();
    let rules = scratch.0.join("rules");
    let lines = (0..50_000).map(|i| format!("g{i}_*\nmm/g{i}.c\n"));
    fs::write(&rules, lines.collect::<String>()).unwrap();
    bounded(
        &tables::lines(50_000),
        &[&format!("callers --by function --json --wrappers {}", rules.display())],
    );
}

/// Checks that a command names the limit that the file exceeds.
fn exceeds(file: &[u8], command: &[&str], limit: &str) {
    let scratch = Scratch::new();
    let path = scratch.0.join("file.kmt");
    fs::write(&path, file).unwrap();
    let told = stderr(&run(command, &path));
    assert!(told.contains(&format!("the limit `{limit}` is")), "{told}");
}

/// Each archive of a build folder is read once, however often it is a member.
#[test]
fn archives_that_are_members_of_archives() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("built-in.a"), thin_archive(&["built-in.a"; 20])).unwrap();
    let taken = taken(&["footprint", "--build"], &scratch.0, SECONDS_MAX);
    assert_eq!(taken.code, Some(1), "it has no objects: {taken:?}");
}

/// Rows of one long text: the file is refused.
#[test]
fn rows_that_share_a_text() {
    exceeds(&texts::lines_of_one_file(10_000), &["summary"], "metadata");
    exceeds(&texts::tasks_of_one_cgroup(10_000), &["summary"], "metadata");
}

/// What readers repeat for each event is limited.
#[test]
fn events_that_share_a_name() {
    let command = ["summary", "--limit", "names=9999"];
    exceeds(&formats::long_name(10), &command, "names");
    exceeds(&formats::long_field(10), &command, "names");
}

/// 60,000 events of one long text: the chunk is left out, and the limit is named.
#[test]
fn events_that_share_a_text() {
    let file = shared_text(60_000);
    bounded(&file, &["dump", "dump --json", "summary", "export perfetto --force -o OUT"]);
    exceeds(&file, &["summary"], "arrays");
}
