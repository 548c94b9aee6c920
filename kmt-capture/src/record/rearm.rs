//! `record --ring --rearm`: waits again after each file. Files are a [`Series`].
//!
//! After the first wait has begun, only a signal or `--duration` ends the recorder: a disk that is full now may have room at the
//! next condition, and the kernel may have memory for the ring buffers again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kmt_common::early_end::is_ignored;
use kmt_common::output::Target;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use super::black_box::BlackBoxOptions;
use super::console::Console;
use super::run::{Ended, once};
use super::series::Series;
use super::{RecordOptions, description};
use crate::failure::{Failure, Outcome, Result};
use crate::tracefs;

/// Time until a wait is tried again that could not begin: the first, and the longest. Each is twice as long as the one before.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often signals are looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// Waits and writes a file, again and again, until a signal, the end of `--duration`, or a failure before the first wait.
pub fn rearm(options: &RecordOptions, black_box: &BlackBoxOptions) -> Result<Outcome> {
    tracefs::check_user(options.tracefs.as_deref())?;
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from(description::own_default_name()));
    let series = Series::new(&output, "--rearm")?;
    let asked = asked()?;
    let start = Instant::now();
    let mut console = Console::new(options.quiet, false);
    let mut outcome = Outcome::Done;
    let mut is_again = false;
    let mut pause = PAUSE.0;
    // Files are created when their content is there: what is wrong with the name is reported now.
    Target { path: series.next()?, force: false }.check()?;
    while !asked.load(Ordering::Relaxed) {
        let left = options.duration.map(|duration| duration.saturating_sub(start.elapsed()));
        if is_again && left.is_some_and(|left| left.is_zero()) {
            break;
        }
        let ended = series.next().and_then(|path| {
            once(&RecordOptions {
                output: Some(path),
                force: false,
                duration: left,
                black_box: Some(BlackBoxOptions { is_again, ..black_box.clone() }),
                ..options.clone()
            })
        });
        let Ended { outcome: one, is_by_condition, .. } = match ended {
            Err(failure) if is_again => {
                console.print(format_args!("warning: trying again in {} s: {failure}", pause.as_secs()));
                outcome = Outcome::Incomplete;
                sleep(pause.min(left.unwrap_or(pause)), &asked);
                pause = pause.saturating_mul(2).min(PAUSE.1);
                continue;
            }
            ended => ended?,
        };
        pause = PAUSE.0;
        if one == Outcome::Incomplete {
            outcome = one;
        }
        if !is_by_condition {
            break;
        }
        is_again = true;
        let removed = series.remove_oldest(black_box.max_files);
        removed.messages().for_each(|message| console.say(format_args!("{message}")));
        if let Some(warning) = removed.warning() {
            console.print(format_args!("{warning}"));
            outcome = Outcome::Incomplete;
        }
    }
    Ok(outcome)
}

/// Sleeps, but not longer than until a signal asks for the end.
fn sleep(time: Duration, asked: &AtomicBool) {
    let until = Instant::now() + time;
    while !asked.load(Ordering::Relaxed) && Instant::now() < until {
        std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
    }
}

/// Set by the signals that end a recording, also between two of them; SIGUSR1 between two of them has no effect.
fn asked() -> Result<Arc<AtomicBool>> {
    let (asked, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let ends = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let ends = ends.filter(|&signal| signal != SIGHUP || !is_ignored(signal)).map(|signal| (signal, &asked));
    for (signal, flag) in ends.chain([(SIGUSR1, &written)]) {
        signal_hook::flag::register(signal, Arc::clone(flag))
            .map_err(|e| Failure::os("cannot watch for signals", &e))?;
    }
    Ok(asked)
}
