/* The rows of a frame, one after the other: the last axis is the fastest. Values may depend on those of axes
 * before; factors of the equation are divisors of what those before leave. */
#include "session/sweep/sweep_int.h"

#include <string.h>

/* ---- lists --------------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_exact) exact_list;

static void add_number(etch_arena *arena, exact_list *list, int64_t number)
{
    ETCH_PUSH(arena, list, (etch_exact){number, 1, NULL});
}

/* Divisors in rising order. */
static void add_divisors(etch_arena *arena, exact_list *list, int64_t number)
{
    exact_list large = {0};
    for (int64_t d = 1; d <= number / d; d++) {
        if (number % d != 0)
            continue;
        add_number(arena, list, d);
        if (d != number / d)
            add_number(arena, &large, number / d);
    }
    for (uint32_t i = large.count; i-- > 0;)
        add_number(arena, list, large.at[i].number);
}

/* None, where the step leads away from the last one. */
static bool add_range(etch_arena *arena, exact_list *list, int64_t first, int64_t last, int64_t step)
{
    if (step == 0)
        return false;
    if (step > 0 ? first > last : first < last)
        return true;
    const uint64_t apart = step > 0 ? (uint64_t)last - (uint64_t)first : (uint64_t)first - (uint64_t)last;
    const uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (apart / by >= ETCH_SWEEP_VALUES)
        return false;
    for (uint64_t i = 0; i <= apart / by; i++)
        add_number(arena, list, step > 0 ? first + (int64_t)(i * by) : first - (int64_t)(i * by));
    return true;
}

static bool add_powers(etch_arena *arena, exact_list *list, int64_t base, int64_t from, int64_t to)
{
    enum { LAST_EXPONENT = 62 };
    int64_t power = 1;
    if (base < 1 || from < 0 || to > LAST_EXPONENT)
        return false;
    for (int64_t i = 0; i <= to; i++) {
        if (i >= from)
            add_number(arena, list, power);
        if (i < to && power > INT64_MAX / base)
            return false;
        power *= i < to ? base : 1;
    }
    return true;
}

bool etch_piece_values(etch_arena *arena, etch_values_kind kind, const etch_exact *arguments, uint32_t count,
                       etch_exact **values, uint32_t *value_count)
{
    enum { DIVIDED = 1 << 30 };
    exact_list list = {0};
    bool fine = true, whole = true;
    for (uint32_t i = 0; i < count; i++)
        whole = whole && !arguments[i].text && arguments[i].denominator == 1;
    const int64_t a = arguments[0].number, b = arguments[1 % count].number, c = arguments[count - 1].number;
    switch (kind) {
    case ETCH_VALUES_NUMBER:
        ETCH_PUSH(arena, &list, arguments[0]);
        whole = !arguments[0].text;
        break;
    case ETCH_VALUES_RANGE:
        fine = whole && add_range(arena, &list, a, b, count > 2 ? c : 1);
        break;
    case ETCH_VALUES_POWERS:
        fine = whole && add_powers(arena, &list, a, b, c);
        break;
    case ETCH_VALUES_DIVISORS:
        fine = whole && a > 0 && a / DIVIDED < DIVIDED;
        if (fine)
            add_divisors(arena, &list, a);
        break;
    }
    *values = list.at;
    *value_count = list.count;
    return fine && whole;
}

const char *etch_piece_needs(etch_values_kind kind)
{
    static const char *const needs[] = {
        [ETCH_VALUES_NUMBER] = "write numbers, as in 'tp = 1, 2, 4'",
        [ETCH_VALUES_RANGE] = "range(FIRST, LAST, STEP) needs integers, and a step that is not 0",
        [ETCH_VALUES_POWERS] = "powers(BASE, FROM, TO) needs integers: BASE from 1, FROM from 0, TO up to 62",
        [ETCH_VALUES_DIVISORS] = "divisors(NUMBER) needs an integer above 0"};
    return needs[kind];
}

/* ---- levels -------------------------------------------------------------------------------------------- */

static void add_value(etch_walk *w, etch_walk_level *level, etch_exact value)
{
    if (level->count == level->capacity) {
        const uint32_t capacity = level->capacity ? 2 * level->capacity : 16;
        etch_exact *own = ETCH_NEW_ARRAY(w->arena, capacity, etch_exact);
        if (level->count)
            memcpy(own, level->own, level->count * sizeof *own);
        level->own = own;
        level->capacity = capacity;
    }
    level->own[level->count++] = value;
    level->values = level->own;
}

static bool report_values(etch_walk *w, const etch_sweep_axis *axis, etch_values_kind kind)
{
    etch_diag *diag = etch_error(w->session->diags, ETCH_E_SWEEP_VALUES, (etch_span){0, 0},
                                 "'%s' has no such values: they are numbers of 64 bits, and at most %d",
                                 axis->name, (int)ETCH_SWEEP_VALUES);
    etch_help(diag, "%s", etch_piece_needs(kind));
    w->failed = true;
    return false;
}

/* The arguments of all pieces, with the values of the axes before. */
static bool evaluate(etch_walk *w, const etch_sweep_axis *axis, const etch_exact *row, etch_exact *out)
{
    const size_t count = etch_program_formulas(axis->program);
    const size_t inputs = etch_program_variables(axis->program);
    etch_arena *scratch = etch_arena_new(etch_arena_mem(w->arena));
    etch_column *columns = ETCH_NEW_ARRAY(scratch, inputs + 1, etch_column);
    int64_t *values = ETCH_NEW_ARRAY(scratch, count, int64_t);
    unsigned char *kinds = ETCH_NEW_ARRAY(scratch, count, unsigned char);
    for (size_t i = 0; i < inputs; i++)
        columns[i] = (etch_column){&row[axis->inputs[i]].number, &row[axis->inputs[i]].denominator, true};
    bool fine = (w->workspace || etch_workspace_new(&w->workspace) == ETCH_OK) &&
                etch_program_evaluate(axis->program, 1, columns, values, kinds, w->workspace) == ETCH_OK;
    for (size_t i = 0; fine && i < count; i++) {
        out[i] = (etch_exact){values[i], 1, NULL};
        if (kinds[i] == ETCH_VALUE_RATIONAL)
            fine = etch_workspace_fraction(w->workspace, values[i], &out[i].number, &out[i].denominator);
        else
            fine = kinds[i] == ETCH_VALUE_INTEGER;
    }
    etch_arena_free(scratch);
    return fine || report_values(w, axis, axis->pieces[0].kind);
}

/* Values that depend on those before. A number of which there are no divisors has none. */
static bool fill_dependent(etch_walk *w, const etch_sweep_axis *axis, etch_walk_level *level,
                           const etch_exact *row)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(w->arena));
    etch_exact *arguments = ETCH_NEW_ARRAY(scratch, etch_program_formulas(axis->program), etch_exact);
    bool fine = evaluate(w, axis, row, arguments);
    for (uint32_t i = 0; fine && i < axis->piece_count; i++) {
        const etch_sweep_piece *piece = &axis->pieces[i];
        const etch_exact *first = &arguments[piece->formula];
        etch_exact *values;
        uint32_t count;
        if (piece->kind == ETCH_VALUES_DIVISORS && (first->denominator != 1 || first->number < 1))
            continue;
        fine = etch_piece_values(scratch, piece->kind, first, piece->count, &values, &count) ||
               report_values(w, axis, piece->kind);
        for (uint32_t k = 0; fine && k < count; k++)
            add_value(w, level, values[k]);
    }
    etch_arena_free(scratch);
    return fine;
}

/* What the factors before leave of the product; 0: nothing that is whole. */
static uint64_t rest_of(const etch_walk *w, uint32_t index, const etch_exact *row)
{
    uint64_t rest = w->frame->product;
    for (uint32_t i = 0; i < index; i++)
        if (w->frame->axes[i].is_factor)
            rest = rest % (uint64_t)row[i].number == 0 ? rest / (uint64_t)row[i].number : 0;
    return rest;
}

static bool fits(const etch_walk *w, uint32_t index, uint64_t rest, etch_exact value)
{
    if (value.text || value.denominator != 1 || value.number < 1 || rest % (uint64_t)value.number != 0)
        return false;
    return index != w->frame->last_factor || rest == (uint64_t)value.number;
}

static void fill_free(etch_walk *w, uint32_t index, uint64_t rest, etch_walk_level *level)
{
    exact_list divisors = {0};
    if (index == w->frame->last_factor)
        add_value(w, level, (etch_exact){(int64_t)rest, 1, NULL});
    else
        add_divisors(w->arena, &divisors, (int64_t)rest);
    for (uint32_t i = 0; i < divisors.count; i++)
        add_value(w, level, divisors.at[i]);
}

static bool fill(etch_walk *w, uint32_t index, const etch_exact *row)
{
    const etch_sweep_axis *axis = &w->frame->axes[index];
    etch_walk_level *level = &w->levels[index];
    const uint64_t rest = axis->is_factor ? rest_of(w, index, row) : 0;
    level->count = level->at = 0;
    if (axis->is_free) {
        fill_free(w, index, rest, level);
        return true;
    }
    if (axis->program && !fill_dependent(w, axis, level, row))
        return false;
    if (!axis->program && !axis->is_factor) {
        level->values = axis->values;
        level->count = axis->value_count;
        return true;
    }
    for (uint32_t i = 0; !axis->program && i < axis->value_count; i++)
        if (fits(w, index, rest, axis->values[i]))
            add_value(w, level, axis->values[i]);
    if (axis->program && axis->is_factor) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < level->count; i++)
            if (fits(w, index, rest, level->own[i]))
                level->own[kept++] = level->own[i];
        level->count = kept;
    }
    return true;
}

/* ---- cuts ---------------------------------------------------------------------------------------------- */

/* Do all other statements hold for some row that was looked at? */
static bool may_cut(const etch_sweep *sweep, const etch_sweep_frame *frame, uint32_t statement)
{
    for (uint32_t s = 0; s < sweep->request.where.count; s++)
        if (s != statement && frame->kinds[s] == ETCH_WHERE_PLAIN && sweep->met[s] == 0)
            return false;
    return true;
}

/* False: it is no number of words. */
static bool value_at(const etch_walk *w, const int64_t *values, const unsigned char *kinds, uint32_t i,
                     etch_exact *out)
{
    *out = (etch_exact){values[i], 1, NULL};
    if (kinds[i] == ETCH_VALUE_RATIONAL)
        return etch_workspace_fraction(w->workspace, values[i], &out->number, &out->denominator);
    return kinds[i] == ETCH_VALUE_INTEGER;
}

/* Formulas of one row. */
enum { MOST_FORMULAS = 256 };
typedef struct row_values {
    int64_t values[MOST_FORMULAS];
    unsigned char kinds[MOST_FORMULAS];
} row_values;

/* False: there are too many, or memory is out. */
static bool evaluate_row(etch_walk *w, const etch_program *program, const uint32_t *inputs,
                         const etch_exact *row, row_values *out)
{
    enum { MOST_INPUTS = 64 };
    etch_column columns[MOST_INPUTS];
    if (etch_program_formulas(program) > MOST_FORMULAS || etch_program_variables(program) > MOST_INPUTS)
        return false;
    for (size_t i = 0; i < etch_program_variables(program); i++)
        columns[i] = (etch_column){&row[inputs[i]].number, &row[inputs[i]].denominator, true};
    return (w->workspace || etch_workspace_new(&w->workspace) == ETCH_OK) &&
           etch_program_evaluate(program, 1, columns, out->values, out->kinds, w->workspace) == ETCH_OK;
}

typedef enum claim_state { CLAIM_UNKNOWN, CLAIM_HOLDS, CLAIM_FAILS } claim_state;

static claim_state state_of(const etch_walk *w, const row_values *v, const etch_sweep_claim *claim)
{
    etch_exact left, right;
    if (!value_at(w, v->values, v->kinds, claim->left, &left) ||
        !value_at(w, v->values, v->kinds, claim->right, &right))
        return CLAIM_UNKNOWN;
    return etch_exact_holds(w->arena, claim->relation, left, right) ? CLAIM_HOLDS : CLAIM_FAILS;
}

/* Are all rows cut that have these values up to an axis? */
static bool is_cut(etch_walk *w, uint32_t level, const etch_exact *row)
{
    const etch_sweep_cuts *cuts = &w->frame->cuts[level];
    row_values v;
    if (cuts->count == 0 || !evaluate_row(w, cuts->program, cuts->inputs, row, &v))
        return false;
    for (uint32_t i = 0; i < cuts->count; i++)
        if (state_of(w, &v, &cuts->claims[i]) == CLAIM_FAILS && may_cut(w->sweep, w->frame, cuts->of[i]))
            return true;
    return false;
}

/* The case of all rows behind; NULL: nothing is known of it yet. */
static const etch_case_cut *cut_of(const etch_walk *w, uint32_t level, const etch_exact *row)
{
    enum { MOST_AXES = 64 };
    etch_exact values[MOST_AXES], own[MOST_AXES];
    const uint32_t count = w->frame->axis_count;
    if (count > MOST_AXES)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        values[i] = i <= level ? row[i] : (etch_exact){0};
    const etch_case_key key = etch_case_key_of(w->frame, false, values, own);
    const etch_sweep_case *found = etch_case_find(w->sweep, &key);
    const bool known = found && found->state == ETCH_CASE_READY && found->cuts;
    return known && found->cuts[level].program ? &found->cuts[level] : NULL;
}

/* Do all plain statements hold, which speak of the axes up to `level` alone? */
static bool holds_before(etch_walk *w, const etch_exact *row)
{
    const etch_sweep_frame *frame = w->frame;
    row_values v;
    if (frame->program && !evaluate_row(w, frame->program, frame->inputs, row, &v))
        return false;
    for (uint32_t s = 0; frame->program && s < w->sweep->request.where.count; s++)
        if (frame->kinds[s] == ETCH_WHERE_PLAIN && state_of(w, &v, &frame->claims[s]) != CLAIM_HOLDS)
            return false;
    return true;
}

/* Does some row that was looked at meet each of the other statements about quantities? */
static bool others_are_met(const etch_walk *w, uint32_t statement)
{
    for (uint32_t s = 0; s < w->sweep->request.where.count; s++)
        if (s != statement && w->frame->kinds[s] == ETCH_WHERE_QUANTITY && w->sweep->met[s] == 0)
            return false;
    return true;
}

/* The same by statements about quantities: no row behind is refused, and none meets one of them. */
static bool is_cut_by_quantity(etch_walk *w, uint32_t level, const etch_exact *row)
{
    const etch_case_cut *cut =
        w->frame->cuts[level].plain_before && w->frame->cuts[level].rows > 0 ? cut_of(w, level, row) : NULL;
    row_values v;
    if (!cut || !evaluate_row(w, cut->program, cut->inputs, row, &v))
        return false;
    bool fails = false;
    for (uint32_t i = 0; i < cut->count; i++)
        fails = fails || (state_of(w, &v, &cut->claims[i]) == CLAIM_FAILS && others_are_met(w, cut->of[i]));
    for (uint32_t i = 0; fails && i < cut->must_count; i++) {
        const etch_case_must *must = &cut->musts[i];
        etch_exact left = {0}, right = {0};
        const bool defined = value_at(w, v.values, v.kinds, must->left, &left) &&
                             value_at(w, v.values, v.kinds, must->right, &right);
        fails = defined && etch_case_must_is_met(w->arena, &must->must, true, left, right);
    }
    return fails && holds_before(w, row);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

void etch_walk_start(etch_walk *w, etch_arena *arena, etch_session *session, const etch_sweep_frame *frame,
                     const etch_sweep *sweep)
{
    *w = (etch_walk){.arena = arena, .session = session, .frame = frame};
    w->sweep = frame->cuts ? sweep : NULL;
    w->levels = ETCH_NEW_ARRAY(arena, frame->axis_count, etch_walk_level);
}

/* How many rows have these values of the axes before one. */
static bool count_behind(etch_walk *w, uint32_t level, etch_exact *row, uint64_t *rows)
{
    etch_walk_level *now = &w->levels[level];
    if (level > 0 && w->frame->cuts[level - 1].rows > 0) {
        *rows += w->frame->cuts[level - 1].rows;
        return true;
    }
    if (!fill(w, level, row))
        return false;
    for (; now->at < now->count; now->at++) {
        row[level] = now->values[now->at];
        if (!count_behind(w, level + 1, row, rows))
            return false;
    }
    return true;
}

typedef enum walk_step { STEP_END, STEP_ROW, STEP_CUT } walk_step;

/* Goes on to the next row, or passes all rows behind some values. */
static walk_step step(etch_walk *w, etch_exact *row)
{
    const uint32_t count = w->frame->axis_count;
    uint32_t level = w->level;
    if (w->over || w->failed)
        return STEP_END;
    if (count == 0) {
        w->over = true;
        return STEP_ROW;
    }
    if (!w->started && !fill(w, 0, row))
        return STEP_END;
    w->started = true;
    for (;;) {
        etch_walk_level *now = &w->levels[level];
        if (now->at == now->count) {
            w->over = level == 0;
            if (w->over)
                return STEP_END;
            level--;
            continue;
        }
        row[level] = now->values[now->at++];
        w->level = level;
        if (level + 1 == count)
            return STEP_ROW;
        const bool plainly = w->sweep && is_cut(w, level, row);
        w->cut_by_quantity = w->sweep && !plainly && is_cut_by_quantity(w, level, row);
        if (plainly || w->cut_by_quantity)
            return count_behind(w, level + 1, row, &w->cut) ? STEP_CUT : STEP_END;
        if (!fill(w, ++level, row))
            return STEP_END;
    }
}

bool etch_walk_next(etch_walk *w, etch_exact *row)
{
    return step(w, row) == STEP_ROW;
}

bool etch_walk_more(etch_walk *w, etch_exact *row)
{
    while (w->cut == 0 && !w->ready) {
        const walk_step next = step(w, row);
        if (next == STEP_END)
            return false;
        w->ready = next == STEP_ROW;
    }
    return true;
}

uint64_t etch_walk_take_cut(etch_walk *w, uint64_t most)
{
    const uint64_t count = w->cut < most ? w->cut : most;
    w->cut -= count;
    return count;
}

void etch_walk_take_row(etch_walk *w)
{
    w->ready = false;
}

uint64_t etch_walk_skip(etch_walk *w, etch_exact *row, uint64_t count)
{
    uint64_t passed = 0;
    while (passed < count && etch_walk_more(w, row)) {
        const uint64_t cut = etch_walk_take_cut(w, count - passed);
        passed += cut > 0 ? cut : 1;
        if (cut > 0)
            continue;
        etch_walk_take_row(w);
        if (w->frame->axis_count == 0)
            continue;
        /* the rest of the last axis at once */
        etch_walk_level *last = &w->levels[w->frame->axis_count - 1];
        const uint64_t here = last->count - last->at, rest = count - passed;
        last->at += (uint32_t)(here < rest ? here : rest);
        passed += here < rest ? here : rest;
    }
    return passed;
}

void etch_walk_end(etch_walk *w)
{
    etch_workspace_free(w->workspace);
    w->workspace = NULL;
}
