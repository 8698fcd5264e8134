// SPDX-License-Identifier: MIT
//
// The patterns by name. They are those of the models' own tokenizer.json where these are known, written for PCRE2 in
// UTF mode. What differs from the originals, and why:
//   - \s, \d and \w are spelt out as classes, because PCRE2's \s has U+180E, which is no White_Space since Unicode 6.3;
//   - "category without Han" is spelt as the complement of all others and Han;
//   - a repeated group is one repeated class or possessive, and a repeat that can fail at its far end may not start
//     again inside the same run (a lookbehind); so no step takes more than linear time;
//   - digits in groups of three from the right are SL_SPLIT_THREES instead of a lookahead to the end of the digits
//     (superbpe's own does not part digits from other numbers: digit and fraction are one word there, two here).
// \p{...} is of the Unicode version of the PCRE2 library (10.42: Unicode 14).
#include "text/pretokenizer.h"

#include "base/compiler.h"

#define WS      "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define SPACES  "[" WS "]"
#define GAP     SPACES "+(?![^" WS "])|" SPACES "+" // leaves the last space of a run to the word after it
#define SUFFIX  "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LEAD    "[^\\r\\n\\p{L}\\p{N}]?"
#define LETTERS LEAD "\\p{L}+"
#define SYMBOLS " ?[^" WS "\\p{L}\\p{N}]+"
#define LINES   SPACES "*[\\r\\n]+"
#define GPT2    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" SYMBOLS "|" GAP

#define CL100K(number) SUFFIX "|" LETTERS "|" number "|" SYMBOLS "[\\r\\n]*|" LINES "|" GAP

#define UPPER                       "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER                       "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define CASED(upper, lower, suffix) LEAD upper "*" lower "+" suffix "|" LEAD upper "+" lower "*" suffix
#define O200K(suffix, number) \
    CASED("[" UPPER "]", "[" LOWER "]", suffix) "|" number "|" SYMBOLS "[\\r\\n/]*|" LINES "|" GAP

// Oniguruma's \w, which has the fractions and superscripts of Latin-1.
#define WORD_CHARACTER "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

// Not any of the other categories, not Han.
#define NO_HAN(others) "[^" others "\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{sc:Han}]"

#define ASCII_PUNCTUATION "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define DEEPSEEK3_WORD    ASCII_PUNCTUATION "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
#define DEEPSEEK3         DEEPSEEK3_WORD "[\\r\\n]*|" LINES "|" GAP
#define CJK_KANA          "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]+"
#define DEEPSEEK_CJK      "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define BLOOM             " ?[^(" WS "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

// Letters with case, as the list in deepseek-llm's tokenizer.json has them.
#define DEEPSEEK_LETTERS                                                                              \
    "[A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}"  \
    "\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"             \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}"   \
    "\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}"   \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}" \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}"  \
    "\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"  \
    "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}" \
    "\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}"   \
    "\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"            \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"            \
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"  \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}" \
    "\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}"                \
    "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"            \
    "\\x{1e900}-\\x{1e943}]+"

#define MATCHES(pattern) \
    { SL_SPLIT_MATCHES, pattern }
#define STEPS(name, ...) static const sl_split_step name[SL_SPLIT_MAX_STEPS + 1] = {__VA_ARGS__}

STEPS(gpt2, MATCHES(GPT2));
STEPS(gpt2_digits, MATCHES("\\p{N}"), MATCHES(GPT2));
STEPS(llama3, MATCHES(CL100K("\\p{N}{1,3}")));
STEPS(qwen2, MATCHES(CL100K("\\p{N}")));
STEPS(qwen35, MATCHES(SUFFIX "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES "|" GAP));
STEPS(ufakzeka, MATCHES(LETTERS "|\\p{N}|" SYMBOLS "[\\r\\n]*|" LINES "|" GAP));
STEPS(minicpm5, MATCHES("\\p{N}{1,3}"), MATCHES(CL100K("\\p{N}+")));
// A run of spaces may be cut many times here, so the search for its last newline may only start where the run does.
STEPS(jais2,
      MATCHES(SUFFIX "|" LETTERS "|\\p{N}{1,3}|" SYMBOLS "[\\r\\n]*|(?<![\\t\\x{0b}\\x{0c} \\x{85}\\x{a0}\\x{1680}"
                     "\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}])" LINES "|(?:" SPACES
                     "{512}|" SPACES "{256}|" SPACES "{128}|" SPACES "{64}|" SPACES "{32}|" SPACES "{16}|" SPACES
                     "{8}|" SPACES "{4}|" SPACES "{1,2})(?![^" WS "])|" SPACES));
STEPS(deepseek_llm, MATCHES("[\\r\\n]"), MATCHES(SPACES "?" DEEPSEEK_LETTERS),
      MATCHES(SPACES "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+"),
      MATCHES("(?<!" SPACES ")" SPACES "++$"), MATCHES(DEEPSEEK_CJK), MATCHES("\\p{N}"));
STEPS(deepseek_coder, MATCHES("[\\r\\n]"), MATCHES(SPACES "?\\p{L}+"), MATCHES(SPACES "?\\p{P}+"),
      MATCHES(DEEPSEEK_CJK), MATCHES("\\p{N}"));
STEPS(deepseek3, MATCHES("\\p{N}{1,3}"), MATCHES(CJK_KANA), MATCHES(DEEPSEEK3));
STEPS(spark25, MATCHES("\\p{N}{1,3}"), MATCHES(CJK_KANA), MATCHES(DEEPSEEK3_WORD "|[\\r\\n]|" GAP), MATCHES("\\p{N}"));
STEPS(youtu,
      MATCHES("[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}"
              "\\x{2014}\\x{ff1a}\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|"
              "[\\x{3105}-\\x{312f}]+|" CJK_KANA),
      MATCHES(O200K(SUFFIX "?", "\\p{N}")));
STEPS(falcon, MATCHES("[\\p{P}$+<=>^~|`]+"), MATCHES(GPT2), MATCHES("[0-9][0-9][0-9]"));
STEPS(bloom, MATCHES(BLOOM));
STEPS(viking, MATCHES(BLOOM), MATCHES("\\p{N}"));
STEPS(tekken, MATCHES(O200K("", "\\p{N}")));
STEPS(gpt4o, MATCHES(O200K(SUFFIX "?", "\\p{N}{1,3}")));
STEPS(tiny_aya, {SL_SPLIT_THREES, "(?<!\\p{Nd})\\p{Nd}++(?![" WORD_CHARACTER "])"},
      MATCHES(O200K(SUFFIX "?", "\\p{N}{1,3}")));
STEPS(kimi_k2, MATCHES("\\p{sc:Han}+|" CASED(NO_HAN("\\p{Ll}"), NO_HAN("\\p{Lu}\\p{Lt}"),
                                             SUFFIX "?") "|\\p{N}{1,3}|" SYMBOLS "[\\r\\n]*|" LINES "|" GAP));
STEPS(chameleon, MATCHES("<sentinel:[0-9]+>"), MATCHES("IMGIMG[A-I]{1,4}Z"), MATCHES("[\\t\\n]|    |  "),
      MATCHES("\\p{N}"), MATCHES("[\\p{P}!-/:-@\\[-`{-~]"), MATCHES(GPT2));
STEPS(superbpe, MATCHES("\\p{N}+"), {SL_SPLIT_THREES, "\\p{Nd}+"});
STEPS(bailingmoe,
      MATCHES("(?i:'(?:[sdmt]|ll|ve|re))|" LETTERS "|\\p{N}|" SYMBOLS "[\\r\\n]*|" SPACES "*[\\r\\n]|" GAP));
STEPS(seed_coder, MATCHES(SUFFIX "|" LETTERS "|\\p{N}| ?[^" WS "\\p{L}\\p{N}\\r\\n]+|" LINES "|" GAP));
STEPS(afmoe, {SL_SPLIT_THREES, "\\p{N}+"},
      MATCHES("[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{f900}-\\x{faff}\\x{3040}-\\x{30ff}\\x{ff65}-\\x{ff9f}"
              "\\x{2f00}-\\x{2fdf}\\x{e40}-\\x{eff}\\x{1780}-\\x{17ff}\\x{1000}-\\x{109f}\\x{aa60}-\\x{aa7f}"
              "\\x{a9e0}-\\x{a9ff}\\x{ac00}-\\x{d7af}\\x{1100}-\\x{11ff}]+"),
      MATCHES(DEEPSEEK3));
STEPS(laguna, MATCHES("[^\\n]+|\\n+"), MATCHES(CL100K("\\p{N}")));
// The original's (?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+ without its nested repeats: the same words.
STEPS(exaone_moe, MATCHES(SUFFIX "|" LEAD "\\p{L}\\p{M}*+(?: ?\\p{L}\\p{M}*+)*+|\\p{N}|" SYMBOLS "[\\r\\n/]?|" SPACES
                                 "*[\\r\\n]|" GAP));
STEPS(lines, MATCHES("[^\\n]+|\\n+")); // no merge joins a newline to anything else, so this only bounds the words
STEPS(whitespace, MATCHES("[^" WS "]+"));

enum { LLAMA3_FLAGS = SL_PRE_BOS | SL_PRE_IGNORE_MERGES, GEMMA4_FLAGS = SL_PRE_CHARS | SL_PRE_SPACE_MARK };

static const sl_pretokenizer table[] = {
    {"", gpt2, 0}, // the peer's "default" is no model's own
    {"default", gpt2, 0},
    {"gpt-2", gpt2, 0},
    {"phi-2", gpt2, 0},
    {"jina-es", gpt2, 0},
    {"jina-de", gpt2, 0},
    {"gigachat", gpt2, 0},
    {"jina-v2-es", gpt2, 0},
    {"jina-v2-de", gpt2, 0},
    {"a.x-4.0", gpt2, 0},
    {"mellum", gpt2, 0},
    {"modern-bert", gpt2, 0},
    {"jina-v1-en", gpt2, 0},
    {"jina-v2-code", gpt2, 0},
    {"roberta-bpe", gpt2, 0},
    {"exaone4", gpt2, 0},
    {"olmo", gpt2, 0},
    {"jais", gpt2, 0},
    {"trillion", gpt2, 0},
    {"granite-docling", gpt2, 0},
    {"mpt", gpt2, SL_PRE_NFC},
    {"starcoder", gpt2_digits, 0},
    {"refact", gpt2_digits, 0},
    {"smollm", gpt2_digits, 0},
    {"codeshell", gpt2_digits, 0},
    {"exaone", gpt2_digits, 0},
    {"minerva-7b", gpt2_digits, 0},
    {"mellum2", gpt2_digits, 0},
    {"command-r", gpt2_digits, SL_PRE_NFC},
    {"llama3", llama3, LLAMA3_FLAGS},
    {"llama-v3", llama3, LLAMA3_FLAGS},
    {"llama-bpe", llama3, LLAMA3_FLAGS},
    {"falcon3", llama3, LLAMA3_FLAGS},
    {"falcon-h1", llama3, LLAMA3_FLAGS},
    {"pixtral", llama3, LLAMA3_FLAGS},
    {"midm-2.0", llama3, LLAMA3_FLAGS},
    {"lfm2", llama3, LLAMA3_FLAGS},
    {"jina-v5-nano", llama3, LLAMA3_FLAGS},
    {"dbrx", llama3, 0},
    {"smaug-bpe", llama3, 0},
    {"chatglm-bpe", llama3, 0},
    {"glm4", llama3, SL_PRE_IGNORE_MERGES},
    {"glm5", llama3, SL_PRE_IGNORE_MERGES},
    {"jais-2", jais2, 0},
    {"minicpm5", minicpm5, SL_PRE_IGNORE_MERGES},
    {"qwen2", qwen2, SL_PRE_NFC},
    {"deepseek-r1-qwen", qwen2, 0},
    {"kormo", qwen2, 0},
    {"f2llmv2", qwen2, 0},
    {"megrez", qwen2, 0},
    {"stablelm2", qwen2, 0},
    {"hunyuan", qwen2, 0},
    {"solar-open", qwen2, 0},
    {"grok-2", qwen2, 0},
    {"qwen35", qwen35, SL_PRE_NFC},
    {"ufakzeka", ufakzeka, 0},
    {"deepseek-llm", deepseek_llm, 0},
    {"deepseek-coder", deepseek_coder, 0},
    {"deepseek-v3", deepseek3, 0},
    {"hunyuan-dense", deepseek3, 0},
    {"joyai-llm", deepseek3, 0},
    {"hy_v4", deepseek3, 0},
    {"spark2_5", spark25, 0},
    {"youtu", youtu, SL_PRE_IGNORE_MERGES},
    {"falcon", falcon, 0},
    {"poro-chat", bloom, 0},
    {"bloom", bloom, 0},
    {"gpt3-finnish", bloom, 0},
    {"viking", viking, 0},
    {"tekken", tekken, LLAMA3_FLAGS},
    {"gpt-4o", gpt4o, 0},
    {"llama4", gpt4o, 0},
    {"kanana2", gpt4o, 0},
    {"talkie", gpt4o, 0},
    {"minimax-m2", gpt4o, 0},
    {"granite-embed-multi-97m", gpt4o, SL_PRE_IGNORE_MERGES},
    {"tiny_aya", tiny_aya, 0},
    {"cohere2moe", tiny_aya, 0},
    {"kimi-k2", kimi_k2, 0},
    {"chameleon", chameleon, SL_PRE_BOS},
    {"superbpe", superbpe, 0},
    {"bailingmoe", bailingmoe, 0},
    {"bailingmoe2", bailingmoe, 0},
    {"llada-moe", bailingmoe, 0},
    {"seed-coder", seed_coder, 0},
    {"afmoe", afmoe, 0},
    {"laguna", laguna, 0},
    {"exaone-moe", exaone_moe, 0},
    {"gemma4", lines, GEMMA4_FLAGS | SL_PRE_FORCE_BOS},
    {"granite-embed-multi-311m", lines, GEMMA4_FLAGS},
    {"sarvam-moe", lines, GEMMA4_FLAGS},
    {"whitespace", whitespace, SL_PRE_CHARS},
};

const sl_pretokenizer *sl_pretokenizer_at(size_t i) { return i < SL_COUNT(table) ? &table[i] : NULL; }

const sl_pretokenizer *sl_pretokenizer_find(sl_span name) {
    for (size_t i = 0; i < SL_COUNT(table); i++) {
        if (sl_span_is(name, table[i].name)) return &table[i];
    }
    return NULL;
}
