//! Numbered files of `--rearm` and `--rotate`, of which the oldest are removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// End of the name of an unfinished file (`Target::record`).
const PART: &str = ".part";

/// Files `STEM-N.EXTENSION` in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The name that was given, to which numbers are added.
    output: PathBuf,
    folder: PathBuf,
    stem: String,
    extension: String,
}

/// Files that were removed because there were too many.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    pub files: Vec<PathBuf>,
    /// The first failure: some files are left.
    pub failure: Option<Failure>,
}

impl Removed {
    /// A message for each file.
    pub fn messages(&self) -> impl Iterator<Item = String> + '_ {
        self.files.iter().map(|path| format!("removed {}: --max-files", path.display()))
    }

    /// The warning where some are left.
    pub fn warning(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        Some(format!("warning: more files than --max-files are kept: {failure}"))
    }
}

impl Series {
    /// Files of that name with numbers; `option` asks for them.
    pub fn new(output: &Path, option: &str) -> Result<Self> {
        let stem = output.file_stem().filter(|_| output != Path::new("-")).and_then(|stem| stem.to_str());
        let Some(stem) = stem else {
            return Err(Failure::new(format!("{option} cannot write several files to {}", output.display()))
                .hint("give the name of a file with -o, to which numbers are added"));
        };
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let extension = output.extension().and_then(|extension| extension.to_str());
        Ok(Self {
            output: output.to_owned(),
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            stem: stem.to_owned(),
            extension: extension.map_or_else(String::new, |extension| format!(".{extension}")),
        })
    }

    /// Number of a file of the series. The file of an interrupted recording counts: it is not overwritten.
    fn number(&self, name: &str) -> Option<u64> {
        let name = name.strip_prefix(&self.stem)?.strip_prefix('-')?;
        let of = |name: &str| name.strip_suffix(&self.extension).map(str::to_owned);
        let number = of(name).or_else(|| of(name.strip_suffix(PART)?))?;
        let is_plain = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
        number.parse().ok().filter(|_| is_plain)
    }

    /// The file of that number.
    pub fn path(&self, number: u64) -> PathBuf {
        self.output.with_file_name(format!("{}-{number}{}", self.stem, self.extension))
    }

    /// Numbers of the files that exist, the oldest first. Files of earlier runs are among them; `counts` is true for the kinds
    /// of files that count.
    fn numbers(&self, counts: impl Fn(fs::FileType) -> bool) -> Result<Vec<u64>> {
        let entries = fs::read_dir(&self.folder).map_err(|e| Failure::io("reading", &self.folder, &e))?;
        let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(&counts));
        let mut numbers: Vec<u64> =
            files.filter_map(|entry| self.number(entry.file_name().to_str()?)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// The next file.
    pub fn next(&self) -> Result<PathBuf> {
        Ok(self.path(self.next_number()?))
    }

    /// Number of the next file: above that of anything with a name of the series, also of a folder or a link.
    pub fn next_number(&self) -> Result<u64> {
        Ok(self.numbers(|_| true)?.last().map_or(1, |last| last.saturating_add(1)))
    }

    /// Removes the oldest files of more than `max_files`; returns them.
    pub fn remove_oldest(&self, max_files: Option<u32>) -> Removed {
        self.remove_oldest_before(u64::MAX, max_files)
    }

    /// Removes the oldest of more than `max_files` with numbers below `end`; returns them. A file that cannot be removed stays,
    /// and those after it are removed all the same.
    pub fn remove_oldest_before(&self, end: u64, max_files: Option<u32>) -> Removed {
        let mut removed = Removed::default();
        let Some(most) = max_files else { return removed };
        let mut numbers = match self.numbers(|kind| kind.is_file()) {
            Ok(numbers) => numbers,
            Err(failure) => return Removed { failure: Some(failure), ..removed },
        };
        numbers.retain(|&number| number < end);
        let surplus = numbers.len().saturating_sub(most.max(1) as usize);
        let oldest = numbers.iter().take(surplus).map(|number| self.path(*number));
        let oldest = oldest.flat_map(|path| {
            let mut part = path.clone().into_os_string();
            part.push(PART);
            [path, PathBuf::from(part)]
        });
        for path in oldest {
            match fs::remove_file(&path) {
                Ok(()) => removed.files.push(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    removed.failure.get_or_insert_with(|| Failure::io("removing", &path, &error));
                }
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_and_the_oldest_go_first() {
        let folder = std::env::temp_dir().join(format!("kmt-series-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let series = Series::new(&folder.join("a.b.kmt"), "--rearm").unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name(&series.next().unwrap()), "a.b-1.kmt");
        // Those of an earlier run, and others that are not of the series.
        for other in [
            "a.b-9.kmt",
            "a.b-10.kmt",
            "a.b-11.kmt",
            "a.b.kmt",
            "a.b-x.kmt",
            "a.b-012.kmt",
            "a.b-12.kmt.parts",
            "b-13.kmt",
        ] {
            fs::write(folder.join(other), "").unwrap();
        }
        assert_eq!(name(&series.next().unwrap()), "a.b-12.kmt");
        assert!(series.remove_oldest(None).files.is_empty());
        assert!(series.remove_oldest(Some(3)).files.is_empty());
        let removed = |most| -> Vec<String> {
            let Removed { files, failure } = series.remove_oldest(Some(most));
            assert!(failure.is_none(), "{failure:?}");
            files.iter().map(|path| name(path)).collect()
        };
        assert_eq!(removed(1), ["a.b-9.kmt", "a.b-10.kmt"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 6);
        // Of a recorder that was killed while it wrote.
        fs::write(folder.join("a.b-12.kmt.part"), "").unwrap();
        fs::write(folder.join("a.b-11.kmt.part"), "").unwrap();
        assert_eq!(name(&series.next().unwrap()), "a.b-13.kmt");
        fs::write(folder.join("a.b-13.kmt"), "").unwrap();
        assert!(series.remove_oldest_before(12, Some(1)).files.is_empty());
        assert_eq!(removed(2), ["a.b-11.kmt", "a.b-11.kmt.part"]);
        assert_eq!(removed(1), ["a.b-12.kmt.part"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 6);
        fs::remove_dir_all(&folder).unwrap();
        assert!(series.next().is_err());
        assert!(series.remove_oldest(Some(1)).failure.is_some());
    }

    /// Root may remove any file, but not a folder as if it were one.
    #[test]
    fn a_file_that_cannot_be_removed_keeps_no_other() {
        let folder = std::env::temp_dir().join(format!("kmt-series-kept-{}", std::process::id()));
        fs::create_dir_all(folder.join("a-1.kmt.part")).unwrap();
        let series = Series::new(&folder.join("a.kmt"), "--rotate").unwrap();
        (1..=4).for_each(|number| fs::write(series.path(number), "").unwrap());
        let removed = series.remove_oldest(Some(2));
        assert_eq!(removed.files, [series.path(1), series.path(2)]);
        assert_eq!(removed.messages().count(), 2);
        let warning = removed.warning().unwrap();
        assert!(warning.starts_with("warning: more files than --max-files are kept: "), "{warning}");
        assert!(warning.contains("a-1.kmt.part"), "{warning}");
        // A folder does not count as a file, and its number is not used again.
        fs::create_dir(folder.join("a-9.kmt")).unwrap();
        assert_eq!(series.next_number().unwrap(), 10);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn standard_output_cannot_have_several_files() {
        assert!(
            Series::new(Path::new("-"), "--rearm").is_err()
                && Series::new(Path::new("/"), "--rearm").is_err()
        );
        let here = Series::new(Path::new("trace"), "--rearm").unwrap();
        assert_eq!(here.path(3), Path::new("trace-3"));
    }
}
