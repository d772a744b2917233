/* Configs of published models: made into specs, and taken in place of specs. */
#include "session/api/api.h"

#include <string.h>

#include "import/import.h"

/* Reads the file of a config. One that is too large is a mistake of the input, as any text that is no
 * config. */
static etch_status read_file(etch_session *session, const char *path, char **text, size_t *length)
{
    const char *why;
    const etch_status status = etch_read_file(session->arena, path, ETCH_CONFIG_LIMIT, text, length, &why);
    if (status == ETCH_OK)
        return ETCH_OK;
    if (strcmp(why, ETCH_FILE_TOO_LARGE) == 0) {
        etch_config_report_large(session->diags, path);
        return ETCH_EINPUT;
    }
    etch_error(session->diags, ETCH_E_SPEC_UNREADABLE, (etch_span){0, 0}, "cannot read '%s': %s", path, why);
    return status;
}

typedef struct importing {
    etch_session *session;
    const etch_import_options *options;
    etch_imported result;
    /* as the caller has it */
    etch_imported *handed;
} importing;

static etch_status import(void *data)
{
    importing *i = data;
    etch_session *session = i->session;
    const etch_import_options *o = i->options;
    char *text = NULL;
    size_t length = o->length;
    const etch_status status = o->text ? ETCH_OK : read_file(session, o->name, &text, &length);
    if (status != ETCH_OK)
        return status;
    const etch_imported_config *config =
        etch_import_config(session->arena, session->diags, o->name, o->text ? o->text : text, length);
    if (!config)
        return ETCH_EINPUT;
    i->result = (etch_imported){
        .spec = config->spec, .model_type = config->model_type, .file = config->file, .model = config->model};
    return ETCH_OK;
}

static etch_status import_for_caller(void *data)
{
    importing *i = data;
    const etch_status status = import(i);
    if (status != ETCH_OK)
        return status;
    i->handed = ETCH_NEW(i->session->arena, etch_imported);
    *i->handed = i->result;
    return ETCH_OK;
}

etch_status etch_session_import(etch_session *session, const etch_import_options *options,
                                const etch_imported **imported)
{
    etch_import_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    if (!unfit && !own.name)
        unfit = "the options name no config";
    importing i = {.session = session, .options = &own};
    const etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run_plain(session, import_for_caller, &i);
    *imported = status == ETCH_OK ? i.handed : NULL;
    return status;
}

etch_status etch_session_take_config(etch_session *session)
{
    etch_session_options *o = &session->options;
    if (!etch_is_config(o->spec, o->text) || session->took_config)
        return ETCH_OK;
    const etch_import_options options = {
        .name = o->spec, .text = o->text, .length = o->text ? strlen(o->text) : 0};
    importing i = {.session = session, .options = &options};
    const etch_status status = import(&i);
    if (status != ETCH_OK)
        return status;
    o->text = etch_copy_string(session->kept, i.result.spec);
    o->spec = etch_text(session->kept, "%s (imported)", o->spec);
    session->took_config = true;
    return ETCH_OK;
}
