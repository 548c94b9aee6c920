//! Changes since an earlier file.

use kmt_common::shell;

use super::ROWS;
use crate::pass::selection::Selection;
use crate::render::look::Look;
use crate::render::screen::Screen;
use crate::reports::column_order::ColumnOrder;
use crate::reports::diff;
use crate::reports::output::{Output, Show};
use crate::trace::names::SizeClasses;
use crate::trace::session::Session;

/// The screen of a comparison of two files, in the same selection. Call sites are matched exactly where both kernels are
/// of one build.
pub fn changes(before: &Session<'_>, after: &Session<'_>, selection: &Selection) -> Screen {
    let build = diff::build(before);
    let is_one_build = build.is_some() && build == diff::build(after);
    let naming =
        diff::Naming { by: diff::DiffKey::CallSite, exact: is_one_build, classes: SizeClasses::default() };
    let profile = |session: &Session<'_>| diff::compute(session, selection, naming).0;
    let names = [&before.path, &after.path].map(|path| path.display().to_string());
    let look = Look { width: Look::NO_LIMIT, wide: true, ..Look::default() };
    let options = diff::DiffOptions {
        arguments: [&before.path, &after.path].map(|path| shell::path(path)).to_vec(),
        names,
        by: diff::DiffKey::CallSite,
        per_second: None,
        rates: false,
        all: false,
        fail_over: None,
        output: Output { limit: Some(ROWS), json: false, show: Show { look, pager: false } },
        order: ColumnOrder::default(),
        by_function: !is_one_build,
    };
    let (mut screen, cautions) = diff::screen(&[profile(before)], &[profile(after)], &options);
    cautions.into_iter().for_each(|caution| screen.note(caution));
    screen
}
