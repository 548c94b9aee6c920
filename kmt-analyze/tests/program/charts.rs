//! Charts: the numbers in them are those of the report, and no text of a file is anything but text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::files::{Scratch, data, json, run, stderr, stdout};
use crate::support::hostile::Made;

fn chart(args: &[&str], file: &Path) -> String {
    let output = run(&[&["chart"], args].concat(), file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Values of an attribute, in order.
fn values<'t>(svg: &'t str, attribute: &str) -> Vec<&'t str> {
    let begin = format!(" {attribute}=\"");
    svg.split(&begin).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// The characters of a text with entities.
fn text(escaped: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(escaped.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn lines_have_the_numbers_of_the_timeline() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for by in ["kind", "call-site", "cache", "task", "cpu", "node"] {
        let svg = chart(&["timeline", "--by", by, "--steps", "50"], &file);
        let report = json(&["timeline", "--json", "--by", by, "--steps", "50", "-l", "7"], &file);
        let lines = report["timeline"]["lines"].as_array().unwrap();
        let (names, numbers) = (values(&svg, "data-name"), values(&svg, "data-values"));
        assert_eq!((names.len(), numbers.len()), (lines.len(), lines.len()), "{by}");
        for ((line, name), numbers) in lines.iter().zip(names).zip(numbers) {
            let numbers: Vec<i64> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
            assert_eq!(
                (json!(text(name)), json!(numbers)),
                (line["name"].clone(), line["bytes_live"].clone()),
                "{by}"
            );
        }
    }
}

#[test]
fn a_name_that_ends_with_png_makes_one() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for kind in ["ring", "timeline"] {
        let target = scratch.0.join(format!("{kind}.png"));
        let output = run(&["chart", kind, "-o", target.to_str().unwrap()], &file);
        if output.status.code() == Some(1) {
            assert!(stderr(&output).contains("no font is installed"), "{}", stderr(&output));
            assert!(!target.exists());
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let png = fs::read(&target).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        assert_eq!(png[16..20], 1920u32.to_be_bytes());
    }
}

/// The sum of each stack's last frame is that of the folded stacks.
#[test]
fn frames_have_the_weights_of_the_stacks() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    let file = scratch.convert(&own);
    for (weight, pages) in
        [("alloc", false), ("live", false), ("waste", false), ("count", false), ("alloc", true)]
    {
        let more: &[&str] = if pages { &["--pages"] } else { &[] };
        let svg = chart(&[&["flame", "--weight", weight], more].concat(), &file);
        let folded = stdout(&run(&[&["export", "folded", "--by", weight], more].concat(), &file));
        let mut whole = 0;
        let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
        for line in folded.lines() {
            let (path, number) = line.rsplit_once(' ').unwrap();
            let number: u64 = number.parse().unwrap();
            whole += number;
            let leaf = path.rsplit(';').next().unwrap();
            *by_name.entry(leaf.to_owned()).or_default() += number;
        }
        let numbers: Vec<u64> = values(&svg, "data-value").iter().map(|n| n.parse().unwrap()).collect();
        assert_eq!(numbers[0], whole, "{weight}");
        let mut drawn: BTreeMap<String, u64> = BTreeMap::new();
        for (name, number) in values(&svg, "data-name").iter().zip(&numbers) {
            *drawn.entry(text(name)).or_default() += number;
        }
        // Caches and kinds of pages are leaves. Narrow frames are left out.
        let mut compared = 0;
        for (name, number) in drawn.iter().filter(|(name, _)| name.starts_with('[')) {
            assert!(number <= &by_name[name] && number * 10 >= by_name[name] * 8, "{weight}: {name}");
            compared += number;
        }
        assert!(compared * 100 >= whole * 95, "{weight}: {compared} of {whole}");
    }
}

#[test]
fn bars_have_the_numbers_of_the_size_classes() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let svg = chart(&["waste"], &file);
    let report = json(&["sizes", "--json"], &file);
    let mut ours: Vec<[u64; 3]> = report["sizes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["size_class", "bytes_req", "bytes_alloc"].map(|key| row[key].as_u64().unwrap()))
        .collect();
    ours.sort();
    let [classes, requested, allocated] = ["data-class", "data-requested", "data-allocated"]
        .map(|name| values(&svg, name).iter().map(|n| n.parse().unwrap()).collect::<Vec<u64>>());
    let drawn = classes.iter().zip(&requested).zip(&allocated).map(|((a, b), c)| [*a, *b, *c]);
    assert!(ours.len() > 5 && drawn.eq(ours), "{report:#}");
}

/// The pictures of the guide are those that its script draws.
#[test]
fn pictures_of_the_guide_are_of_the_sample() {
    let scratch = Scratch::new();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let file = scratch.convert(&docs.join("sample/x86_64-6.1"));
    let sample = scratch.0.join("sample.kmt");
    fs::rename(&file, &sample).unwrap();
    let script = fs::read_to_string(docs.join("pictures.sh")).unwrap();
    let mut drawn = 0;
    for line in script.lines().filter_map(|line| line.strip_prefix("draw ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let made = scratch.0.join("made.svg");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
            .current_dir(&scratch.0)
            .arg("chart")
            .args(&words[1..])
            .args(["sample.kmt", "--force", "-o"])
            .arg(&made)
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        let kept = docs.join(format!("guide/pictures/{}.svg", words[0]));
        if std::env::var_os("KMT_WRITE").is_some() {
            fs::copy(&made, &kept).unwrap();
        }
        assert_eq!(fs::read(&made).unwrap(), fs::read(&kept).unwrap(), "{line}: run docs/pictures.sh");
        drawn += 1;
    }
    assert_eq!(drawn, fs::read_dir(docs.join("guide/pictures")).unwrap().count());
}

fn sum(svg: &str, attribute: &str) -> u64 {
    values(svg, attribute).iter().map(|number| number.parse::<u64>().unwrap()).sum()
}

#[test]
fn grids_have_the_numbers_of_their_reports() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let svg = chart(&["lifetimes"], &file);
    let report = json(&["lifetimes", "--json", "--by", "size"], &file);
    let groups = report["groups"].as_array().unwrap();
    assert_eq!(values(&svg, "data-row").len(), groups.len());
    assert_eq!(json!(sum(&svg, "data-count")), report["all"]["n"]);
    let largest = groups.iter().max_by_key(|group| group["size"].as_u64()).unwrap();
    let first = svg.split("data-row=").nth(1).unwrap();
    assert_eq!(json!(sum(first, "data-count")), largest["lifetime"]["n"]);
    let reclaim = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    let file = scratch.convert(&reclaim);
    let svg = chart(&["latency"], &file);
    let report = json(&["latency", "--json", "-l", "0"], &file);
    let kinds = report["latency"]["kinds"].as_array().unwrap();
    let stalls: u64 = kinds.iter().map(|kind| kind["count"].as_u64().unwrap()).sum();
    assert!(stalls > 0);
    assert_eq!(sum(&svg, "data-count"), stalls);
}

#[test]
fn slabs_and_blocks_have_the_numbers_of_fragmentation() {
    let scratch = Scratch::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let file = scratch.convert(&sample);
    let report = json(&["fragmentation", "--json"], &file);
    let svg = chart(&["filling"], &file);
    let caches = report["fragmentation"]["occupancy"]["caches"].as_array();
    let caches = caches.unwrap().iter().filter(|cache| cache["bytes_held"] != 0);
    let theirs: Vec<_> =
        caches.map(|c| [&c["cache"], &c["bytes_held"], &c["bytes_live"]].map(ToString::to_string)).collect();
    let parts = [values(&svg, "data-name"), values(&svg, "data-held"), values(&svg, "data-live")];
    let ours = (0..parts[0].len())
        .map(|at| [format!("\"{}\"", text(parts[0][at])), parts[1][at].to_owned(), parts[2][at].to_owned()]);
    assert!(!theirs.is_empty());
    assert_eq!(ours.collect::<std::collections::BTreeSet<_>>(), theirs.into_iter().collect());
    let svg = chart(&["pageblocks"], &file);
    let mut ours: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for block in values(&svg, "data-pages") {
        for part in block.split(", ") {
            let (pages, name) = part.split_once(' ').unwrap();
            let sums = ours.entry(name.to_owned()).or_default();
            *sums = (sums.0 + 1, sums.1 + pages.parse::<u64>().unwrap());
        }
    }
    let rows = report["fragmentation"]["pages"]["pageblocks"]["by_migratetype"].as_array().unwrap();
    let row = |row: &serde_json::Value| {
        let name = row["migratetype"].as_str().unwrap().to_lowercase();
        (name, (row["blocks"].as_u64().unwrap(), row["pages"].as_u64().unwrap()))
    };
    assert_eq!(ours, rows.iter().map(row).collect());
    assert!(ours.len() > 1);
}

/// Frames of a comparison have the weights of both files.
#[test]
fn frames_are_compared_with_those_of_another_file() {
    let scratch = Scratch::new();
    let (before, after) = (scratch.convert(&data("x86_64-6.1")), scratch.0.join("after.kmt"));
    let sliced = ["slice", before.to_str().unwrap(), "--time", "+0.005..", "-o", after.to_str().unwrap()];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).args(sliced).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = chart(&["flame", "--against", before.to_str().unwrap()], &after);
    let whole = |svg: &str, attribute: &str| values(svg, attribute)[0].to_owned();
    assert_eq!(whole(&svg, "data-before"), whole(&chart(&["flame"], &before), "data-value"));
    assert_eq!(whole(&svg, "data-value"), whole(&chart(&["icicle"], &after), "data-value"));
    let refused = run(&["chart", "waste", "--against", before.to_str().unwrap()], &after);
    assert!(stderr(&refused).contains("--against compares stacks"), "{}", stderr(&refused));
    let page = stdout(&run(&["report", "--against", before.to_str().unwrap()], &after));
    assert!(page.contains("<section id=part-diff><details open>"), "{page}");
}

#[test]
fn names_are_text_only() {
    const NAME: &str = "<img src=x onerror=alert(1)>&\"'\u{202e}\u{1b}[31m]]></style>";
    let mut made = Made::default();
    for i in 0..100 {
        made.kmalloc(0, 7, 0xffff_ffff_8100_0000, 0xffff_8880_0000_0000 + i * 64);
        made.cache_free(0, 0xffff_ffff_8100_0000, 0xffff_8880_0000_0000 + i * 64, NAME.as_bytes());
        made.kmalloc(0, 7, 0xffff_ffff_8100_0000, 0xffff_8880_0000_0000 + i * 64);
    }
    made.kfree(0, 0xffff_ffff_8100_0010, 0xffff_8880_0000_0000);
    made.writer().add_metadata(&[("kernel.release", NAME.as_bytes())]).unwrap();
    made.writer().add_tasks(&[kmt_format::write::Task::new(7, "<b>'\"&\u{1b}x")]).unwrap();
    let scratch = Scratch::new();
    let path = scratch.0.join("<i>'&.kmt");
    fs::write(&path, made.finish()).unwrap();
    for args in [
        &["timeline", "--by", "task"][..],
        &["timeline", "--by", "cache"],
        &["flame"],
        &["flame", "--weight", "count"],
        &["waste"],
        &["icicle", "--against", path.to_str().unwrap()],
        &["lifetimes"],
    ] {
        let svg = chart(args, &path);
        for raw in ["<img", "<b>", "<i>", "onerror=alert(1)>", "\u{1b}", "\u{202e}"] {
            assert!(!svg.contains(raw), "{args:?}: {raw}");
        }
        // Each `<` begins an element of ours, each `&` an entity.
        let known =
            ["svg", "title", "desc", "style", "defs", "pattern", "path", "text", "rect", "g", "script", "!"];
        let body = svg.replace("&&", "");
        for (at, _) in body.match_indices('<') {
            let rest = body[at + 1..].trim_start_matches('/');
            assert!(
                known.iter().any(|name| rest.starts_with(name)),
                "{args:?}: {}",
                &rest[..20.min(rest.len())]
            );
        }
        let is_entity =
            |rest: &str| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|e| rest.starts_with(e));
        assert!(body.match_indices('&').all(|(at, _)| is_entity(&body[at + 1..])), "{args:?}");
    }
}
