// SPDX-License-Identifier: Apache-2.0
// Checks the Trace or ClusterTrace of a review, as a file is checked. The CRD is the authority: by
// it the API server refuses nearly all of that later, in worse words (docs/adr/0084). A tenant's
// bytes are read with the limits of files (lib/api/limits.h).
// Thread-safety: pure functions.
#ifndef WEFT_UST_INJECTOR_WEBHOOK_TRACE_CHECK_H_
#define WEFT_UST_INJECTOR_WEBHOOK_TRACE_CHECK_H_

#include "ust-injector/webhook/review.h"

namespace weft::webhook {

bool IsTrace(const AdmissionRequest& request);

// Returns the Status (meta/v1) with which the API server is to refuse the object, with a cause for
// each problem of its name and spec. Returns null if there is none.
Json WhyRefused(const AdmissionRequest& request);

// Returns the Status that refuses a new Trace of a namespace that has `others`; null: it may have
// one more.
Json WhyOneTooMany(std::size_t others, std::size_t most);

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_TRACE_CHECK_H_
