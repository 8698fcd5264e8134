/* SPDX-License-Identifier: MIT
 *
 * sluice: local inference of large language models, at the speed of the memory bus and with a steady hand.
 *
 * The one public header. C99 and C++. A program opens a model (a GGUF file), creates an engine (the model compiled to
 * a static plan on one backend, with all memory taken), and makes steps: a step is a batch of rows (token, sequence,
 * position), and gives logits for the rows that want them. Prefill, decode, several users and the checking of drafts
 * are all the same step with other rows.
 *
 * Errors: every function that can fail returns a sluice_status; sluice_last_error() is the reason, one sentence, of the
 * last failure on the calling thread. Out-parameters are NULL or 0 after a failure. The library never prints, exits, or
 * reads the environment, except SLUICE_CPU (the highest instruction set to use: generic; avx2, avx512, amx; neon,
 * dotprod, i8mm), read when an engine is created.
 *
 * Ownership: what a function named create, open or a `char **` gives you is yours, and goes back by the matching
 * destroy, close or sluice_free; every other pointer is borrowed, and each declaration says until when.
 *
 * Threads: a model is immutable and may be shared. An engine, a sampler and a stream belong to one thread at a time.
 *
 * Units are in the names: _bytes, _ms. Shapes are written (rows, columns), row-major. Text is UTF-8 with explicit
 * length where it may hold any bytes. Structs that you fill begin with a size, set by their _default function.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_VERSION "0.1.0"

typedef enum sluice_status {
    SLUICE_OK = 0,
    SLUICE_BAD_ARG,     /* the caller's mistake: a null handle, an option out of range */
    SLUICE_NO_MEMORY,   /* an allocation failed, or a request is larger than the machine */
    SLUICE_IO,          /* a file cannot be opened, read or written */
    SLUICE_BAD_FILE,    /* a file that breaks its format */
    SLUICE_UNSUPPORTED, /* well-formed, but an architecture, type or option that sluice lacks; the reason names it */
    SLUICE_FULL,        /* the context, the KV pool or an output buffer is full */
    SLUICE_CANCELLED,   /* a callback asked to stop */
    SLUICE_BAD_INPUT,   /* text, JSON or a template that cannot be used */
    SLUICE_DEVICE,      /* a device failed or is not there */
    SLUICE_INTERNAL     /* a bug of sluice, found by a check */
} sluice_status;

const char *sluice_last_error(void);                  /* never NULL; valid until the thread's next failure */
const char *sluice_status_name(sluice_status status); /* static */
void sluice_free(void *ptr);                          /* what a `char **` parameter gave; NULL is fine */

/* Called while something long goes on: n of total (bytes or tokens). A non-zero result stops it (SLUICE_CANCELLED). */
typedef int sluice_progress(void *user, uint64_t n, uint64_t total);

/* ---- files: any GGUF file, also of an architecture that sluice cannot run ------------------------------------ */

typedef struct sluice_file sluice_file;

sluice_status sluice_file_open(sluice_file **out, const char *path);
void sluice_file_close(sluice_file **file); /* and sets *file to NULL; NULL is fine */

/* Everything in the file's header: version, metadata, tensors, split files. As text for people, or as one JSON object.
 * Arrays longer than max_array elements are cut (0: none are). */
sluice_status sluice_file_describe(const sluice_file *file, bool json, size_t max_array, char **text);

/* ---- models ------------------------------------------------------------------------------------------------ */

typedef struct sluice_model sluice_model;

typedef struct sluice_model_options {
    size_t size;
    bool vocab_only;           /* only tokens and template: tokenize and render work, engines do not */
    bool header_only;          /* tensor data may be missing from the file: explain works, engines do not */
    bool check;                /* read all weights once and refuse NaN and infinities */
    const char *pre;           /* pre-tokenizer to use in place of the file's; NULL = the file's */
    sluice_progress *progress; /* of reading the file for the check; may be NULL */
    void *user;
} sluice_model_options;

typedef struct sluice_model_info {
    const char *arch, *name; /* valid as long as the model; name may be "" */
    const char *type;        /* what most weights are, e.g. "Q4_K" */
    int32_t n_layer, n_embd, n_head, n_head_kv, n_vocab;
    int32_t n_ctx_train; /* positions it was trained for */
    uint64_t n_params;
    uint64_t file_bytes, weight_bytes;
    int32_t bos, eos; /* -1: none */
    bool has_tokenizer, has_chat_template, adds_bos;
} sluice_model_info;

sluice_model_options sluice_model_options_default(void);
sluice_status sluice_model_open(sluice_model **out, const char *path, const sluice_model_options *options);
void sluice_model_close(sluice_model **model); /* engines first */
sluice_status sluice_model_get_info(const sluice_model *model, sluice_model_info *out);
bool sluice_model_is_stop(const sluice_model *model, int32_t token); /* ends a generation */

/* ---- text -------------------------------------------------------------------------------------------------- */

enum {
    SLUICE_ADD_BOS = 1,       /* encode: begin and end tokens where the model wants them */
    SLUICE_PARSE_SPECIAL = 2, /* encode: control tokens written in the text become their ids */
    SLUICE_SHOW_SPECIAL = 4   /* decode: control tokens print their text */
};

/* *n gets the number of ids (bytes) there are; at most cap are written, and if cap is smaller the status is SLUICE_FULL
 * unless cap is 0, which only counts. No byte sequence fails. text may hold NULs and invalid UTF-8. */
sluice_status sluice_encode(const sluice_model *model, int32_t *ids, size_t cap, size_t *n, const char *text,
                            size_t n_bytes, unsigned flags);
/* The exact bytes of a sequence of ids (not NUL-terminated). An id out of range is SLUICE_BAD_ARG. */
sluice_status sluice_decode(const sluice_model *model, char *text, size_t cap, size_t *n, const int32_t *ids,
                            size_t n_ids, unsigned flags);

/* A stream gives the text of one token after another in whole UTF-8 characters. */
typedef struct sluice_stream sluice_stream;
sluice_status sluice_stream_create(sluice_stream **out, const sluice_model *model, unsigned flags);
void sluice_stream_destroy(sluice_stream **stream);
/* The text that the token completes, perhaps "" (not NUL-terminated); valid until the next call. token = -1: the end;
 * gives what was held back. */
sluice_status sluice_stream_push(sluice_stream *stream, int32_t token, const char **text, size_t *n_bytes);

/* The prompt of a conversation by a chat template: the model's own, or `template_text` if it is not NULL (then model
 * may be NULL). conversation: JSON {"messages": [...], "tools": [...], "add_generation_prompt": true, ...}; further
 * keys are passed to the template. now_unix: what a template takes for the present time, seconds since 1970 in local
 * time. */
sluice_status sluice_render(const sluice_model *model, const char *template_text, const char *conversation,
                            int64_t now_unix, char **text);

/* ---- engines ----------------------------------------------------------------------------------------------- */

typedef struct sluice_engine sluice_engine;

/* Copies of the weights in the order of the kernels: faster, for as much memory again. */
typedef enum sluice_repack {
    SLUICE_REPACK_AUTO = 0, /* if the copies fit into free memory beside everything else */
    SLUICE_REPACK_ON,
    SLUICE_REPACK_OFF /* weights are read where the file is mapped */
} sluice_repack;

typedef struct sluice_engine_options {
    size_t size;
    const char *backend;      /* "cpu" (default), "ref" */
    int32_t n_ctx;            /* positions of a sequence; 0 = what the model was trained for, or 4096 if that is more */
    int32_t n_seq;            /* sequences that may live at once; default 1 */
    int32_t n_row_max;        /* rows of a step: the prefill chunk; default 512 */
    int32_t n_logit_max;      /* rows of a step that may want logits; default 8 */
    int32_t n_thread;         /* decode; 0 = what a short measurement at creation finds fastest */
    int32_t n_thread_prefill; /* 0 = n_thread, or measured if that is 0 */
    /* Types of K and V in the cache: "f32", "f16", "bf16", "q8_0", "q5_0", "q4_0". NULL = f16 (on "ref" f32); both NULL
     * = q8_0 if f16 does not fit into free memory. */
    const char *kv_k, *kv_v;
    sluice_repack repack;      /* default SLUICE_REPACK_AUTO */
    bool wire;                 /* lock weights and workspace into memory as far as the system allows */
    sluice_progress *progress; /* of reading weights in; may be NULL */
    void *user;
    bool prefix_cache; /* what sequences let go of stays for others to begin with, while its memory is not needed;
                          default false */
    bool kv_rotate; /* V of the types q8_0, q5_0 and q4_0 is rotated (Walsh-Hadamard), which spreads outliers; K never;
                       default true */
    const char *cache_path; /* JSON file that remembers what was measured here; NULL = measure each time */
    /* A folder (made if it is not there; private, for it holds prompts) where prefixes are kept beyond the pool and the
     * process: see sluice_prefix_save. Includes prefix_cache. NULL = none (default). */
    const char *prefix_path;
    uint64_t prefix_bytes; /* that its files may have together; those used longest ago go first; default 8 GiB */
    /* A sequence whose n_ctx positions (rounded up to whole blocks of 32) are full goes on: of what is before the next
     * row it sees the first 32 positions and the newest n_ctx - 64 at least. Positions go on counting. Backends that
     * cannot do it refuse. default false: SLUICE_FULL. */
    bool ctx_window;
} sluice_engine_options;

typedef struct sluice_engine_info {
    char device[96];
    int32_t n_ctx, n_seq, n_row_max, n_logit_max, n_thread, n_thread_prefill;
    uint64_t weight_bytes, kv_bytes, workspace_bytes, other_bytes; /* taken at start */
    uint64_t copy_bytes;        /* repacked weights; then weight_bytes of the file need not stay in memory */
    uint64_t wired_bytes;       /* locked, if asked for */
    uint64_t token_bytes;       /* read from memory for one decoded token, without the KV cache */
    uint64_t kv_position_bytes; /* KV cache bytes of one position */
    char kv_k[8], kv_v[8];      /* types of the cache */
    double read_gb_s; /* of a device with memory of its own: read bandwidth in 10^9 bytes a second, measured at start on
                         its copies of weights; else 0 */
} sluice_engine_info;

typedef struct sluice_engine_stats { /* since creation */
    uint64_t n_step, n_row;
    uint64_t n_alloc; /* allocations inside steps: a bug if not 0 */
    /* Page faults of the whole process, counted all of the time: a step asks the kernel for nothing. Those of a loop
     * are the difference of two readings; a loop of steps, samples and stream pushes has none. */
    uint64_t n_minor_fault, n_major_fault;
    /* Positions of prompts: found by sluice_seq_reuse or computed by sluice_prefill; of them those that were in the
     * pool, and those that came from the folder of prefixes. The others were computed. */
    uint64_t n_prompt, n_reused, n_disk;
    /* Blocks of the KV pool now (of layers that keep all positions): all; held by sequences; cached, free for whoever
     * needs them. And cached ones given up so far. */
    uint64_t n_blk, n_blk_held, n_blk_cached, n_evicted;
    uint64_t n_pos_held; /* positions in held blocks, each once; what is missing to n_blk_held * 32 is fragmentation */
    uint64_t disk_bytes; /* in the folder of prefixes */
} sluice_engine_stats;

typedef struct sluice_row {
    int32_t token;
    int32_t seq; /* 0 .. n_seq-1 */
    int32_t pos; /* the sequence's length so far, then rising by one for each of its rows in the step */
    bool wants_logits;
} sluice_row;

sluice_engine_options sluice_engine_options_default(void);
/* The model must outlive the engine. Takes all memory there will ever be; what does not fit is refused here, in
 * words. */
sluice_status sluice_engine_create(sluice_engine **out, const sluice_model *model,
                                   const sluice_engine_options *options);
void sluice_engine_destroy(sluice_engine **engine);
sluice_status sluice_engine_get_info(const sluice_engine *engine, sluice_engine_info *out);
sluice_status sluice_engine_get_stats(const sluice_engine *engine, sluice_engine_stats *out);

/* What a step of n_row rows of one sequence that holds n_past positions must do, by the plan; one row wants logits.
 * Each weight and each cached position is read once. */
typedef struct sluice_step_cost {
    uint64_t weight_bytes, kv_bytes; /* read from memory */
    uint64_t n_mac;                  /* multiply-accumulates */
} sluice_step_cost;
sluice_status sluice_engine_get_cost(const sluice_engine *engine, int32_t n_row, int32_t n_past, sluice_step_cost *out);

/* The program that an engine of these options would run, with shapes, types, bytes, and what it takes in memory;
 * allocates nothing of the engine's. */
sluice_status sluice_explain(const sluice_model *model, const sluice_engine_options *options, bool json, char **text);

/* One step: n_row rows, 1 .. n_row_max. Nothing changes if it fails (a wrong row is SLUICE_BAD_ARG, a full context
 * SLUICE_FULL). */
sluice_status sluice_step(sluice_engine *engine, const sluice_row *rows, size_t n_row);
/* The logits (n_vocab) of the i-th row of the last step that wanted them; valid until the next step; NULL if there is
 * none. */
const float *sluice_logits(const sluice_engine *engine, size_t i);
/* Appends n ids to a sequence in chunks of n_row_max; logits of the last one. An empty sequence of an engine with
 * prefix_cache begins with what is cached of ids. progress may be NULL; after a cancel the sequence has its whole
 * chunks. */
sluice_status sluice_prefill(sluice_engine *engine, int32_t seq, const int32_t *ids, size_t n,
                             sluice_progress *progress, void *user);

int32_t sluice_seq_length(const sluice_engine *engine, int32_t seq);
/* Positions 32 and on that it has let go, with ctx_window; else 0. Others may be there and not be seen any more. */
int32_t sluice_seq_gone(const sluice_engine *engine, int32_t seq);
/* The ids that it holds, as many as it is long less those it has let go; valid until it changes. */
const int32_t *sluice_seq_ids(const sluice_engine *engine, int32_t seq);
/* Makes a sequence hold the longest beginning of the ids (n) that it has already or, with prefix_cache, that any
 * sequence had whose memory was not needed since; at most n - 1 of them, so that there is something left to compute
 * logits from. *n_held is its length: prefill the rest. Nothing is computed, and the logits that follow are the same
 * bits as those of a fresh start. */
sluice_status sluice_seq_reuse(sluice_engine *engine, int32_t seq, const int32_t *ids, size_t n, size_t *n_held);
/* With a prefix_path: writes all whole blocks of prefixes that the folder does not have yet. Call it between answers;
 * it takes as long as writing what is new. From then on sluice_seq_reuse and sluice_prefill find them there, in this
 * process and in others with the same model and types, after their memory was needed and after a restart, with the
 * same bits. A file there that is torn, damaged or foreign is not used, and costs only the prefix. */
sluice_status sluice_prefix_save(sluice_engine *engine);
/* Forgets positions n .. end. */
sluice_status sluice_seq_truncate(sluice_engine *engine, int32_t seq, int32_t n);
/* Makes dst begin with the first n positions of src; shared, not copied. dst must be empty. */
sluice_status sluice_seq_fork(sluice_engine *engine, int32_t dst, int32_t src, int32_t n);
/* Makes a sequence of a multiple of 32 positions, at least 32, n positions long: what is added are copies of its first
 * 32, so nothing is computed and nothing after it makes sense. For measuring speed at a depth. */
sluice_status sluice_seq_fill(sluice_engine *engine, int32_t seq, int32_t n);

/* ---- sessions ---------------------------------------------------------------------------------------------- */

/* Writes what a sequence holds (ids, keys and values) to a file, with n_app_bytes of the caller's own. The file is
 * replaced whole or not at all, also if the process is killed meanwhile. */
sluice_status sluice_session_save(const sluice_engine *engine, int32_t seq, const char *path, const void *app,
                                  size_t n_app_bytes);
/* Makes a sequence hold what a file says; what follows is the same to the bit as if it had never been away. *app
 * (n_app_bytes and a NUL; yours, sluice_free) are the caller's own bytes. A file that is torn, damaged, or was made
 * with another model, backend or type of cache is refused in one sentence; then the sequence is as it was, and nothing
 * is lost but the time to compute it anew. */
sluice_status sluice_session_load(sluice_engine *engine, int32_t seq, const char *path, char **app,
                                  size_t *n_app_bytes);

/* ---- forecasts ---------------------------------------------------------------------------------------------- */

typedef struct sluice_plan_options {
    size_t size;
    int32_t n_ctx;      /* positions of a sequence; 0 = what the model was trained for, or 4096 if that is more */
    const char *kv;     /* type of the KV cache: "f16", "f32", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl";
                           NULL = f16, or q8_0 where that does not fit */
    const char *device; /* "rtx 5090", "m4 max 64gb", "gddr7 32gbps x256", "h200 + ddr5-5600x8"; NULL = this machine */
    const char *cache_path; /* JSON file that remembers measured bandwidths; NULL = measure each time */
    int32_t n_thread;       /* of this machine; 0 = all processors */
    sluice_repack repack;   /* as for an engine; on a named device off */
} sluice_plan_options;

sluice_plan_options sluice_plan_options_default(void);

/* What a model will do on a machine: memory by kind, whether it fits, predicted speed and what limits it, and other
 * placements. From the header of the file alone, whose tensor data may be missing, also of architectures that engines
 * cannot run. What cannot be worked out is SLUICE_UNSUPPORTED, by name. As text for people, or one JSON object. */
sluice_status sluice_plan(const char *path, const sluice_plan_options *options, bool json, char **text);

/* Read bandwidth of this machine's memory in 10^9 bytes a second, by a read-only sweep of n_thread threads (0 = all
 * processors) over memory larger than the caches; takes some 100 ms. */
sluice_status sluice_measure_bandwidth(int n_thread, double *gb_s);

/* ---- quantising ---------------------------------------------------------------------------------------------- */

typedef struct sluice_quantize_options {
    size_t size;
    const char *mix;            /* "Q4_K_M" (default), "Q8_0" ...; sluice_mix_name lists them */
    const char *imatrix_path;   /* importance matrix, of sluice_imatrix or llama-imatrix; NULL = all columns alike */
    const char *output_type;    /* of output.weight; NULL = as the mix has it */
    const char *embedding_type; /* of token_embd.weight; NULL = as the mix has it */
    bool pure;                  /* every matrix gets the mix's main type */
    bool keep_output;           /* output.weight stays as it is */
    bool dry_run;               /* says what each tensor would become and writes nothing */
    int32_t n_thread;           /* 0 = all processors; the result is the same for any number */
    sluice_progress *progress;  /* bytes of the input; may be NULL */
    void *user;
} sluice_quantize_options;

sluice_quantize_options sluice_quantize_options_default(void);

/* Names of the mixes and what they are good for, i = 0, 1 ...; NULL past the end. about may be NULL. Static. */
const char *sluice_mix_name(size_t i, const char **about);

/* Writes the GGUF file at `path` (of whatever architecture, also split) to out_path with other types of weights.
 * Metadata is kept; vectors, norms and small matrices keep their types. Tensors that are quantised already are
 * accepted, and their number is in the report, for errors add up. NaN, infinities and values that no type can hold are
 * SLUICE_BAD_FILE, by the tensor's name. The file appears whole or not at all. *text (may be NULL): what was done, as
 * text for people or as one JSON object. */
sluice_status sluice_quantize(const char *path, const char *out_path, const sluice_quantize_options *options, bool json,
                              char **text);

/* An importance matrix: for each weight matrix, how large its inputs are, column by column, over some text. Quantising
 * with one keeps more of what matters. For a model of any type; best one that is not quantised much. */
typedef struct sluice_imatrix sluice_imatrix;

/* Of the options n_ctx is the window (0 = 512), and n_row_max the rows of a step; what the layers read in a step is
 * kept, so more rows cost memory. The model must outlive it. */
sluice_status sluice_imatrix_create(sluice_imatrix **out, const sluice_model *model,
                                    const sluice_engine_options *options);
void sluice_imatrix_destroy(sluice_imatrix **imatrix);
/* Adds one window of n ids (1 .. n_ctx), read by itself. */
sluice_status sluice_imatrix_add(sluice_imatrix *imatrix, const int32_t *ids, size_t n);
/* Writes what was seen so far, as GGUF in llama.cpp's form; whole or not at all. source: the text's name. */
sluice_status sluice_imatrix_write(const sluice_imatrix *imatrix, const char *path, const char *source);

/* ---- sampling ---------------------------------------------------------------------------------------------- */

/* The order is fixed: bias, then repeat/frequency/presence penalties, then (if temp > 0) top-k, typical, top-p,
 * min-p, temperature, and one draw by a PCG32 generator: the same token for the same seed on every machine. temp <=
 * 0: the best token, ties to the lower id. */
typedef struct sluice_sampler_options {
    size_t size;
    float temp;           /* default 0.8 */
    int32_t top_k;        /* default 40; 0 = off */
    float top_p;          /* default 0.95; 1 = off */
    float min_p;          /* default 0.05; 0 = off */
    float typical_p;      /* default 1 = off */
    float repeat_penalty; /* default 1 = off; divides positive logits, multiplies negative ones (CTRL, Keskar 2019) */
    float frequency_penalty; /* default 0; times the count of the token (OpenAI) */
    float presence_penalty;  /* default 0; once if the token occurred */
    int32_t penalty_window;  /* tokens looked back on; default 64; -1 = all that the sampler can hold (n_ctx) */
    uint64_t seed;
    const int32_t *bias_ids; /* (n_bias) copied */
    const float *bias;       /* (n_bias) added to the logits */
    size_t n_bias;
} sluice_sampler_options;

typedef struct sluice_sampler sluice_sampler;
sluice_sampler_options sluice_sampler_options_default(void);
/* n_history: tokens that penalties may look back on. All memory is taken here. */
sluice_status sluice_sampler_create(sluice_sampler **out, int32_t n_vocab, int32_t n_history,
                                    const sluice_sampler_options *options);
void sluice_sampler_destroy(sluice_sampler **sampler);
void sluice_sampler_accept(sluice_sampler *sampler,
                           int32_t token); /* of the prompt, or a sampled one, for the penalties */
/* Where a sampler stands, as bytes (n_bytes; yours, sluice_free): its random numbers, and the tokens that penalties
 * look back on. Kept among the own bytes of a session, they let a sampler of the same options go on in another process
 * with the same tokens. restore: whatever the sampler has seen before; other bytes are SLUICE_BAD_FILE, and change
 * nothing. */
sluice_status sluice_sampler_save(const sluice_sampler *sampler, char **state, size_t *n_bytes);
sluice_status sluice_sampler_restore(sluice_sampler *sampler, const char *state, size_t n_bytes);
/* Chooses a token by logits (n_vocab); does not accept it. SLUICE_BAD_INPUT if they hold a NaN or nothing above -inf.
 * */
sluice_status sluice_sample(sluice_sampler *sampler, const float *logits, int32_t *token);

/* The same by the logits of the i-th row of the engine's last step that wanted them. A sampler that takes the best as
 * it is (temp 0, no bias, no penalties) is told it by a device with memory of its own, and no logits are copied. */
sluice_status sluice_sample_row(sluice_sampler *sampler, sluice_engine *engine, size_t i, int32_t *token);

/* The k most likely tokens by logits (n), most likely first, with log-probabilities (ties: lower id first). Writes
 * min(k, n) of each and returns that number. *of gets the log-probability of token `id` (of may be NULL). */
size_t sluice_top_logprobs(const float *logits, size_t n, size_t k, int32_t *ids, float *logprobs, int32_t id,
                           float *of);

#ifdef __cplusplus
}
#endif

#endif
