//! The loop of `watch`: samples, growth, one recording after the other.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use kmt_common::output::{Output, print};
use kmt_common::shell;
use kmt_common::text::{count, escaped, size};
use kmt_common::watch::{Finding, Watcher};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::args::WatchArgs;
use super::job::Job;
use super::plan::{Available, Plan};
use super::system::{System, boot_id, unix};
use crate::failure::{Failure, Outcome, Result};
use crate::record::Series;
use crate::record::command::Signals;
use crate::tracefs;

/// How often the state is written.
const STATE_EVERY: Duration = Duration::from_secs(600);
/// Bytes of a state file that is read.
const STATE_LEN_MAX: u64 = 1 << 20;
/// Growths that wait for their recording; further ones are reported only.
const WAITING_MAX: usize = 8;

/// Watches until a signal ends it, or with `--once` until the first growth was recorded.
pub fn watch(args: &WatchArgs) -> Result<Outcome> {
    if !args.dry_run {
        tracefs::check_user(args.tracefs.as_deref())?;
    }
    let top = args.tracefs.as_deref().map(tracefs::TraceDir::at).or_else(tracefs::mounted);
    let has = top.as_ref().map_or(Available::default(), Available::of);
    let signals = Signals::new(true)?;
    let series = Series::new(&args.output, "watch")?;
    let mut watch = Watch {
        args,
        has,
        series,
        signals,
        watcher: Watcher::default(),
        system: System::default(),
        waiting: VecDeque::new(),
        job: None,
        outcome: Outcome::Done,
        is_done: false,
    };
    watch.restore();
    watch.run()
}

struct Watch<'a> {
    args: &'a WatchArgs,
    has: Available,
    series: Series,
    signals: Signals,
    watcher: Watcher,
    system: System,
    waiting: VecDeque<Plan>,
    job: Option<Job>,
    outcome: Outcome,
    /// The first growth was recorded, and no other is to be.
    is_done: bool,
}

impl Watch<'_> {
    fn run(&mut self) -> Result<Outcome> {
        let (mut next, mut saved, mut is_first) = (Instant::now(), Instant::now(), true);
        while self.signals.asked() == 0 && !self.is_done {
            if next <= Instant::now() {
                self.sample()?;
                if std::mem::take(&mut is_first) {
                    self.begin();
                }
                // After a long stop the samples that were missed are not made up for.
                next = (next + self.args.every).max(Instant::now());
            }
            if saved.elapsed() >= STATE_EVERY {
                self.save();
                saved = Instant::now();
            }
            if self.signals.is_file_wanted() {
                self.wanted()?;
            }
            self.jobs();
            self.wait(next);
        }
        if let Some(job) = self.job.take() {
            job.end();
        }
        self.save();
        Ok(self.outcome)
    }

    /// Takes a sample, reports what grows, and plans its recording.
    fn sample(&mut self) -> Result<()> {
        let found = self.system.sample(&mut self.watcher).ok_or_else(|| {
            Failure::new("/proc/meminfo or /proc/uptime cannot be read").hint("mount -t proc proc /proc")
        })?;
        let has_found = !found.is_empty();
        for finding in &found {
            print(format!("{}\n", sentence(finding)).as_bytes())?;
            let plan = Plan::of(finding, self.has);
            if self.args.dry_run {
                self.show(&plan)?;
                self.is_done |= self.args.once;
            } else if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(plan);
            } else {
                kmt_common::tell!("warning: not recorded: {WAITING_MAX} growths wait for their recording");
            }
        }
        if has_found {
            self.save();
        }
        Ok(())
    }

    fn begin(&mut self) {
        if !self.system.has_slabinfo() {
            kmt_common::message!(
                "warning: /proc/slabinfo cannot be read (it needs root): caches are not watched"
            );
        }
        let (watched, unkept) = self.watcher.counts();
        if unkept > 0 {
            kmt_common::message!("warning: {} not watched: too many", count(unkept, "cache"));
        }
        if !self.args.quiet {
            let every = self.args.every.as_secs_f64();
            kmt_common::message!("watching {watched} series every {every} s");
        }
    }

    /// SIGUSR1: a recording now; with `--dry-run` the verdicts.
    fn wanted(&mut self) -> Result<()> {
        if !self.args.dry_run {
            self.waiting.push_front(Plan::all());
            return Ok(());
        }
        let mut out = String::new();
        for judged in self.watcher.judged() {
            let name = if judged.name.is_empty() { judged.kind.name() } else { judged.name };
            out += &format!("{} {}", escaped(name.as_bytes()), size(u64::from(judged.kib) << 10));
            let verdicts = judged
                .verdicts
                .iter()
                .map(|(minutes, verdict)| format!("; {minutes} min: {}", verdict.name()));
            out.extend(verdicts);
            out.push('\n');
        }
        print(out.as_bytes()).map(drop)
    }

    fn show(&self, plan: &Plan) -> Result<()> {
        let file = self.series.next()?;
        let arguments = plan.arguments(&file, self.args.max_size, self.args.tracefs.as_deref());
        let words = arguments.iter().map(|word| shell::word(word.as_encoded_bytes()));
        let line = words.collect::<Vec<_>>().join(" ");
        print(format!("  would record: kmt-capture {line}\n").as_bytes()).map(drop)
    }

    /// Looks after the child, and starts the next one.
    fn jobs(&mut self) {
        if let Some(code) = self.job.as_mut().and_then(Job::ended) {
            if let Some(job) = self.job.take() {
                self.ended(&job, code);
            }
        }
        if self.job.is_none() && !self.is_done {
            let Some(plan) = self.waiting.pop_front() else { return };
            match self.start(&plan) {
                Ok(job) => self.job = Some(job),
                Err(failure) => self.warn(&format!("{failure}")),
            }
        }
    }

    fn start(&self, plan: &Plan) -> Result<Job> {
        let file = self.series.next()?;
        if !self.args.quiet {
            kmt_common::tell!("recording to {} for {} s", file.display(), plan.seconds);
        }
        Job::record(plan.arguments(&file, self.args.max_size, self.args.tracefs.as_deref()), file)
    }

    fn ended(&mut self, job: &Job, code: i32) {
        let name = job.file.display();
        // 3: complete, but events were lost.
        if !(code == 0 || code == 3 && job.is_recorder) {
            let what = if job.is_recorder { "the recording" } else { "the command" };
            self.warn(&format!("{what} of {name} failed with {code}"));
            self.is_done |= self.args.once;
            return;
        }
        if !job.is_recorder {
            self.is_done |= self.args.once;
            return;
        }
        kmt_common::tell!("{name}: who holds the memory: kmt-analyze leaks {}", shell::path(&job.file));
        let removed = self.series.remove_oldest(self.args.max_files);
        if let Some(warning) = removed.warning() {
            self.warn(warning.trim_start_matches("warning: "));
        }
        match self.args.exec.as_deref().map(|command| Job::exec(command, job.file.clone())) {
            Some(Ok(exec)) => self.job = Some(exec),
            Some(Err(failure)) => self.warn(&format!("{failure}")),
            None => self.is_done |= self.args.once,
        }
    }

    fn warn(&mut self, what: &str) {
        kmt_common::tell!("warning: {what}");
        self.outcome = Outcome::Incomplete;
    }

    fn wait(&self, next: Instant) {
        let left = if self.is_done { Duration::ZERO } else { next.saturating_duration_since(Instant::now()) };
        let fds = self.signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = fds.collect();
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Takes over the state of an earlier run. A damaged file is a warning.
    fn restore(&mut self) {
        let Some(path) = &self.args.state else { return };
        let is_too_long = path.metadata().is_ok_and(|metadata| metadata.len() > STATE_LEN_MAX);
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Ok(bytes) if !is_too_long => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        let damaged = self.watcher.restore(&text, &boot_id(), unix());
        if damaged > 0 {
            let lines = count(damaged as u64, "line");
            kmt_common::tell!("warning: {}: {lines} cannot be read and are left out", path.display());
        }
    }

    fn save(&mut self) {
        let Some(path) = self.args.state.as_deref() else { return };
        let text = self.watcher.state(&boot_id(), unix());
        if let Err(failure) = written(path, &text) {
            self.warn(&format!("the state is not kept: {failure}"));
        }
    }
}

fn written(path: &Path, text: &str) -> Result<()> {
    let mut output = Output::create(path, true)?;
    output.write(text.as_bytes())?;
    output.finish()
}

/// A growth as a sentence.
fn sentence(finding: &Finding) -> String {
    let per_second = finding.growth.bytes_per_second.max(0.0);
    let name = match finding.name.is_empty() {
        true => finding.kind.name().to_owned(),
        false => format!("{} {}", finding.kind.name(), escaped(finding.name.as_bytes())),
    };
    let doubled = if finding.is_again { " (doubled since the last report)" } else { "" };
    format!(
        "growth: {name} by {:.1} KiB/s ({} a day) for {} min or longer, {} until now{doubled}; window of {} min",
        per_second / 1024.0,
        size((per_second * 86_400.0) as u64),
        finding.since / 60,
        size(u64::from(finding.grown_kib) << 10),
        finding.growth.window.minutes,
    )
}
