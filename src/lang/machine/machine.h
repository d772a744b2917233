/* Devices and clusters of a spec. Part of what other modules see of lang. */
#ifndef ETCH_LANG_MACHINE_MACHINE_H
#define ETCH_LANG_MACHINE_MACHINE_H

#include "lang/names/names.h"
#include "machine/machine.h"

/* Reads every device and cluster of the files of the spec; mistakes go to its diagnostics. */
void etch_machines_read(etch_spec *spec);
/* Puts numbers in place of those of a device, level or stack of the spec's own file: "nvlink.bandwidth = 900
 * GB/s". Mistakes go to its diagnostics. */
void etch_machines_set(etch_spec *spec, const char *text);

/* Those that the spec's own file sees, in order of declaration. */
uint32_t etch_spec_devices(const etch_spec *spec, const etch_device *const **devices);
uint32_t etch_spec_clusters(const etch_spec *spec, const etch_cluster *const **clusters);

#endif
