//! CSV and NDJSON of events, objects, call sites, and of the tables of any report.

use super::objects::{Resolver, lives, next};
use super::output::Export;
use super::rows::{CALL_SITE, ColumnKind, ExportCell, OBJECT, RowsLeft, call_sites, object};
use super::table_writer::Writer;
use super::{ExportOf, ExportOptions, ReportTable, events, report_trust};
use crate::collect::Collectors;
use crate::failure::{Outcome, Result};
use crate::pass::{self, Needs, Request};
use crate::reports::column_order::ColumnOrder;
use crate::reports::common::basis::Input;
use crate::reports::common::trust;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Writes one table.
pub fn run(session: &Session<'_>, options: &ExportOptions, of: &ExportOf) -> Result<Outcome> {
    let out = Export::open(&options.target(), &session.env)?;
    let mut writer = Writer::new(out, options.format);
    let mut left = RowsLeft(options.rows_max());
    let faults = match of {
        ExportOf::Events => {
            trust::report_of_recording(session, &options.selection);
            writer.head(&names(&events::EVENT))?;
            let mut write =
                |row: Vec<ExportCell>| Ok(left.take() && writer.row(&events::EVENT, &row)? && left.0 > 0);
            events::each(session, &options.selection, &mut write)?
        }
        ExportOf::Objects => {
            let mut lives = lives(session, &options.selection, &options.target(), Input::SlabAllocs)?;
            report_trust(session, &options.selection, &lives.result);
            let resolver = Resolver::new(session, &lives.result);
            writer.head(&names(&OBJECT))?;
            while let Some(life) = next(&mut lives.objects)? {
                if !left.take() || !writer.row(&OBJECT, &object(&life, &lives.result, &resolver))? {
                    break;
                }
            }
            lives.result.faults
        }
        ExportOf::CallSites => {
            let collectors = Collectors::default();
            let request = Request::new(&options.selection, &collectors).with(Needs::CACHE_NAMES);
            let result = pass::run(session, &request);
            report_trust(session, &options.selection, &result);
            let resolver = Resolver::new(session, &result);
            writer.head(&names(&CALL_SITE))?;
            for row in call_sites(&result, &resolver, session.losses.any()).into_iter().take(left.0) {
                writer.row(&CALL_SITE, &row)?;
            }
            result.faults
        }
        ExportOf::Report(report) => {
            let table = ReportTable {
                report: &**report,
                name: options.table.as_deref(),
                lines: options.lines,
                order: &ColumnOrder::default(),
            };
            return table.write(session, &options.selection, writer);
        }
    };
    writer.out.finish()?;
    Ok(outcome(session, &faults))
}

fn names(columns: &[(&'static str, ColumnKind)]) -> Vec<String> {
    columns.iter().map(|(name, _)| (*name).to_owned()).collect()
}
