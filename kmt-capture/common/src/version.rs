//! Versions that both programs print: of the release, and of the format that they write.

/// Version of the program and of the format, for `--version`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (format 1.0)");

#[cfg(test)]
mod tests {
    use kmt_format::raw::{VERSION_MAJOR, VERSION_MINOR};

    #[test]
    fn the_version_of_the_format_is_that_of_the_library() {
        assert!(super::VERSION.ends_with(&format!(" (format {VERSION_MAJOR}.{VERSION_MINOR})")));
    }
}
