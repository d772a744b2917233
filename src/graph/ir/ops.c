/* The op table: all families. Shapes, costs, gradients and placement of every op follow from its row.
 *
 * FLOP constants of rows: a multiply-add is 2; one for each addition, product, comparison, division or
 * elementary function of an element. */
#include "graph/ir/families/family.h"

#define LISTED(name) &etch_family_##name,
static const etch_rows *const families[] = {ETCH_FAMILIES(LISTED)};

const etch_table *etch_table_builtin(void)
{
    static const etch_table table = {families, sizeof families / sizeof families[0]};
    return &table;
}
