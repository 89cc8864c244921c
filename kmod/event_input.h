/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes an event that probes can run from the caller's input, which is copied once, checked, and
 * then used.
 */
#ifndef WEFT_KMOD_EVENT_INPUT_H
#define WEFT_KMOD_EVENT_INPUT_H

#include "event.h"

/* Copies what `arg` points to. Returns 0, or an error; then there is nothing to free. */
int weft_event_input_copy(struct weft_event_input *input, const struct weft_kernel_event *arg);
void weft_event_input_free(struct weft_event_input *input);

/* Checks the input and fills a new event with it, except for what its source keeps. */
int weft_event_make(struct weft_event *event, const struct weft_event_input *input);

#endif /* WEFT_KMOD_EVENT_INPUT_H */
