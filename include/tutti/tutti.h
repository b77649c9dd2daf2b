/* tutti: collective communication between processes, without MPI.
 *
 * This header is the whole binary interface: every exported symbol is declared here. C++ callers will
 * prefer <tutti/tutti.hpp>, which is a header-only layer over it with the same names.
 *
 * Model
 *   A process joins a *world* of ranks with tutti_init and gets a handle to the group of all ranks.
 *   Collectives are called on a group by all of its ranks, in the same order on each rank. Smaller
 *   groups are made from larger ones with tutti_subgroup, tutti_split and tutti_dup.
 *
 * Shapes
 *   `count` is always a number of elements *per rank*: of one rank's contribution, or of one rank's share
 *   of the result. For all_gather, gather, scatter, reduce_scatter and all_to_all the longer buffer
 *   therefore holds size*count elements, block r belonging to rank r. Counts of 0 are valid, and then
 *   buffers may be NULL. Buffers need no alignment. Input may be read-only memory.
 *
 * In place
 *   An operation is in place when input and output are the same memory in the following sense; any other
 *   overlap of input and output is refused with TUTTI_INVALID_ARGUMENT.
 *     broadcast                    there is one buffer
 *     reduce, all_reduce           input == output
 *     all_gather, gather (root)    input == output + rank*count elements
 *     scatter (root)               output == input + rank*count elements
 *     reduce_scatter               output == input + rank*count elements
 *     all_to_all                   input == output
 *
 * Ownership
 *   Buffers belong to the caller. A blocking call is done with them when it returns; an asynchronous one
 *   when tutti_work_wait, _wait_for or _test report that it is done. Arrays of pointers handed to the _list
 *   forms are copied before the call returns.
 *
 * Threads
 *   Any function may be called from any thread, but the calls on one group must come in one order that is
 *   the same on all ranks: two threads must not call on the same group at the same time without ordering
 *   their calls themselves. Different groups may be used from different threads freely. A child of fork
 *   must not use handles of its parent: each call then returns TUTTI_UNSUPPORTED.
 *
 * Results
 *   All ranks get bit-identical results, and the same from run to run for the same group shape, count, type,
 *   algorithm and binding of the ranks to processors. Integer sums and products wrap. float16 and bfloat16 are
 *   accumulated in float32 within a pass. min and max return NaN if any operand is NaN. average is the sum,
 *   divided by the group's size: rounded to nearest for floating point types, toward zero for integers (of the
 *   wrapped sum). Floating point is done in the mode (rounding, flushing of denormals) of the calling thread,
 *   which should be the same on all ranks.
 *
 * Errors
 *   Every function returns a tutti_status; tutti_last_error gives the message of this thread's last error.
 *   Outputs hold no meaningful value unless TUTTI_OK was returned.
 */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

#include <stddef.h>
#include <stdint.h>

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values ------------------------------------------------------------------------------------- */

/* What a call came to. The comment says what the caller can do. */
typedef enum tutti_status {
  TUTTI_OK = 0,
  TUTTI_INVALID_ARGUMENT = 1, /* fix the call */
  TUTTI_UNSUPPORTED = 2,      /* valid, but not to be had here */
  TUTTI_OUT_OF_RESOURCES = 3, /* memory, descriptors or another limit: the message names it */
  TUTTI_PEER_FAILED = 4,      /* a rank died or left: tutti_last_failed_rank says which */
  TUTTI_TIMEOUT = 5,          /* the deadline passed: the message names who was waited for */
  TUTTI_ABORTED = 6,          /* the group was given up because of an earlier error on some rank */
  TUTTI_MISMATCH = 7,         /* the ranks called different things: with TUTTI_CHECK=1 the message shows both calls,
                                 without it only lengths that differ are found */
  TUTTI_INTERNAL = 8          /* a fault of the library: please report it */
} tutti_status;

/* Element types. */
typedef enum tutti_type {
  TUTTI_INT8 = 0,
  TUTTI_UINT8 = 1,
  TUTTI_INT16 = 2,
  TUTTI_UINT16 = 3,
  TUTTI_INT32 = 4,
  TUTTI_UINT32 = 5,
  TUTTI_INT64 = 6,
  TUTTI_UINT64 = 7,
  TUTTI_FLOAT16 = 8,
  TUTTI_BFLOAT16 = 9,
  TUTTI_FLOAT32 = 10,
  TUTTI_FLOAT64 = 11
} tutti_type;

/* Reduction operators. The bitwise ones exist for integer types only. */
typedef enum tutti_op {
  TUTTI_SUM = 0,
  TUTTI_PRODUCT = 1,
  TUTTI_MIN = 2,
  TUTTI_MAX = 3,
  TUTTI_AVERAGE = 4,
  TUTTI_BIT_AND = 5,
  TUTTI_BIT_OR = 6,
  TUTTI_BIT_XOR = 7
} tutti_op;

typedef struct tutti_group tutti_group; /* one rank's handle to a group */
typedef struct tutti_work tutti_work;   /* an asynchronous operation under way */

/* The name of a status ("peer_failed"), type ("float32") or operator ("sum"); "?" for other values. The
 * strings are static. */
TUTTI_API const char* tutti_status_name(tutti_status status);
TUTTI_API const char* tutti_type_name(tutti_type type);
TUTTI_API const char* tutti_op_name(tutti_op op);

/* Bytes of one element, or 0 for a value that is no type. */
TUTTI_API size_t tutti_type_bytes(tutti_type type);

/* "MAJOR.MINOR.PATCH" of the library that is loaded. */
TUTTI_API const char* tutti_version(void);

/* The message of the last call on this thread that did not return TUTTI_OK, or "". Valid until this
 * thread's next call into the library. */
TUTTI_API const char* tutti_last_error(void);

/* The world rank that the last TUTTI_PEER_FAILED on this thread was about, or -1 if unknown. */
TUTTI_API int tutti_last_failed_rank(void);

/* ---- Joining and leaving ------------------------------------------------------------------------ */

/* How to join. Zero-initialise with TUTTI_INIT_OPTIONS and set what is needed; what is left out comes from
 * the environment, in this order: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT (torchrun's
 * names); TUTTI_STORE_FILE together with RANK and WORLD_SIZE; nothing of these: a world of one rank. */
typedef struct tutti_init_options {
  size_t struct_bytes;         /* sizeof(tutti_init_options) */
  int rank;                    /* -1: from the environment */
  int size;                    /* 0: from the environment */
  const char* store;           /* "host:port", "[v6]:port", "file:/path", or "memory:name" for ranks that are
                                  threads of one process; NULL: from the environment */
  const char* const* settings; /* NULL, or an array of "TUTTI_NAME=value" ended by NULL: goes before the
                                  environment */
} tutti_init_options;

#define TUTTI_INIT_OPTIONS \
  { sizeof(tutti_init_options), -1, 0, NULL, NULL }

/* Joins the world and gives its group of all ranks. Blocks until every rank has joined or the joining time
 * (TUTTI_JOIN_TIMEOUT, 5 minutes) is over. `options` may be NULL. A process may join several worlds.
 * Errors: INVALID_ARGUMENT (a setting; the message names it), TIMEOUT (names the ranks that are missing),
 * MISMATCH (library version, world size or a rank taken twice), PEER_FAILED, OUT_OF_RESOURCES. */
TUTTI_API tutti_status tutti_init(const tutti_init_options* options, tutti_group** world);

/* Gives a group back. Work under way on it is waited for first, and the handles of its works end with it: ask them for
 * what they came to before. When the last group of a world has been
 * freed the process leaves that world; rank 0 then stays until the others have left too, or at most the
 * joining time. A later use of the handle returns INVALID_ARGUMENT. NULL is allowed. */
TUTTI_API tutti_status tutti_group_free(tutti_group* group);

/* Gives up every operation under way or to come on this group and on the groups made from it, on all ranks:
 * they return TUTTI_ABORTED with `reason`. May be called from any thread, also while another is blocked in
 * an operation. A second call changes nothing. */
TUTTI_API tutti_status tutti_group_abort(tutti_group* group, const char* reason);

/* This process's rank in the group, and the number of its ranks; -1 for a handle that is no group. */
TUTTI_API int tutti_group_rank(const tutti_group* group);
TUTTI_API int tutti_group_size(const tutti_group* group);

/* The world rank of rank `rank` of this group, or -1. */
TUTTI_API int tutti_group_world_rank(const tutti_group* group, int rank);

/* Sets how long one operation on this group may take from now on, in microseconds; groups made later from it
 * inherit it. INT64_MAX: no deadline. Errors: INVALID_ARGUMENT (negative). The default is TUTTI_TIMEOUT, 30 minutes. */
TUTTI_API tutti_status tutti_group_set_timeout(tutti_group* group, int64_t timeout_us);

/* ---- Groups: each of these is called by all ranks of `group`, and blocks --------------------------- */

/* The group of the given ranks of `group`, in the given order. Every rank passes the same list. A rank that is
 * not in the list gets NULL. Errors: INVALID_ARGUMENT (rank out of range or twice), MISMATCH. */
TUTTI_API tutti_status tutti_subgroup(tutti_group* group, const int* ranks, size_t rank_count, tutti_group** subgroup);

/* One group per color >= 0, its ranks ordered by key, then by their rank in `group`. A rank that passes
 * TUTTI_NO_COLOR gets NULL. */
#define TUTTI_NO_COLOR (-1)
TUTTI_API tutti_status tutti_split(tutti_group* group, int color, int key, tutti_group** part);

/* A group of the same ranks with an operation sequence of its own. */
TUTTI_API tutti_status tutti_dup(tutti_group* group, tutti_group** copy);

/* ---- Memory ------------------------------------------------------------------------------------- */

/* Allocates a window: zeroed memory, page aligned, that the group's peers reach directly. Operations on windows
 * move data once. Belongs to the world of `group`; freed by tutti_free or with the world. 0 bytes gives NULL.
 * Errors: OUT_OF_RESOURCES. Any rank may call it at any time: it is not a collective. */
TUTTI_API tutti_status tutti_alloc(tutti_group* group, size_t bytes, void** memory);
TUTTI_API tutti_status tutti_free(tutti_group* group, void* memory);

/* Makes memory of the caller's known for direct transfers until tutti_unregister; it stays the caller's, and
 * must stay mapped until then. Operations are right without it. Inside a node it changes nothing: such memory is
 * read by the kernel where that is allowed, else copied through the library's own. */
TUTTI_API tutti_status tutti_register(tutti_group* group, void* memory, size_t bytes);
TUTTI_API tutti_status tutti_unregister(tutti_group* group, void* memory);

/* ---- Operations ----------------------------------------------------------------------------------
 * Common to all: block until this rank's part is done; the _async form returns at once with a work.
 * `options` may be NULL. Errors of each: INVALID_ARGUMENT, PEER_FAILED, TIMEOUT, ABORTED, MISMATCH,
 * OUT_OF_RESOURCES. After any error but INVALID_ARGUMENT the group takes no more operations. */

typedef struct tutti_options {
  size_t struct_bytes; /* sizeof(tutti_options) */
  int64_t timeout_us;  /* deadline of this operation from its start; 0: the group's; INT64_MAX: none */
} tutti_options;

#define TUTTI_OPTIONS \
  { sizeof(tutti_options), 0 }

/* Returns when every rank has called it. */
TUTTI_API tutti_status tutti_barrier(tutti_group* group, const tutti_options* options);

/* Copies count elements from root's buffer into everyone's. */
TUTTI_API tutti_status tutti_broadcast(tutti_group* group, void* buffer, size_t count, tutti_type type, int root,
                                       const tutti_options* options);

/* output on root [count] = op over all ranks' input [count]. output is ignored elsewhere. */
TUTTI_API tutti_status tutti_reduce(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                    tutti_op op, int root, const tutti_options* options);

/* output [count] = op over all ranks' input [count]. */
TUTTI_API tutti_status tutti_all_reduce(tutti_group* group, const void* input, void* output, size_t count,
                                        tutti_type type, tutti_op op, const tutti_options* options);

/* output [count] = block `rank` of op over all ranks' input [size*count]. */
TUTTI_API tutti_status tutti_reduce_scatter(tutti_group* group, const void* input, void* output, size_t count,
                                            tutti_type type, tutti_op op, const tutti_options* options);

/* output [count] = block `rank` of root's input [size*count]. input is ignored elsewhere. */
TUTTI_API tutti_status tutti_scatter(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                     int root, const tutti_options* options);

/* output [size*count] on root = the ranks' input [count], one after the other. output is ignored elsewhere. */
TUTTI_API tutti_status tutti_gather(tutti_group* group, const void* input, void* output, size_t count, tutti_type type,
                                    int root, const tutti_options* options);

/* output [size*count] = the ranks' input [count], one after the other. */
TUTTI_API tutti_status tutti_all_gather(tutti_group* group, const void* input, void* output, size_t count,
                                        tutti_type type, const tutti_options* options);

/* block r of output [size*count] = block `rank` of rank r's input [size*count]. */
TUTTI_API tutti_status tutti_all_to_all(tutti_group* group, const void* input, void* output, size_t count,
                                        tutti_type type, const tutti_options* options);

/* Sends to, and receives from, one rank of the group. The k-th send from A to B meets the k-th receive of B from A;
 * both name the same count and type. Only these two ranks take part. A send may return before it was received, or
 * wait until it is: ranks that send to each other use an _async form. */
TUTTI_API tutti_status tutti_send(tutti_group* group, const void* buffer, size_t count, tutti_type type, int to,
                                  const tutti_options* options);
TUTTI_API tutti_status tutti_recv(tutti_group* group, void* buffer, size_t count, tutti_type type, int from,
                                  const tutti_options* options);

/* The same with a list of `size` separate pieces of count elements each in place of the [size*count] buffer. A
 * rank may use the list form where its peers use the other. The list is ignored where the buffer would be. */
TUTTI_API tutti_status tutti_scatter_list(tutti_group* group, const void* const* inputs, void* output, size_t count,
                                          tutti_type type, int root, const tutti_options* options);
TUTTI_API tutti_status tutti_gather_list(tutti_group* group, const void* input, void* const* outputs, size_t count,
                                         tutti_type type, int root, const tutti_options* options);
TUTTI_API tutti_status tutti_all_gather_list(tutti_group* group, const void* input, void* const* outputs, size_t count,
                                             tutti_type type, const tutti_options* options);
TUTTI_API tutti_status tutti_all_to_all_list(tutti_group* group, const void* const* inputs, void* const* outputs,
                                             size_t count, tutti_type type, const tutti_options* options);

/* ---- Asynchronous forms: the same arguments, and a work to wait on ---------------------------------
 * Several may be under way on one group. They make progress inside later calls into the library. */
TUTTI_API tutti_status tutti_barrier_async(tutti_group* group, const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_broadcast_async(tutti_group* group, void* buffer, size_t count, tutti_type type, int root,
                                             const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_reduce_async(tutti_group* group, const void* input, void* output, size_t count,
                                          tutti_type type, tutti_op op, int root, const tutti_options* options,
                                          tutti_work** work);
TUTTI_API tutti_status tutti_all_reduce_async(tutti_group* group, const void* input, void* output, size_t count,
                                              tutti_type type, tutti_op op, const tutti_options* options,
                                              tutti_work** work);
TUTTI_API tutti_status tutti_reduce_scatter_async(tutti_group* group, const void* input, void* output, size_t count,
                                                  tutti_type type, tutti_op op, const tutti_options* options,
                                                  tutti_work** work);
TUTTI_API tutti_status tutti_scatter_async(tutti_group* group, const void* input, void* output, size_t count,
                                           tutti_type type, int root, const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_gather_async(tutti_group* group, const void* input, void* output, size_t count,
                                          tutti_type type, int root, const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_all_gather_async(tutti_group* group, const void* input, void* output, size_t count,
                                              tutti_type type, const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_all_to_all_async(tutti_group* group, const void* input, void* output, size_t count,
                                              tutti_type type, const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_send_async(tutti_group* group, const void* buffer, size_t count, tutti_type type, int to,
                                        const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_recv_async(tutti_group* group, void* buffer, size_t count, tutti_type type, int from,
                                        const tutti_options* options, tutti_work** work);
TUTTI_API tutti_status tutti_scatter_list_async(tutti_group* group, const void* const* inputs, void* output,
                                                size_t count, tutti_type type, int root, const tutti_options* options,
                                                tutti_work** work);
TUTTI_API tutti_status tutti_gather_list_async(tutti_group* group, const void* input, void* const* outputs,
                                               size_t count, tutti_type type, int root, const tutti_options* options,
                                               tutti_work** work);
TUTTI_API tutti_status tutti_all_gather_list_async(tutti_group* group, const void* input, void* const* outputs,
                                                   size_t count, tutti_type type, const tutti_options* options,
                                                   tutti_work** work);
TUTTI_API tutti_status tutti_all_to_all_list_async(tutti_group* group, const void* const* inputs, void* const* outputs,
                                                   size_t count, tutti_type type, const tutti_options* options,
                                                   tutti_work** work);

/* Blocks until the work is done, and returns what it came to. May be called again: the answer stays. */
TUTTI_API tutti_status tutti_work_wait(tutti_work* work);

/* Blocks for at most timeout_us (0: not at all). *done says whether the work ended; only then is the returned
 * status what it came to, else it is TUTTI_OK. The work goes on when it is not done. */
TUTTI_API tutti_status tutti_work_wait_for(tutti_work* work, int64_t timeout_us, int* done);

/* Polls once: wait_for with 0. */
TUTTI_API tutti_status tutti_work_test(tutti_work* work, int* done);

/* Gives the work back; one that is still under way is waited for first. NULL is allowed. */
TUTTI_API tutti_status tutti_work_free(tutti_work* work);

/* ---- Explaining --------------------------------------------------------------------------------- */

/* The name of the algorithm that an operation would use: operation by name ("all_reduce"), `count` per rank. The
 * string belongs to the library and stays valid for the life of the group. */
TUTTI_API tutti_status tutti_explain(tutti_group* group, const char* operation, size_t count, tutti_type type,
                                     const char** algorithm);

/* Copies up to `bytes` of a JSON object that describes this rank's world into text, ended by NUL: version,
 * ranks, nodes, transport, host, this rank's place on the machine, the machine's summary, and each setting with its
 * value and source. *needed is the whole length with the NUL. */
TUTTI_API tutti_status tutti_describe(tutti_group* group, char* text, size_t bytes, size_t* needed);

#ifdef __cplusplus
}
#endif
#endif
