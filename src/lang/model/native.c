/* Models that a program builds: they stand beside those of the spec, with the spec's names at hand. */
#include "lang/model/model_int.h"

struct etch_site {
    etch_env env;
};

void etch_natives_declare(etch_spec *spec, const etch_native *natives, size_t count)
{
    etch_ast *ast = spec->files.at[spec->files.count - 1]; /* the spec itself */
    for (size_t i = 0; i < count; i++) {
        const char *name = etch_name_of(spec->names, natives[i].name);
        ETCH_PUSH(spec->arena, &ast->items, (etch_ast_item){.kind = ETCH_AST_MODEL, .name = {.text = name}});
        etch_native_model model = {.name = name, .native = natives[i]};
        ETCH_PUSH(spec->arena, &spec->natives, model);
    }
}

const etch_native *etch_native_of(const etch_spec *spec, const etch_symbol *model)
{
    for (uint32_t i = 0; i < spec->natives.count; i++)
        if (spec->natives.at[i].name == model->name && model->home == spec->main)
            return &spec->natives.at[i].native;
    return NULL;
}

void etch_native_build(etch_env *env, const etch_native *native)
{
    etch_site site = {.env = *env};
    native->build(native->data, &site);
}

etch_graph *etch_site_graph(etch_site *site)
{
    return site->env.builder->graph;
}

etch_names *etch_site_names(etch_site *site)
{
    return site->env.builder->spec->names;
}

etch_dim *etch_site_dim(etch_site *site, const char *name)
{
    return etch_env_dim(&site->env, (etch_ast_name){.text = etch_name_of(etch_site_names(site), name)});
}

etch_spec *etch_site_spec(etch_site *site)
{
    return site->env.builder->spec;
}
