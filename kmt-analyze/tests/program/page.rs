//! The page: its numbers of any range are those of `--time`, it needs nothing else, and no text of a file is anything but
//! text.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use kmt_format::write::Task;
use serde_json::Value;

use crate::source::objects;
use crate::support::files::{Scratch, data, json, run, stderr, stdout};
use crate::support::hostile::Made;

/// The page of a file.
pub fn page(args: &[&str], file: &Path) -> String {
    let output = run(&[&["report", "-o", "-"], args].concat(), file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Facts of a page that its script reads.
pub fn about(page: &str) -> Value {
    Numbers::of(page).about
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> =
        text.trim_end_matches('=').chars().map(|c| DIGITS.find(c).unwrap() as u32).collect();
    let four = |four: &[u32]| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | four.get(at).copied().unwrap_or(0));
        [16, 8, 0].map(|shift| (bits >> shift) as u8)[..four.len() - 1].to_vec()
    };
    digits.chunks(4).flat_map(four).collect()
}

/// The numbers of a page, read by another reader than the page's own.
struct Numbers {
    about: Value,
    bytes: Vec<u8>,
    at: usize,
}

/// Flows of a row, by step: the ten columns.
type Row = Vec<(u64, [i64; 10])>;

impl Numbers {
    fn of(page: &str) -> Self {
        let packed = page.split_once("id=numbers>").unwrap().1.split('<').next().unwrap();
        let mut bytes = Vec::new();
        flate2::read::ZlibDecoder::new(&*from_base64(packed)).read_to_end(&mut bytes).unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        Self { about: serde_json::from_slice(&bytes[4..4 + length]).unwrap(), bytes, at: 4 + length }
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn signed(&mut self) -> i64 {
        let value = self.number();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    /// The rows of the next table.
    fn table(&mut self, is_pages: bool) -> Vec<Row> {
        let rows = self.number();
        let heads: Vec<[u64; 3]> = (0..rows).map(|_| [(); 3].map(|()| self.number())).collect();
        let mut table: Vec<Row> = Vec::new();
        for [steps, ..] in &heads {
            let mut last = 0;
            table.push(
                (0..*steps)
                    .map(|_| {
                        last += self.number();
                        (last, [0; 10])
                    })
                    .collect(),
            );
        }
        for column in 0..if is_pages { 5 } else { 10 } {
            for row in &mut table {
                row.iter_mut().for_each(|(_, flows)| flows[column] = self.signed());
            }
        }
        for (row, [_, allocated, requested]) in table.iter_mut().zip(heads) {
            let (allocated, requested) = (allocated as i64, requested as i64);
            for (_, f) in row.iter_mut().filter(|_| !is_pages) {
                f[1] += f[0] * allocated;
                f[2] += f[0] * requested;
                f[4] += f[3] * allocated;
                f[6] += f[5] * allocated;
                f[7] += f[0] - f[3] - f[5];
                f[8] += f[7] * allocated;
                f[9] += f[7] * requested;
            }
        }
        table
    }
}

/// What the page shows of a row for steps from one up to, not including, another.
fn shown(row: &Row, from: u64, to: u64) -> [i64; 10] {
    let sum = |column: usize| {
        let begin = if column < 7 { from } else { 0 };
        let within = row.iter().filter(|(step, _)| (begin..to).contains(step));
        within.map(|(_, flows)| flows[column]).sum()
    };
    std::array::from_fn(sum)
}

/// Numbers of the whole time by table and name; rows of one name are added up.
pub fn whole_time(page: &str) -> BTreeMap<(String, String), [i64; 10]> {
    let mut numbers = Numbers::of(page);
    let about = numbers.about.clone();
    let mut all: BTreeMap<(String, String), [i64; 10]> = BTreeMap::new();
    for group in about["groups"].as_array().unwrap() {
        let rows = numbers.table(group["scale"] != 1);
        for (name, row) in group["names"].as_array().unwrap().iter().zip(&rows) {
            let key = (group["key"].as_str().unwrap().to_owned(), name.as_str().unwrap().to_owned());
            let sum = all.entry(key).or_default();
            sum.iter_mut().zip(shown(row, 0, u64::MAX)).for_each(|(sum, number)| *sum += number);
        }
    }
    all
}

/// The same of a report's row.
fn reported(sums: &Value) -> [i64; 10] {
    let of = |key: &str| sums[key].as_i64().unwrap();
    let (alloc, live) = (of("bytes_alloc"), of("bytes_live"));
    [
        of("alloc_events"),
        alloc,
        alloc - of("bytes_wasted"),
        of("frees_matched"),
        of("bytes_freed"),
        of("freed_unseen"),
        of("bytes_freed_unseen"),
        of("live"),
        live,
        live - of("bytes_wasted_live"),
    ]
}

#[test]
fn ranges_have_the_numbers_of_their_time() {
    let scratch = Scratch::new();
    for name in ["x86_64-6.1", "s390x-6.1"] {
        let file = scratch.convert(&data(name));
        let mut numbers = Numbers::of(&page(&[], &file));
        let about = numbers.about.clone();
        let steps = about["steps"].as_u64().unwrap();
        let step: u64 = about["step"].as_str().unwrap().parse().unwrap();
        let mut tables = Vec::new();
        for group in about["groups"].as_array().unwrap() {
            tables.push((group, numbers.table(group["scale"] != 1)));
        }
        assert_eq!(numbers.at, numbers.bytes.len());
        let time = |nanos: u64| format!("+{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        let mut compared = 0;
        for (from, to) in [(0, steps), (0, 1), (steps - 1, steps), (steps / 3, steps / 2), (7, steps - 9)] {
            let range = format!("{}..{}", time(from * step), time(to * step - 1));
            let of = |report: &str| json(&[report, "--json", "-l", "0", "--time", &range], &file);
            for (key, report, list, sums) in [
                ("sites", "callers", "callers", ""),
                ("caches", "caches", "caches", ""),
                ("tasks", "tasks", "tasks", "slab"),
            ] {
                let (group, rows) = tables.iter().find(|(group, _)| group["key"] == key).unwrap();
                let name = |name: &Value| match key {
                    // Tasks have the names of the end of their range.
                    "tasks" => name.as_str().unwrap().rsplit_once('-').unwrap().1.to_owned(),
                    _ => name.as_str().unwrap().to_owned(),
                };
                let names = group["names"].as_array().unwrap().iter().map(name);
                let ours = names.zip(rows).map(|(name, row)| (name, shown(row, from, to)));
                let document = of(report);
                let theirs = document[list].as_array().unwrap().iter().map(|row| {
                    let name = match key {
                        "sites" => row["symbol"].as_str().unwrap().to_owned(),
                        "caches" => row["cache"].as_str().unwrap().to_owned(),
                        _ => row["pid"].to_string(),
                    };
                    (name, reported(if sums.is_empty() { row } else { &row[sums] }))
                });
                let sorted = |rows: &mut dyn Iterator<Item = (String, [i64; 10])>| {
                    let mut rows: Vec<_> = rows.filter(|(_, numbers)| *numbers != [0; 10]).collect();
                    rows.sort();
                    rows
                };
                let (ours, theirs) = (sorted(&mut { ours }), sorted(&mut { theirs }));
                assert_eq!(ours, theirs, "{name:?}: {report} {range}", name = file);
                compared += ours.len();
            }
        }
        assert!(compared > 100, "{compared}");
    }
}

#[test]
fn functions_are_those_of_the_source_where_lines_are_known() {
    let scratch = Scratch::new();
    let (file, vmlinux) = (scratch.0.join("trace.kmt"), objects().join("vmlinux.x86_64"));
    fs::write(&file, crate::source::Made::read("vmlinux.x86_64").trace(&[]).0).unwrap();
    let option = ["--vmlinux", vmlinux.to_str().unwrap()];
    let mut numbers = Numbers::of(&page(&option, &file));
    let about = numbers.about.clone();
    let steps = about["steps"].as_u64().unwrap();
    let sites = &about["groups"][0];
    assert_eq!(sites["key"], "sites");
    let mut ours: BTreeMap<String, i64> = BTreeMap::new();
    for (name, row) in sites["functions"].as_array().unwrap().iter().zip(numbers.table(false)) {
        *ours.entry(name.as_str().unwrap().to_owned()).or_default() += shown(&row, 0, steps)[1];
    }
    let groups = json(&[&["callers", "--json", "--by", "function"][..], &option].concat(), &file);
    let row =
        |row: &Value| (row["function"].as_str().unwrap().to_owned(), row["bytes_alloc"].as_i64().unwrap());
    let theirs: BTreeMap<String, i64> = groups["groups"].as_array().unwrap().iter().map(row).collect();
    assert!(theirs.len() > 5 && !theirs.contains_key("kmalloc"), "{theirs:?}");
    assert_eq!(ours, theirs);
}

/// The flame graph's stacks are the folded stacks of the same time.
#[test]
fn stacks_have_the_numbers_of_their_time() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    let file = scratch.convert(&own);
    let mut numbers = Numbers::of(&page(&[], &file));
    let about = numbers.about.clone();
    let step: u64 = about["step"].as_str().unwrap().parse().unwrap();
    let steps = about["steps"].as_u64().unwrap();
    let functions = about["functions"].as_array().unwrap();
    let mut tables = about["groups"].as_array().unwrap().iter();
    let (names, rows) = tables
        .find_map(|group| {
            let rows = numbers.table(group["scale"] != 1);
            (group["key"] == "stacks").then(|| (group["names"].as_array().unwrap(), rows))
        })
        .unwrap();
    let path = |name: &Value| -> String {
        let numbers = name.as_str().unwrap().split(' ').map(|number| number.parse::<usize>().unwrap());
        numbers.map(|number| functions[number].as_str().unwrap()).collect::<Vec<_>>().join(";")
    };
    for (by, from, to) in
        [("alloc", 0, steps), ("alloc", steps / 3, steps / 2), ("live", 0, steps / 2), ("waste", 5, steps)]
    {
        let range = format!("+0.{:09}..+0.{:09}", from * step, to * step - 1);
        let folded = stdout(&run(&["export", "folded", "--by", by, "--time", &range], &file));
        let mut theirs: BTreeMap<String, i64> = BTreeMap::new();
        for line in folded.lines() {
            let (stack, bytes) = line.rsplit_once(' ').unwrap();
            // The leaf is the cache.
            let (stack, _) = stack.rsplit_once(';').unwrap();
            *theirs.entry(stack.to_owned()).or_default() += bytes.parse::<i64>().unwrap();
        }
        let weight = |row: &Row| {
            let shown = shown(row, from, to);
            match by {
                "alloc" => shown[1],
                "live" => shown[8],
                _ => shown[1] - shown[2],
            }
        };
        let ours = names.iter().zip(&rows).map(|(name, row)| (path(name), weight(row)));
        let ours: BTreeMap<String, i64> = ours.filter(|(_, bytes)| *bytes != 0).collect();
        assert!(!ours.is_empty());
        assert_eq!(ours, theirs, "{by} {range}");
    }
}

/// Nothing but the file itself: no address, no other file, no inline style or handler, which the policy would refuse.
#[test]
fn it_needs_nothing_else() {
    let scratch = Scratch::new();
    let html = page(&[], &scratch.convert(&data("x86_64-6.1")));
    assert!(html.len() < 1_000_000, "{}", html.len());
    let (before, rest) = html.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (markup, script) = rest.split_once("<script>").unwrap();
    assert!(before.contains("default-src 'none'"), "{before}");
    for forbidden in
        [" src=", " style=", " onclick=", " onerror=", "http:", "https:", "<link", "<img", "<iframe"]
    {
        assert!(!markup.contains(forbidden), "{forbidden}");
    }
    assert_eq!(script.matches("</script>").count(), 1);
    for (part, title) in [
        ("findings", "Findings"),
        ("time", "Over time"),
        ("part-leaks", "What grows"),
        ("part-latency", "What waits"),
    ] {
        assert!(markup.contains(&format!("<section id={part}")) && markup.contains(title), "{part}");
    }
}

#[test]
fn names_are_text_only() {
    const NAME: &str = "<img src=x onerror=alert(1)>&\"'\u{202e}\u{1b}[31m]]></script></style>";
    let long = NAME.repeat(200);
    let mut made = Made::default();
    for i in 0..100 {
        made.kmalloc(0, 7, 0xffff_ffff_8100_0000, 0xffff_8880_0000_0000 + i * 64);
        made.cache_free(0, 0xffff_ffff_8100_0000, 0xffff_8880_0000_0000 + i * 64, long.as_bytes());
        made.kmalloc(0, 7, 0xffff_ffff_8100_0000, 0xffff_8880_0000_0000 + i * 64);
    }
    made.kmalloc(0, 8, 0xffff_ffff_8100_0000, 0xffff_8880_0001_0000);
    made.writer().add_metadata(&[("kernel.release", long.as_bytes())]).unwrap();
    made.writer().add_tasks(&[Task::new(7, "<b>'\"&\u{1b}x"), Task::new(8, "=cmd")]).unwrap();
    let scratch = Scratch::new();
    let path = scratch.0.join("<i>'&.kmt");
    fs::write(&path, made.finish()).unwrap();
    let html = page(&[], &path);
    // A browser opens it, where there is one (.ci/page).
    if let Some(to) = std::env::var_os("KMT_PAGE") {
        fs::write(to, &html).unwrap();
    }
    assert!(
        !html.contains("<img")
            && !html.contains("<b>'")
            && !html.contains("<i>'")
            && !html.contains('\u{1b}')
    );
    assert_eq!((html.matches("</script>").count(), html.matches("</style>").count()), (2, 1));
    let names = Numbers::of(&html).about.to_string();
    assert!(names.contains("<b>") && !names.contains('\u{1b}'), "{names}");
}

/// A selection that leaves little has fewer tables over time; the rest of the page stays.
#[test]
fn little_makes_a_page_too() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for args in
        [&["--cpu", "77"][..], &["--time", "+0.01..+0.01"], &["--at", "+0.01"], &["--where", "size>=4096"]]
    {
        let html = page(args, &file);
        assert!(
            html.contains("<section id=part-summary") && Numbers::of(&html).about["steps"].as_u64() > Some(0),
            "{args:?}"
        );
    }
}

/// Only its user reads a page, unless it is to be public.
#[test]
fn a_page_for_a_web_server_is_readable_by_all() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let path = scratch.0.join("page.html");
    let to = path.to_str().unwrap();
    for (options, mode) in [(&[][..], 0o600), (&["--public"], 0o644)] {
        let output = run(&[&["report", "--force", "-o", to], options].concat(), &file);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{options:?}");
    }
}

/// With a program in place of the desktop's, which keeps what it is given.
#[test]
fn a_page_is_opened_when_it_is_written() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let (page, opener) = (scratch.0.join("page.html"), scratch.0.join("xdg-open"));
    let opened = scratch.0.join("opened");
    let report = |folder: &Path, to: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
        command.args(["report", "--force", "--open", "-o", to]).arg(&file);
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display())).output().unwrap()
    };
    let write = |status| {
        let script =
            format!("#!/bin/sh\ntest -s \"$1\" && echo \"$1\" > {}\nexit {status}\n", opened.display());
        fs::write(&opener, script).unwrap();
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let to = page.to_str().unwrap();
    write(0);
    let output = report(&scratch.0, to);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&opened).unwrap(), format!("{to}\n"));
    write(3);
    let output = report(&scratch.0, to);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the page is written: open "), "{}", stderr(&output));
    let output = report(&scratch.0, "-");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
