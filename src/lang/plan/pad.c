/* `pad V = 128*tp`: sizes that ranks round up. */
#include "lang/plan/plan_int.h"

static bool given_before(etch_plan_builder *b, const etch_ast_def *def)
{
    for (uint32_t i = 0; i < b->plan->pads.count; i++) {
        const etch_pad *pad = &b->plan->pads.at[i];
        if (pad->dim != def->name.text)
            continue;
        etch_diag *diag =
            etch_error(b->spec->diags, ETCH_E_PAD, def->span, "dim '%s' is padded twice", pad->dim);
        etch_note(diag, pad->span, "it is padded here already");
        return true;
    }
    return false;
}

void etch_plan_read_pad(etch_plan_builder *b, const etch_ast_def *def)
{
    etch_spec *spec = b->spec;
    const etch_lookup lookup = etch_plan_lookup(spec, b->symbol->home, b->plan);
    if (def->value->kind == ETCH_AST_BROKEN || given_before(b, def))
        return;
    const bool known = etch_select_dim(spec, def->name);
    etch_expr multiple = etch_number_of(spec, def->value, &lookup);
    if (!multiple)
        return;
    if (etch_is_integer(spec->sym, multiple, NULL) == ETCH_NO ||
        etch_at_least(spec->sym, etch_int(spec->sym, 0), multiple, NULL) == ETCH_YES) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_PAD, def->value->span,
                                     "a dim is padded to a multiple of a whole number above 0, not of %s",
                                     etch_expr_text(spec->sym, multiple));
        etch_help(diag, "for example pad %s = 128*tp", def->name.text);
        return;
    }
    ETCH_PUSH(spec->arena, &b->plan->pads,
              (etch_pad){.dim = def->name.text, .multiple = multiple, .known = known, .span = def->span});
}
