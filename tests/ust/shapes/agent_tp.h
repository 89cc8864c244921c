/* SPDX-License-Identifier: Apache-2.0 */
/* Log bridges of other languages: strings only, one of the macros' layers replaces the event's
   name. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_agent

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "shapes/agent_tp.h"

#if !defined(SHAPES_AGENT_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_AGENT_TP_H_

#include <lttng/tracepoint.h>

#undef SHAPE_LOG_EVENT
#define SHAPE_LOG_EVENT(level)                                                                    \
  TRACEPOINT_EVENT(                                                                               \
      shape_agent, log_##level,                                                                   \
      TP_ARGS(const char*, msg, const char*, logger_name, unsigned int, lineno, long, millis),    \
      TP_FIELDS(ctf_string(msg, msg) ctf_string(logger_name, logger_name)                         \
                    ctf_integer(unsigned int, lineno, lineno) ctf_integer(long, millis, millis))) \
  TRACEPOINT_LOGLEVEL(shape_agent, log_##level, TRACE_##level)

SHAPE_LOG_EVENT(DEBUG)
SHAPE_LOG_EVENT(WARNING)
TRACEPOINT_MODEL_EMF_URI(shape_agent, log_WARNING, "http://example.com/model?q=log")

#endif

#include <lttng/tracepoint-event.h>
