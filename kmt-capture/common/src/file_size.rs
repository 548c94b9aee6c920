//! The limit on the size of a file (`ulimit -f`, RLIMIT_FSIZE).

use rustix::process::Signal;
use signal_hook::flag;

/// Makes a write beyond the limit fail with EFBIG, which is reported as a full disk is. By default, SIGXFSZ ends the
/// program without a message. A handler, not SIG_IGN: programs that this one starts would inherit that.
pub fn report_limit() {
    // Nothing needs to know that the signal came: the write fails. If there is no handler, the default stays.
    let _ = flag::register(Signal::XFSZ.as_raw(), std::sync::Arc::default());
}
