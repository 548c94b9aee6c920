//! Layouts to simulate: those of the command line, and those that a first pass over the trace suggests.

use super::WhatIf;
use crate::collect::replay::{Layout, best_classes};
use crate::collect::{Collectors, Replay};
use crate::pass::{self, Request};
use crate::reports::common::Context;
use crate::reports::common::labels::Labels;
use crate::stream::Api;

/// Call sites that a first pass over the trace found.
#[derive(Debug, Default)]
pub struct FoundLayout {
    /// Call sites whose objects are held for a large part of the window.
    pub long_lived: Vec<String>,
    /// Call sites whose objects get their own slabs.
    pub split: Vec<String>,
}

/// A call site is long-lived if its objects are held for this share of the window on average, in percent.
const LONG_LIVED_PERCENT: u128 = 10;

/// Layouts that need no first pass: size classes that were proposed for mm/slab_common.c.
pub fn defaults() -> Vec<Layout> {
    let added = |name: &str, added: &[u64]| Layout {
        name: name.to_owned(),
        added: added.to_vec(),
        ..Layout::default()
    };
    vec![
        added("with 160, 320, 640, 1280", &[160, 320, 640, 1280]),
        Layout { name: "without 96, 192".to_owned(), dropped: vec![96, 192], ..Layout::default() },
    ]
}

/// Layouts of the command line, and those that a first pass over the trace suggests.
pub fn asked(context: &Context<'_, '_>, options: &WhatIf) -> (Vec<Layout>, FoundLayout) {
    let (first, last) = context.selection.span(context.session);
    let mut collectors = Collectors::default();
    let replay = collectors.add(Replay { layouts: Vec::new(), end: last });
    let result = pass::run(context.session, &Request::new(context.selection, &collectors));
    let replay = result.get(replay);
    let labels = Labels::new(context.session);
    let mut layouts = Vec::new();
    let mut found = FoundLayout::default();
    if !(options.add.is_empty() && options.drop.is_empty()) {
        let mut names = Vec::new();
        let list = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        if !options.add.is_empty() {
            names.push(format!("with {}", list(&options.add)));
        }
        if !options.drop.is_empty() {
            names.push(format!("without {}", list(&options.drop)));
        }
        let mut added = options.add.clone();
        added.sort_unstable();
        let (name, dropped) = (names.join(", "), options.drop.clone());
        layouts.push(Layout { name, added, dropped, ..Layout::default() });
    }
    if let Some(regex) = &options.split {
        let mut layout = Layout { name: format!("{} apart", regex.as_str()), ..Layout::default() };
        for number in 0..result.balance.callers.len() as u32 {
            let (api, _, name) = labels.caller(&result, number);
            if api == Api::Kmalloc && regex.is_match(&name) {
                layout.apart.insert(number);
                found.split.push(name.into());
            }
        }
        layouts.push(layout);
    }
    let mut requests: Vec<(u64, u64, u128)> =
        replay.requests.iter().map(|(&(req, alloc), r)| (req, alloc, r.held)).collect();
    requests.sort_unstable();
    let best = best_classes(&requests, options.best.into());
    if !best.is_empty() {
        let list: Vec<String> = best.iter().map(u64::to_string).collect();
        let name = format!("with {} (the best {})", list.join(", "), best.len());
        layouts.push(Layout { name, added: best, ..Layout::default() });
    }
    let length = u128::from(last.saturating_sub(first));
    let mut apart = Layout { name: "long-lived apart".to_owned(), ..Layout::default() };
    for (number, caller) in (0u32..).zip(&replay.callers) {
        let is_long =
            caller.allocs > 0 && caller.held / LONG_LIVED_PERCENT >= length * u128::from(caller.allocs) / 100;
        if is_long {
            apart.apart.insert(number);
            found.long_lived.push(labels.caller(&result, number).2.into());
        }
    }
    if !apart.apart.is_empty() {
        layouts.push(apart);
    }
    (layouts, found)
}
