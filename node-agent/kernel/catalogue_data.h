// SPDX-License-Identifier: Apache-2.0
// The YAML documents of catalogue/, as the build puts them into the program.
#ifndef WEFT_NODE_AGENT_KERNEL_CATALOGUE_DATA_H_
#define WEFT_NODE_AGENT_KERNEL_CATALOGUE_DATA_H_

#include <span>
#include <string_view>

namespace weft::kernel {

std::span<const std::string_view> CatalogueDocuments();

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_CATALOGUE_DATA_H_
