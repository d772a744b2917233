/* Settings: values put into expressions. */
#include "lang/names/symbols.h"

enum { ETCH_APPLY_BATCH = 64 };

/* One pass over all settings. Values that speak of others are put in one batch after another, which
 * changes nothing in the end. */
static etch_expr apply_once(etch_sym *sym, const etch_settings *settings, etch_expr expr)
{
    etch_expr vars[ETCH_APPLY_BATCH], values[ETCH_APPLY_BATCH];
    for (uint32_t start = 0; expr && start < settings->count; start += ETCH_APPLY_BATCH) {
        uint32_t count = 0;
        for (uint32_t i = start; i < settings->count && count < ETCH_APPLY_BATCH; i++, count++) {
            vars[count] = settings->at[i].var;
            values[count] = settings->at[i].value;
        }
        expr = etch_subst(sym, expr, count, vars, values);
    }
    return expr;
}

/* Values need one another in no circle, and each is looked at once. */
void etch_settings_need(etch_sym *sym, const etch_settings *settings, etch_expr expr)
{
    const etch_expr *vars = NULL;
    const uint32_t count = settings->needed && expr ? etch_vars_of(sym, expr, &vars) : 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < settings->count; k++) {
            const etch_setting *setting = &settings->at[k];
            if (setting->var != vars[i] || settings->needed[k - setting->derived])
                continue;
            settings->needed[k - setting->derived] = true;
            if (setting->written != setting->value)
                etch_settings_need(sym, settings, setting->written);
        }
}

etch_expr etch_settings_apply(etch_sym *sym, const etch_settings *settings, etch_expr expr)
{
    bool constants = true;
    for (uint32_t i = 0; i < settings->count; i++)
        constants = constants && settings->at[i].value && etch_is_constant(settings->at[i].value);
    if (!expr || etch_is_constant(expr) || settings->count == 0)
        return expr;
    etch_settings_need(sym, settings, expr);
    etch_expr next = apply_once(sym, settings, expr);
    for (uint32_t round = 0; !constants && next && next != expr && round < settings->count; round++) {
        expr = next;
        next = apply_once(sym, settings, expr);
    }
    return next;
}
