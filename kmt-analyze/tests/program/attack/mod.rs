//! Attacks on anonymized files, by somebody who has the file, the same kernel's System.map and its call sites.
//!
//! `KMT_ATTACK_RUNS=200 cargo test --release -p kmt-analyze --test program attack -- --nocapture` is the whole test, and
//! `KMT_ATTACK_FILES=a.kmt:b.kmt` has it attack files of real captures too.

mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use self::view::{BLOCK, View};
use crate::support::files::{Scratch, data, run, stderr};

/// What x86-64 kernels are linked to start at.
const LINKED: u64 = 0xffff_ffff_8100_0000;
/// Room that x86-64 has for the slide.
const SLIDES: u64 = 1 << 30;
/// Step of slides.
const SLIDE_STEP: u64 = 2 << 20;

/// What is true, and what anybody has: the kernel's link addresses.
struct Truth {
    view: View,
    slide: Option<u64>,
    /// By name, where System.map has it.
    linked: BTreeMap<Vec<u8>, u64>,
    /// Addresses of the original's events.
    words: BTreeSet<u64>,
}

impl Truth {
    fn of(path: &Path) -> Self {
        let view = View::of(path);
        let start = view.symbol(b"_text").or_else(|| view.symbol(b"_stext"));
        let slide =
            start.and_then(|start| start.checked_sub(LINKED)).filter(|s| *s < SLIDES && view.long_size == 8);
        let image =
            view.symbols.iter().filter(|s| slide.is_some() && s.0 >= LINKED && s.0 < 0xffff_ffff_c000_0000);
        let linked = image.map(|(address, _, name)| (name.clone(), address - slide.unwrap_or(0))).collect();
        let addresses = view.sites.iter().chain(&view.objects).copied();
        // Small numbers stand for much else.
        let words = addresses.filter(|&a| a > 1 << 32).collect();
        Self { view, slide, linked, words }
    }
}

/// A finding: what an attack got right.
#[derive(Debug, Default, Clone, Copy)]
struct Found {
    slides: usize,
    blocks: usize,
}

/// The most frequent value.
fn mode(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    values.for_each(|v| *counts.entry(v).or_default() += 1);
    counts.into_iter().max_by_key(|&(_, n)| n).map(|(v, _)| v)
}

/// Claims of the slide, by attack.
fn slide_claims(view: &View, truth: &Truth) -> Vec<(&'static str, u64)> {
    let mut claims = Vec::new();
    // Named functions, minus where they are linked.
    let named = || {
        let linked = |s: &(u64, u64, Vec<u8>)| Some(s.0.wrapping_sub(*truth.linked.get(&s.2)?));
        view.symbols.iter().filter_map(linked)
    };
    claims.extend(mode(named()).map(|slide| ("functions", slide)));
    claims.extend(mode(named()).map(|slide| ("functions, within the room for slides", slide % SLIDES)));
    let stepped = |slide: u64| slide % SLIDES / SLIDE_STEP * SLIDE_STEP;
    claims.extend(mode(named()).map(|slide| ("functions, in steps", stepped(slide))));
    // Call sites, whatever their names: the distance to all call sites of the kernel that has most votes.
    let known: BTreeSet<u64> = truth.view.sites.iter().map(|s| s - truth.slide.unwrap_or(0)).collect();
    let sites: BTreeSet<u64> = view.sites.iter().copied().collect();
    let votes = sites.iter().flat_map(|site| known.iter().map(move |k| site.wrapping_sub(*k) % SLIDES));
    claims.extend(mode(votes).map(|slide| ("distances of call sites", slide)));
    // Any word of the file that looks like an address of the image.
    let image = 0xffff_ffff_8000_0000..0xffff_ffff_c000_0000;
    let linked: BTreeSet<u64> = truth.linked.values().copied().chain(known.iter().copied()).collect();
    let words = view.words().into_iter().filter(|w| image.contains(w));
    let votes = words.flat_map(|w| linked.iter().take(500).map(move |l| w.wrapping_sub(*l)));
    claims.extend(mode(votes.filter(|s| s % SLIDE_STEP == 0 && *s < SLIDES)).map(|slide| ("words", slide)));
    claims
}

/// Claims of blocks, by attack: where it is in the file, where it was.
fn block_claims(view: &View) -> Vec<(&'static str, BTreeMap<u64, u64>)> {
    let used = view.blocks();
    let mut sorted = used.clone();
    sorted.sort_unstable();
    // Memory of a machine starts below 2 GiB, and /proc/zoneinfo tells how much there is.
    let spanned = view.files.iter().flat_map(|f| f.lines()).filter_map(|l| l.trim().strip_prefix("spanned"));
    let spanned = spanned.filter_map(|n| n.trim().parse::<u64>().ok()).max().unwrap_or(1 << 19);
    let mut claims = vec![("as they are", used.iter().map(|&b| (b, b)).collect())];
    // One distance for all, a multiple of 1 GiB, or of a block.
    for (name, step) in [("moved by 1 GiB steps", 256), ("moved by block steps", 1)] {
        let first = sorted.first().copied().unwrap_or(0) / step * step;
        let fits = sorted.last().is_some_and(|last| last - first <= spanned / BLOCK + 256);
        if fits {
            claims.push((name, used.iter().map(|&b| (b, b - first)).collect()));
        }
    }
    let rank = |base: u64| move |(i, &b): (usize, &u64)| (b, base + i as u64);
    claims.push(("ranks", sorted.iter().enumerate().map(rank(0)).collect()));
    claims.push(("order of first use", used.iter().enumerate().map(rank(0)).collect()));
    let top = spanned / BLOCK;
    let down = |(i, &b): (usize, &u64)| (b, top.saturating_sub(i as u64));
    claims.push(("order of first use, downwards", used.iter().enumerate().map(down).collect()));
    // Objects on pages: the direct map starts at a multiple of 1 GiB, so low bits of addresses are those of frames.
    let heap: BTreeSet<u64> = view.objects.iter().map(|o| o >> 22).collect();
    claims.push(("low bits of objects", heap.iter().map(|&h| (h & 0x3ff_ffff, h % 256)).collect()));
    claims
}

/// Blocks in the file, and where each really was: only to judge claims.
fn real_blocks(truth: &Truth, view: &View) -> BTreeMap<u64, u64> {
    let frames = view.frames.iter().zip(&truth.view.frames).map(|(new, old)| (new / BLOCK, old / BLOCK));
    frames.collect()
}

/// Objects' 4 MiB in the file, and the low bits that the frames of them really have within 1 GiB.
fn real_heap(truth: &Truth, view: &View) -> BTreeMap<u64, u64> {
    let objects = view.objects.iter().zip(&truth.view.objects).filter(|(_, old)| **old > 4096);
    objects.map(|(new, old)| (new >> 22 & 0x3ff_ffff, old >> 22 & 0xff)).collect()
}

/// Who names all of some blocks gets a few right by luck: of a permutation one on average, more than five in one of
/// 1,600 tries.
const LUCKY: usize = 5;

fn attack(truth: &Truth, view: &View, tally: &mut BTreeMap<&'static str, usize>) -> Found {
    let mut found = Found::default();
    for (name, slide) in slide_claims(view, truth) {
        if truth.slide == Some(slide) {
            found.slides += 1;
            *tally.entry(name).or_default() += 1;
        }
    }
    let (frames, heap) = (real_blocks(truth, view), real_heap(truth, view));
    let mut all_claims = block_claims(view);
    // Who knows from elsewhere where one block was must not learn of the others.
    if let Some((known, old)) = frames.first_key_value() {
        let others = frames.keys().filter(|block| *block != known);
        let claims = others.map(|&block| (block, block.wrapping_sub(*known).wrapping_add(*old))).collect();
        all_claims.push(("one block is known", claims));
    }
    for (name, claims) in all_claims {
        let real = if name == "low bits of objects" { &heap } else { &frames };
        let right = claims.iter().filter(|(new, old)| real.get(new) == Some(old)).count();
        if right > LUCKY || (right > 1 && right * 2 > claims.len()) {
            found.blocks = found.blocks.max(right);
            *tally.entry(name).or_default() += 1;
        }
    }
    // An address that was: any at all is too many.
    let left = view.words().iter().filter(|word| truth.words.contains(word)).count();
    if left > 0 {
        found.slides += 1;
        *tally.entry("addresses that are left").or_default() += 1;
    }
    if view.files.iter().any(|f| f.contains("start_pfn:")) {
        found.blocks += 1;
        *tally.entry("bounds of zones").or_default() += 1;
    }
    found
}

/// Keys that occur once, with their values.
fn once<V>(pairs: impl Iterator<Item = (u64, V)>) -> BTreeMap<u64, V> {
    let mut all: BTreeMap<u64, Vec<V>> = BTreeMap::new();
    pairs.for_each(|(key, value)| all.entry(key).or_default().push(value));
    let single = |(key, mut values): (u64, Vec<V>)| (values.len() == 1).then(|| Some((key, values.pop()?)));
    all.into_iter().filter_map(single).flatten().collect()
}

/// Functions that distances, sizes and order identify: right ones, of all.
fn identified(truth: &Truth, view: &View) -> (usize, usize) {
    let by_site: BTreeMap<u64, u64> =
        view.sites.iter().copied().zip(truth.view.sites.iter().copied()).collect();
    let name =
        |site: u64| truth.view.function(site).and_then(|f| truth.view.symbols.get(f)).map(|s| s.2.as_slice());
    let real: BTreeMap<u64, &[u8]> =
        by_site.iter().filter_map(|(&new, &old)| Some((new, name(old)?))).collect();
    let functions: BTreeSet<&[u8]> = real.values().copied().collect();
    let mut right: BTreeSet<&[u8]> = BTreeSet::new();
    let known: BTreeSet<u64> = truth.view.sites.iter().copied().collect();
    // One distance for all.
    let votes = by_site.keys().flat_map(|site| known.iter().map(move |k| site.wrapping_sub(*k)));
    let distance = mode(votes).unwrap_or(0);
    let claim = |site: u64| {
        name(site.wrapping_sub(distance)).filter(|_| known.contains(&site.wrapping_sub(distance)))
    };
    right.extend(real.iter().filter(|(site, real)| claim(**site) == Some(**real)).map(|(_, real)| *real));
    // Distances between neighbours, and sizes, that occur once in the kernel and once in the file.
    let pairs = |sites: &BTreeSet<u64>| {
        let sites: Vec<u64> = sites.iter().copied().collect();
        once(sites.windows(2).map(|w| (w[1] - w[0], w[0])))
    };
    let unique = pairs(&known);
    for (distance, site) in pairs(&by_site.keys().copied().collect()) {
        let only = unique.get(&distance).and_then(|&only| name(only));
        right.extend(only.filter(|name| real.get(&site) == Some(name)));
    }
    let sizes = once(truth.view.symbols.iter().map(|s| (s.1, s.2.as_slice())));
    for (size, address) in once(view.symbols.iter().map(|s| (s.1, s.0))) {
        let of = real.range(address..).next().map(|(_, name)| *name);
        right.extend(sizes.get(&size).copied().filter(|name| of == Some(*name)));
    }
    // The order of addresses, as that of the kernel's functions in use.
    let mut order: BTreeMap<u64, &[u8]> = BTreeMap::new();
    for site in &known {
        order.extend(
            truth.view.function(*site).and_then(|f| truth.view.symbols.get(f)).map(|s| (s.0, s.2.as_slice())),
        );
    }
    let mut seen = BTreeSet::new();
    let new_order: Vec<&[u8]> = real.values().copied().filter(|name| seen.insert(*name)).collect();
    let in_order = order.values().zip(&new_order).filter(|(old, new)| old == new).map(|(old, _)| *old);
    let in_order: Vec<&[u8]> = in_order.collect();
    if in_order.len() > LUCKY {
        right.extend(in_order);
    }
    (right.len(), functions.len())
}

fn made(options: &[&str], key: &[String], file: &Path, output: &Path) -> View {
    let output_text = output.to_str().unwrap();
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let done = run(&[&["anonymize", "--force", "-o", output_text], options, &key].concat(), file);
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", stderr(&done));
    View::of(output)
}

/// Options of each run: as many with fresh keys as are asked for, or a few that are the same every time.
fn runs() -> Vec<Vec<String>> {
    match std::env::var("KMT_ATTACK_RUNS").ok().and_then(|n| n.parse().ok()) {
        Some(runs) => vec![Vec::new(); runs],
        None => (1..=5).map(|seed: u64| vec!["--seed".to_owned(), seed.to_string()]).collect(),
    }
}

/// Captures of the repository, and those that are named.
fn victims(scratch: &Scratch) -> Vec<PathBuf> {
    let names = ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"];
    let mut files: Vec<PathBuf> = names
        .iter()
        .map(|name| {
            let file = scratch.convert(&data(name));
            let kept = scratch.0.join(format!("{name}.kmt"));
            fs::rename(file, &kept).unwrap();
            kept
        })
        .collect();
    let more = std::env::var("KMT_ATTACK_FILES").unwrap_or_default();
    files.extend(more.split(':').filter(|f| !f.is_empty()).map(PathBuf::from));
    files
}

#[test]
fn an_attacker_finds_no_slide_and_no_block_of_frames() {
    let scratch = Scratch::new();
    let runs = runs();
    let mut failed = Vec::new();
    for file in victims(&scratch) {
        let truth = Truth::of(&file);
        assert!(truth.view.frames.len() > 100 && truth.view.sites.len() > 100, "{}", file.display());
        let mut tally = BTreeMap::new();
        let mut broken = 0;
        for key in &runs {
            let view = made(&[], key, &file, &scratch.0.join("anonymous.kmt"));
            let found = attack(&truth, &view, &mut tally);
            broken += usize::from(found.slides > 0 || found.blocks > 0);
        }
        println!("{}: {broken} of {} broken; by attack: {tally:?}", file.display(), runs.len());
        // A guess of the slide in steps of 2 MiB is right once in 512 runs.
        if broken * 100 > runs.len() && (runs.len() >= 100 || broken > 1) {
            failed.push(file);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn hidden_functions_are_not_told_by_distances() {
    let scratch = Scratch::new();
    let mut failed = Vec::new();
    for file in victims(&scratch) {
        let truth = Truth::of(&file);
        let (mut right, mut all) = (0, 0);
        for key in runs() {
            let view = made(&["--hide-symbols"], &key, &file, &scratch.0.join("anonymous.kmt"));
            let (found, of) = identified(&truth, &view);
            (right, all) = (right + found, all + of);
        }
        println!("{}: {right} of {all} functions identified", file.display());
        if all == 0 || right * 100 >= all {
            failed.push(file);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// The attacks themselves: on a file that is what it was they find everything.
#[test]
fn the_attacks_work_where_nothing_moved() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let truth = Truth::of(&file);
    let mut tally = BTreeMap::new();
    let found = attack(&truth, &truth.view, &mut tally);
    assert!(found.slides >= 4 && found.blocks > LUCKY, "{found:?} {tally:?}");
    let (right, all) = identified(&truth, &truth.view);
    assert!(right == all && all > 10, "{right} of {all}");
}
