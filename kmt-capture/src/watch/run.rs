//! The loop of `watch`: samples, growth, one recording after the other.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use kmt_common::output::{Output, Target, print};
use kmt_common::shell;
use kmt_common::text::count;
use kmt_common::watch::Watcher;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::args::WatchArgs;
use super::job::{EXEC_MAX, Job, Stopped, Work};
use super::plan::{self, Available, Plan};
use super::system::{System, boot_id, unix};
use super::words::{self, End};
use crate::failure::{Failure, Outcome, Result};
use crate::record::Series;
use crate::record::command::Signals;
use crate::record::samples;
use crate::tracefs;

/// How often the state is written.
const STATE_EVERY: Duration = Duration::from_secs(600);
/// Bytes of a state file that is read.
const STATE_LEN_MAX: u64 = 1 << 20;
/// Growths that wait for their recording; further ones are reported only.
const WAITING_MAX: usize = 8;
/// A recording that failed is tried again after this time, then after twice the time and so on.
const RETRY: Duration = Duration::from_secs(600);
const TRIES_MAX: u32 = 6;
/// Samples have this part of --max-size at most, 1/N.
const SAMPLES_PART: u64 = 8;

/// Watches until a signal ends it, or with `--once` until the first growth was recorded.
pub fn watch(args: &WatchArgs) -> Result<Outcome> {
    if !args.dry_run {
        tracefs::check_user(args.tracefs.as_deref())?;
    }
    let files = Series::new(&args.output, "watch")?;
    check(args, &files)?;
    let signals = Signals::new(true)?;
    let mut watch = Watch {
        args,
        files,
        signals,
        watcher: Watcher::default(),
        system: System::default(),
        waiting: VecDeque::new(),
        job: None,
        tries: 0,
        outcome: Outcome::Done,
        is_done: false,
    };
    watch.restore();
    let outcome = watch.run();
    watch.end();
    outcome
}

/// Fails at once where a recording would fail when memory grows.
fn check(args: &WatchArgs, files: &Series) -> Result<()> {
    if args.dry_run {
        return Ok(());
    }
    Target { path: files.next()?, force: false }.check()?;
    // A name without a folder is looked for in PATH.
    match args.exec.as_deref().filter(|command| command.components().count() > 1) {
        Some(command) if !command.is_file() => {
            Err(Failure::new(format!("--exec: there is no {}", command.display())).usage())
        }
        _ => Ok(()),
    }
}

/// A recording that waits for the one before it, or for another try.
struct Waiting {
    plan: Plan,
    /// Tries that failed.
    tries: u32,
    /// Not before this time.
    from: Instant,
}

impl Waiting {
    fn new(plan: Plan) -> Self {
        Self { plan, tries: 0, from: Instant::now() }
    }
}

struct Watch<'a> {
    args: &'a WatchArgs,
    files: Series,
    signals: Signals,
    watcher: Watcher,
    system: System,
    waiting: VecDeque<Waiting>,
    job: Option<Job>,
    /// Tries of the recording that runs.
    tries: u32,
    outcome: Outcome,
    /// The first growth was recorded, and no other is to be.
    is_done: bool,
}

impl Watch<'_> {
    fn run(&mut self) -> Result<Outcome> {
        let (mut next, mut saved, mut is_first) = (Instant::now(), Instant::now(), true);
        while self.signals.asked() == 0 && !self.is_done {
            if next <= Instant::now() {
                let is_read = self.sample();
                match std::mem::take(&mut is_first) {
                    true if !is_read => return Err(unreadable()),
                    true => {
                        self.begin();
                        // A state that cannot be kept is reported now, and not after the first growth.
                        self.save();
                    }
                    false if !is_read => self.warn(&unreadable().to_string()),
                    false => {}
                }
                // After a long stop the samples that were missed are not made up for.
                next = (next + self.args.every).max(Instant::now());
            }
            if saved.elapsed() >= STATE_EVERY {
                self.save();
                saved = Instant::now();
            }
            if self.signals.is_file_wanted() {
                self.wanted();
            }
            self.jobs();
            self.wait(next);
        }
        Ok(self.outcome)
    }

    /// Ends the child, and keeps the state.
    fn end(&mut self) {
        if let Some(job) = self.job.take() {
            job.end();
        }
        self.save();
    }

    /// Takes a sample, reports what grows, and plans its recording. False if the texts cannot be read.
    fn sample(&mut self) -> bool {
        let Some(found) = self.system.sample(&mut self.watcher) else { return false };
        let has_found = !found.is_empty();
        for finding in &found {
            let sentence = format!("{}\n", words::growth(finding));
            self.say(&sentence);
            let mut plan = Plan::of(finding, self.available());
            plan.finding = sentence;
            if self.args.dry_run {
                self.show(&plan);
                self.is_done |= self.args.once;
            } else if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(Waiting::new(plan));
            } else {
                kmt_common::tell!("warning: not recorded: {WAITING_MAX} growths wait for their recording");
            }
        }
        if has_found {
            self.save();
        }
        true
    }

    /// Events of the kernel: tracefs may have been mounted meanwhile.
    fn available(&self) -> Available {
        let top = self.args.tracefs.as_deref().map(tracefs::TraceDir::at).or_else(tracefs::mounted);
        top.as_ref().map_or(Available::default(), Available::of)
    }

    /// Prints. An output that cannot be written, as on a full disk, ends no watch.
    fn say(&mut self, text: &str) {
        if let Err(failure) = print(text.as_bytes()) {
            self.warn(&failure.to_string());
        }
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

    /// SIGUSR1: a recording as soon as no other one runs; with `--dry-run` the verdicts.
    fn wanted(&mut self) {
        if !self.args.dry_run {
            if !self.waiting.iter().any(|waiting| waiting.plan.is_asked) {
                self.waiting.push_front(Waiting::new(Plan::all()));
            }
            return;
        }
        let mut out = String::new();
        for judged in self.watcher.judged() {
            out += &format!("{} {}", plan::name(judged.kind, judged.name), words::amount(judged.kib));
            let verdicts = judged
                .verdicts
                .iter()
                .map(|(minutes, verdict)| format!("; {minutes} min: {}", verdict.name()));
            out.extend(verdicts);
            out.push('\n');
        }
        self.say(&out);
    }

    fn show(&mut self, plan: &Plan) {
        let Ok(file) = self.files.next() else { return };
        let arguments = plan.arguments(&file, self.args.max_size, self.args.tracefs.as_deref());
        let words = arguments.iter().map(|word| shell::word(word.as_encoded_bytes()));
        let line = words.collect::<Vec<_>>().join(" ");
        self.say(&format!("  would record: kmt-capture {line}\n"));
    }

    /// Takes the result of a child that has ended, and starts the next one.
    fn jobs(&mut self) {
        self.job.iter_mut().for_each(Job::limit);
        if let Some(code) = self.job.as_mut().and_then(Job::ended) {
            if let Some(job) = self.job.take() {
                self.ended(job, code);
            }
        }
        if self.job.is_none() && !self.is_done {
            let now = Instant::now();
            let at = self.waiting.iter().position(|waiting| waiting.from <= now);
            let Some(next) = at.and_then(|at| self.waiting.remove(at)) else { return };
            self.tries = next.tries;
            match self.start(&next.plan) {
                Ok(job) => self.job = Some(job),
                Err(failure) => {
                    self.warn(&format!("{failure}"));
                    self.again(next.plan);
                }
            }
        }
    }

    /// A recording failed: it is tried again later.
    fn again(&mut self, plan: Plan) {
        if self.args.once {
            self.is_done |= !plan.is_asked;
        } else if self.tries + 1 < TRIES_MAX && self.waiting.len() < WAITING_MAX {
            let pause = RETRY * (1 << self.tries);
            kmt_common::tell!("it is tried again in {} min", pause.as_secs() / 60);
            let (tries, from) = (self.tries + 1, Instant::now() + pause);
            self.waiting.push_back(Waiting { plan, tries, from });
        }
    }

    fn start(&self, plan: &Plan) -> Result<Job> {
        let file = self.files.next()?;
        if !self.args.quiet {
            kmt_common::tell!("recording to {} for {} s", file.display(), plan.seconds);
        }
        let arguments = plan.arguments(&file, self.args.max_size, self.args.tracefs.as_deref());
        let samples = samples::finding(&plan.finding, samples::now())
            + &self.system.samples.text(self.args.max_size / SAMPLES_PART);
        Job::record(plan.clone(), arguments, file, self.args.cpu_budget, &samples)
    }

    /// Takes the end of a child.
    fn ended(&mut self, mut job: Job, code: i32) {
        let reason = job.reason();
        let Work::Record(plan, _) = &job.work else { return self.exec_ended(&job, code) };
        // 3: the file is sound, but events were lost, or a full disk ended it.
        if code != 0 && code != 3 {
            self.warn(&format!("the recording of {} failed with {code}", job.file.display()));
            return self.again(plan.clone());
        }
        let (max_size, budget) = (self.args.max_size, self.args.cpu_budget);
        let end =
            End { seconds: job.start.elapsed().as_secs(), reason, stopped: job.stopped, max_size, budget };
        self.say(&format!("{}\n", words::recorded(plan, &job.file, &end)));
        let removed = self.files.remove_oldest(self.args.max_files);
        if let Some(warning) = removed.warning() {
            self.warn(warning.trim_start_matches("warning: "));
        }
        let exec = self.args.exec.as_deref();
        match exec.map(|command| Job::exec(command, &job.file, job.is_asked, EXEC_MAX)) {
            Some(Ok(exec)) => self.job = Some(exec),
            Some(Err(failure)) => {
                self.warn(&format!("{failure}"));
                self.finish_once(&job);
            }
            None => self.finish_once(&job),
        }
    }

    fn exec_ended(&mut self, job: &Job, code: i32) {
        let name = job.file.display();
        if job.stopped == Some(Stopped::Overdue) {
            let most = EXEC_MAX.as_secs();
            self.warn(&format!("the command for {name} ran for {most} s: it was killed with its processes"));
        } else if code != 0 {
            self.warn(&format!("the command for {name} failed with {code}"));
        }
        self.finish_once(job);
    }

    /// With `--once`, ends after the recording of a growth.
    fn finish_once(&mut self, job: &Job) {
        self.is_done |= self.args.once && !job.is_asked;
    }

    fn warn(&mut self, what: &str) {
        kmt_common::tell!("warning: {what}");
        self.outcome = Outcome::Incomplete;
    }

    fn wait(&self, next: Instant) {
        let now = Instant::now();
        let left = if self.is_done { Duration::ZERO } else { next.saturating_duration_since(now) };
        let limit = self.job.as_ref().and_then(|job| job.left(now));
        let left = limit.map_or(left, |limit| left.min(limit.max(Duration::from_millis(1))));
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

    /// Writes the state; with `--dry-run` nothing was recorded, and the state of a watch that records stays.
    fn save(&mut self) {
        let Some(path) = self.args.state.as_deref().filter(|_| !self.args.dry_run) else { return };
        let text = self.watcher.state(&boot_id(), unix());
        if let Err(failure) = written(path, &text) {
            self.warn(&format!("the state is not kept: {failure}"));
        }
    }
}

/// Writes a file under another name, and renames it. A recording's output leaves signals to the watch.
fn written(path: &Path, text: &str) -> Result<()> {
    let mut output = Output::record(path, true)?;
    output.write(text.as_bytes())?;
    output.finish()
}

fn unreadable() -> Failure {
    Failure::new("/proc/meminfo or /proc/uptime cannot be read").hint("mount -t proc proc /proc")
}
