//! Decoded operations of a selection: what a pass reads, and what reports read that have rules of their own.
//!
//! The selector and decoder of a pass are prepared here. `operations` gives the decoded operations without the ledger
//! to `reports/account` and `reports/compat`, which account by the rules of other tools.

use std::collections::HashMap;

use kmt_format::kernel::KernelVersion;

use super::condition::Key;
use super::filter::Selector;
use super::selection::{Needs, Request, Selection};
use super::{allocations_tell_caches, cores, usual_caches};
use crate::collect::Collectors;
use crate::stream::decode::Decoder;
use crate::stream::load::Loader;
use crate::stream::{Interests, Interner, Item, NewItems, Op, Select, pipe};
use crate::trace::cgroups::TaskStates;
use crate::trace::faults::Faults;
use crate::trace::session::Session;

/// A selection prepared for a pass.
pub(super) fn selector<'s, 'd>(session: &'s Session<'d>, selection: &'s Selection) -> Selector<'s, 'd> {
    let usual = if selection.has_term_on(Key::Cache) && !allocations_tell_caches(session.trace) {
        usual_caches(session, selection.threads)
    } else {
        HashMap::new()
    };
    Selector::new(session, selection, usual)
}

/// A decoder of what the request and its selection need.
pub(super) fn decoder<'t>(
    session: &'t Session<'_>,
    request: &Request<'_>,
    interests: Interests,
    select: Select<'t>,
) -> Decoder<'t> {
    let Request { selection, needs, .. } = request;
    let names_cgroups = needs.contains(Needs::CGROUPS) || selection.has_term_on(Key::Cgroup);
    let names_tasks = names_cgroups || needs.contains(Needs::TASK_NAMES) || selection.is_about_names();
    let names_flags = needs.contains(Needs::FLAG_NAMES)
        || [Key::Gfp, Key::Cache].iter().any(|key| selection.has_term_on(*key));
    Decoder::new(session.trace, interests)
        .with_texts_max(session.env.limits.texts)
        .with_task_states(TaskStates {
            names: names_tasks.then(|| session.names()),
            cgroups: names_cgroups.then(|| session.cgroups()),
        })
        .with_selection(select)
        .with_flag_texts(names_flags.then(|| session.flag_env()), nowait_is_silent(session))
}

/// True if `GFP_NOWAIT` stands for __GFP_NOWARN too, as from 6.8 on, and the bits do not show it: those of imported text
/// are made from the names of all kernels.
fn nowait_is_silent(session: &Session<'_>) -> bool {
    let is_text = session.trace.metadata().text("source") == Some("ftrace text");
    is_text && session.version().is_none_or(|version| version >= KernelVersion::new(6, 8))
}

/// First time whose events are looked at. Before it a ring buffer has those of some CPUs only: an object whose free was
/// overwritten would seem to live on. A window that begins there is looked at as a whole.
pub(super) fn first_whole(session: &Session<'_>, window: (u64, u64)) -> u64 {
    session.losses.window_begin().filter(|begin| window.0 >= *begin).unwrap_or(0)
}

/// Operations without the first ones, as far as they are before a time.
pub(super) fn since(ops: &[Op], begin: u64) -> &[Op] {
    let before = ops.iter().take_while(|op| op.time < begin).count();
    ops.get(before..).unwrap_or_default()
}

/// Calls `enter` with the operations of slab and pages until the end of the selected time, in the kernel's order, and
/// with the items that they number first: for accounts by other rules than the ledger's. Where a clock steps back, later
/// ones come too. Returns the faults of the file.
pub fn operations(
    session: &Session<'_>,
    selection: &Selection,
    mut enter: impl FnMut(&[Op], NewItems),
) -> Faults {
    let begin = first_whole(session, selection.bounds(session));
    let enter = |ops: &[Op], new_items: NewItems| enter(since(ops, begin), new_items);
    let mut selector = selector(session, selection);
    let mut select = |interner: &Interner, item: Item<'_>| selector.selects(interner, item);
    let collectors = Collectors::default();
    let request = Request::new(selection, &collectors);
    let last = selection.bounds(session).1;
    let decoder = decoder(session, &request, Interests::empty(), &mut select);
    let threads = selection.threads.unwrap_or_else(cores);
    let (decoder, damages) = pipe::run(&Loader::new(session.trace, last), decoder, threads, last, enter);
    Faults::new(damages, decoder.interner.over())
}
