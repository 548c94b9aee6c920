//! Chunks that are loaded. A panic while one is read ends the pass; nothing waits for a chunk that no thread reads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Writer, WriterOptions};

use super::*;
use crate::stream::Interests;
use crate::stream::decode::Decoder;
use crate::stream::pipe;

const KFREE: &str = "name: kfree\nID: 1\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";

/// A trace of 40 chunks of one CPU, which lives as long as the program.
fn trace() -> &'static Trace<'static> {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
    writer.add_format("kmem", KFREE).unwrap();
    for time in 0..40 {
        writer.add_event(0, time, &[1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        writer.flush(0).unwrap();
    }
    let file: &'static [u8] = Vec::leak(writer.finish().unwrap());
    Box::leak(Box::new(Trace::open(file).unwrap()))
}

/// The result of `work`, on a thread of its own; `None` if it takes too long.
fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let (done, result) = channel();
    thread::spawn(move || done.send(work()));
    result.recv_timeout(Duration::from_secs(20)).ok()
}

/// Panics on a thread of that name, once others wait for it.
fn panic_late_on_workers() {
    if thread::current().name() == Some("worker") {
        thread::sleep(Duration::from_millis(200));
        panic!("a worker cannot read");
    }
}

#[test]
fn events_until_a_time_are_those_of_any_loader_that_has_them() {
    let counts = [9, 20, u64::MAX].map(|last| Loader::new(trace(), last).event_count_until(9));
    assert_eq!(counts, [10; 3]);
    assert_eq!(Loader::new(trace(), u64::MAX).event_count_until(u64::MAX), 40);
}

#[test]
fn a_chunk_that_a_worker_cannot_read_is_read_by_the_thread_that_waits() {
    let loader = Box::leak(Box::new(Loader::new(trace(), u64::MAX)));
    loader.before_read = panic_late_on_workers;
    let loader = &*loader;
    let (mut chunks, orders) = loader.with_workers(1);
    let [orders] = <[_; 1]>::try_from(orders).ok().unwrap();
    let worker = thread::Builder::new().name("worker".into()).spawn(|| orders.work(loader)).unwrap();
    // The worker leaves all others.
    let taken = in_time(move || (0..40).all(|number| matches!(chunks.take(number), Ok(Some(_)))));
    assert_eq!(taken, Some(true));
    assert!(worker.join().is_err());
}

#[test]
fn a_panic_while_reading_ends_the_pass() {
    for threads in [1, 2, 4] {
        let passed = in_time(move || {
            let trace = trace();
            let mut loader = Loader::new(trace, u64::MAX);
            loader.before_read = || panic!("nothing can be read");
            let decoder = Decoder::new(trace, Interests::empty());
            let pass = || pipe::run(&loader, decoder, threads, u64::MAX, |_, _| {}).1.len();
            catch_unwind(AssertUnwindSafe(pass)).is_ok()
        });
        assert_eq!(passed, Some(false), "{threads} threads");
    }
}

/// The other panic: of the side that takes operations.
#[test]
fn a_panic_of_the_ledger_ends_the_pass() {
    let passed = in_time(|| {
        let trace = trace();
        let loader = Loader::new(trace, u64::MAX);
        let decoder = Decoder::new(trace, Interests::empty());
        let pass = || pipe::run(&loader, decoder, 4, u64::MAX, |_, _| panic!("no room")).1.len();
        catch_unwind(AssertUnwindSafe(pass)).is_ok()
    });
    assert_eq!(passed, Some(false));
}
