// SPDX-License-Identifier: MIT
//
// Tests: what may stand after `is`.
#include "text/jinja_builtin.h"
#include "text/jinja_text.h"

static sl_status yes(sl_jinja_value *out, bool b) { return *out = sl_jinja_bool(b), SL_OK; }

static sl_status remainder_is(sl_jinja_call *c, sl_jinja_value *out, int64_t by, int64_t want) {
    sl_jinja_value rest;
    bool same;
    SL_TRY(sl_jinja_binary(c->run, &rest, SL_OP_MOD, c->self, by ? sl_jinja_int(by) : c->v[0]));
    SL_TRY(sl_jinja_equal(c->run, &same, rest, sl_jinja_int(want)));
    return yes(out, same);
}

static sl_status relation(sl_jinja_call *c, sl_jinja_value *out, sl_jinja_op op) {
    bool holds;
    SL_TRY(sl_jinja_relation(c->run, &holds, op, c->self, c->v[0]));
    return yes(out, holds);
}

static sl_status all_case(sl_jinja_call *c, sl_jinja_value *out, bool upper) {
    sl_jinja_value s;
    SL_TRY(sl_jinja_str(c->run, &s, c->self));
    bool any = false, all = true;
    for (size_t at = 0; at < s.as.text->n_bytes && all;) {
        uint32_t cp = sl_jinja_char(sl_jinja_span(s), &at);
        bool right = upper ? sl_jinja_is_upper(cp) : sl_jinja_is_lower(cp);
        any |= right;
        all = right || !sl_jinja_is_cased(cp);
    }
    return yes(out, any && all);
}

#define TEST(name, expr) \
    static sl_status test_##name(sl_jinja_call *c, sl_jinja_value *out) { return (expr); }

TEST(odd, remainder_is(c, out, 2, 1))
TEST(even, remainder_is(c, out, 2, 0))
TEST(divisibleby, remainder_is(c, out, 0, 0))
TEST(defined, yes(out, c->self.type != SL_JINJA_UNDEFINED))
TEST(undefined, yes(out, c->self.type == SL_JINJA_UNDEFINED))
TEST(none, yes(out, c->self.type == SL_JINJA_NONE))
TEST(boolean, yes(out, c->self.type == SL_JINJA_BOOL))
TEST(true, yes(out, c->self.type == SL_JINJA_BOOL && c->self.as.b))
TEST(false, yes(out, c->self.type == SL_JINJA_BOOL && !c->self.as.b))
TEST(integer, yes(out, c->self.type == SL_JINJA_INT))
TEST(float, yes(out, c->self.type == SL_JINJA_FLOAT))
TEST(number, yes(out, sl_jinja_is_number(c->self)))
TEST(string, yes(out, c->self.type == SL_JINJA_TEXT))
TEST(mapping, yes(out, c->self.type == SL_JINJA_DICT))
TEST(iterable, yes(out, sl_jinja_iterable(c->self) || c->self.type == SL_JINJA_LOOP))
TEST(sequence, yes(out, sl_jinja_sized(c->self) && c->self.type != SL_JINJA_VIEW))
TEST(callable, yes(out, c->self.type == SL_JINJA_FUNCTION || c->self.type == SL_JINJA_METHOD ||
                            c->self.type == SL_JINJA_MACRO || c->self.type == SL_JINJA_JOINER ||
                            c->self.type == SL_JINJA_LOOP || c->self.type == SL_JINJA_UNDEFINED))
TEST(escaped, yes(out, c->self.type == SL_JINJA_TEXT && (c->self.flags & SL_JINJA_MARKUP)))
TEST(sameas, yes(out, sl_jinja_same(c->self, c->v[0])))
TEST(lower, all_case(c, out, false))
TEST(upper, all_case(c, out, true))
TEST(in, relation(c, out, SL_OP_IN))
TEST(eq, relation(c, out, SL_OP_EQ))
TEST(ne, relation(c, out, SL_OP_NE))
TEST(lt, relation(c, out, SL_OP_LT))
TEST(le, relation(c, out, SL_OP_LE))
TEST(gt, relation(c, out, SL_OP_GT))
TEST(ge, relation(c, out, SL_OP_GE))
TEST(filter, yes(out, c->self.type == SL_JINJA_TEXT && (sl_jinja_filter_find(sl_jinja_span(c->self)) ||
                                                        sl_jinja_name_unsupported(sl_jinja_span(c->self), true))))
TEST(test, yes(out, c->self.type == SL_JINJA_TEXT && sl_jinja_test_find(sl_jinja_span(c->self))))

static const sl_jinja_builtin entries[] = {
    {"odd", test_odd, "", 0, 0},
    {"even", test_even, "", 0, 0},
    {"divisibleby", test_divisibleby, "num", 1, 0},
    {"defined", test_defined, "", 0, 0},
    {"undefined", test_undefined, "", 0, 0},
    {"none", test_none, "", 0, 0},
    {"boolean", test_boolean, "", 0, 0},
    {"true", test_true, "", 0, 0},
    {"false", test_false, "", 0, 0},
    {"integer", test_integer, "", 0, 0},
    {"float", test_float, "", 0, 0},
    {"number", test_number, "", 0, 0},
    {"string", test_string, "", 0, 0},
    {"mapping", test_mapping, "", 0, 0},
    {"iterable", test_iterable, "", 0, 0},
    {"sequence", test_sequence, "", 0, 0},
    {"callable", test_callable, "", 0, 0},
    {"escaped", test_escaped, "", 0, 0},
    {"sameas", test_sameas, "other", 1, 0},
    {"lower", test_lower, "", 0, 0},
    {"upper", test_upper, "", 0, 0},
    {"in", test_in, "seq", 1, 0},
    {"==", test_eq, "/b", 1, 0},
    {"eq", test_eq, "/b", 1, 0},
    {"equalto", test_eq, "/b", 1, 0},
    {"!=", test_ne, "/b", 1, 0},
    {"ne", test_ne, "/b", 1, 0},
    {"<", test_lt, "/b", 1, 0},
    {"lt", test_lt, "/b", 1, 0},
    {"lessthan", test_lt, "/b", 1, 0},
    {"<=", test_le, "/b", 1, 0},
    {"le", test_le, "/b", 1, 0},
    {">", test_gt, "/b", 1, 0},
    {"gt", test_gt, "/b", 1, 0},
    {"greaterthan", test_gt, "/b", 1, 0},
    {">=", test_ge, "/b", 1, 0},
    {"ge", test_ge, "/b", 1, 0},
    {"filter", test_filter, "", 0, 0},
    {"test", test_test, "", 0, 0},
};

const sl_jinja_builtin *sl_jinja_test_find(sl_span name) {
    return sl_jinja_table_find(entries, SL_COUNT(entries), name);
}
