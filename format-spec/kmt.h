/* The structures of a .kmt file, version 1.0, as they lie on disk. Made from kmt-format; spec.md says
 * what they mean. Numbers are in the byte order that the file header's byte-order mark tells; nothing is aligned.
 * With KMT_CHECK_LAYOUT the compiler compares sizes and offsets. */
#ifndef KMT_H
#define KMT_H

#include <stddef.h>
#include <stdint.h>

#define KMT_VERSION_MAJOR 1
#define KMT_VERSION_MINOR 0
#define KMT_MAGIC "\x89KMT\r\n\x1a\n"
#define KMT_BOM 0x01020304u
#define KMT_ALIGNMENT 64

#pragma pack(push, 1)

/* Where a text lies in the heap of its chunk. */
struct kmt_string_ref {
	uint32_t offset;
	uint32_t len;
};

struct kmt_file_header {
	uint8_t magic[8];
	uint32_t bom;
	uint16_t version_major;
	uint16_t version_minor;
	uint32_t header_len;
	uint32_t incompatible;
	uint32_t compatible;
	uint8_t size_short;
	uint8_t size_int;
	uint8_t size_long;
	uint8_t size_long_long;
	uint8_t size_pointer;
	uint8_t align_u64;
	uint8_t page_shift;
	uint8_t size_user_long;
	uint32_t reserved_a;
	uint8_t trace_uuid[16];
	uint32_t reserved_b;
	uint32_t header_crc;
};

struct kmt_chunk_header {
	uint8_t sync[4];
	uint8_t salt[4];
	uint8_t kind[4];
	uint8_t flags;
	uint8_t codec;
	uint16_t body_version;
	uint64_t total_len;
	uint64_t body_len;
	uint64_t raw_len;
	uint32_t stream;
	uint32_t sequence;
	uint32_t body_crc;
	uint32_t prefix_len;
	uint32_t prefix_crc;
	uint32_t header_crc;
};

struct kmt_schema_head {
	uint32_t head_len;
	uint32_t first_class;
	uint32_t first_shape;
	uint32_t class_count;
	uint32_t field_count;
	uint32_t shape_count;
	uint32_t slot_count;
	uint32_t heap_len;
	uint16_t class_len;
	uint16_t field_len;
	uint16_t shape_len;
	uint16_t slot_len;
};

struct kmt_class_row {
	uint16_t id;
	uint16_t meaning;
	uint16_t field_count;
	uint16_t common_count;
	uint32_t first_field;
	struct kmt_string_ref system;
	struct kmt_string_ref name;
	struct kmt_string_ref format_text;
	struct kmt_string_ref print_fmt;
};

struct kmt_field_row {
	struct kmt_string_ref name;
	struct kmt_string_ref type_text;
	uint32_t offset;
	uint32_t size;
	uint8_t kind;
	uint8_t signed_;
	uint8_t element_size;
	uint8_t reserved;
	uint16_t role;
	uint16_t reserved_b;
};

struct kmt_shape_row {
	uint32_t class_;
	uint32_t first_slot;
	uint32_t descriptor_len;
	uint32_t payload_len;
};

struct kmt_slot_row {
	uint8_t place;
	uint8_t stored;
	uint8_t transform;
	uint8_t base;
	uint32_t offset;
};

struct kmt_events_head {
	uint32_t head_len;
	uint32_t loss_flags;
	uint64_t lost_events;
	uint64_t t_base;
	uint64_t t_last;
	uint64_t first_event;
	uint32_t record_count;
	uint32_t descriptor_count;
	uint32_t context_count;
	uint32_t epoch_count;
	uint32_t epochs_offset;
	uint32_t descriptors_offset;
	uint32_t contexts_offset;
	uint32_t records_offset;
	uint32_t heap_offset;
	uint32_t heap_len;
	uint16_t record_stride;
	uint16_t context_stride;
	uint32_t reserved;
	uint64_t classes;
};

struct kmt_record64 {
	uint32_t time_offset;
	uint16_t descriptor;
	uint16_t context;
	uint64_t value;
};

struct kmt_record32 {
	uint32_t time_offset;
	uint16_t descriptor;
	uint16_t context;
	uint32_t value;
};

struct kmt_epoch {
	uint32_t first_record;
	uint32_t upper;
};

struct kmt_clock_head {
	uint32_t head_len;
	uint8_t unit;
	uint8_t comparable;
	uint16_t reserved;
	uint32_t name_len;
};

struct kmt_symbols_head {
	uint32_t head_len;
	uint32_t owner_count;
	uint32_t symbol_count;
	uint32_t block_count;
	uint64_t core_start;
	uint64_t core_end;
	uint32_t owner_len;
	uint32_t block_len;
	uint32_t heap_len;
	uint32_t reserved;
};

struct kmt_symbol_owner_row {
	uint64_t base;
	uint64_t size;
	uint32_t name_offset;
	uint32_t name_len;
};

struct kmt_symbol_block_row {
	uint64_t address;
	uint32_t offset;
	uint16_t symbol_count;
	uint16_t reserved;
};

struct kmt_meta_head {
	uint32_t head_len;
	uint32_t pair_len;
	uint32_t pair_count;
};

struct kmt_pair_head {
	uint32_t key_len;
	uint32_t value_len;
};

struct kmt_attachment_head {
	uint32_t head_len;
	uint32_t name_len;
	uint64_t contents_len;
	uint64_t time_first;
	uint64_t time_last;
	uint32_t flags;
	uint32_t reserved;
};

struct kmt_line_row {
	uint64_t address;
	struct kmt_string_ref function;
	struct kmt_string_ref file;
	uint32_t line;
	uint16_t depth;
	uint16_t reserved;
};

struct kmt_cgroup_row {
	uint64_t time;
	uint64_t id;
	int32_t pid;
	uint32_t hierarchy;
	struct kmt_string_ref path;
};

struct kmt_sums_row {
	uint64_t time_first;
	uint64_t time_last;
	uint64_t call_site;
	uint64_t events;
	uint64_t bytes_req;
	uint64_t bytes_alloc;
	struct kmt_string_ref function;
	uint16_t meaning;
	uint16_t present;
	uint32_t reserved;
};

struct kmt_task_row {
	uint64_t time;
	int32_t pid;
	int32_t tgid;
	uint8_t comm[16];
};

struct kmt_stats_row {
	uint32_t cpu;
	uint32_t taken;
	uint32_t present;
	uint32_t reserved;
	uint64_t entries;
	uint64_t overrun;
	uint64_t commit_overrun;
	uint64_t bytes;
	uint64_t dropped;
	uint64_t read;
	uint64_t oldest_time;
	uint64_t now_time;
	uint64_t sub_buffers;
	uint64_t sub_buffers_damaged;
	uint64_t discarded;
};

struct kmt_sub_buffers_head {
	uint32_t head_len;
	uint32_t loss_flags;
	uint64_t lost_events;
	uint64_t t_base;
	uint64_t t_last;
	uint64_t first_event;
	uint32_t record_count;
	uint32_t sub_buffer_len;
	uint32_t sub_buffer_count;
	uint16_t timestamp_offset;
	uint16_t commit_offset;
	uint16_t commit_size;
	uint16_t data_offset;
	uint32_t class_limit;
	uint64_t classes;
};

struct kmt_fold_head {
	uint32_t head_len;
	uint32_t flags;
	uint64_t number;
	uint64_t t_begin;
	uint64_t t_end;
	uint64_t threshold;
	uint32_t row_count;
	uint32_t row_len;
	uint32_t cpu_count;
	uint32_t cpu_len;
	uint32_t bin_count;
	uint32_t bin_len;
	uint32_t rows_offset;
	uint32_t cpus_offset;
	uint32_t bins_offset;
	uint32_t events_offset;
	uint64_t event_count;
};

struct kmt_fold_row {
	uint32_t alloc;
	uint32_t free;
	uint64_t count;
	uint64_t cross_cpu;
	uint64_t elsewhere;
	uint64_t length_sum;
	uint64_t length_max;
	uint64_t over_ms;
	uint64_t over_s;
	uint32_t first_bin;
	uint32_t bin_count;
};

struct kmt_fold_cpu {
	uint32_t cpu;
	uint32_t reserved;
	uint64_t events;
};

struct kmt_fold_bin {
	uint32_t bin;
	uint32_t count;
};

struct kmt_table_head {
	uint32_t head_len;
	uint32_t row_len;
	uint32_t row_count;
	uint32_t heap_len;
};

struct kmt_index_row {
	uint64_t offset;
	uint64_t t_base;
	uint64_t t_last;
	uint64_t first_event;
	uint64_t lost_events;
	uint32_t record_count;
	uint32_t loss_flags;
	uint64_t classes;
	uint8_t header[64];
};

struct kmt_trailer {
	uint32_t head_len;
	uint32_t chunk_count;
	uint64_t file_len;
	uint64_t event_count;
	uint64_t event_bytes;
	uint64_t index_offset;
};

#pragma pack(pop)

#ifdef KMT_CHECK_LAYOUT
_Static_assert(offsetof(struct kmt_file_header, magic) == 0, "magic");
_Static_assert(offsetof(struct kmt_file_header, bom) == 8, "bom");
_Static_assert(offsetof(struct kmt_file_header, version_major) == 12, "version_major");
_Static_assert(offsetof(struct kmt_file_header, version_minor) == 14, "version_minor");
_Static_assert(offsetof(struct kmt_file_header, header_len) == 16, "header_len");
_Static_assert(offsetof(struct kmt_file_header, incompatible) == 20, "incompatible");
_Static_assert(offsetof(struct kmt_file_header, compatible) == 24, "compatible");
_Static_assert(offsetof(struct kmt_file_header, size_short) == 28, "size_short");
_Static_assert(offsetof(struct kmt_file_header, size_int) == 29, "size_int");
_Static_assert(offsetof(struct kmt_file_header, size_long) == 30, "size_long");
_Static_assert(offsetof(struct kmt_file_header, size_long_long) == 31, "size_long_long");
_Static_assert(offsetof(struct kmt_file_header, size_pointer) == 32, "size_pointer");
_Static_assert(offsetof(struct kmt_file_header, align_u64) == 33, "align_u64");
_Static_assert(offsetof(struct kmt_file_header, page_shift) == 34, "page_shift");
_Static_assert(offsetof(struct kmt_file_header, size_user_long) == 35, "size_user_long");
_Static_assert(offsetof(struct kmt_file_header, reserved_a) == 36, "reserved_a");
_Static_assert(offsetof(struct kmt_file_header, trace_uuid) == 40, "trace_uuid");
_Static_assert(offsetof(struct kmt_file_header, reserved_b) == 56, "reserved_b");
_Static_assert(offsetof(struct kmt_file_header, header_crc) == 60, "header_crc");
_Static_assert(sizeof(struct kmt_file_header) == 64, "file_header");
_Static_assert(offsetof(struct kmt_chunk_header, sync) == 0, "sync");
_Static_assert(offsetof(struct kmt_chunk_header, salt) == 4, "salt");
_Static_assert(offsetof(struct kmt_chunk_header, kind) == 8, "kind");
_Static_assert(offsetof(struct kmt_chunk_header, flags) == 12, "flags");
_Static_assert(offsetof(struct kmt_chunk_header, codec) == 13, "codec");
_Static_assert(offsetof(struct kmt_chunk_header, body_version) == 14, "body_version");
_Static_assert(offsetof(struct kmt_chunk_header, total_len) == 16, "total_len");
_Static_assert(offsetof(struct kmt_chunk_header, body_len) == 24, "body_len");
_Static_assert(offsetof(struct kmt_chunk_header, raw_len) == 32, "raw_len");
_Static_assert(offsetof(struct kmt_chunk_header, stream) == 40, "stream");
_Static_assert(offsetof(struct kmt_chunk_header, sequence) == 44, "sequence");
_Static_assert(offsetof(struct kmt_chunk_header, body_crc) == 48, "body_crc");
_Static_assert(offsetof(struct kmt_chunk_header, prefix_len) == 52, "prefix_len");
_Static_assert(offsetof(struct kmt_chunk_header, prefix_crc) == 56, "prefix_crc");
_Static_assert(offsetof(struct kmt_chunk_header, header_crc) == 60, "header_crc");
_Static_assert(sizeof(struct kmt_chunk_header) == 64, "chunk_header");
_Static_assert(offsetof(struct kmt_schema_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_schema_head, first_class) == 4, "first_class");
_Static_assert(offsetof(struct kmt_schema_head, first_shape) == 8, "first_shape");
_Static_assert(offsetof(struct kmt_schema_head, class_count) == 12, "class_count");
_Static_assert(offsetof(struct kmt_schema_head, field_count) == 16, "field_count");
_Static_assert(offsetof(struct kmt_schema_head, shape_count) == 20, "shape_count");
_Static_assert(offsetof(struct kmt_schema_head, slot_count) == 24, "slot_count");
_Static_assert(offsetof(struct kmt_schema_head, heap_len) == 28, "heap_len");
_Static_assert(offsetof(struct kmt_schema_head, class_len) == 32, "class_len");
_Static_assert(offsetof(struct kmt_schema_head, field_len) == 34, "field_len");
_Static_assert(offsetof(struct kmt_schema_head, shape_len) == 36, "shape_len");
_Static_assert(offsetof(struct kmt_schema_head, slot_len) == 38, "slot_len");
_Static_assert(sizeof(struct kmt_schema_head) == 40, "schema_head");
_Static_assert(offsetof(struct kmt_class_row, id) == 0, "id");
_Static_assert(offsetof(struct kmt_class_row, meaning) == 2, "meaning");
_Static_assert(offsetof(struct kmt_class_row, field_count) == 4, "field_count");
_Static_assert(offsetof(struct kmt_class_row, common_count) == 6, "common_count");
_Static_assert(offsetof(struct kmt_class_row, first_field) == 8, "first_field");
_Static_assert(offsetof(struct kmt_class_row, system) == 12, "system");
_Static_assert(offsetof(struct kmt_class_row, name) == 20, "name");
_Static_assert(offsetof(struct kmt_class_row, format_text) == 28, "format_text");
_Static_assert(offsetof(struct kmt_class_row, print_fmt) == 36, "print_fmt");
_Static_assert(sizeof(struct kmt_class_row) == 44, "class_row");
_Static_assert(offsetof(struct kmt_field_row, name) == 0, "name");
_Static_assert(offsetof(struct kmt_field_row, type_text) == 8, "type_text");
_Static_assert(offsetof(struct kmt_field_row, offset) == 16, "offset");
_Static_assert(offsetof(struct kmt_field_row, size) == 20, "size");
_Static_assert(offsetof(struct kmt_field_row, kind) == 24, "kind");
_Static_assert(offsetof(struct kmt_field_row, signed_) == 25, "signed_");
_Static_assert(offsetof(struct kmt_field_row, element_size) == 26, "element_size");
_Static_assert(offsetof(struct kmt_field_row, reserved) == 27, "reserved");
_Static_assert(offsetof(struct kmt_field_row, role) == 28, "role");
_Static_assert(offsetof(struct kmt_field_row, reserved_b) == 30, "reserved_b");
_Static_assert(sizeof(struct kmt_field_row) == 32, "field_row");
_Static_assert(offsetof(struct kmt_shape_row, class_) == 0, "class_");
_Static_assert(offsetof(struct kmt_shape_row, first_slot) == 4, "first_slot");
_Static_assert(offsetof(struct kmt_shape_row, descriptor_len) == 8, "descriptor_len");
_Static_assert(offsetof(struct kmt_shape_row, payload_len) == 12, "payload_len");
_Static_assert(sizeof(struct kmt_shape_row) == 16, "shape_row");
_Static_assert(offsetof(struct kmt_slot_row, place) == 0, "place");
_Static_assert(offsetof(struct kmt_slot_row, stored) == 1, "stored");
_Static_assert(offsetof(struct kmt_slot_row, transform) == 2, "transform");
_Static_assert(offsetof(struct kmt_slot_row, base) == 3, "base");
_Static_assert(offsetof(struct kmt_slot_row, offset) == 4, "offset");
_Static_assert(sizeof(struct kmt_slot_row) == 8, "slot_row");
_Static_assert(offsetof(struct kmt_events_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_events_head, loss_flags) == 4, "loss_flags");
_Static_assert(offsetof(struct kmt_events_head, lost_events) == 8, "lost_events");
_Static_assert(offsetof(struct kmt_events_head, t_base) == 16, "t_base");
_Static_assert(offsetof(struct kmt_events_head, t_last) == 24, "t_last");
_Static_assert(offsetof(struct kmt_events_head, first_event) == 32, "first_event");
_Static_assert(offsetof(struct kmt_events_head, record_count) == 40, "record_count");
_Static_assert(offsetof(struct kmt_events_head, descriptor_count) == 44, "descriptor_count");
_Static_assert(offsetof(struct kmt_events_head, context_count) == 48, "context_count");
_Static_assert(offsetof(struct kmt_events_head, epoch_count) == 52, "epoch_count");
_Static_assert(offsetof(struct kmt_events_head, epochs_offset) == 56, "epochs_offset");
_Static_assert(offsetof(struct kmt_events_head, descriptors_offset) == 60, "descriptors_offset");
_Static_assert(offsetof(struct kmt_events_head, contexts_offset) == 64, "contexts_offset");
_Static_assert(offsetof(struct kmt_events_head, records_offset) == 68, "records_offset");
_Static_assert(offsetof(struct kmt_events_head, heap_offset) == 72, "heap_offset");
_Static_assert(offsetof(struct kmt_events_head, heap_len) == 76, "heap_len");
_Static_assert(offsetof(struct kmt_events_head, record_stride) == 80, "record_stride");
_Static_assert(offsetof(struct kmt_events_head, context_stride) == 82, "context_stride");
_Static_assert(offsetof(struct kmt_events_head, reserved) == 84, "reserved");
_Static_assert(offsetof(struct kmt_events_head, classes) == 88, "classes");
_Static_assert(sizeof(struct kmt_events_head) == 96, "events_head");
_Static_assert(offsetof(struct kmt_record64, time_offset) == 0, "time_offset");
_Static_assert(offsetof(struct kmt_record64, descriptor) == 4, "descriptor");
_Static_assert(offsetof(struct kmt_record64, context) == 6, "context");
_Static_assert(offsetof(struct kmt_record64, value) == 8, "value");
_Static_assert(sizeof(struct kmt_record64) == 16, "record64");
_Static_assert(offsetof(struct kmt_record32, time_offset) == 0, "time_offset");
_Static_assert(offsetof(struct kmt_record32, descriptor) == 4, "descriptor");
_Static_assert(offsetof(struct kmt_record32, context) == 6, "context");
_Static_assert(offsetof(struct kmt_record32, value) == 8, "value");
_Static_assert(sizeof(struct kmt_record32) == 12, "record32");
_Static_assert(offsetof(struct kmt_epoch, first_record) == 0, "first_record");
_Static_assert(offsetof(struct kmt_epoch, upper) == 4, "upper");
_Static_assert(sizeof(struct kmt_epoch) == 8, "epoch");
_Static_assert(offsetof(struct kmt_clock_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_clock_head, unit) == 4, "unit");
_Static_assert(offsetof(struct kmt_clock_head, comparable) == 5, "comparable");
_Static_assert(offsetof(struct kmt_clock_head, reserved) == 6, "reserved");
_Static_assert(offsetof(struct kmt_clock_head, name_len) == 8, "name_len");
_Static_assert(sizeof(struct kmt_clock_head) == 12, "clock_head");
_Static_assert(offsetof(struct kmt_symbols_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_symbols_head, owner_count) == 4, "owner_count");
_Static_assert(offsetof(struct kmt_symbols_head, symbol_count) == 8, "symbol_count");
_Static_assert(offsetof(struct kmt_symbols_head, block_count) == 12, "block_count");
_Static_assert(offsetof(struct kmt_symbols_head, core_start) == 16, "core_start");
_Static_assert(offsetof(struct kmt_symbols_head, core_end) == 24, "core_end");
_Static_assert(offsetof(struct kmt_symbols_head, owner_len) == 32, "owner_len");
_Static_assert(offsetof(struct kmt_symbols_head, block_len) == 36, "block_len");
_Static_assert(offsetof(struct kmt_symbols_head, heap_len) == 40, "heap_len");
_Static_assert(offsetof(struct kmt_symbols_head, reserved) == 44, "reserved");
_Static_assert(sizeof(struct kmt_symbols_head) == 48, "symbols_head");
_Static_assert(offsetof(struct kmt_symbol_owner_row, base) == 0, "base");
_Static_assert(offsetof(struct kmt_symbol_owner_row, size) == 8, "size");
_Static_assert(offsetof(struct kmt_symbol_owner_row, name_offset) == 16, "name_offset");
_Static_assert(offsetof(struct kmt_symbol_owner_row, name_len) == 20, "name_len");
_Static_assert(sizeof(struct kmt_symbol_owner_row) == 24, "symbol_owner_row");
_Static_assert(offsetof(struct kmt_symbol_block_row, address) == 0, "address");
_Static_assert(offsetof(struct kmt_symbol_block_row, offset) == 8, "offset");
_Static_assert(offsetof(struct kmt_symbol_block_row, symbol_count) == 12, "symbol_count");
_Static_assert(offsetof(struct kmt_symbol_block_row, reserved) == 14, "reserved");
_Static_assert(sizeof(struct kmt_symbol_block_row) == 16, "symbol_block_row");
_Static_assert(offsetof(struct kmt_meta_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_meta_head, pair_len) == 4, "pair_len");
_Static_assert(offsetof(struct kmt_meta_head, pair_count) == 8, "pair_count");
_Static_assert(sizeof(struct kmt_meta_head) == 12, "meta_head");
_Static_assert(offsetof(struct kmt_pair_head, key_len) == 0, "key_len");
_Static_assert(offsetof(struct kmt_pair_head, value_len) == 4, "value_len");
_Static_assert(sizeof(struct kmt_pair_head) == 8, "pair_head");
_Static_assert(offsetof(struct kmt_attachment_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_attachment_head, name_len) == 4, "name_len");
_Static_assert(offsetof(struct kmt_attachment_head, contents_len) == 8, "contents_len");
_Static_assert(offsetof(struct kmt_attachment_head, time_first) == 16, "time_first");
_Static_assert(offsetof(struct kmt_attachment_head, time_last) == 24, "time_last");
_Static_assert(offsetof(struct kmt_attachment_head, flags) == 32, "flags");
_Static_assert(offsetof(struct kmt_attachment_head, reserved) == 36, "reserved");
_Static_assert(sizeof(struct kmt_attachment_head) == 40, "attachment_head");
_Static_assert(offsetof(struct kmt_line_row, address) == 0, "address");
_Static_assert(offsetof(struct kmt_line_row, function) == 8, "function");
_Static_assert(offsetof(struct kmt_line_row, file) == 16, "file");
_Static_assert(offsetof(struct kmt_line_row, line) == 24, "line");
_Static_assert(offsetof(struct kmt_line_row, depth) == 28, "depth");
_Static_assert(offsetof(struct kmt_line_row, reserved) == 30, "reserved");
_Static_assert(sizeof(struct kmt_line_row) == 32, "line_row");
_Static_assert(offsetof(struct kmt_cgroup_row, time) == 0, "time");
_Static_assert(offsetof(struct kmt_cgroup_row, id) == 8, "id");
_Static_assert(offsetof(struct kmt_cgroup_row, pid) == 16, "pid");
_Static_assert(offsetof(struct kmt_cgroup_row, hierarchy) == 20, "hierarchy");
_Static_assert(offsetof(struct kmt_cgroup_row, path) == 24, "path");
_Static_assert(sizeof(struct kmt_cgroup_row) == 32, "cgroup_row");
_Static_assert(offsetof(struct kmt_sums_row, time_first) == 0, "time_first");
_Static_assert(offsetof(struct kmt_sums_row, time_last) == 8, "time_last");
_Static_assert(offsetof(struct kmt_sums_row, call_site) == 16, "call_site");
_Static_assert(offsetof(struct kmt_sums_row, events) == 24, "events");
_Static_assert(offsetof(struct kmt_sums_row, bytes_req) == 32, "bytes_req");
_Static_assert(offsetof(struct kmt_sums_row, bytes_alloc) == 40, "bytes_alloc");
_Static_assert(offsetof(struct kmt_sums_row, function) == 48, "function");
_Static_assert(offsetof(struct kmt_sums_row, meaning) == 56, "meaning");
_Static_assert(offsetof(struct kmt_sums_row, present) == 58, "present");
_Static_assert(offsetof(struct kmt_sums_row, reserved) == 60, "reserved");
_Static_assert(sizeof(struct kmt_sums_row) == 64, "sums_row");
_Static_assert(offsetof(struct kmt_task_row, time) == 0, "time");
_Static_assert(offsetof(struct kmt_task_row, pid) == 8, "pid");
_Static_assert(offsetof(struct kmt_task_row, tgid) == 12, "tgid");
_Static_assert(offsetof(struct kmt_task_row, comm) == 16, "comm");
_Static_assert(sizeof(struct kmt_task_row) == 32, "task_row");
_Static_assert(offsetof(struct kmt_stats_row, cpu) == 0, "cpu");
_Static_assert(offsetof(struct kmt_stats_row, taken) == 4, "taken");
_Static_assert(offsetof(struct kmt_stats_row, present) == 8, "present");
_Static_assert(offsetof(struct kmt_stats_row, reserved) == 12, "reserved");
_Static_assert(offsetof(struct kmt_stats_row, entries) == 16, "entries");
_Static_assert(offsetof(struct kmt_stats_row, overrun) == 24, "overrun");
_Static_assert(offsetof(struct kmt_stats_row, commit_overrun) == 32, "commit_overrun");
_Static_assert(offsetof(struct kmt_stats_row, bytes) == 40, "bytes");
_Static_assert(offsetof(struct kmt_stats_row, dropped) == 48, "dropped");
_Static_assert(offsetof(struct kmt_stats_row, read) == 56, "read");
_Static_assert(offsetof(struct kmt_stats_row, oldest_time) == 64, "oldest_time");
_Static_assert(offsetof(struct kmt_stats_row, now_time) == 72, "now_time");
_Static_assert(offsetof(struct kmt_stats_row, sub_buffers) == 80, "sub_buffers");
_Static_assert(offsetof(struct kmt_stats_row, sub_buffers_damaged) == 88, "sub_buffers_damaged");
_Static_assert(offsetof(struct kmt_stats_row, discarded) == 96, "discarded");
_Static_assert(sizeof(struct kmt_stats_row) == 104, "stats_row");
_Static_assert(offsetof(struct kmt_sub_buffers_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_sub_buffers_head, loss_flags) == 4, "loss_flags");
_Static_assert(offsetof(struct kmt_sub_buffers_head, lost_events) == 8, "lost_events");
_Static_assert(offsetof(struct kmt_sub_buffers_head, t_base) == 16, "t_base");
_Static_assert(offsetof(struct kmt_sub_buffers_head, t_last) == 24, "t_last");
_Static_assert(offsetof(struct kmt_sub_buffers_head, first_event) == 32, "first_event");
_Static_assert(offsetof(struct kmt_sub_buffers_head, record_count) == 40, "record_count");
_Static_assert(offsetof(struct kmt_sub_buffers_head, sub_buffer_len) == 44, "sub_buffer_len");
_Static_assert(offsetof(struct kmt_sub_buffers_head, sub_buffer_count) == 48, "sub_buffer_count");
_Static_assert(offsetof(struct kmt_sub_buffers_head, timestamp_offset) == 52, "timestamp_offset");
_Static_assert(offsetof(struct kmt_sub_buffers_head, commit_offset) == 54, "commit_offset");
_Static_assert(offsetof(struct kmt_sub_buffers_head, commit_size) == 56, "commit_size");
_Static_assert(offsetof(struct kmt_sub_buffers_head, data_offset) == 58, "data_offset");
_Static_assert(offsetof(struct kmt_sub_buffers_head, class_limit) == 60, "class_limit");
_Static_assert(offsetof(struct kmt_sub_buffers_head, classes) == 64, "classes");
_Static_assert(sizeof(struct kmt_sub_buffers_head) == 72, "sub_buffers_head");
_Static_assert(offsetof(struct kmt_fold_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_fold_head, flags) == 4, "flags");
_Static_assert(offsetof(struct kmt_fold_head, number) == 8, "number");
_Static_assert(offsetof(struct kmt_fold_head, t_begin) == 16, "t_begin");
_Static_assert(offsetof(struct kmt_fold_head, t_end) == 24, "t_end");
_Static_assert(offsetof(struct kmt_fold_head, threshold) == 32, "threshold");
_Static_assert(offsetof(struct kmt_fold_head, row_count) == 40, "row_count");
_Static_assert(offsetof(struct kmt_fold_head, row_len) == 44, "row_len");
_Static_assert(offsetof(struct kmt_fold_head, cpu_count) == 48, "cpu_count");
_Static_assert(offsetof(struct kmt_fold_head, cpu_len) == 52, "cpu_len");
_Static_assert(offsetof(struct kmt_fold_head, bin_count) == 56, "bin_count");
_Static_assert(offsetof(struct kmt_fold_head, bin_len) == 60, "bin_len");
_Static_assert(offsetof(struct kmt_fold_head, rows_offset) == 64, "rows_offset");
_Static_assert(offsetof(struct kmt_fold_head, cpus_offset) == 68, "cpus_offset");
_Static_assert(offsetof(struct kmt_fold_head, bins_offset) == 72, "bins_offset");
_Static_assert(offsetof(struct kmt_fold_head, events_offset) == 76, "events_offset");
_Static_assert(offsetof(struct kmt_fold_head, event_count) == 80, "event_count");
_Static_assert(sizeof(struct kmt_fold_head) == 88, "fold_head");
_Static_assert(offsetof(struct kmt_fold_row, alloc) == 0, "alloc");
_Static_assert(offsetof(struct kmt_fold_row, free) == 4, "free");
_Static_assert(offsetof(struct kmt_fold_row, count) == 8, "count");
_Static_assert(offsetof(struct kmt_fold_row, cross_cpu) == 16, "cross_cpu");
_Static_assert(offsetof(struct kmt_fold_row, elsewhere) == 24, "elsewhere");
_Static_assert(offsetof(struct kmt_fold_row, length_sum) == 32, "length_sum");
_Static_assert(offsetof(struct kmt_fold_row, length_max) == 40, "length_max");
_Static_assert(offsetof(struct kmt_fold_row, over_ms) == 48, "over_ms");
_Static_assert(offsetof(struct kmt_fold_row, over_s) == 56, "over_s");
_Static_assert(offsetof(struct kmt_fold_row, first_bin) == 64, "first_bin");
_Static_assert(offsetof(struct kmt_fold_row, bin_count) == 68, "bin_count");
_Static_assert(sizeof(struct kmt_fold_row) == 72, "fold_row");
_Static_assert(offsetof(struct kmt_fold_cpu, cpu) == 0, "cpu");
_Static_assert(offsetof(struct kmt_fold_cpu, reserved) == 4, "reserved");
_Static_assert(offsetof(struct kmt_fold_cpu, events) == 8, "events");
_Static_assert(sizeof(struct kmt_fold_cpu) == 16, "fold_cpu");
_Static_assert(offsetof(struct kmt_fold_bin, bin) == 0, "bin");
_Static_assert(offsetof(struct kmt_fold_bin, count) == 4, "count");
_Static_assert(sizeof(struct kmt_fold_bin) == 8, "fold_bin");
_Static_assert(offsetof(struct kmt_table_head, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_table_head, row_len) == 4, "row_len");
_Static_assert(offsetof(struct kmt_table_head, row_count) == 8, "row_count");
_Static_assert(offsetof(struct kmt_table_head, heap_len) == 12, "heap_len");
_Static_assert(sizeof(struct kmt_table_head) == 16, "table_head");
_Static_assert(offsetof(struct kmt_index_row, offset) == 0, "offset");
_Static_assert(offsetof(struct kmt_index_row, t_base) == 8, "t_base");
_Static_assert(offsetof(struct kmt_index_row, t_last) == 16, "t_last");
_Static_assert(offsetof(struct kmt_index_row, first_event) == 24, "first_event");
_Static_assert(offsetof(struct kmt_index_row, lost_events) == 32, "lost_events");
_Static_assert(offsetof(struct kmt_index_row, record_count) == 40, "record_count");
_Static_assert(offsetof(struct kmt_index_row, loss_flags) == 44, "loss_flags");
_Static_assert(offsetof(struct kmt_index_row, classes) == 48, "classes");
_Static_assert(offsetof(struct kmt_index_row, header) == 56, "header");
_Static_assert(sizeof(struct kmt_index_row) == 120, "index_row");
_Static_assert(offsetof(struct kmt_trailer, head_len) == 0, "head_len");
_Static_assert(offsetof(struct kmt_trailer, chunk_count) == 4, "chunk_count");
_Static_assert(offsetof(struct kmt_trailer, file_len) == 8, "file_len");
_Static_assert(offsetof(struct kmt_trailer, event_count) == 16, "event_count");
_Static_assert(offsetof(struct kmt_trailer, event_bytes) == 24, "event_bytes");
_Static_assert(offsetof(struct kmt_trailer, index_offset) == 32, "index_offset");
_Static_assert(sizeof(struct kmt_trailer) == 40, "trailer");
#endif

#endif
