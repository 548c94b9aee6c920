//! Growth: verdicts and findings against survivors of the model.

use std::collections::HashMap;

use serde_json::Value;

use super::super::files::json;
use super::super::model::Lived;
use super::excuses::is_excused;
use super::seen::hex;
use super::survival::{Evidence, Kind, Part, Window};
use super::{Case, grouped, percent, slabinfo};

/// A row of `leaks` with the numbers that it has to have.
pub struct Judged<'r> {
    pub row: &'r Value,
    pub evidence: Evidence,
}

impl Judged<'_> {
    pub fn grows(&self) -> bool {
        matches!(self.row["verdict"].as_str().unwrap(), "grows" | "grows_in_batches")
    }

    fn per_second(&self, window: Window) -> u64 {
        self.per_second_of(self.evidence.old_bytes, window)
    }

    /// Rate of a part of its old bytes.
    fn per_second_of(&self, bytes: u64, window: Window) -> u64 {
        self.evidence.per_second(bytes, window, self.row["began_step"].as_u64())
    }

    /// Rates of the old bytes of a task, and of all, so fine that their ratio is exact.
    fn shares(&self, pid: i64, window: Window) -> [u64; 2] {
        let held = self.evidence.tasks.get(&pid).map_or(0, |task| task.1);
        [held, self.evidence.old_bytes].map(|bytes| self.per_second_of(bytes << 16, window))
    }
}

pub fn check(case: &Case<'_>) {
    let leaks = json(&["leaks", "--json", "-l", "0"], case.file);
    let (first, last) = case.seen.span.unwrap_or_default();
    let window = Window { first, length: last - first };
    if leaks["refused"].is_string() || leaks["leaks"]["refused"].is_string() {
        let (lost, events) = (&leaks["trace"]["lost_events"], leaks["trace"]["events"].as_u64().unwrap());
        assert!(window.length < 1_000_000_000 || lost.as_u64().unwrap() * 9 > events, "{leaks:#}");
        return assert!(case.of_kind("slab_growth").is_empty() && case.of_kind("page_growth").is_empty());
    }
    slab(case, &leaks["leaks"], window);
    pages(case, &leaks["leaks"], window);
}

/// Share of a task in the rates of rows: its part, and all.
fn held(rows: &[&Judged<'_>], pid: i64, window: Window) -> (u64, u64) {
    let shares = rows.iter().map(|judged| judged.shares(pid, window));
    shares.fold((0, 0), |(part, whole), [held, all]| (part + held, whole + all))
}

fn is_large(bytes: u64, live: u64) -> bool {
    bytes >= 16 << 10 || bytes >= 4 << 10 && bytes * 100 >= live
}

/// Each number of a row is that of its lives.
fn judged<'r>(case: &Case<'_>, row: &'r Value, lives: Vec<&Lived>, window: Window) -> Judged<'r> {
    let kind = Kind { window, lives };
    let number = |key: &str| row[key].as_u64().unwrap();
    let step = |at: usize| row["judged_steps"][at].as_u64().unwrap() as usize;
    let part = Part { steps: step(0)..step(1), task: row["judged_task"].as_i64() };
    // One task among others that live long is judged from the longest of their lives on.
    let is_usual = kind.steps().contains(&part.steps.end) || part.task.is_some();
    assert!(is_usual, "{}: {:?} steps: {row}", case.name, kind.steps());
    assert_eq!(number("steps") as usize, part.steps.len(), "{row}");
    let evidence = kind.evidence(&part);
    let (first, second) = evidence.halves();
    for (key, value) in [
        ("survivors", evidence.survivors),
        ("bytes", evidence.bytes),
        ("old_survivors", evidence.old),
        ("old_bytes", evidence.old_bytes),
        ("allocations_of_that_age", evidence.births),
        ("steps_with_survivors", evidence.busy() as u64),
        ("first_half", first),
        ("second_half", second),
        ("freed", evidence.freed),
        ("freed_unseen", evidence.implied_frees),
    ] {
        assert_eq!(number(key), value, "{}: {key}: {row}", case.name);
    }
    Judged { row, evidence }
}

fn slab(case: &Case<'_>, leaks: &Value, window: Window) {
    let kinds = &case.ledger.lives;
    let rows: Vec<Judged<'_>> = leaks["callers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let site = if row["call_site"].is_null() { 0 } else { hex(&row["call_site"]) };
            let lives =
                kinds.get(&(site, row["api"] == "kmalloc")).unwrap_or_else(|| panic!("no lives: {row}"));
            judged(case, row, lives.iter().collect(), window)
        })
        .collect();
    let surviving = kinds.values().filter(|lives| lives.iter().any(|life| life.end.is_none())).count();
    assert_eq!(rows.len(), surviving, "{}: every call site with survivors has a row", case.name);
    for judged in &rows {
        let is_right = if judged.grows() {
            judged.evidence.grows()
        } else {
            !judged.evidence.grows() || is_excused(case, judged, &rows)
        };
        assert!(is_right, "{}: {:?}: {}", case.name, judged.evidence, judged.row);
        assert!(!judged.grows() || judged.row["family"].is_u64(), "{}: {}", case.name, judged.row);
    }
    let mut families: HashMap<u64, Vec<&Judged<'_>>> = HashMap::new();
    for judged in &rows {
        judged.row["family"]
            .as_u64()
            .into_iter()
            .for_each(|number| families.entry(number).or_default().push(judged));
    }
    let live = case.ledger.numbers.get("slab.bytes_live").copied().unwrap_or(0);
    let found = case.of_kind("slab_growth");
    let mut expected = 0;
    for family in families.values() {
        let bytes = family.iter().map(|judged| judged.evidence.old_bytes).sum();
        if is_large(bytes, live) {
            expected += 1;
            family_is_found(case, family, (bytes, live), window);
            slabinfo::check(case, family);
        }
    }
    let are_all = case.document["findings"].as_array().unwrap().len() < 10;
    assert!(found.len() == expected || !are_all, "{}: {} of {expected} families", case.name, found.len());
}

fn family_is_found(case: &Case<'_>, family: &[&Judged<'_>], (bytes, live): (u64, u64), window: Window) {
    let name = &case.name;
    let of_growth = family.iter().filter(|judged| judged.grows());
    let leader = *of_growth.max_by_key(|judged| judged.evidence.old_bytes).unwrap();
    let function = leader.row["symbol"].as_str().unwrap().split('+').next().unwrap();
    let found = case.of_kind("slab_growth").into_iter().find(|found| found["bytes"] == bytes);
    let found =
        found.unwrap_or_else(|| panic!("{name}: {bytes} at {function}: {:#}", case.document["findings"]));
    let pid = leader.evidence.holder();
    // Members of the family are of the leader's task.
    for judged in family.iter().filter(|judged| !std::ptr::eq(**judged, leader)) {
        let theirs = judged.evidence.tasks.get(&pid).map_or(0, |task| task.1);
        assert!(theirs * 2 >= judged.evidence.old_bytes, "{name}: {pid}: {}", judged.row);
    }
    let per_second = family.iter().map(|judged| judged.per_second(window)).sum();
    growth_is(case, found, (bytes, per_second, live), window);
    who_is(case, found, pid, held(family, pid, window), leader.evidence.holders());
    // The call site with most bytes is named, alone or behind the one that names the object.
    let sentence = found["sentence"].as_str().unwrap();
    let places = [", at ", " of it at "].map(|before| sentence.rsplit_once(before).map(|(_, place)| place));
    let is_named = |place: &str| place.split([' ', '.', ';']).next() == function.split('.').next();
    assert!(places.into_iter().flatten().any(is_named), "{name}: {function}: {found:#}");
}

/// Bytes, rate and share of a finding of growth, also on the screen.
fn growth_is(case: &Case<'_>, found: &Value, (bytes, per_second, live): (u64, u64, u64), window: Window) {
    assert_eq!(
        (&found["bytes"], &found["bytes_per_second"]),
        (&bytes.into(), &per_second.into()),
        "{}",
        case.name
    );
    case.has_share(found, bytes, live);
    let over_all = per_second as f64 * window.length as f64 / 1e9;
    let at_stake = 100.0 * over_all.max(bytes as f64) / live.max(1) as f64;
    let stated = found["at_stake_percent"].as_f64().unwrap();
    assert!((stated - at_stake.min(100.0)).abs() < 1e-6, "{}: {at_stake}: {found:#}", case.name);
    let [second, hour] = [1, 3_600].map(|seconds| grouped(per_second * seconds));
    let amounts = format!("by {second} bytes/s ({hour} bytes an hour)");
    assert!(case.screen.contains(&amounts), "{}: {amounts}: {}", case.name, case.screen);
}

/// The task that the sentence names has that part of the whole; one of many is not named.
fn who_is(case: &Case<'_>, found: &Value, pid: i64, (part, whole): (u64, u64), tasks: usize) {
    let sentence = found["sentence"].as_str().unwrap();
    if part * 10 < whole {
        let words = format!(", by {} tasks, at most ", grouped(tasks as u64));
        return assert!(sentence.contains(&words), "{}: {words}: {sentence}", case.name);
    }
    let named =
        sentence.split(", ").find_map(|words| words.strip_suffix(&format!("-{pid}"))?.split_once(" by "));
    let (share, _) =
        named.unwrap_or_else(|| panic!("{}: {pid} has {part} of {whole}: {sentence}", case.name));
    let parts = [" of it", " of the slab memory"].into_iter();
    let share = parts
        .filter_map(|part| share.strip_suffix(part))
        .next()
        .unwrap_or_else(|| panic!("{}: {sentence}", case.name));
    assert!(percent(share, part, whole), "{}: {part} of {whole}: {sentence}", case.name);
}

/// Names of migrate types that all kernels share.
const MIGRATE_TYPES: [&str; 3] = ["Unmovable", "Movable", "Reclaimable"];

fn pages(case: &Case<'_>, leaks: &Value, window: Window) {
    let mut kinds: HashMap<(&str, &str), Vec<&Lived>> = HashMap::new();
    for (number, life) in case.ledger.pages.iter().filter(|(_, life)| !life.is_slab) {
        let (name, migrate_type) = &case.seen.kinds[number];
        let migrate_type = MIGRATE_TYPES.get(*migrate_type as usize).copied().unwrap_or("other");
        kinds.entry((name, migrate_type)).or_default().push(life);
    }
    let rows = leaks["pages"].as_array().unwrap().iter();
    let known = rows.filter(|row| MIGRATE_TYPES.contains(&row["cache"].as_str().unwrap()));
    let mut rows: Vec<Judged<'_>> = known
        .map(|row| {
            let lives = &kinds[&(row["symbol"].as_str().unwrap(), row["cache"].as_str().unwrap())];
            judged(case, row, lives.clone(), window)
        })
        .collect();
    for judged in &rows {
        let is_reclaimable = ["reclaimable", "user_memory"]
            .contains(&judged.row["verdict"].as_str().unwrap())
            && (judged.row["cache"] != "Unmovable" || is_of_device(judged.row["symbol"].as_str().unwrap()));
        let is_right = judged.grows() == judged.evidence.grows() || is_reclaimable;
        assert!(is_right, "{}: {:?}: {}", case.name, judged.evidence, judged.row);
    }
    if !leaks["page_callers"].as_array().unwrap().is_empty() {
        rows = page_callers(case, leaks, window);
    }
    page_findings(case, &rows, window);
}

/// True for the flags of blocks of a device that are kept: those of memory of users, and a folio.
fn is_of_device(kind: &str) -> bool {
    ["GFP_USER", "__GFP_HARDWALL"].iter().any(|flag| kind.contains(flag)) && kind.contains("__GFP_COMP")
}

/// Where stacks were recorded, call sites are found instead of kinds: those that grow.
fn page_callers<'r>(case: &Case<'_>, leaks: &'r Value, window: Window) -> Vec<Judged<'r>> {
    let rows = leaks["page_callers"].as_array().unwrap().iter();
    let growing = rows.filter(|row| row["verdict"].as_str().unwrap().starts_with("grows"));
    let rows: Vec<Judged<'_>> = growing
        .filter(|row| row["call_site"].is_string())
        .map(|row| judged(case, row, pages_of(case, hex(&row["call_site"])), window))
        .collect();
    for judged in &rows {
        assert!(judged.evidence.grows(), "{}: {:?}: {}", case.name, judged.evidence, judged.row);
    }
    rows
}

/// Pages whose stack has that address; objects on slabs have their own rows.
fn pages_of<'c>(case: &'c Case<'_>, address: u64) -> Vec<&'c Lived> {
    let has = |number: &usize| case.seen.stacks.get(number).is_some_and(|stack| stack.contains(&address));
    case.ledger
        .pages
        .iter()
        .filter(|(number, life)| has(number) && !life.is_slab)
        .map(|(_, life)| life)
        .collect()
}

/// Pages that grow in no family: one finding for each task that allocated most of a row.
fn page_findings(case: &Case<'_>, rows: &[Judged<'_>], window: Window) {
    let mut groups: Vec<(Option<i64>, Vec<&Judged<'_>>)> = Vec::new();
    let mut growing: Vec<&Judged<'_>> =
        rows.iter().filter(|judged| judged.grows() && judged.row["family"].is_null()).collect();
    growing.sort_by_key(|judged| std::cmp::Reverse(judged.evidence.old_bytes));
    for judged in growing {
        let evidence = &judged.evidence;
        let pid = evidence.holder();
        let is_its = pid != 0 && evidence.tasks[&pid].1 * 2 >= evidence.old_bytes;
        match groups.iter_mut().find(|(of, _)| is_its && *of == Some(pid)) {
            Some((_, rows)) => rows.push(judged),
            None => groups.push((is_its.then_some(pid), vec![judged])),
        }
    }
    let live = case.ledger.numbers.get("pages.pages_live").copied().unwrap_or(0) * case.target.page_size;
    let bytes_of = |rows: &[&Judged<'_>]| -> u64 { rows.iter().map(|one| one.evidence.old_bytes).sum() };
    groups.retain(|(_, rows)| is_large(bytes_of(rows), live));
    let found = case.of_kind("page_growth");
    let are_all = case.document["findings"].as_array().unwrap().len() < 10;
    // Children of one task are one finding.
    let are_known = groups.iter().all(|(pid, _)| pid.is_some());
    assert!(found.len() == groups.len() || !are_all || !are_known, "{}: {found:#?}", case.name);
    for (pid, rows) in groups.iter().filter_map(|(pid, rows)| Some(((*pid)?, rows))) {
        let bytes = bytes_of(rows);
        let found = found.iter().find(|found| found["bytes"] == bytes);
        let found = found.unwrap_or_else(|| panic!("{}: {bytes} by {pid}", case.name));
        let per_second = rows.iter().map(|one| one.per_second(window)).sum();
        growth_is(case, found, (bytes, per_second, live), window);
        who_is(case, found, pid, held(rows, pid, window), rows[0].evidence.holders());
        let symbol = rows[0].row["symbol"].as_str().unwrap();
        let place = match rows[0].row["call_site"].is_null() {
            true => match rows[0].row["use"].as_str().unwrap() {
                "kernel" | "other user memory" | "unknown use" => {
                    format!("as {symbol} ({})", rows[0].row["cache"].as_str().unwrap())
                }
                name => format!("as {name}, {}", symbol.split(',').next().unwrap()),
            },
            false => format!("at {}", symbol.split('+').next().unwrap()),
        };
        assert!(found["sentence"].as_str().unwrap().contains(&place), "{}: {place}: {found:#}", case.name);
    }
}
