//! Names that are too long for their column.
//!
//! `layout` calls it for the names of a column. Two names that become equal when they are cut are shortened elsewhere,
//! or get numbers, since equal names in a table would be taken for one thing. Widths are in columns of the terminal.

use std::collections::{HashMap, HashSet};

use super::wrap::{split_at, tail, width_of};

/// Stands for the characters that were left out.
const GAP: char = '…';

/// Shortens a name to `width` columns by leaving out its middle: `getname_fl…0x2b`.
///
/// The beginning gets two thirds of the room: it tells names apart; the end has the offset or the module.
pub fn shorten_middle(name: &str, width: usize) -> String {
    if width_of(name) <= width {
        return name.to_owned();
    }
    let room = width.saturating_sub(1);
    let end = room / 3;
    let (head, _) = split_at(name, room - end);
    format!("{head}{GAP}{}", tail(name, end))
}

/// Shortens a text to `width` columns by leaving out its end.
pub fn shorten_end(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let (head, _) = split_at(text, width.saturating_sub(1));
    format!("{}{GAP}", head.trim_end())
}

/// Shortens names to `width` columns; those that differ stay different: where `shorten` leaves out what tells them
/// apart, the part before that leaves.
pub fn shortened(names: &[&str], width: usize, shorten: fn(&str, usize) -> String) -> Vec<String> {
    let mut short: Vec<String> = names.iter().map(|name| shorten(name, width)).collect();
    let mut same: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, text) in short.iter().enumerate().filter(|(at, text)| text.as_str() != names[*at]) {
        same.entry(text).or_default().push(at);
    }
    let mut groups: Vec<Vec<usize>> = same.into_values().filter(|group| group.len() > 1).collect();
    groups.retain(|group| group.iter().any(|&at| names[at] != names[group[0]]));
    for group in groups {
        let of_group: Vec<&str> = group.iter().map(|&at| names[at]).collect();
        group.iter().zip(apart(&of_group, width, shorten)).for_each(|(&at, text)| short[at] = text);
    }
    short
}

/// Places that are tried where names differ.
const PLACES_MAX: usize = 16;

/// Names that are shortened to the same text, so that those that differ do so at a place that is shown; else numbered.
fn apart(names: &[&str], width: usize, shorten: fn(&str, usize) -> String) -> Vec<String> {
    let mut distinct = names.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mut places: Vec<usize> = distinct.windows(2).map(|pair| common(pair[0], pair[1])).collect();
    places.sort_unstable();
    places.dedup();
    let at_place = |place: usize| distinct.iter().map(|name| from(name, place, width)).collect::<Vec<_>>();
    let are_apart = |texts: &Vec<String>| texts.iter().collect::<HashSet<_>>().len() == texts.len();
    let numbered = || {
        let room = width.saturating_sub(4);
        (1..).zip(&distinct).map(|(number, name)| format!("{}#{number}", shorten(name, room))).collect()
    };
    let texts = places.into_iter().take(PLACES_MAX).map(at_place).find(are_apart).unwrap_or_else(numbered);
    let text_of = |name: &&str| distinct.binary_search(name).ok().and_then(|at| texts.get(at)).cloned();
    names.iter().map(|name| text_of(name).unwrap_or_else(|| shorten(name, width))).collect()
}

/// Characters that both begin with.
fn common(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// A name from a place on, behind its first characters.
fn from(name: &str, place: usize, width: usize) -> String {
    let head = width / 4;
    // Some characters before the place are shown: a word is recognised by its beginning.
    let start = place.saturating_sub(width / 4).max(head);
    let (begin, _) = split_at(name, head);
    let rest: String = name.chars().skip(start).collect();
    format!("{begin}{GAP}{}", shorten_end(&rest, width.saturating_sub(head + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_leaves_first() {
        assert_eq!(shorten_middle("getname_flags.part.0+0x2b", 16), "getname_fl…+0x2b");
        assert_eq!(shorten_middle("kfree+0x1", 9), "kfree+0x1");
        for width in 0..30 {
            assert!(shorten_middle("getname_flags.part.0+0x2b", width).chars().count() <= width.max(1));
            assert!(shorten_end("a list, of, names", width).chars().count() <= width.max(1));
        }
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(shorten_middle("日本語", 6), "日本語");
        assert_eq!(shorten_middle("日本語日本語", 8), "日本…語");
        assert_eq!(shorten_end("日本語日本語", 8), "日本語…");
        let (one, two) = ("日本語".repeat(9) + "一", "日本語".repeat(9) + "二");
        let short = shortened(&[&one, &two], 22, shorten_end);
        assert!(short[0] != short[1] && short[0].ends_with('一') && short[1].ends_with('二'), "{short:?}");
    }

    #[test]
    fn names_that_differ_stay_different() {
        let of = |names: &[&str], width| shortened(names, width, shorten_middle);
        let one = "a_function_with_a_long_name_one_of_two+0x2b";
        let two = "a_function_with_a_long_name_two_of_two+0x2b";
        assert_eq!(
            of(&[one, two, two, "kfree"], 22)[1..],
            ["a_fun…name_two_of_two…", "a_fun…name_two_of_two…", "kfree"]
        );
        for width in 8..50 {
            let short = of(&[one, two], width);
            assert!(short[0] != short[1] && short.iter().all(|s| s.chars().count() <= width), "{short:?}");
        }
        // Two places tell them apart.
        let many: Vec<String> = (0..9).map(|n| format!("{}{}{}", n / 3, "x".repeat(60), n % 3)).collect();
        let names: Vec<&str> = many.iter().map(|name| &name[..]).chain(["1"]).collect();
        let mut short = of(&names, 20);
        short.sort_unstable();
        short.dedup();
        assert_eq!(short.len(), 10, "{short:?}");
    }
}
