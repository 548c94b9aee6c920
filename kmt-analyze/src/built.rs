//! Outputs that need a feature of the build: refused before a file is read, with the command that installs a program that has
//! them. Packages and tarballs of a release have all of them.
//!
//! `sqlite`, `parquet` and `png` are features because their libraries are large. The check names the feature and the
//! command to install it. Exports, charts and `footprint` call it before they read their input.

use std::path::Path;

use crate::failure::{Failure, Result};

/// Features with an output, and whether this program has them.
const FEATURES: [(&str, bool); 3] = [
    ("sqlite", cfg!(feature = "sqlite")),
    ("parquet", cfg!(feature = "parquet")),
    ("png", cfg!(feature = "png")),
];

/// Refuses an output whose feature this program lacks.
pub fn check(feature: &str, output: &str) -> Result<()> {
    check_in(&FEATURES, feature, output)
}

fn check_in(built: &[(&str, bool)], feature: &str, output: &str) -> Result<()> {
    if built.contains(&(feature, true)) {
        return Ok(());
    }
    // Those that this program has stay in the next one.
    let kept = built.iter().filter(|(_, has)| *has).map(|(name, _)| *name);
    let features: Vec<&str> = kept.chain([feature]).collect();
    Err(Failure::new(format!(
        "this kmt-analyze cannot write {output}: it was built without the feature {feature}"
    ))
    .hint(format!(
        "`cargo install kmt-analyze --features {}` installs one that can; packages and tarballs have it",
        features.join(",")
    )))
}

/// True if a picture with that name is a PNG.
pub fn is_png(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"))
}

/// Refuses a picture that this program cannot write.
pub fn check_picture(path: &Path) -> Result<()> {
    if is_png(path) { check("png", "PNG") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_feature_is_named_with_the_command_that_installs_it() {
        let built = [("sqlite", true), ("parquet", false), ("png", true)];
        assert!(check_in(&built, "sqlite", "SQLite").is_ok());
        let failure = check_in(&built, "parquet", "Parquet").unwrap_err();
        assert!(failure.what().contains("built without the feature parquet"), "{}", failure.what());
        let hint = failure.remedy().unwrap();
        assert!(hint.starts_with("`cargo install kmt-analyze --features sqlite,png,parquet`"), "{hint}");
    }

    #[test]
    fn pictures_are_png_by_their_names() {
        assert!(is_png(Path::new("a.PNG")) && !is_png(Path::new("a.svg")) && !is_png(Path::new("png")));
    }
}
