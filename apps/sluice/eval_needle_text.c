// SPDX-License-Identifier: MIT
//
// The text of sluice eval needle: filler of plain sentences in an order by chance, written for this, with one fact in
// it. No sentence of the filler holds a digit or says "secret", so nothing but the needle answers the question.
#include <stdio.h>
#include <string.h>

#include "eval_needle.h"

static const char *const filler[] = {
    "The ferry leaves the old pier in the morning and comes back when the lamps are lit.",
    "Rain fell on the slate roofs all afternoon, and the gutters sang until supper.",
    "A baker carried warm loaves across the square before anyone else was awake.",
    "The orchard above the village gives small, sour apples that keep well through the winter.",
    "Two children counted boats from the wall and could not agree which was the fastest.",
    "Nobody remembers who planted the lime trees along the road to the station.",
    "The clockmaker opened his window to hear whether the bells agreed with his work.",
    "In dry summers the stream behind the mill is no wider than a cart.",
    "Her brother mended nets by the stove and told the same story every year.",
    "The path over the hill is steep, but it saves an hour on a clear day.",
    "They painted the school yellow because yellow paint was what the shop had left.",
    "A grey cat sleeps on the counter of the post office and is never in a hurry.",
    "The wind turned at noon and brought the smell of hay down from the meadows.",
    "Bread, cheese and a flask of tea were packed for the walk along the coast.",
    "The old map shows a bridge that was washed away before the railway came.",
    "On market days the street is so full that a bicycle has to be carried.",
    "She learned to read the sky from her aunt, who had learned it from fishermen.",
    "The concert began late, because the cellist had missed the last tram.",
    "Snow lay in the shadow of the barn long after the fields were green again.",
    "A letter came without a stamp and was delivered all the same.",
    "The carpenter kept his best planks for a table that he never found time to build.",
    "From the tower one can see three valleys and, on good days, the sea.",
    "The geese flew over in a long uneven line and were gone before the dog noticed.",
    "He bought a notebook with a red cover and wrote nothing in it but the weather.",
    "The inn has a room under the roof where the floor slopes towards the window.",
    "Every spring the council promises a new bench, and every autumn the old one is repaired.",
    "The glass blower works at night in summer, when the heat of the furnace can be borne.",
    "A stranger asked the way to the lake and was sent in two directions at once.",
    "Moss covers the north side of the wall, and lizards live on the south side.",
    "The gardener cut the hedge in the shape of a ship, though it looked more like a shoe.",
    "Soup was served in blue bowls that had come from a town which no longer exists.",
    "When the fog lifted, the fields looked larger than they had the evening before.",
    "The violin was sold with its case, and the case turned out to be worth more.",
    "He walked the length of the beach to look for a glove that was in his pocket.",
    "The swallows build under the eaves of the chapel and are welcome there.",
    "A lantern swung from the last wagon and was the only light on the road.",
};
static const char *const places[] = {"library", "lighthouse", "windmill", "museum", "observatory",
                                     "bakery",  "theatre",    "harbour",  "garden", "workshop"};
enum { N_FILLER = sizeof filler / sizeof *filler, N_PLACE = sizeof places / sizeof *places, SENTENCES_OF_LINE = 6 };

static uint64_t next_random(uint64_t *state) { // splitmix64, Vigna
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

needle needle_make(uint64_t seed, uint64_t which, double depth) {
    uint64_t state = seed * 1000003 + which;
    needle n = {.seed = seed, .depth = depth};
    n.number = (int32_t)(10000 + next_random(&state) % 90000);
    n.place = next_random(&state) % N_PLACE;
    return n;
}

static int append(text *out, const char *words) { return text_append(out, words, strlen(words)); }

static int append_fact(text *out, const needle *n) {
    char fact[80];
    snprintf(fact, sizeof fact, "The secret number of the %s is %d. ", places[n->place], (int)n->number);
    return append(out, fact);
}

// All sentences in turn, each time in another order.
static int append_filler(text *out, const needle *n) {
    size_t order[N_FILLER], at = (size_t)(n->depth * (double)n->n_sentence + 0.5);
    uint64_t state = n->seed;
    int result = APP_OK;
    for (size_t i = 0; i < N_FILLER; i++) order[i] = i;
    for (size_t i = 0; i <= n->n_sentence && result == APP_OK; i++) {
        if (i == at) result = append_fact(out, n);
        if (i == n->n_sentence || result != APP_OK) break;
        size_t turn = i % N_FILLER, other = turn + next_random(&state) % (N_FILLER - turn), kept = order[turn];
        order[turn] = order[other], order[other] = kept;
        result = append(out, filler[order[turn]]);
        if (result == APP_OK) result = append(out, i % SENTENCES_OF_LINE == SENTENCES_OF_LINE - 1 ? "\n" : " ");
    }
    return result;
}

int needle_write(text *out, const needle *n, bool chat) {
    char question[160];
    int result = chat ? append(out, "Read this text. A question about it follows.\n\n") : APP_OK;
    if (result == APP_OK) result = append_filler(out, n);
    snprintf(question, sizeof question,
             chat ? "\n\nWhat is the secret number of the %s? Answer with the number alone."
                  : "\n\nTo repeat it: the secret number of the %s is",
             places[n->place]);
    return result == APP_OK ? append(out, question) : result;
}

// Commas between digits, as in "48,213", do not matter.
bool needle_is_found(const needle *n, const char *answer) {
    char number[16], plain[1024];
    size_t n_plain = 0;
    for (const char *c = answer; *c && n_plain + 1 < sizeof plain; c++)
        if (*c != ',') plain[n_plain++] = *c;
    plain[n_plain] = '\0';
    snprintf(number, sizeof number, "%d", (int)n->number);
    return strstr(plain, number) != NULL;
}
