// SPDX-License-Identifier: MIT
//
// Operators, as Python has them: // and % round towards minus infinity, / always gives a float, +
// joins texts and lists,
// * repeats them. Integers that leave 64 bits are refused. Where a text is marked as markup, +
// escapes the other side.
#include <math.h>

#include "base/size.h"
#include "text/jinja_callable.h"
#include "text/jinja_text.h"

static sl_status too_long(void) { return SL_FAIL(SL_UNSUPPORTED, "an integer has more than 64 bits"); }

static sl_status no_operator(sl_jinja_op op, sl_jinja_value a, sl_jinja_value b) {
    static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**"};
    return SL_FAIL(SL_BAD_INPUT, "a %s and a %s cannot be combined with %s", sl_jinja_type_name(a),
                   sl_jinja_type_name(b), signs[op]);
}

// ---- numbers ----

static sl_status int_pow(sl_jinja_value *out, int64_t base, int64_t exp) {
    int64_t r = 1;
    if (exp < 0) {
        if (base == 0) return SL_FAIL(SL_BAD_INPUT, "0 cannot be raised to a negative power");
        return *out = sl_jinja_float(pow((double)base, (double)exp)), SL_OK;
    }
    while (exp > 0) {
        if (exp & 1 && __builtin_mul_overflow(r, base, &r)) return too_long();
        exp >>= 1;
        if (exp > 0 && __builtin_mul_overflow(base, base, &base)) return too_long();
    }
    return *out = sl_jinja_int(r), SL_OK;
}

static sl_status int_op(sl_jinja_value *out, sl_jinja_op op, int64_t a, int64_t b) {
    int64_t r = 0;
    if ((op == SL_OP_DIV || op == SL_OP_FLOORDIV || op == SL_OP_MOD) && b == 0)
        return SL_FAIL(SL_BAD_INPUT, "a number is divided by zero");
    switch (op) {
    case SL_OP_ADD:
        if (__builtin_add_overflow(a, b, &r)) return too_long();
        break;
    case SL_OP_SUB:
        if (__builtin_sub_overflow(a, b, &r)) return too_long();
        break;
    case SL_OP_MUL:
        if (__builtin_mul_overflow(a, b, &r)) return too_long();
        break;
    case SL_OP_DIV: return *out = sl_jinja_float((double)((long double)a / (long double)b)), SL_OK;
    case SL_OP_FLOORDIV:
        if (a == INT64_MIN && b == -1) return too_long();
        r = a / b - (a % b != 0 && (a < 0) != (b < 0));
        break;
    case SL_OP_MOD:
        r = b == -1 ? 0 : a % b;
        if (r != 0 && (r < 0) != (b < 0)) r += b;
        break;
    default: return int_pow(out, a, b);
    }
    return *out = sl_jinja_int(r), SL_OK;
}

static double float_mod(double a, double b) {
    double r = fmod(a, b);
    if (r == 0) return copysign(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static double float_floordiv(double a, double b) { // as CPython's float_divmod
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
    if (div == 0) return copysign(0, a / b);
    double floored = floor(div);
    return div - floored > 0.5 ? floored + 1 : floored;
}

static sl_status float_op(sl_jinja_value *out, sl_jinja_op op, double a, double b) {
    double r = 0;
    if ((op == SL_OP_DIV || op == SL_OP_FLOORDIV || op == SL_OP_MOD) && b == 0)
        return SL_FAIL(SL_BAD_INPUT, "a number is divided by zero");
    switch (op) {
    case SL_OP_ADD: r = a + b; break;
    case SL_OP_SUB: r = a - b; break;
    case SL_OP_MUL: r = a * b; break;
    case SL_OP_DIV: r = a / b; break;
    case SL_OP_FLOORDIV: r = float_floordiv(a, b); break;
    case SL_OP_MOD: r = float_mod(a, b); break;
    default:
        if (a == 0 && b < 0) return SL_FAIL(SL_BAD_INPUT, "0 cannot be raised to a negative power");
        if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
            return SL_FAIL(SL_UNSUPPORTED, "complex numbers are not supported");
        r = pow(a, b);
        if (isinf(r) && isfinite(a) && isfinite(b)) return SL_FAIL(SL_BAD_INPUT, "a power is too large");
    }
    return *out = sl_jinja_float(r), SL_OK;
}

sl_status sl_jinja_unary(sl_jinja_value *out, sl_jinja_value v, bool minus) {
    if (v.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(v);
    if (v.type == SL_JINJA_FLOAT) return *out = sl_jinja_float(minus ? -v.as.f : v.as.f), SL_OK;
    if (!sl_jinja_is_int(v)) return SL_FAIL(SL_BAD_INPUT, "a %s has no sign", sl_jinja_type_name(v));
    int64_t i = sl_jinja_as_int(v);
    if (minus && i == INT64_MIN) return too_long();
    return *out = sl_jinja_int(minus ? -i : i), SL_OK;
}

// ---- texts and lists ----

sl_status sl_jinja_escaped(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v) {
    if (v.type == SL_JINJA_TEXT && (v.flags & SL_JINJA_MARKUP)) return *out = v, SL_OK;
    SL_TRY(sl_jinja_str(run, &v, v));
    sl_buf buf = sl_jinja_scratch(run);
    sl_jinja_escape(&buf, sl_jinja_span(v));
    SL_TRY(sl_jinja_take(run, out, &buf, SL_OK));
    out->flags = SL_JINJA_MARKUP;
    return SL_OK;
}

static sl_status add_texts(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value a, sl_jinja_value b) {
    uint8_t markup = (a.flags | b.flags) & SL_JINJA_MARKUP;
    if (markup) {
        SL_TRY(sl_jinja_escaped(run, &a, a));
        SL_TRY(sl_jinja_escaped(run, &b, b));
    }
    SL_TRY(sl_jinja_text_join(run, out, *a.as.text, *b.as.text));
    out->flags = markup;
    return SL_OK;
}

static sl_status add_lists(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value a, sl_jinja_value b) {
    sl_jinja_value *items = NULL;
    size_t n = a.as.list->n, m = b.as.list->n;
    SL_TRY(sl_jinja_list_make(run, out, (sl_jinja_type)a.type, &items, n + m));
    if (n) memcpy(items, a.as.list->items, n * sizeof *items);
    if (m) memcpy(items + n, b.as.list->items, m * sizeof *items);
    return SL_OK;
}

sl_status sl_jinja_repeat(sl_jinja_run *run, sl_jinja_value *out, sl_span s, int64_t count) {
    char *bytes;
    uint64_t n;
    if (count <= 0 || s.n_bytes == 0) return sl_jinja_text_share(run, out, "", 0);
    if (!sl_size_mul(&n, s.n_bytes, (uint64_t)count)) n = UINT64_MAX;
    SL_TRY(sl_jinja_alloc(run, &bytes, n, 1));
    for (uint64_t i = 0; i < n; i += s.n_bytes) memcpy(bytes + i, s.data, s.n_bytes);
    return sl_jinja_text_share(run, out, bytes, n);
}

static sl_status multiply(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v, int64_t count) {
    if (v.type == SL_JINJA_TEXT) {
        SL_TRY(sl_jinja_repeat(run, out, sl_jinja_span(v), count));
        out->flags = v.flags;
        return SL_OK;
    }
    sl_jinja_value *items;
    uint64_t n;
    if (!sl_size_mul(&n, v.as.list->n, count < 0 ? 0 : (uint64_t)count)) n = UINT64_MAX;
    SL_TRY(sl_jinja_alloc(run, &items, n, sizeof *items)); // checked before anything is made
    for (uint64_t i = 0; i < n; i++) items[i] = v.as.list->items[i % v.as.list->n];
    return sl_jinja_list_make(run, out, (sl_jinja_type)v.type, &items, n);
}

static bool repeatable(sl_jinja_value v) {
    return v.type == SL_JINJA_TEXT || v.type == SL_JINJA_LIST || v.type == SL_JINJA_TUPLE;
}

sl_status sl_jinja_binary(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_op op, sl_jinja_value a, sl_jinja_value b) {
    if (op == SL_OP_MOD && a.type == SL_JINJA_TEXT) return sl_jinja_percent(run, out, a, b);
    if (a.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(a);
    if (b.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(b);
    if (sl_jinja_is_int(a) && sl_jinja_is_int(b)) return int_op(out, op, sl_jinja_as_int(a), sl_jinja_as_int(b));
    if (sl_jinja_is_number(a) && sl_jinja_is_number(b))
        return float_op(out, op, sl_jinja_as_float(a), sl_jinja_as_float(b));
    if (op == SL_OP_ADD && a.type == SL_JINJA_TEXT && b.type == SL_JINJA_TEXT) return add_texts(run, out, a, b);
    if (op == SL_OP_ADD && a.type == b.type && (a.type == SL_JINJA_LIST || a.type == SL_JINJA_TUPLE))
        return add_lists(run, out, a, b);
    if (op == SL_OP_MUL && repeatable(a) && sl_jinja_is_int(b)) return multiply(run, out, a, sl_jinja_as_int(b));
    if (op == SL_OP_MUL && repeatable(b) && sl_jinja_is_int(a)) return multiply(run, out, b, sl_jinja_as_int(a));
    return no_operator(op, a, b);
}

// ---- comparisons ----

sl_status sl_jinja_relation(sl_jinja_run *run, bool *out, sl_jinja_op op, sl_jinja_value a, sl_jinja_value b) {
    int c;
    if (op == SL_OP_EQ || op == SL_OP_NE) {
        SL_TRY(sl_jinja_equal(run, out, a, b));
        *out ^= op == SL_OP_NE;
    } else if (op == SL_OP_IN || op == SL_OP_NOT_IN) {
        SL_TRY(sl_jinja_contains(run, out, b, a));
        *out ^= op == SL_OP_NOT_IN;
    } else {
        SL_TRY(sl_jinja_compare(run, &c, a, b));
        *out = c != 2 && (op == SL_OP_LT ? c < 0 : op == SL_OP_LE ? c <= 0 : op == SL_OP_GT ? c > 0 : c >= 0);
    }
    return SL_OK;
}
