//! Findings against the events of their file: each number is computed again, without the program's ledger.

mod excuses;
mod failures;
mod growth;
mod seen;
mod slabinfo;
mod survival;
mod unseen;
mod waits;
mod waste;

use std::path::Path;

use serde_json::Value;

use super::files::{json, run, stdout};
use super::model::{self, Ledger, Target};
use seen::Seen;

/// A file, its findings, and the numbers that they have to agree with.
struct Case<'c> {
    name: String,
    file: &'c Path,
    seen: Seen,
    ledger: Ledger,
    target: Target,
    document: Value,
    /// The first screen with exact sizes.
    screen: String,
}

impl Case<'_> {
    fn of_kind(&self, kind: &str) -> Vec<&Value> {
        let findings = self.document["findings"].as_array().unwrap();
        findings.iter().filter(|finding| finding["finding"] == kind).collect()
    }

    /// The finding of that kind, which has to be there exactly if its rule is met.
    fn one(&self, kind: &str, is_met: bool) -> Option<&Value> {
        let found = self.of_kind(kind);
        assert_eq!(
            found.len(),
            usize::from(is_met),
            "{}: {kind}: {:#}",
            self.name,
            self.document["findings"]
        );
        found.first().copied()
    }

    fn has_share(&self, finding: &Value, part: u64, whole: u64) {
        let share = (100.0 * part as f64 / whole.max(1) as f64).min(100.0);
        let found = finding["share_percent"].as_f64().unwrap();
        assert!((found - share).abs() < 1e-9, "{}: {part} of {whole}: {finding:#}", self.name);
    }
}

/// Checks all findings of a file, those that are missing too. Returns the sentences.
pub fn check(file: &Path) -> Vec<String> {
    let info = json(&["info", "--json"], file);
    let target = Target::of(&info);
    let (seen, events) = Seen::read(file, target.no_frame);
    let ledger = model::run(&events, &target);
    let case = Case {
        name: file.display().to_string(),
        file,
        seen,
        ledger,
        target,
        document: json(&["findings", "--json"], file),
        screen: stdout(&run(&["findings", "--bytes", "--wide"], file)),
    };
    waste::check(&case);
    waits::check(&case);
    failures::check(&case);
    growth::check(&case);
    unseen::check(&case);
    let findings = case.document["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["sentence"].as_str().unwrap().to_owned()).collect()
}

/// `part` of `whole` as sentences have it, such as `57 %`.
fn percent(text: &str, part: u64, whole: u64) -> bool {
    let Some(number) = text.strip_suffix(" %") else { return false };
    let exact = 100.0 * part as f64 / whole.max(1) as f64;
    match number.parse::<f64>() {
        Ok(found) => (found - exact).abs() <= if number.contains('.') { 0.1 } else { 0.5 + 1e-9 },
        Err(_) => number == "<0.1" && exact < 0.1,
    }
}

/// A number with separators of thousands, as screens have it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
