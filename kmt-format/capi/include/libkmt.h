/*
 * libkmt: .kmt files, traces of Linux kernel memory events, read from C. The manual is docs/c.md of kmt.
 *
 * Any pointer to an object may be NULL: functions return 0, false, -1 or NULL then. Other pointers have to be valid, and
 * what functions return must not be freed. Functions that fail return NULL and keep an error for the thread.
 * A thread has its own kmt_events; a kmt_trace may be used by several at the same time.
 */

#ifndef LIBKMT_H
#define LIBKMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * No meaning that this library knows.
 */
#define KMT_OTHER 0

/**
 * An allocation by size: `kmem:kmalloc`, `kmem:kmalloc_node`.
 */
#define KMT_KMALLOC 1

/**
 * A free by address: `kmem:kfree`.
 */
#define KMT_KFREE 2

/**
 * An allocation from a cache: `kmem:kmem_cache_alloc`, `kmem:kmem_cache_alloc_node`.
 */
#define KMT_CACHE_ALLOC 3

/**
 * A free to a cache: `kmem:kmem_cache_free`.
 */
#define KMT_CACHE_FREE 4

/**
 * `kmem:mm_page_alloc`.
 */
#define KMT_PAGE_ALLOC 5

/**
 * `kmem:mm_page_free`.
 */
#define KMT_PAGE_FREE 6

/**
 * `kmem:mm_page_free_batched`: comes besides `mm_page_free`, is never a free of its own.
 */
#define KMT_PAGE_FREE_BATCHED 7

/**
 * `kmem:rss_stat`.
 */
#define KMT_RSS_STAT 8

/**
 * `ftrace:kernel_stack`.
 */
#define KMT_KERNEL_STACK 9

/**
 * `kmt:kvfree_call_rcu`, a probe at the entry of that function: an object is handed over, and freed after a grace
 * period without an event of its own.
 */
#define KMT_FREE_RCU 10

/**
 * No meaning that this library knows.
 */
#define KMT_ROLE_NONE 0

/**
 * Event id, `common_type`.
 */
#define KMT_ROLE_EVENT_ID 1

/**
 * `common_flags`.
 */
#define KMT_ROLE_FLAGS 2

/**
 * `common_preempt_count`.
 */
#define KMT_ROLE_PREEMPT_COUNT 3

/**
 * Thread id, `common_pid`.
 */
#define KMT_ROLE_PID 4

/**
 * Address of a slab object.
 */
#define KMT_ROLE_PTR 5

/**
 * Return address of the allocator's caller.
 */
#define KMT_ROLE_CALL_SITE 6

/**
 * Bytes requested.
 */
#define KMT_ROLE_BYTES_REQ 7

/**
 * Bytes handed out.
 */
#define KMT_ROLE_BYTES_ALLOC 8

/**
 * Allocation flags of the traced kernel.
 */
#define KMT_ROLE_GFP_FLAGS 9

/**
 * NUMA node requested; -1 any.
 */
#define KMT_ROLE_NODE 10

/**
 * Name of the cache.
 */
#define KMT_ROLE_CACHE_NAME 11

/**
 * True if memory-cgroup accounting was requested.
 */
#define KMT_ROLE_ACCOUNTED 12

/**
 * Page frame number; all ones in an allocation that failed.
 */
#define KMT_ROLE_PFN 13

/**
 * log2 of a number of pages.
 */
#define KMT_ROLE_ORDER 14

/**
 * Migrate type requested.
 */
#define KMT_ROLE_MIGRATETYPE 15

/**
 * A size of an address space, `rss_stat`.
 */
#define KMT_ROLE_RSS_SIZE 16

/**
 * Return addresses, innermost first.
 */
#define KMT_ROLE_STACK 17

/**
 * Number of return addresses.
 */
#define KMT_ROLE_STACK_DEPTH 18

/**
 * Time when a function was entered.
 */
#define KMT_ROLE_ENTRY_TIME 19

/**
 * Time when a function returned.
 */
#define KMT_ROLE_RETURN_TIME 20

/**
 * Address of an object's `rcu_head`.
 */
#define KMT_ROLE_RCU_HEAD 21

/**
 * Second argument of `kvfree_call_rcu`: below 4096 the offset of its `rcu_head` in the object (as in
 * Linux 5.9), else that address.
 */
#define KMT_ROLE_RCU_OBJECT 22

/**
 * Result of `kmt_next`.
 */
typedef enum kmt_item {
  /**
   * An internal error.
   */
  KMT_ITEM_FAILED = -1,
  /**
   * There are no more events.
   */
  KMT_ITEM_END = 0,
  /**
   * An event.
   */
  KMT_ITEM_EVENT = 1,
  /**
   * A place of one CPU where events are missing.
   */
  KMT_ITEM_LOSS = 2,
} kmt_item;

/**
 * Type of a field's value.
 */
typedef enum kmt_kind {
  /**
   * There is no such field.
   */
  KMT_KIND_NONE = 0,
  /**
   * A number without sign: `kmt_unsigned`.
   */
  KMT_KIND_UNSIGNED = 1,
  /**
   * A number with sign: `kmt_signed`.
   */
  KMT_KIND_SIGNED = 2,
  /**
   * Text: `kmt_bytes`.
   */
  KMT_KIND_TEXT = 3,
  /**
   * Numbers or a structure, in the traced kernel's byte order: `kmt_bytes`.
   */
  KMT_KIND_BYTES = 4,
} kmt_kind;

/**
 * The events of a trace in the kernel's order, and where they are missing. Each thread opens its own.
 */
typedef struct kmt_events kmt_events;

/**
 * A trace. Several threads may use one at the same time.
 */
typedef struct kmt_trace kmt_trace;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Text of the last error in this thread; empty if there was none. Valid until the next error in this thread.
 */
const char *kmt_error_text(void);

/**
 * Short name of that error, such as "not-kmt", "limit-exceeded", "io" or "usage"; it does not change between versions.
 */
const char *kmt_error_code(void);

/**
 * Opens a file; NULL and an error if it cannot be read.
 *
 * A regular file is mapped: do not truncate the file while the trace is open (SIGBUS).
 */
struct kmt_trace *kmt_open(const char *path);

/**
 * The same with other limits: "NAME=VALUE", separated by spaces. Errors name the limit that a file exceeds.
 */
struct kmt_trace *kmt_open_with_limits(const char *path, const char *limits);

/**
 * Opens a file in memory, which must stay as it is until the trace and all its events are closed.
 */
struct kmt_trace *kmt_open_memory(const uint8_t *data, size_t size);

/**
 * Closes a trace. Events that were opened on it stay usable.
 */
void kmt_close(struct kmt_trace *trace);

/**
 * Number of events in the file.
 */
uint64_t kmt_event_count(const struct kmt_trace *trace);

/**
 * True if the file was finished by its writer.
 */
bool kmt_is_finished(const struct kmt_trace *trace);

/**
 * True if lives of objects may be folded: the file has sums of most events instead of the events. Functions of events
 * give those of objects that lived longer, then, and `kmt_event_count` counts only these.
 */
bool kmt_is_folded(const struct kmt_trace *trace);

/**
 * Number of events that the file has as sums; a minimum if `is_minimum` is set to true: an interval is missing or damaged.
 */
uint64_t kmt_folded_event_count(const struct kmt_trace *trace,
                                bool *is_minimum);

/**
 * Number of damaged places found when opening. Damage inside event chunks is found when they are read, and is a loss.
 */
uint64_t kmt_damage_count(const struct kmt_trace *trace);

/**
 * Text of one of those places, as `kmt_symbol` gives text; 0 if it is not listed.
 */
size_t kmt_damage_text(const struct kmt_trace *trace, size_t index, char *buffer, size_t size);

/**
 * Size of the traced kernel's long in bytes: 4 or 8.
 */
uint32_t kmt_long_size(const struct kmt_trace *trace);

/**
 * True if the traced kernel is big-endian: the order of numbers in the bytes of `kmt_bytes`.
 */
bool kmt_is_big_endian(const struct kmt_trace *trace);

/**
 * True if times are in nanoseconds; else they are ticks of a clock of unknown rate.
 */
bool kmt_clock_is_ns(const struct kmt_trace *trace);

/**
 * Value of a key of the file, such as "uname"; NULL if it has none. Valid until the trace is closed.
 */
const uint8_t *kmt_meta(const struct kmt_trace *trace, const char *key, size_t *size);

/**
 * A file of the target that the trace carries, such as "slabinfo.before"; NULL if it does not. Valid as that.
 */
const uint8_t *kmt_attachment(const struct kmt_trace *trace, const char *name, size_t *size);

/**
 * Writes an address as `symbol+0xoffset/0xsize [module]`, or in hex where no symbol is known.
 *
 * As snprintf: at most `size` bytes, the NUL included, and the length of the whole text is returned.
 */
size_t kmt_symbol(const struct kmt_trace *trace, uint64_t address, char *buffer, size_t size);

/**
 * Opens the events of a trace, which stand before the first one; NULL if the trace is NULL.
 */
struct kmt_events *kmt_events_open(const struct kmt_trace *trace);

/**
 * Closes events.
 */
void kmt_events_close(struct kmt_events *events);

/**
 * Goes to the next event or loss: more than 0 while there is one.
 *
 * Events come as the kernel would print them: always that of the CPU whose next event is the oldest.
 */
enum kmt_item kmt_next(struct kmt_events *events);

/**
 * Time of the current event in the clock's unit; 0 at a loss.
 */
uint64_t kmt_time(const struct kmt_events *events);

/**
 * CPU of the current event or loss.
 */
uint32_t kmt_cpu(const struct kmt_events *events);

/**
 * Number of the current event in this order, from 1.
 */
uint64_t kmt_number(const struct kmt_events *events);

/**
 * Name of the current event, such as "kmalloc"; empty at a loss. Valid until the trace and its events are closed.
 */
const char *kmt_name(const struct kmt_events *events);

/**
 * System of the current event, such as "kmem". Valid as its name.
 */
const char *kmt_system(const struct kmt_events *events);

/**
 * Number of the current event's class, which names, fields and meaning depend on; UINT32_MAX at a loss.
 */
uint32_t kmt_class(const struct kmt_events *events);

/**
 * Meaning of the current event, such as KMT_KMALLOC; KMT_OTHER for all that have none.
 */
uint16_t kmt_meaning(const struct kmt_events *events);

/**
 * Thread that was running.
 */
int32_t kmt_pid(const struct kmt_events *events);

/**
 * Name of that thread at that time; NULL if not recorded. Valid until `kmt_next`.
 */
const char *kmt_comm(struct kmt_events *events);

/**
 * Return addresses of the current event, the innermost first, into `addresses`, at most `capacity`; how many it has.
 *
 * Events recorded with stacks have theirs in an event of their own after them, "kernel_stack": `kmt_stack_of`.
 */
size_t kmt_stack(const struct kmt_events *events,
                 uint64_t *addresses,
                 size_t capacity);

/**
 * Number of the event that the current one, a "kernel_stack", is the stack of; 0 if it is none, or that is not known.
 */
uint64_t kmt_stack_of(const struct kmt_events *events);

/**
 * Of the second event of one large kmalloc, which kernels 6.10 and later report twice: call site of the first event; false for
 * all other events. The allocation counts once, at the second event: a sum takes it back at this call site.
 */
bool kmt_duplicate_call_site(const struct kmt_events *events,
                             uint64_t *call_site);

/**
 * Of a loss: events lost on the target, as the kernel counted them.
 */
uint64_t kmt_loss_lost(const struct kmt_events *events);

/**
 * Of a loss: events that are missing because the file is damaged.
 */
uint64_t kmt_loss_damaged(const struct kmt_events *events);

/**
 * Of a loss: whether the numbers above are minimums. The kernel did not count, or what it wrote was damaged.
 */
bool kmt_loss_is_minimum(const struct kmt_events *events);

/**
 * Of a loss: time of the event before it on its CPU; false if there is none.
 */
bool kmt_loss_after(const struct kmt_events *events, uint64_t *time);

/**
 * Of a loss: time of the next event on its CPU; false if there is none.
 */
bool kmt_loss_before(const struct kmt_events *events, uint64_t *time);

/**
 * Number of the current event's fields, the common ones first.
 */
uint32_t kmt_field_count(const struct kmt_events *events);

/**
 * Index of the field of that name, such as "bytes_req"; -1 if the current event has none. The same for all events of
 * a class.
 */
int32_t kmt_field_named(const struct kmt_events *events,
                        const char *name);

/**
 * Index of the first field with that role, such as KMT_ROLE_BYTES_REQ, which does not depend on the kernel version; -1
 * if there is none.
 */
int32_t kmt_field_with(const struct kmt_events *events,
                       uint16_t role);

/**
 * Writes the name of a field, as `kmt_symbol` writes text; 0 if there is no such field.
 */
size_t kmt_field_name(const struct kmt_events *events, int32_t field, char *buffer, size_t size);

/**
 * Type of a field's value.
 */
enum kmt_kind kmt_field_kind(const struct kmt_events *events, int32_t field);

/**
 * The number in a field: its 64 bits where it has a sign. False, and `value` as it was, if it is not a number, or the
 * index is -1.
 */
bool kmt_unsigned(const struct kmt_events *events,
                  int32_t field,
                  uint64_t *value);

/**
 * The number in a field, with its sign; likewise.
 */
bool kmt_signed(const struct kmt_events *events, int32_t field, int64_t *value);

/**
 * The bytes of text or an array, and their number; NULL if it is a number, or the index is -1. Valid until `kmt_next`.
 * Text has no NUL at its end.
 */
const uint8_t *kmt_bytes(const struct kmt_events *events,
                         int32_t field,
                         size_t *size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LIBKMT_H */
