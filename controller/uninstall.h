// SPDX-License-Identifier: Apache-2.0
// What the chart's pre-delete hook does: ends every session, so that nothing of weft holds an
// object after it is gone. Traces stay, without weft's finalizer.
#ifndef WEFT_CONTROLLER_UNINSTALL_H_
#define WEFT_CONTROLLER_UNINSTALL_H_

#include <string>

#include "controller/controller.h"
#include "lib/base/result.h"
#include "lib/kube/client.h"

namespace weft::controller {

// Scales the Deployment weft-controller to none, and waits until its pods are gone: a controller
// that goes on would make the sessions again. No such Deployment is no error.
Status StopController(kube::Client& client, const std::string& name_space);

// Waits until no Trace has the finalizer, which `controller` removes meanwhile; it runs on another
// thread, with Options.uninstalling.
Status WaitUntilReleased(const Controller& controller);

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_UNINSTALL_H_
