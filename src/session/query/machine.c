/* Which device of a spec is meant. */
#include "session/query/query.h"

bool etch_session_device(etch_session *session, bool needs_level, etch_machine *out)
{
    const etch_device *const *devices;
    const etch_cluster *const *clusters;
    const uint32_t count = etch_spec_devices(session->spec, &devices);
    const uint32_t cluster_count = etch_spec_clusters(session->spec, &clusters);
    if (count != 1) {
        etch_diag *diag = etch_error(session->diags, ETCH_E_MACHINE_CHOICE, (etch_span){0, 0},
                                     count ? "the spec has %u devices" : "the spec has no device", count);
        etch_help(diag, "name a spec with one `device NAME { ... }`");
        return false;
    }
    *out = (etch_machine){.device = devices[0]};
    if (cluster_count == 1 && clusters[0]->levels.count > 0)
        out->level = &clusters[0]->levels.at[0];
    if (out->level || !needs_level)
        return true;
    etch_diag *diag =
        etch_error(session->diags, ETCH_E_MACHINE_CHOICE, (etch_span){0, 0},
                   cluster_count > 1 ? "the spec has %u clusters" : "the spec has no cluster with a level",
                   cluster_count);
    etch_help(diag, "collectives are of a level: write `cluster NAME { device = .., level NAME { ... } }`");
    return false;
}
