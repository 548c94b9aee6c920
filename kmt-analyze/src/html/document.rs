//! The page as a document: a fixed frame, the reports' screens, and the numbers for the script.
//!
//! The screens come from the reports of one pass, the numbers from `groups` and `details`, packed by `encode` within
//! limits of size. The policy in the page allows exactly the script and style that are compiled in, so that no text of
//! a trace can run. If the numbers are too many, there are fewer steps.

use std::collections::BTreeMap;

use serde::Serialize;

use super::details::Fact;
use super::encode::{base64, compressed, estimate, packed};
use super::groups::{RowGroup, SteppedRow};
use super::{PARTS, screen};
use crate::chart::svg::html_text;
use crate::collect::Steps;
use crate::pass::selection::Selection;
use crate::pass::sum_of;
use crate::render::screen::{Lead, Screen};
use crate::render::words;
use crate::reports::common::stated::Stated;
use crate::reports::common::trust::warnings;
use crate::reports::common::{ReportContext, View};
use crate::reports::report::Refusable;
use crate::trace::folded;

/// Script and style, made from `web/src`, and what the policy allows: exactly these.
const SCRIPT: &str = include_str!("../../web/dist/page.js");
const STYLE: &str = include_str!("../../web/dist/page.css");
const POLICY: &str = include_str!("../../web/dist/policy.txt");
/// Licences of the libraries in the script.
const LICENCES: &str = include_str!("../../web/dist/licences.txt");

/// Most bytes of the packed numbers of an ordinary page; of any, with few steps.
const PACKED_MAX: [usize; 2] = [600_000, 1_900_000];
/// Fewest steps for the first of these limits.
const STEPS_MIN: usize = 100;

/// Parts of the page.
pub struct PageDocument<'p, 's, 'd> {
    /// The trace and its pass.
    pub context: &'p ReportContext<'s, 'd>,
    /// Steps of time.
    pub steps: Steps,
    /// Tables over time.
    pub groups: Vec<RowGroup>,
    /// Functions of stacks.
    pub functions: Vec<String>,
    /// Facts on call sites, by row.
    pub details: BTreeMap<usize, Vec<Fact>>,
    /// Screens of the reports by their names; the first has the findings.
    pub screens: Vec<(&'static str, Refusable<Screen>)>,
    /// How they are shown.
    pub view: View,
}

/// Facts for the script besides the numbers.
#[derive(Serialize)]
struct PageFacts<'p> {
    /// Clock's unit: `ns`, or `ticks`.
    unit: &'static str,
    /// Start of the first step since the first event, as a decimal number.
    offset: String,
    /// Length of a step, as a decimal number.
    step: String,
    /// Number of steps.
    steps: usize,
    /// Share of each step in which events are missing, in percent; `null`: unknown.
    lost: Vec<Option<f64>>,
    /// The file, as commands name it.
    file: String,
    /// Begin and end of the selected time since the first event, as decimal numbers; `null`: those of the recording.
    window: [Option<String>; 2],
    /// Options of the selection besides the time.
    options: Vec<String>,
    /// Some numbers are too large for the script, and are rounded.
    rounded: bool,
    /// Tables.
    groups: Vec<PageNames<'p>>,
    /// Functions, which names of stacks number.
    functions: &'p [String],
    /// Facts on call sites, by row.
    details: &'p BTreeMap<usize, Vec<Fact>>,
}

/// Names of a table's rows.
#[derive(Serialize)]
struct PageNames<'p> {
    key: &'static str,
    title: &'static str,
    scale: u64,
    names: Vec<&'p str>,
    /// Functions of call sites.
    functions: Option<Vec<&'p str>>,
    /// Source files or directories of call sites.
    sources: Option<Vec<&'p str>>,
    /// By row: 1 if allocations are known, 2 if lives are, 4 if what seems live may be free.
    marks: Vec<u8>,
}

impl PageDocument<'_, '_, '_> {
    /// The whole page.
    pub fn html(&self) -> String {
        let file = words::escaped(self.context.session.path.as_os_str().as_encoded_bytes());
        let release = self.context.session.trace.metadata().text("kernel.release");
        let release = release.map_or(String::new(), |r| format!(", Linux {}", words::shown(r.as_bytes())));
        let mut out = format!(
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
             <meta http-equiv=Content-Security-Policy content=\"{}\">\n\
             <meta name=viewport content=\"width=device-width\">\n<meta name=color-scheme content=\"light dark\">\n\
             <title>Kernel memory: {}</title>\n<style>{STYLE}</style>\n<body>\n<header><h1>Kernel memory</h1> <p class=source>{}{}</p></header>\n<main>\n",
            POLICY.trim(),
            html_text(&file),
            html_text(&file),
            html_text(&release)
        );
        let file = self.context.session.file_arguments();
        self.findings(&mut out, &file);
        out += "<section id=time aria-labelledby=time-h><h2 id=time-h>Over time</h2>\n\
                <noscript><p>This part needs JavaScript.</p></noscript></section>\n";
        for (name, screen) in self.screens.iter().skip(1) {
            self.part(&mut out, name, screen);
        }
        out += &format!(
            "</main>\n<footer><p class=note>Made by kmt-analyze {}.</p>\n<details><summary>Licences</summary><pre>{}</pre></details></footer>\n",
            kmt_common::version::VERSION,
            screen::html_lines(LICENCES.lines())
        );
        out += &format!(
            "<script type=\"text/plain\" id=numbers>{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            base64(&self.numbers(file))
        );
        out
    }

    fn findings(&self, out: &mut String, file: &str) {
        *out += "<section id=findings aria-labelledby=findings-h><h2 id=findings-h>Findings</h2>\n";
        let Some((_, Ok(screen))) = self.screens.first() else { return };
        let lead = |lead: &Lead| {
            if lead.command.is_recording() {
                return format!(
                    "<li><p>{}</p><p class=more><code>{}</code></p></li>\n",
                    screen::sentence(&lead.sentence),
                    screen::sentence(&lead.command.with_program())
                );
            }
            let name = lead.command.name();
            let anchor = if PARTS.iter().any(|(part, _)| *part == name) {
                format!("part-{name}")
            } else {
                "time".to_owned()
            };
            format!(
                "<li><p>{}</p><p class=more><a href=\"#{anchor}\">Evidence</a> <code>kmt-analyze {} {}</code></p></li>\n",
                screen::sentence(&lead.sentence),
                screen::sentence(&lead.command.shown()),
                html_text(file)
            )
        };
        if !screen.leads.is_empty() {
            *out += &format!("<ol>\n{}</ol>\n", screen.leads.iter().map(lead).collect::<String>());
        }
        *out += &screen::html(screen, &self.view.look);
        let stated = Stated::of(self.context);
        for line in stated.iter().flat_map(Stated::lines) {
            *out += &format!("<p class=note>{}</p>\n", html_text(&line));
        }
        if let Some(interval) = folded::interval(self.context.session.trace) {
            *out += &format!(
                "<p class=note>Objects that died young are sums of intervals of {}: they have no task and no stack, and each interval is spread evenly over its time.</p>\n",
                html_text(&words::span(interval, self.context.session.unit()))
            );
        }
        for line in warnings(self.context, &sum_of(self.context.analysis, None)) {
            *out += &format!("<p class=warn>{}</p>\n", html_text(&line));
        }
        *out += "</section>\n";
    }

    fn part(&self, out: &mut String, name: &str, screen: &Result<Screen, String>) {
        let title = PARTS.iter().find(|(part, _)| *part == name).map_or(name, |(_, title)| title);
        let content = match screen {
            Ok(screen) => screen::html(screen, &self.view.look),
            Err(reason) => format!("<p>No answer: {}.</p>\n", html_text(reason)),
        };
        *out += &format!(
            "<section id=part-{name}><details{}><summary><h2>{}</h2></summary>\n{content}</details></section>\n",
            if name == "diff" { " open" } else { "" },
            html_text(title)
        );
    }

    /// Names and numbers, packed; coarser where they do not fit.
    fn numbers(&self, file: String) -> Vec<u8> {
        let mut times = 1;
        loop {
            let steps = Steps {
                step: self.steps.step.saturating_mul(u64::from(times)),
                steps: self.steps.steps.div_ceil(times as usize),
                ..self.steps
            };
            let names = serde_json::to_vec(&self.about(&steps, file.clone())).unwrap_or_default();
            let mut bytes = (names.len() as u32).to_le_bytes().to_vec();
            bytes.extend(names);
            bytes.extend(packed(&self.groups, times));
            let limit = PACKED_MAX[usize::from(steps.steps < 2 * STEPS_MIN)];
            let is_last = steps.steps < 4;
            if is_last || estimate(&bytes) <= limit + limit / 8 {
                let packed = compressed(&bytes);
                if is_last || packed.len() <= limit {
                    return packed;
                }
            }
            times *= 2;
        }
    }

    fn about(&self, steps: &Steps, file: String) -> PageFacts<'_> {
        let session = self.context.session;
        let first = session.first_time().unwrap_or(0);
        let edge = |step: usize| steps.start.saturating_add(steps.step.saturating_mul(step as u64));
        let lost = (0..steps.steps).map(|step| session.losses.missing_share(edge(step), edge(step + 1)));
        let (start, end) = self.context.selection.span(session);
        let is_part = self.context.selection.time.is_some() || self.context.selection.at.is_some();
        let window = [start, end].map(|time| is_part.then(|| time.saturating_sub(first).to_string()));
        let selection = Selection { time: None, at: None, ..self.context.selection.clone() };
        PageFacts {
            unit: if session.unit() == kmt_format::kernel::ClockUnit::Ticks { "ticks" } else { "ns" },
            offset: steps.start.saturating_sub(first).to_string(),
            step: steps.step.to_string(),
            steps: steps.steps,
            lost: lost.map(|share| share.map(|share| (1_000.0 * share).ceil() / 10.0)).collect(),
            file,
            window,
            options: selection.shell_options(),
            rounded: self.groups.iter().any(exceeds),
            groups: self.groups.iter().map(names).collect(),
            functions: &self.functions,
            details: &self.details,
        }
    }
}

/// True if a sum may exceed 2^53, the largest integer of the script.
fn exceeds(group: &RowGroup) -> bool {
    let rows = group.rows.iter().flat_map(|row| &row.steps);
    let sum = |column: usize| {
        let all = rows.clone().map(|(_, flows)| flows.columns()[column].unsigned_abs());
        all.fold(0u64, u64::saturating_add)
    };
    (0..10).any(|column| sum(column).saturating_mul(group.scale) > 1 << 53)
}

fn names(group: &RowGroup) -> PageNames<'_> {
    let texts = |of: fn(&SteppedRow) -> &str| {
        let has_some = group.rows.iter().any(|row| !of(row).is_empty());
        has_some.then(|| group.rows.iter().map(of).collect())
    };
    let mark = |row: &SteppedRow| {
        u8::from(row.recorded.allocs) | u8::from(row.recorded.lives) << 1 | u8::from(row.is_doubtful) << 2
    };
    PageNames {
        key: group.key,
        title: group.title,
        scale: group.scale,
        names: group.rows.iter().map(|row| row.name.as_str()).collect(),
        functions: texts(|row| &row.function),
        sources: texts(|row| &row.source),
        marks: group.rows.iter().map(mark).collect(),
    }
}
