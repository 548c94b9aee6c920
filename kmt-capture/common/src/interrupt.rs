//! Ctrl-C as a request to come to an end: the first SIGINT is noted, the second one ends the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::early_end::is_ignored;

/// True after SIGINT.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for SIGINT from now on. A program that was started with SIGINT ignored ignores it further.
    ///
    /// # Errors
    ///
    /// If the handler cannot be installed.
    pub fn watch() -> io::Result<Self> {
        let received = Arc::new(AtomicBool::new(false));
        if !is_ignored(SIGINT) {
            // In this order: the first signal finds the flag unset, and sets it.
            flag::register_conditional_default(SIGINT, received.clone())?;
            flag::register(SIGINT, received.clone())?;
        }
        Ok(Self(received))
    }

    /// True after the first SIGINT.
    pub fn is_received(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
