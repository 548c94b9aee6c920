//! Protocol buffer messages of other projects, with the fields that are written here.
//!
//! `perfetto` has those of Perfetto's traces, `pprof` those of pprof. Names and numbers are those of the projects' .proto files.

pub mod perfetto {
    //! Messages of Perfetto's traces (github.com/google/perfetto/tree/main/protos/perfetto/trace).

    use prost::Message;

    /// `TracePacket`.
    #[derive(Clone, PartialEq, Message)]
    pub struct TracePacket {
        /// Events of a CPU.
        #[prost(message, optional, tag = "1")]
        pub ftrace_events: Option<FtraceEventBundle>,
        /// Names of tasks.
        #[prost(message, optional, tag = "2")]
        pub process_tree: Option<ProcessTree>,
        /// Time.
        #[prost(uint64, optional, tag = "8")]
        pub timestamp: Option<u64>,
        /// Writer.
        #[prost(uint32, optional, tag = "10")]
        pub trusted_packet_sequence_id: Option<u32>,
        /// Event on a track.
        #[prost(message, optional, tag = "11")]
        pub track_event: Option<TrackEvent>,
        /// A track.
        #[prost(message, optional, tag = "60")]
        pub track_descriptor: Option<TrackDescriptor>,
    }

    /// `TrackEvent`.
    #[derive(Clone, PartialEq, Message)]
    pub struct TrackEvent {
        /// Annotations.
        #[prost(message, repeated, tag = "4")]
        pub debug_annotations: Vec<DebugAnnotation>,
        /// 1 begin, 2 end, 3 instant, 4 counter.
        #[prost(int32, optional, tag = "9")]
        pub kind: Option<i32>,
        /// The track.
        #[prost(uint64, optional, tag = "11")]
        pub track_uuid: Option<u64>,
        /// Name.
        #[prost(string, optional, tag = "23")]
        pub name: Option<String>,
        /// Value of a counter.
        #[prost(int64, optional, tag = "30")]
        pub counter_value: Option<i64>,
    }

    /// `DebugAnnotation`.
    #[derive(Clone, PartialEq, Message)]
    pub struct DebugAnnotation {
        /// A number.
        #[prost(uint64, optional, tag = "3")]
        pub uint_value: Option<u64>,
        /// Name.
        #[prost(string, optional, tag = "10")]
        pub name: Option<String>,
    }

    /// `TrackDescriptor`.
    #[derive(Clone, PartialEq, Message)]
    pub struct TrackDescriptor {
        /// Number of the track.
        #[prost(uint64, optional, tag = "1")]
        pub uuid: Option<u64>,
        /// Name.
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
        /// Process of the track.
        #[prost(message, optional, tag = "3")]
        pub process: Option<ProcessDescriptor>,
        /// Thread of the track.
        #[prost(message, optional, tag = "4")]
        pub thread: Option<ThreadDescriptor>,
        /// Parent track.
        #[prost(uint64, optional, tag = "5")]
        pub parent_uuid: Option<u64>,
        /// Present for a counter.
        #[prost(message, optional, tag = "8")]
        pub counter: Option<CounterDescriptor>,
    }

    /// `ProcessDescriptor`.
    #[derive(Clone, PartialEq, Message)]
    pub struct ProcessDescriptor {
        /// Process.
        #[prost(int32, optional, tag = "1")]
        pub pid: Option<i32>,
        /// Name.
        #[prost(string, optional, tag = "6")]
        pub process_name: Option<String>,
    }

    /// `ThreadDescriptor`.
    #[derive(Clone, PartialEq, Message)]
    pub struct ThreadDescriptor {
        /// Process.
        #[prost(int32, optional, tag = "1")]
        pub pid: Option<i32>,
        /// Thread.
        #[prost(int64, optional, tag = "2")]
        pub tid: Option<i64>,
        /// Name.
        #[prost(string, optional, tag = "5")]
        pub thread_name: Option<String>,
    }

    /// `CounterDescriptor`.
    #[derive(Clone, Copy, PartialEq, Message)]
    pub struct CounterDescriptor {
        /// 3: bytes.
        #[prost(int32, optional, tag = "3")]
        pub unit: Option<i32>,
    }

    /// `ProcessTree`.
    #[derive(Clone, PartialEq, Message)]
    pub struct ProcessTree {
        /// Threads.
        #[prost(message, repeated, tag = "2")]
        pub threads: Vec<TreeThread>,
    }

    /// `ProcessTree.Thread`.
    #[derive(Clone, PartialEq, Message)]
    pub struct TreeThread {
        /// Thread.
        #[prost(int32, optional, tag = "1")]
        pub tid: Option<i32>,
        /// Name.
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
        /// Process.
        #[prost(int32, optional, tag = "3")]
        pub tgid: Option<i32>,
    }

    /// `FtraceEventBundle`.
    #[derive(Clone, PartialEq, Message)]
    pub struct FtraceEventBundle {
        /// CPU.
        #[prost(uint32, optional, tag = "1")]
        pub cpu: Option<u32>,
        /// Events of the CPU.
        #[prost(message, repeated, tag = "2")]
        pub event: Vec<FtraceEvent>,
    }

    /// `FtraceEvent`.
    #[derive(Clone, PartialEq, Message)]
    pub struct FtraceEvent {
        /// Time.
        #[prost(uint64, optional, tag = "1")]
        pub timestamp: Option<u64>,
        /// Thread.
        #[prost(uint32, optional, tag = "2")]
        pub pid: Option<u32>,
        /// Name and fields.
        #[prost(message, optional, tag = "327")]
        pub generic: Option<GenericFtraceEvent>,
    }

    /// `GenericFtraceEvent`.
    #[derive(Clone, PartialEq, Message)]
    pub struct GenericFtraceEvent {
        /// Name.
        #[prost(string, optional, tag = "1")]
        pub event_name: Option<String>,
        /// Fields.
        #[prost(message, repeated, tag = "2")]
        pub field: Vec<GenericField>,
    }

    /// `GenericFtraceEvent.Field`.
    #[derive(Clone, PartialEq, Message)]
    pub struct GenericField {
        /// Name.
        #[prost(string, optional, tag = "1")]
        pub name: Option<String>,
        /// Text.
        #[prost(string, optional, tag = "3")]
        pub str_value: Option<String>,
        /// Signed number.
        #[prost(int64, optional, tag = "4")]
        pub int_value: Option<i64>,
        /// Unsigned number.
        #[prost(uint64, optional, tag = "5")]
        pub uint_value: Option<u64>,
    }
}

pub mod pprof {
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
}
