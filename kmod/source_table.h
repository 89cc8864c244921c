/* SPDX-License-Identifier: GPL-2.0-only */
/* All event sources, by kind of event. */
#ifndef WEFT_KMOD_SOURCE_TABLE_H
#define WEFT_KMOD_SOURCE_TABLE_H

#include "event_source.h"

/* Returns the source of events of a kind (enum weft_kernel_event_kind), which may be any number.
 * NULL: there is no such kind. */
const struct weft_event_source *weft_source_of(u32 kind);

/* Returns the features (enum weft_kernel_feature) of all sources together. */
u32 weft_source_features(void);

/* The module is unloaded: no event is left. */
void weft_sources_exit(void);

#endif /* WEFT_KMOD_SOURCE_TABLE_H */
