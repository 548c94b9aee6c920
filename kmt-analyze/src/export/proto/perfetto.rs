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
