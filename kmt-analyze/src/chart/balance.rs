//! Accounts of memory over time: bands that add up to MemTotal, with what is in no account on top.
//!
//! Of an account whose amount is a range, a band has the least: the rest then is the largest possible.

use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg, html_text};
use super::timeline::{LEFT, PLOT, RIGHT, Scale, grid, names};
use crate::render::words::{counted, listed, size};
use crate::reports::timeline::{AccountAt, AccountLine, AccountTimes};
use crate::sort_rows::SortRows;
use crate::trace::accounts::{FREE_ACCOUNTS, REST, name_in_sentences};

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
    let total = times.amounts.iter().map(|at| at.total).max().unwrap_or(0);
    let most = (0..at.len()).map(sum).max().unwrap_or(0).max(total).max(1);
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
    total_line(&mut svg, &scale, &lines);
    names(&mut svg, labels);
    notes(times, frame);
    frame.trust.push(
        "Of accounts of which a part may be elsewhere, the least is drawn: in no account is at most this (docs/balance.md)."
            .to_owned(),
    );
    let end = frame.foot(&mut svg, HEAD + PLOT + 48.0);
    let about = format!("MemTotal by account, at {} readings of the kernel's counts", times.readings);
    svg.finish(WIDTH, end + MARGIN, title, &about)
}

/// A line at MemTotal, which changes where memory is added or removed.
fn total_line(svg: &mut Svg, scale: &Scale, lines: &[AccountLine<'_>]) {
    let at = lines.first().map_or(&[][..], |line| &line.at);
    let point = |at: &&AccountAt| format!("{:.1} {:.1}", scale.x(at.time as f64), scale.y(at.total as f64));
    let path: Vec<String> = at.iter().map(point).collect();
    let Some(first) = at.first() else { return };
    svg.add(format_args!("<path d=\"M{}\" class=\"axis\" fill=\"none\"/>\n", path.join("L")));
    let label = format!("MemTotal ({})", size(first.total));
    svg.text((LEFT + 4.0, scale.y(first.total as f64) - 4.0), "muted", Anchor::Start, &label);
}

/// Sentences below the picture: unknown accounts, and readings whose accounts are more than MemTotal.
fn notes(times: &AccountTimes, frame: &mut Frame) {
    if !times.unknown.is_empty() {
        let names: Vec<String> = times.unknown.iter().map(|key| name_in_sentences(key).to_owned()).collect();
        frame.trust.push(format!("Not in all readings, and so in no account: {}.", listed(&names)));
    }
    let negative = times.amounts.iter().filter(|at| at.account == REST && at.bytes < 0);
    let (number, least) = negative.fold((0u64, 0), |(number, least), at| (number + 1, at.bytes.min(least)));
    if number > 0 {
        let readings = counted(number, "reading", "readings");
        let bytes = size(least.unsigned_abs());
        frame.trust.push(format!(
            "In {readings} the accounts are more than MemTotal, by {bytes} at most: counts were read while they changed."
        ));
    }
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
    used.sort_rows_by_key(|(_, bytes)| std::cmp::Reverse(bytes.iter().max().copied()));
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
