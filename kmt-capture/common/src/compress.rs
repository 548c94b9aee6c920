//! The option `--compress` of both programs.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use kmt_format::Compression;

/// How the bodies of a .kmt file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compress {
    /// No compression
    None,
    /// A third of the size
    Lz4,
    /// A quarter of the size
    Zstd,
}

impl Compress {
    /// Parser of the names, for an option with help that describes the values.
    pub fn by_name() -> impl TypedValueParser<Value = Self> {
        let values = Self::value_variants().iter().filter_map(Self::to_possible_value);
        let names: Vec<PossibleValue> = values.map(|value| value.help(None)).collect();
        PossibleValuesParser::new(names).try_map(|name| Self::from_str(&name, false))
    }
}

impl From<Compress> for Compression {
    fn from(compress: Compress) -> Self {
        match compress {
            Compress::None => Self::None,
            Compress::Lz4 => Self::Lz4,
            Compress::Zstd => Self::Zstd,
        }
    }
}
