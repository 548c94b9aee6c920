//! A resolved address as text.

use core::fmt;

use super::Resolved;

/// As the kernel's `%pS` prints it, `name+0x10/0x60 [module]`; what is not printable is escaped.
impl fmt::Display for Resolved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}/{:#x}", self.name.escape_ascii(), self.offset, self.size)?;
        match self.module {
            Some(module) => write!(f, " [{}]", module.escape_ascii()),
            None => Ok(()),
        }
    }
}
