//! Growth in the longest time without losses, where growth of the whole recording cannot be judged.
//!
//! Objects whose frees were lost look like leaks, but what is born and freed in a time without losses is known. That time is a
//! pass of its own over the events of the file.

use serde::Serialize;

use super::Findings;
use super::finding::Finding;
use crate::collect::Collectors;
use crate::pass::selection::Selection;
use crate::pass::{self, Request};
use crate::render::screen::{CommandLine, Lead};
use crate::reports::common::basis::WholeTime;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::trace::time_range::TimeRange;

/// Growth in a part of the recording.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WholeTimeGrowth {
    /// The part, as `--time` takes it.
    pub time: String,
    /// `grows`, `none` or `not_judged`, as `growth` of the whole recording.
    pub growth: &'static str,
    /// Findings of growth, the fastest first.
    pub findings: Vec<Finding>,
    /// The verdict where nothing grows; `null`: something does.
    pub verdict: Option<String>,
}

impl WholeTimeGrowth {
    /// Growth in that time; `None`: a time or a moment is selected, or the time is too short.
    pub fn of(context: &ReportContext<'_, '_>, whole: &WholeTime) -> Option<Self> {
        let (session, given) = (context.session, context.selection);
        let is_all = given.time.is_none() && given.at.is_none();
        let time = whole.range();
        let range =
            TimeRange::parse(&time).ok().filter(|_| is_all && whole.can_judge_growth(session.unit()))?;
        let selection = Selection { time: Some(range), ..given.clone() };
        let part = Context { session, selection: &selection, limit: context.limit };
        let (findings, mut collectors) = (Findings::default(), Collectors::default());
        let handles = findings.collect(&part, &mut collectors);
        let analysis = pass::run(session, &Request::new(&selection, &collectors).with(findings.needs()));
        let rows = findings.compute(&ReportContext::new(&part, &analysis), &handles);
        let is_growth = |finding: &Finding| finding.growing.is_some();
        Some(Self {
            time,
            growth: rows.growth,
            findings: rows.findings.into_iter().filter(is_growth).collect(),
            verdict: rows.verdict,
        })
    }

    /// Sentences with the command that shows more.
    pub fn leads(&self, view: &View) -> Vec<Lead> {
        let of_time = |sentence: &str| format!("{}, where nothing is missing: {sentence}", self.time);
        let lead = |sentence: &str, command: &'static str| Lead {
            sentence: of_time(sentence),
            command: CommandLine::from(command).option("--time", &self.time),
        };
        let findings = self.findings.iter().map(|finding| lead(finding.said(view), finding.command));
        findings.chain(self.verdict.iter().map(|verdict| lead(verdict, "leaks"))).collect()
    }
}
