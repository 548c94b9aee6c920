//! `profile.proto` of pprof (github.com/google/pprof/blob/main/proto/profile.proto).

use prost::Message;

/// `Profile`.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// Type of each value of a sample.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Samples.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Mappings of code.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Locations in code.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All texts; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Functions that are left out of stacks: number of the text of a regular expression.
    #[prost(int64, tag = "7")]
    pub drop_frames: i64,
    /// Start, in nanoseconds since 1970; 0: unknown.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Length in nanoseconds.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// Comments, by number of the text.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// Default value, by number of its text.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// `ValueType`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// Number of the text.
    #[prost(int64, tag = "1")]
    pub kind: i64,
    /// Number of the unit's text.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// `Sample`.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// Frames, innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// Values.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Labels.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// `Label`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    /// Number of the key's text.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Number of the value's text.
    #[prost(int64, tag = "2")]
    pub text: i64,
}

/// `Mapping`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Mapping {
    /// Number from 1.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Number of the file's text.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// True if functions are known.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// True if their files are known.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// True if lines are known.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// True if inlined functions are known.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// `Location`.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// Number from 1.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Mapping.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// Address.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Functions with their lines, the innermost inlined one first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// `Line`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    /// Function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// Line; 0: unknown.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// `Function`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    /// Number from 1.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Number of the name's text.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Number of the text of the kernel's name.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Number of the text of the source file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
}
