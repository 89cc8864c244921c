/* SPDX-License-Identifier: Apache-2.0 */
/* BLOB fields, which LTTng-UST has from 2.16 on. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER blob

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./blob_tp.h"

#if !defined(BLOB_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BLOB_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#define BLOB_MEDIA_TYPE "application/octet-stream"

LTTNG_UST_TRACEPOINT_EVENT(
    blob, each,
    LTTNG_UST_TP_ARGS(const uint8_t*, key, const void*, body, size_t, size, unsigned int, number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_fixed_length_blob(key, key, 4, BLOB_MEDIA_TYPE)
            lttng_ust_field_fixed_length_blob(page, key, 100, "")
                lttng_ust_field_variable_length_blob(body, body, uint16_t, size,
                                                     "application/"
                                                     "json; charset=\"utf-8\"")
                    lttng_ust_field_variable_length_blob(again, body, size_t, size, "image/png")
                        lttng_ust_field_fixed_length_blob_nowrite(hidden, key, 2, "image/png")
                            lttng_ust_field_variable_length_blob_nowrite(more, body, unsigned char,
                                                                         size, "image/png")
                                lttng_ust_field_integer(unsigned int, number, number)))

#endif

#include <lttng/tracepoint-event.h>
