//! Accounts of memory over time: bands that add up to MemTotal, with what is in no account on top.
//!
//! Of an account whose amount is a range, a band has the least: the rest then is the largest possible.

use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::Svg;
use super::timeline::{LEFT, PLOT, RIGHT, Scale, grid, names};
use crate::html::html_text;
use crate::reports::timeline::{AccountAt, AccountLine, AccountTimes};
use crate::trace::accounts::{FREE_ACCOUNTS, REST};

/// Accounts with a band of their own, besides free memory and the rest.
const BANDS: usize = 7;
/// Classes of colours of free memory, of the rest, and of the sum of small accounts.
const FREE_COLOUR: &str = "d2";
const REST_COLOUR: &str = "d6";
const OTHERS_COLOUR: &str = "r7";

/// Amounts of a band at all times, in bytes.
struct Band {
    name: String,
    class: String,
    bytes: Vec<u64>,
}

/// The picture of accounts.
pub fn draw(times: &AccountTimes, frame: &mut Frame) -> String {
    let lines = times.lines();
    let at: Vec<u64> = lines.first().map_or(Vec::new(), |line| line.at.iter().map(|at| at.time).collect());
    let bands = bands(&lines);
    let sum = |step: usize| {
        bands
            .iter()
            .filter_map(|band| band.bytes.get(step))
            .fold(0u64, |sum, bytes| sum.saturating_add(*bytes))
    };
    let most = (0..at.len()).map(sum).max().unwrap_or(0).max(1);
    let (first, last) = (at.first().copied().unwrap_or(0), at.last().copied().unwrap_or(0));
    let scale = Scale { times: (first as f64, last as f64), bytes: (0.0, most as f64) };
    let mut svg = Svg::default();
    let title = "Memory by account over time";
    frame.head(&mut svg, title);
    let mut below = vec![0u64; at.len()];
    let mut labels = Vec::new();
    for band in &bands {
        let above: Vec<u64> =
            below.iter().zip(&band.bytes).map(|(below, bytes)| below.saturating_add(*bytes)).collect();
        area(&mut svg, &scale, &at, band, (&below, &above));
        let middle =
            (below.last().copied().unwrap_or(0) as f64 + above.last().copied().unwrap_or(0) as f64) / 2.0;
        labels.push((scale.y(middle), band.class.clone(), band.name.clone()));
        below = above;
    }
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    grid(&mut svg, &scale, (0, most), (first, last), frame);
    marks(&mut svg, &scale, &at);
    names(&mut svg, labels);
    frame.trust.push(
        "Of accounts of which a part may be elsewhere, the least is drawn: in no account is at most this (docs/balance.md)."
            .to_owned(),
    );
    let end = frame.foot(&mut svg, HEAD + PLOT + 48.0);
    let about = format!("MemTotal by account, at {} readings of the kernel's counts", times.readings);
    svg.finish(WIDTH, end + MARGIN, title, &about)
}

/// Bands from the bottom: the largest accounts, the sum of the others, free memory, the rest.
fn bands(lines: &[AccountLine<'_>]) -> Vec<Band> {
    let bytes = |line: &AccountLine<'_>| -> Vec<u64> {
        let least = |at: &&AccountAt| -> u64 {
            // The rest is the largest possible.
            let bytes = if at.account == REST { at.bytes } else { at.bytes_min.unwrap_or(at.bytes) };
            u64::try_from(bytes).unwrap_or(0)
        };
        line.at.iter().map(least).collect()
    };
    let is_free = |line: &&AccountLine<'_>| FREE_ACCOUNTS.contains(&line.account);
    let added = |name: &str, class: &str, of: Vec<Vec<u64>>| {
        let mut sums = vec![0u64; lines.first().map_or(0, |line| line.at.len())];
        for bytes in &of {
            sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
        }
        Band { name: name.to_owned(), class: class.to_owned(), bytes: sums }
    };
    let used = lines.iter().filter(|line| !is_free(line) && line.account != REST);
    let mut used: Vec<(&str, Vec<u64>)> = used.map(|line| (line.name, bytes(line))).collect();
    used.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.iter().max().copied()));
    used.retain(|(_, bytes)| bytes.iter().any(|bytes| *bytes > 0));
    let others = used.split_off(BANDS.min(used.len()));
    let own = used.into_iter().enumerate();
    let own = own.map(|(number, (name, bytes))| added(name, &format!("r{number}"), vec![bytes]));
    let mut bands: Vec<Band> = own.collect();
    if !others.is_empty() {
        let name = format!("{} other accounts", others.len());
        bands.push(added(&name, OTHERS_COLOUR, others.into_iter().map(|(_, bytes)| bytes).collect()));
    }
    bands.push(added("free", FREE_COLOUR, lines.iter().filter(is_free).map(bytes).collect()));
    let rest = lines.iter().filter(|line| line.account == REST).map(bytes).collect();
    bands.push(added("in no account", REST_COLOUR, rest));
    bands
}

/// The area between two heights; its numbers are with it.
fn area(svg: &mut Svg, scale: &Scale, at: &[u64], band: &Band, (below, above): (&[u64], &[u64])) {
    let point =
        |(time, bytes): (&u64, &u64)| format!("{:.1} {:.1}", scale.x(*time as f64), scale.y(*bytes as f64));
    let upper = at.iter().zip(above).map(point);
    let lower = at.iter().zip(below).rev().map(point);
    let path: Vec<String> = upper.chain(lower).collect();
    let values: Vec<String> = band.bytes.iter().map(u64::to_string).collect();
    let name = html_text(&band.name);
    svg.add(format_args!(
        "<path d=\"M{}Z\" class=\"{}\" data-name=\"{name}\" data-values=\"{}\"><title>{name}</title></path>\n",
        path.join("L"),
        band.class,
        values.join(" ")
    ));
}

/// Marks of the readings below the plot, if there is room for them.
fn marks(svg: &mut Svg, scale: &Scale, at: &[u64]) {
    let room = (WIDTH - LEFT - RIGHT) / 4.0;
    if (at.len() as f64) < room {
        at.iter().map(|time| scale.x(*time as f64)).for_each(|x| {
            svg.line((x, HEAD + PLOT), (x, HEAD + PLOT - 4.0), "axis");
        });
    }
}
