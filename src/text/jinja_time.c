// SPDX-License-Identifier: MIT
//
// strftime with English names, whatever the process's locale is. The calendar is the proleptic
// Gregorian one.
#include "text/jinja_callable.h"

typedef struct date {
    int64_t year;
    int month, day, weekday, yday, hour, minute,
        second; // month and day from 1, weekday from 0 = Sunday, yday from 0
    int64_t unix_s;
} date;

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

static bool is_leap(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

static date date_of(int64_t s) {
    date d = {.unix_s = s};
    int64_t n = s / 86400, rest = s % 86400;
    if (rest < 0) rest += 86400, n--;
    d.hour = (int)(rest / 3600);
    d.minute = (int)(rest / 60 % 60);
    d.second = (int)(rest % 60);
    d.weekday = (int)(((n + 4) % 7 + 7) % 7);
    n += 719468; // days since 0000-03-01, in eras of 400 years (Hinnant, "chrono-compatible
                 // low-level date algorithms")
    int64_t era = (n >= 0 ? n : n - 146096) / 146097, doe = n - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    d.day = (int)(doy - (153 * mp + 2) / 5 + 1);
    d.month = (int)(mp < 10 ? mp + 3 : mp - 9);
    d.year = yoe + era * 400 + (d.month <= 2);
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    d.yday = before[d.month - 1] + d.day - 1 + (d.month > 2 && is_leap(d.year));
    return d;
}

static void iso_week(const date *d, int64_t *year, int *week) {
    int monday = (d->weekday + 6) % 7;
    int w = (d->yday - monday + 10) / 7;
    *year = d->year;
    int last_jan1 = ((d->weekday - d->yday) % 7 + 14) % 7; // the weekday of January 1
    if (w < 1) {
        --*year;
        int jan1 = (last_jan1 - (is_leap(*year) ? 366 : 365) % 7 + 7) % 7;
        w = jan1 == 4 || (jan1 == 3 && is_leap(*year)) ? 53 : 52;
    } else if (w == 53 && !(last_jan1 == 4 || (last_jan1 == 3 && is_leap(d->year)))) {
        ++*year;
        w = 1;
    }
    *week = w;
}

// A number with at least `width` digits; `flag` is what stood after the %: - for none, _ for
// spaces, 0 for zeros.
static void put_number(sl_buf *buf, int64_t v, int width, char pad, char flag) {
    if (flag == '-') width = 0;
    if (flag == '_') pad = ' ';
    if (flag == '0') pad = '0';
    if (pad == ' ') sl_buf_printf(buf, "%*lld", width, (long long)v);
    else sl_buf_printf(buf, "%0*lld", width, (long long)v);
}

static void put_name(sl_buf *buf, const char *name, size_t n, char flag) {
    for (size_t i = 0; i < n && name[i]; i++) {
        char c = flag == '^' && name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 32) : name[i];
        sl_buf_append(buf, &c, 1);
    }
}

static const char *composite(char c) {
    switch (c) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'R': return "%H:%M";
    case 'r': return "%I:%M:%S %p";
    case 'T':
    case 'X': return "%H:%M:%S";
    default: return NULL;
    }
}

static bool put_field(sl_buf *buf, const date *d, char c, char flag) {
    int64_t year;
    int week, hour12 = d->hour % 12 ? d->hour % 12 : 12;
    switch (c) {
    case 'a': put_name(buf, days[d->weekday], 3, flag); break;
    case 'A': put_name(buf, days[d->weekday], 99, flag); break;
    case 'b':
    case 'h': put_name(buf, months[d->month - 1], 3, flag); break;
    case 'B': put_name(buf, months[d->month - 1], 99, flag); break;
    case 'C': put_number(buf, d->year / 100, 2, '0', flag); break;
    case 'd': put_number(buf, d->day, 2, '0', flag); break;
    case 'e': put_number(buf, d->day, 2, ' ', flag); break;
    case 'f': sl_buf_text(buf, "000000"); break;
    case 'H': put_number(buf, d->hour, 2, '0', flag); break;
    case 'I': put_number(buf, hour12, 2, '0', flag); break;
    case 'j': put_number(buf, d->yday + 1, 3, '0', flag); break;
    case 'k': put_number(buf, d->hour, 2, ' ', flag); break;
    case 'l': put_number(buf, hour12, 2, ' ', flag); break;
    case 'm': put_number(buf, d->month, 2, '0', flag); break;
    case 'M': put_number(buf, d->minute, 2, '0', flag); break;
    case 'n': sl_buf_text(buf, "\n"); break;
    case 'p': put_name(buf, d->hour < 12 ? "AM" : "PM", 2, flag); break;
    case 'P': sl_buf_text(buf, d->hour < 12 ? "am" : "pm"); break;
    case 's': put_number(buf, d->unix_s, 1, '0', flag); break;
    case 'S': put_number(buf, d->second, 2, '0', flag); break;
    case 't': sl_buf_text(buf, "\t"); break;
    case 'u': put_number(buf, d->weekday ? d->weekday : 7, 1, '0', flag); break;
    case 'U': put_number(buf, (d->yday + 7 - d->weekday) / 7, 2, '0', flag); break;
    case 'w': put_number(buf, d->weekday, 1, '0', flag); break;
    case 'W': put_number(buf, (d->yday + 7 - (d->weekday + 6) % 7) / 7, 2, '0', flag); break;
    case 'y': put_number(buf, (d->year % 100 + 100) % 100, 2, '0', flag); break;
    case 'Y': put_number(buf, d->year, 1, '0', flag); break;
    case 'z':
    case 'Z': break; // a time without a zone has no name for it
    case '%': sl_buf_text(buf, "%"); break;
    case 'g':
    case 'G':
    case 'V':
        iso_week(d, &year, &week);
        if (c == 'V') put_number(buf, week, 2, '0', flag);
        else put_number(buf, c == 'g' ? year % 100 : year, c == 'g' ? 2 : 1, '0', flag);
        break;
    default: return false;
    }
    return true;
}

sl_status sl_jinja_strftime(sl_buf *buf, sl_span format, int64_t local_s) {
    date d = date_of(local_s);
    for (size_t i = 0; i < format.n_bytes; i++) {
        size_t begin = i;
        char c = format.data[i], flag = 0;
        if (c != '%' || i + 1 == format.n_bytes) {
            sl_buf_append(buf, &c, 1);
            continue;
        }
        c = format.data[++i];
        if (c && strchr("-_0^#", c) && i + 1 < format.n_bytes) flag = c, c = format.data[++i];
        const char *parts = composite(c);
        if (parts) SL_TRY(sl_jinja_strftime(buf, sl_span_of(parts),
                                            local_s)); // one level: parts have no parts
        else if (!put_field(buf, &d, c, flag)) sl_buf_append(buf, format.data + begin, i + 1 - begin);
    }
    return buf->status;
}
