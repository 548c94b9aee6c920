//! Reports that can stand alone or together: each declares what it needs of a pass, and makes its part of the page.

use serde_json::{Map, Value};

use super::basis::{Basis, Input};
use super::report::{About, emit};
use super::selection::{Selection, Wants, analyse_for, task_names};
use super::stated::Keys;
use crate::collect::Sinks;
use crate::failure::{Failure, Outcome, Result};
use crate::limits::ROWS_MAX;
use crate::pass;
use crate::render::text::escaped;
use crate::stream::Api;
use crate::trace::session::Session;

/// What a report is about.
pub struct Subject<'s, 'd> {
    /// The trace.
    pub session: &'s Session<'d>,
    /// What is counted.
    pub selection: &'s Selection,
    /// At most so many rows of each table.
    pub limit: usize,
}

/// What a report prints.
#[derive(Debug, Default)]
pub struct Page {
    /// Keys of the document.
    pub json: Map<String, Value>,
    /// The page.
    pub text: String,
}

impl Page {
    /// Made by what fills the document, and what makes the text.
    pub fn of(document: impl FnOnce(&mut Map<String, Value>), text: impl FnOnce() -> String) -> Self {
        let mut json = Map::new();
        document(&mut json);
        Self { json, text: text() }
    }
}

/// What a report needs of a pass besides its sinks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// Counts of all events by class and origin.
    pub event_counts: bool,
    /// Totals as ranges, where events were lost.
    pub ranges: bool,
}

/// A report.
pub trait Report {
    /// Its heading among others.
    fn title(&self) -> &'static str;
    /// Asks for what is to be collected.
    fn want(&self, subject: &Subject<'_, '_>, sinks: &mut Sinks) {
        let _ = (subject, sinks);
    }
    /// What it cannot do without.
    fn rests_on(&self) -> Input;
    /// Which conditions it can heed.
    fn keys(&self) -> Keys {
        Keys::Slab
    }
    /// Why it does not answer, if so.
    fn refuses(&self, subject: &Subject<'_, '_>, result: &pass::Result) -> Option<String> {
        Basis::of(subject.session, result).lacks(self.rests_on())
    }
    /// What else it needs.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// Makes its page of what it got.
    fn page(&self, subject: &Subject<'_, '_>, result: &mut pass::Result) -> Page;
}

/// Runs reports over one pass.
pub fn run(
    session: &Session<'_>,
    selection: &Selection,
    limit: Option<usize>,
    as_json: bool,
    reports: &[&dyn Report],
) -> Result<Outcome> {
    // Several reports heed what they know.
    let keys = if let [report] = reports { report.keys() } else { Keys::All };
    selection.check(session, reports.first().map_or("", |r| r.title()), keys)?;
    let subject = Subject { session, selection, limit: limit.unwrap_or(ROWS_MAX) };
    let sinks = || {
        let mut sinks = Sinks::default();
        reports.iter().for_each(|report| report.want(&subject, &mut sinks));
        sinks
    };
    let wants = Wants {
        sinks: &sinks,
        event_counts: reports.iter().any(|r| r.needs().event_counts),
        ranges: reports.iter().any(|r| r.needs().ranges),
    };
    let mut result = analyse_for(session, selection, &wants);
    let about = About { session, selection: Some(selection), keys };
    if let [report] = reports {
        if let Some(reason) = report.refuses(&subject, &result) {
            return refuse(&about, &result, as_json, report.title(), &reason);
        }
        let Page { json, text } = report.page(&subject, &mut result);
        return emit(&about, &result, as_json, |out| out.extend(json), || text);
    }
    let (mut whole, mut refused) = (Page::default(), Map::new());
    for report in reports {
        let key = report.title().replace([' ', '-'], "_");
        let (json, text) = match report.refuses(&subject, &result) {
            Some(reason) => {
                let text = format!("not answered: {reason}\n");
                refused.insert(key.clone(), reason.into());
                (Value::Null, text)
            }
            None => {
                let page = report.page(&subject, &mut result);
                (page.json.into(), page.text)
            }
        };
        whole.json.insert(key, json);
        whole.text.push_str(&format!("== {} ==\n\n{text}\n", report.title()));
    }
    if !refused.is_empty() {
        whole.json.insert("refused".into(), refused.into());
    }
    let Page { json, text } = whole;
    emit(&about, &result, as_json, |out| out.extend(json), || text)
}

/// A report that cannot answer: a document that says so, one line on standard error, exit code 1.
pub fn refuse(
    about: &About<'_, '_>,
    result: &pass::Result,
    as_json: bool,
    title: &str,
    reason: &str,
) -> Result<Outcome> {
    if as_json {
        let document = |out: &mut Map<String, Value>| drop(out.insert("refused".into(), reason.into()));
        emit(about, result, true, document, String::new)?;
    }
    Err(Failure::new(format!("{}: no {title}: {reason}", about.session.path.display())))
}

/// Names of addresses and tasks, for one report.
pub struct Labels<'s, 'd> {
    env: kmt_format::print::PrintEnv<'d>,
    tasks: std::collections::HashMap<i32, &'s [u8]>,
}

impl<'s, 'd> Labels<'s, 'd> {
    /// Of a trace.
    pub fn new(session: &'s Session<'d>) -> Self {
        Self { env: session.print_env(), tasks: task_names(session) }
    }

    /// A function and an offset in it, or the address.
    pub fn symbol(&self, address: u64) -> String {
        escaped(&self.env.symbol_with_offset(address))
    }

    /// A function alone.
    pub fn function(&self, address: u64) -> String {
        let name = self.symbol(address);
        match name.split_once("+0x") {
            Some((function, rest)) => match rest.split_once(' ') {
                Some((_, module)) => format!("{function} {module}"),
                None => function.to_owned(),
            },
            None => name,
        }
    }

    /// Name and number of a task.
    pub fn task(&self, pid: i32) -> String {
        let name = self.tasks.get(&pid).map_or("<...>".to_owned(), |c| escaped(c));
        format!("{name}-{pid}")
    }

    /// The call site and interface of that number.
    pub fn caller(&self, result: &pass::Result, number: u32) -> (Api, u64, String) {
        let (api, address) =
            result.balance.callers.get(number as usize).copied().unwrap_or((Api::Kmalloc, 0));
        (api, address, self.symbol(address))
    }

    /// The freeing site of that number.
    pub fn free_site(&self, result: &pass::Result, number: u32) -> (u64, String) {
        let address = result.interner.frees.get(number).map_or(0, |f| f.call_site);
        (address, self.symbol(address))
    }
}
