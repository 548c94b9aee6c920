//! One selection selects the same objects and events in reports, exports, the page and `dump`: random selections by
//! `--where`, `--comm`, `--cpu` and `--time`.
//!
//! Objects: `summary` against rows of `export --of objects`, an SQLite database and the page. Events: `dump` against rows of
//! `export --of events` and that database, and its allocations against `summary`, which selects by the allocation.

use std::path::Path;

use serde_json::Value;

use crate::page::{page, whole_time};
use crate::selections::Random;
use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};

/// Captures of several kernels; the shortest one has 40 ms.
const CAPTURES: [&str; 4] = ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"];

/// Numbers of the selected objects.
#[derive(Debug, PartialEq)]
struct Objects {
    allocated: u64,
    bytes_allocated: u64,
    live: u64,
    bytes_live: u64,
}

/// Options with their values: a range of time, a CPU, a task.
fn options(random: &mut Random) -> Vec<String> {
    let mut options = Vec::new();
    let mut add = |name: &str, value: String| options.extend([name.to_owned(), value]);
    if random.below(2) == 0 {
        let from = random.below(15);
        add("--time", format!("+0.{from:03}..+0.{:03}", from + 1 + random.below(20)));
    }
    match random.below(4) {
        0 => add("--cpu", random.below(3).to_string()),
        1 => add("--comm", random.of(&["sh", "<idle>", "true", "cat"]).to_owned()),
        2 => {
            add("--comm", "sh".to_owned());
            add("--cpu", random.below(2).to_string());
        }
        _ => {}
    }
    options
}

fn words(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

fn rows(args: &[&str], file: &Path) -> Vec<Value> {
    let output = run(args, file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Lines of a table as CSV, without its heading.
fn lines_of_csv(of: &str, selection: &[&str], file: &Path) -> usize {
    let args = [&["export", "csv", "--of", of], selection].concat();
    let output = run(&args, file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", stderr(&output));
    output.stdout.iter().filter(|&&byte| byte == b'\n').count() - 1
}

/// Numbers of one row of a query to an SQLite database of a selection.
#[cfg(feature = "sqlite")]
fn queried<const N: usize>(options: &[&str], query: &str, file: &Path) -> [u64; N] {
    let scratch = Scratch::new();
    let path = scratch.0.join("selected.sqlite");
    let args = [&["export", "sqlite", "-o", path.to_str().unwrap()], options].concat();
    let output = run(&args, file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", stderr(&output));
    let database = rusqlite::Connection::open(&path).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok(std::array::from_fn(|at| row.get::<_, i64>(at).unwrap() as u64));
    database.query_row(query, [], row).unwrap()
}

/// Objects of a report's totals.
fn reported(slab: &Value) -> Objects {
    let number = |key: &str| at(slab, key).as_u64().unwrap();
    Objects {
        allocated: number("/alloc_events"),
        bytes_allocated: number("/bytes_alloc"),
        live: number("/live"),
        bytes_live: number("/bytes_live"),
    }
}

/// Objects of the page's call sites, over its whole time.
fn on_page(selection: &[&str], file: &Path) -> Objects {
    let all = whole_time(&page(selection, file));
    let sites = all.iter().filter(|((table, _), _)| table == "sites");
    let sum = |column: usize| sites.clone().map(|(_, row)| row[column] as u64).sum();
    Objects { allocated: sum(0), bytes_allocated: sum(1), live: sum(7), bytes_live: sum(8) }
}

#[test]
fn random_selections_have_the_same_objects_in_reports_exports_and_the_page() {
    let scratch = Scratch::new();
    let files = CAPTURES.map(|name| scratch.convert(&data(name)));
    let mut random = Random::new(72);
    let mut selected = 0;
    for number in 0..24 {
        let file: &Path = &files[number % files.len()];
        let mut selection = options(&mut random);
        for _ in 0..random.below(3) {
            selection.extend(["--where".to_owned(), random.condition()]);
        }
        let selection = words(&selection);
        let what = format!("{selection:?} of {}", file.display());
        let summary = json(&[&["summary", "--json"], &*selection].concat(), file);
        let expected = reported(&summary["slab"]);
        selected += u64::from(expected.allocated > 0);

        let objects = rows(&[&["export", "ndjson", "--of", "objects"], &*selection].concat(), file);
        let born: Vec<&Value> =
            objects.iter().filter(|row| at(row, "/born_in_window").as_bool().unwrap()).collect();
        let bytes: u64 = born.iter().map(|row| at(row, "/bytes_alloc").as_u64().unwrap()).sum();
        assert_eq!((born.len() as u64, bytes), (expected.allocated, expected.bytes_allocated), "{what}");
        assert_eq!(lines_of_csv("objects", &selection, file), objects.len(), "{what}");

        #[cfg(feature = "sqlite")]
        {
            let query = "SELECT count(*), coalesce(sum(is_born), 0), coalesce(sum(is_born * bytes_alloc), 0), \
                         coalesce(sum(is_live), 0), coalesce(sum(is_live * bytes_alloc), 0) \
                         FROM objects JOIN sites USING (site)";
            let [all, allocated, bytes_allocated, live, bytes_live] = queried(&selection, query, file);
            assert_eq!(all, objects.len() as u64, "{what}");
            assert_eq!(Objects { allocated, bytes_allocated, live, bytes_live }, expected, "{what}");
        }
        assert_eq!(on_page(&selection, file), expected, "{what}");
    }
    assert!((8..24).contains(&selected), "{selected} of 24 selections have objects");
}

#[test]
fn random_selections_have_the_same_events_in_dump_and_exports() {
    let scratch = Scratch::new();
    let files = CAPTURES.map(|name| scratch.convert(&data(name)));
    let mut random = Random::new(73);
    let mut selected = 0;
    for number in 0..24 {
        let file: &Path = &files[number % files.len()];
        let selection = options(&mut random);
        let selection = words(&selection);
        let what = format!("{selection:?} of {}", file.display());
        // `dump` has no option for names of tasks: the condition is the same.
        let mut dumped = vec!["dump".to_owned(), "--json".to_owned()];
        for pair in selection.chunks(2) {
            dumped.extend(match pair {
                ["--comm", name] => ["--where".to_owned(), format!("comm={name}")],
                _ => [pair[0].to_owned(), pair[1].to_owned()],
            });
        }
        let dumped = rows(&words(&dumped), file).len();
        let events = rows(&[&["export", "ndjson"], &*selection].concat(), file);
        assert_eq!(events.len(), dumped, "{what}");
        assert_eq!(lines_of_csv("events", &selection, file), dumped, "{what}");
        #[cfg(feature = "sqlite")]
        {
            let options = [&["--events"], &*selection].concat();
            assert_eq!(queried(&options, "SELECT count(*) FROM events", file), [dumped as u64], "{what}");
        }
        // Of an event, --cpu and --comm select as they do of an allocation.
        let is_counted = |row: &&Value| {
            row.get("bytes_alloc").is_some() && row["ptr"] != "0x0" && row["is_duplicate"] == false
        };
        let allocations = events.iter().filter(is_counted).count() as u64;
        let summary = json(&[&["summary", "--json"], &*selection].concat(), file);
        assert_eq!(allocations, reported(&summary["slab"]).allocated, "{what}");
        selected += u64::from(allocations > 0);
    }
    assert!((8..24).contains(&selected), "{selected} of 24 selections have allocations");
}

/// Conditions on fields that an allocation's event has, by which `dump` selects events and reports select objects.
#[test]
fn random_conditions_select_the_same_allocations_in_dump_and_summary() {
    let scratch = Scratch::new();
    let files = CAPTURES.map(|name| scratch.convert(&data(name)));
    let mut random = Random::new(74);
    let mut selected = 0;
    for number in 0..24 {
        let file: &Path = &files[number % files.len()];
        let mut selection = Vec::new();
        for _ in 0..1 + random.below(2) {
            // An object has a lifetime and the cache that its free names; the event of its allocation has neither.
            let condition = std::iter::repeat_with(|| random.condition())
                .find(|condition| !condition.starts_with("lifetime") && !condition.starts_with("cache"));
            selection.extend(["--where".to_owned(), condition.unwrap()]);
        }
        let selection = words(&selection);
        let what = format!("{selection:?} of {}", file.display());
        let dump = ["dump", "--json", "--event", "kmem:kmalloc*", "--event", "kmem:kmem_cache_alloc*"];
        let dumped = rows(&[&dump[..], &*selection].concat(), file).len() as u64;
        let summary = json(&[&["summary", "--json"], &*selection].concat(), file);
        assert_eq!(at(&summary, "/slab/raw/alloc_events").as_u64(), Some(dumped), "{what}");
        selected += u64::from(dumped > 0);
    }
    assert!((8..24).contains(&selected), "{selected} of 24 selections have allocations");
}
