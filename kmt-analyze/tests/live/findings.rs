//! Findings of ten loads on the running kernel: each number is that of the events, and a leak is named.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::memory::{WORKER, files, options, paced, record_as};
use crate::support::alone::Alone;
use crate::support::cgroup::Cgroup;
use crate::support::files::Scratch;
use crate::support::findings::check;
use kmt_capture::record::Options;
use kmt_capture::tracefs::EventSpec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

const RECORDED: Duration = Duration::from_secs(3);
/// Work begins with the recording and ends after it.
const WORKED: Duration = Duration::from_secs(4);
/// Things that are made; the leaky loads keep one in twenty.
const MADE: u32 = 4_000;

type Kept = Vec<Box<dyn Send>>;

/// Makes things in equal steps, and keeps one in twenty.
fn leak<T: Send + 'static>(make: impl Fn() -> T) -> Kept {
    let mut kept: Kept = Vec::new();
    paced(MADE, WORKED, |number| {
        let made = make();
        if number % 20 == 0 {
            kept.push(Box::new(made));
        }
    });
    kept
}

fn until_over(mut work: impl FnMut()) -> Kept {
    let start = Instant::now();
    while start.elapsed() < WORKED {
        work();
        thread::sleep(Duration::from_millis(2));
    }
    Vec::new()
}

fn pipe_with_pages() -> (rustix::fd::OwnedFd, File) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut writer = File::from(writer);
    writer.write_all(&[1; 16 << 10]).unwrap();
    (reader, writer)
}

fn epolls() {
    let (reader, _writer) = rustix::pipe::pipe().unwrap();
    for _ in 0..20 {
        let watcher = epoll::create(CreateFlags::CLOEXEC).unwrap();
        epoll::add(&watcher, &reader, EventData::new_u64(1), EventFlags::IN).unwrap();
    }
}

/// Writes much more than fits, from a process in the group.
fn fill(group: &Cgroup, file: &Path) {
    group.run(&format!("dd if=/dev/zero of={0} bs=1M count=150; rm {0}", file.display()));
}

fn run(command: &str) {
    let quiet = Command::new("sh").args(["-c", command]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.unwrap();
}

/// Records a load, checks its findings, and returns them.
fn findings(
    scratch: &Scratch,
    name: &str,
    change: Options,
    work: impl FnOnce() -> Kept + Send,
) -> Vec<String> {
    let path = scratch.0.join(format!("{name}.kmt"));
    let base = options(&path);
    let options = Options { duration: Some(RECORDED), events: change.events, stacks: change.stacks, ..base };
    record_as(options, work);
    let sentences = check(&path);
    println!("{name}: {sentences:#?}");
    fs::remove_file(&path).unwrap();
    sentences
}

/// A sentence of that growth names the task and one of the functions.
fn is_named(sentences: &[String], growth: &str, places: &[&str]) {
    let task = format!(" by {WORKER}-");
    let is_it = |sentence: &&String| {
        let is_at = |place: &&str| sentence.contains(&format!(", {place}"));
        sentence.starts_with(growth) && sentence.contains(&task) && places.iter().any(is_at)
    };
    assert!(
        sentences.iter().any(|sentence| is_it(&sentence)),
        "{growth} of {WORKER} at {places:?}: {sentences:#?}"
    );
}

fn specs(names: &[&str]) -> Vec<EventSpec> {
    names.iter().map(|name| EventSpec::parse(name).unwrap()).collect()
}

#[test]
#[ignore = "some minutes: .ci/nightly runs it"]
fn a_leak_is_named_by_task_and_function() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let plain = Options::default;
    let sockets = findings(&scratch, "sockets", plain(), || leak(|| UnixStream::pair().unwrap()));
    is_named(&sockets, "Slab memory grew", &["at sk_prot_alloc", "at sock_alloc_inode"]);
    let pipes = findings(&scratch, "pipes", plain(), || leak(|| rustix::pipe::pipe().unwrap()));
    is_named(&pipes, "Slab memory grew", &["at alloc_pipe_info"]);
    let opened = findings(&scratch, "files", plain(), || leak(|| File::open("/dev/null").unwrap()));
    is_named(&opened, "Slab memory grew", &["at alloc_empty_file", "at __alloc_file"]);
    let stacks = Options { stacks: specs(&["kmem:mm_page_alloc"]), ..plain() };
    let pages = findings(&scratch, "pages", stacks, || leak(pipe_with_pages));
    is_named(&pages, "Pages grew", &["at anon_pipe", "at pipe_write"]);
    let kinds = findings(&scratch, "pages-kinds", plain(), || leak(pipe_with_pages));
    is_named(&kinds, "Pages grew", &["as order 0, GFP_HIGHUSER"]);
}

#[test]
#[ignore = "some minutes: .ci/nightly runs it"]
fn other_loads_have_true_findings() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let plain = Options::default;
    let is_ours = |sentence: &String| sentence.contains(" grew by ") && sentence.contains(WORKER);
    let no_leak = |sentences: Vec<String>| assert!(!sentences.iter().any(is_ours), "{sentences:#?}");
    no_leak(findings(&scratch, "idle", plain(), || until_over(|| ())));
    let waste = findings(&scratch, "waste", plain(), || until_over(epolls));
    assert!(waste.iter().any(|sentence| sentence.contains(" is wasted ")), "{waste:#?}");
    no_leak(waste);
    let dir = scratch.0.join("made");
    no_leak(findings(&scratch, "made-files", plain(), || until_over(|| files(&dir, 50, None))));
    no_leak(findings(&scratch, "forks", plain(), || until_over(|| run("true; true"))));
    let Some(group) = Cgroup::new(24 << 20) else {
        return println!("no memory cgroup can be made: no load that waits");
    };
    let reclaim = Options { events: specs(&["kmem:*", "vmscan:*", "compaction:*"]), ..plain() };
    // On a disk: a file in memory would not fit.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("written");
    let waits = findings(&scratch, "waits", reclaim, || until_over(|| fill(&group, &file)));
    assert!(waits.iter().any(|sentence| sentence.contains(" for memory")), "{waits:#?}");
}
